"""Names and values as people read them."""

import pytest

from robustq.report.pages import _say_parameter, _symbol, begin_sentence


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("r_tv", "<i>r</i><sub>TV</sub>"),
        ("r_tv_all", "<i>r</i><sub>TV all</sub>"),
        ("r_epsilon_all_rows", "<i>r</i><sub>ε all rows</sub>"),
        ("r_chi2_joint", "<i>r</i><sub>χ² joint</sub>"),
        ("r_pari_mutuel_all", "<i>r</i><sub>pari mutuel all</sub>"),
        ("r_tvs", "<i>r</i><sub>tvs</sub>"),
        ("r_tv[prior]", "<i>r</i><sub>tv[prior]</sub>"),
        ("u_marg", "<i>u</i><sub>marg</sub>"),
        ("other", "other"),
        ("r_<b>", "<i>r</i><sub>&lt;b&gt;</sub>"),
    ],
)
def test_indicators_are_written_as_in_the_paper(name, shown):
    assert str(_symbol(name)) == shown


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("smoothing", 0.0, "smoothing 0.0 (by maximum likelihood)"),
        ("smoothing", 0.5, "smoothing 0.5"),
        (
            "smoothing",
            [1e-10, 1.0],
            (
                "smoothing from 1e-10, 1 (by 5-fold cross-validation; the "
                "bootstrap models take the value chosen on the training set)"
            ),
        ),
        ("max_depth", None, "max_depth none (unlimited)"),
        ("class_prior", None, "class_prior none"),
        ("class_prior", [0.5, 0.5], "class_prior [0.5, 0.5]"),
    ],
)
def test_parameters_are_said_with_what_they_mean(name, value, said):
    assert _say_parameter(name, value) == said


def test_sentences_begin_with_a_capital():
    assert begin_sentence("naive Bayes") == "Naive Bayes"
    assert begin_sentence("") == ""
