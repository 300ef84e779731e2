"""Names that users type: also of balls in modules of their own, with endings."""

import pytest

from robustq.exceptions import InputError, UnknownNameError
from robustq.indicators.finding import find_indicator, find_neighbourhood, find_neighbourhoods

TEXT = """
from robustq.perturbations import TotalVariation

class Mine(TotalVariation):
    name = "mine"

class Mine_all(TotalVariation):
    name = "whole"

class Fussy(TotalVariation):
    name = "fussy"
    def __init__(self, size):
        self.size = size
"""


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    (tmp_path / "found_balls.py").write_text(TEXT)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("tv", "tv"),
        ("tv_all_rows", "tv_all_rows"),
        ("found_balls:Mine", "mine"),
        ("found_balls:Mine_rows", "mine_rows"),
        ("found_balls:Mine_joint", "mine_joint"),
        # A class of that name comes first.
        ("found_balls:Mine_all", "whole"),
        ("found_balls:Mine_all_rows", "whole_rows"),
    ],
)
def test_names_and_classes_are_found(given, name):
    assert find_neighbourhood(given).name == name
    assert find_indicator(f"r_{given}").name == f"r_{name}"


def test_a_class_alone_is_the_robustness_in_it():
    assert find_indicator("found_balls:Mine_rows").name == "r_mine_rows"
    assert find_indicator("u_max").name == "u_max"


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("tw", UnknownNameError, "did you mean 'tv'"),
        ("found_balls:Yours", InputError, "found_balls has no 'Yours'"),
        ("found_balls:Yours_all", InputError, "found_balls has no 'Yours_all'"),
        ("found_balls:Mine_some", InputError, "found_balls has no 'Mine_some'"),
        ("found_balls:Fussy", InputError, "cannot be made without arguments"),
        ("nowhere_at_all:Mine_all", InputError, "nowhere_at_all:Mine_all cannot be imported"),
        ("os:path_rows", InputError, "os has no 'path_rows'"),
    ],
)
def test_what_is_not_there_is_explained_as_it_was_written(given, error, message):
    with pytest.raises(error, match=message):
        find_neighbourhood(given)


def test_each_is_named_once():
    with pytest.raises(InputError, match="named once"):
        find_neighbourhoods(["tv_all", "tv", "tv_all"])
