"""The data sets are what their table says, wherever their files come from."""

from collections import Counter

import numpy as np
import pytest

from robustq import NaiveBayesClassifier, datasets
from robustq.datasets import shipping
from robustq.exceptions import FileError, InputError, UnknownNameError
from tests.folders import UCI, needs_uci

SHIPPED = ("german", "australian", "breast-cancer-wisconsin")
SHAPES = {  # rows, classes, features
    "adult": (3000, 2, 7),
    "australian": (690, 2, 8),
    "bank": (3000, 2, 9),
    "breast-cancer-wisconsin": (683, 2, 9),
    "german": (1000, 2, 13),
    "npha": (714, 3, 13),
    "solar-flare-big": (1066, 2, 10),
    "solar-flare-small": (323, 2, 10),
    "spect": (267, 2, 22),
    "student-math": (395, 2, 29),
    "student-port": (649, 2, 29),
}
COUNTS = {
    "australian": {0: 383, 1: 307},
    "breast-cancer-wisconsin": {2: 444, 4: 239},
    "german": {1: 700, 2: 300},
    "npha": {1: 131, 2: 372, 3: 211},
    "solar-flare-big": {"no": 865, "yes": 201},
    "solar-flare-small": {"no": 265, "yes": 58},
    "spect": {0: 55, 1: 212},
    "student-math": {"fail": 130, "pass": 265},
    "student-port": {"fail": 100, "pass": 549},
}
RAW = {  # all rows of the raw files, the complete and the incomplete ones
    "adult.data": {"<=50K": 24720, ">50K": 7841},
    "bank-full.csv": {"no": 39922, "yes": 5289},
}


@pytest.fixture(autouse=True)
def _nothing_but_the_package(monkeypatch, tmp_path):
    monkeypatch.delenv("ROBUSTQ_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def check_shape(data):
    rows, classes, features = SHAPES[data.source.name]
    assert data.X.num_rows == len(data.y) == rows
    assert len(np.unique(data.y)) == data.source.classes == classes
    assert data.X.num_columns == features
    if data.source.name in COUNTS:
        assert Counter(data.y.tolist()) == COUNTS[data.source.name]


def test_there_are_eleven():
    assert datasets.names() == tuple(SHAPES)


@pytest.mark.parametrize("name", SHIPPED)
def test_three_come_with_the_package(name):
    data = datasets.load(name, download=False)
    assert data.place == "the package"
    check_shape(data)


@needs_uci
@pytest.mark.parametrize("name", SHAPES)
def test_every_data_set_has_the_counts_of_its_table(name):
    check_shape(datasets.load(name, UCI, download=False))


@needs_uci
@pytest.mark.parametrize("file", RAW)
def test_the_raw_files_have_the_known_classes(file):
    source = datasets.get("adult" if file == "adult.data" else "bank")
    text = (UCI / file).read_text().splitlines()[int(source.header) :]
    labels = Counter(line.replace(";", ",").split(",")[-1].strip(' ".') for line in text if line)
    assert labels == RAW[file]
    assert sum(labels.values()) == source.files[file]


@needs_uci
@pytest.mark.parametrize("name", SHIPPED)
def test_what_ships_agrees_with_uci_row_for_row(name):
    shipped, original = datasets.load(name), datasets.load(name, UCI)
    assert shipped.X.equals(original.X)
    assert shipped.y.tolist() == original.y.tolist()


@needs_uci
def test_spect_comes_with_its_own_split():
    data = datasets.load("spect", UCI)
    assert data.split is not None
    train, test = data.split
    assert len(train) == 80
    assert len(test) == 187
    assert sorted([*train, *test]) == list(range(267))
    assert Counter(data.y[train].tolist()) == {0: 40, 1: 40}


@needs_uci
def test_the_environment_names_a_folder(monkeypatch):
    monkeypatch.setenv("ROBUSTQ_DATA", str(UCI))
    assert datasets.load("npha").place == str(UCI)


def test_a_folder_given_comes_before_the_package(tmp_path):
    (tmp_path / "german.data").write_text("A11 6\n")
    with pytest.raises(InputError, match=r"german.data, line 1: 2 values where 21"):
        datasets.load("german", tmp_path)


def write_german(folder, change=lambda text: text):
    """Write the shipped table as UCI's file would be, the columns not used filled up."""
    source = datasets.get("german")
    lines = []
    for record in shipping.read(source):
        row = dict.fromkeys(source.columns, "0") | dict(
            zip(source.features, record.features, strict=True)
        )
        lines.append(" ".join((row | {"class": record.label}).values()))
    (folder / "german.data").write_bytes(change("\n".join(lines)).encode())


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: text.replace("\n", "\r\n") + "\r\n",
        lambda text: "\ufeff" + text + "\n\n",
        lambda text: "*** a remark\n" + text.replace("\n", "  \n"),
        lambda text: "|1x3 Cross validator\n" + text,
        lambda text: "\n".join(reversed(text.split("\n"))),
    ],
    ids=["plain", "crlf", "bom", "asterisks", "bar", "other order"],
)
def test_files_are_accepted_as_people_have_them(tmp_path, change):
    write_german(tmp_path, change)
    read, shipped = datasets.load("german", tmp_path), datasets.load("german")
    assert read.place == str(tmp_path)
    assert read.X.equals(shipped.X)
    assert read.y.tolist() == shipped.y.tolist()


@needs_uci
def test_adult_is_read_as_uci_writes_it(tmp_path):
    (tmp_path / "adult.data").write_bytes((UCI / "adult.data").read_bytes() + b"\n")
    lines = (UCI / "adult.test").read_text().splitlines()
    text = "|1x3 Cross validator\n" + "".join(f"{line.rstrip('.')}.\n" for line in lines if line)
    (tmp_path / "adult.test").write_text(text)
    read, known = datasets.load("adult", tmp_path), datasets.load("adult", UCI)
    assert read.X.equals(known.X)
    assert read.y.tolist() == known.y.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: len(text) // 2].rsplit("\n", 1)[0], r"german.data has \d+ rows"),
        (lambda text: text + "\n" + text.split("\n")[0], "has 1,001 rows, and UCI's has 1,000"),
        (lambda _: "", "german.data has 0 rows"),
        (lambda text: text.replace("A11", "A11 A11", 1), r"line \d+: 22 values where 21"),
    ],
    ids=["cut", "too long", "empty", "too wide"],
)
def test_damaged_files_are_refused(tmp_path, change, message):
    write_german(tmp_path, change)
    with pytest.raises(InputError, match=message):
        datasets.load("german", tmp_path)


def test_what_is_no_text_is_refused(tmp_path):
    (tmp_path / "german.data").write_bytes(b"\xff\xfe\x00" * 100)
    with pytest.raises(InputError, match=r"german.data is not text"):
        datasets.load("german", tmp_path)


def test_unreadable_classes_are_refused(tmp_path):
    source = datasets.get("solar-flare-small")
    line = " ".join(["a"] * len(source.columns))
    (tmp_path / "flare.data1").write_text("\n".join([line] * 323))
    with pytest.raises(InputError, match=r"flare.data1: a row has no readable class"):
        datasets.load("solar-flare-small", tmp_path)


def test_a_folder_that_is_none_is_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="is not a folder"):
        datasets.load("german", tmp_path / "nowhere")
    monkeypatch.setenv("ROBUSTQ_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="ROBUSTQ_DATA"):
        datasets.load("german")


def test_a_folder_nobody_can_name_is_refused():
    for folder in ("x" * 300, "~nobody-of-this-name/x", "a\0b"):
        with pytest.raises(InputError, match="is not a folder"):
            datasets.load("german", folder)


def test_an_open_quote_is_refused(tmp_path):
    (tmp_path / "bank-full.csv").write_text('"' + "x;" * 200_000)
    with pytest.raises(InputError, match=r"bank-full.csv"):
        datasets.load("bank", tmp_path)


def test_columns_in_another_order_are_refused(tmp_path):
    source = datasets.get("student-math")
    line = ";".join(["1"] * len(source.columns))
    text = "\n".join([";".join(reversed(source.columns)), *[line] * 395])
    (tmp_path / "student-mat.csv").write_text(text)
    with pytest.raises(InputError, match="column 'G3' where 'school' was expected"):
        datasets.load("student-math", tmp_path)


def test_another_class_is_refused(tmp_path):
    write_german(tmp_path, lambda text: text[:-1] + "7")
    with pytest.raises(InputError, match="has the classes 1, 2, 7 where 2 were expected"):
        datasets.load("german", tmp_path)


def test_unknown_names_get_a_hint():
    with pytest.raises(UnknownNameError, match="did you mean 'german'"):
        datasets.load("germna")
    assert datasets.get("d5").name == "german"


def test_what_is_nowhere_says_how_to_get_it():
    with pytest.raises(FileError, match=r"npha is not here: download https.*--data-dir"):
        datasets.load("npha", download=False)


def test_the_order_of_rows_is_no_sorted_one():
    labels = datasets.load("german").y
    assert 60 < (labels[:100] == 1).sum() < 80


def test_a_data_set_can_be_learned_from():
    data = datasets.load("german")
    assert NaiveBayesClassifier().fit(data.X, data.y).score(data.X, data.y) > 0.7
    assert repr(data) == ("<DataSet german: 1,000 rows, 2 classes, 13 features, from the package>")
