"""A model file gives back the same model, or an error; whatever is in it."""

import json
import os
import struct
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file, save_file
from sklearn.base import clone

import robustq
from robustq import (
    FileError,
    GenerativeForestClassifier,
    GenerativeTreeClassifier,
    InputError,
    NaiveBayesClassifier,
    RobustqError,
)
from robustq.documents import files as model_files
from robustq.families.fitted import NotFittedError
from robustq.families.forest.nodes import CHILD, FEATURE, FIRST, LEAF
from robustq.families.forest.planting import measure_heights

ROWS = 300
MUTANTS = 4_000


def make_frame(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "few": rng.choice(["a", "b", "c"], ROWS),
            "many": pd.Categorical(rng.integers(0, 90, ROWS)),
            "number": rng.normal(size=ROWS),
            "flag": rng.random(ROWS) < 0.5,
            "constant": ["same"] * ROWS,
        }
    )
    y = np.where(frame.number + frame.flag + rng.normal(size=ROWS) > 0.7, "yes", "no")
    return frame, y


FRAME, Y = make_frame()
MODELS = {
    "naive_bayes": NaiveBayesClassifier(smoothing="cv", handle_unknown="error"),
    "forest": GenerativeForestClassifier(4, random_state=0),
    "additive": GenerativeForestClassifier(4, leaves="additive", random_state=0),
    "likelihood": GenerativeForestClassifier(3, smoothing=0.0, max_depth=None, random_state=1),
    "tree": GenerativeTreeClassifier(max_depth=4, random_state=0),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    return MODELS[request.param].fit(FRAME, Y)


def ask(model, frame=FRAME):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assessment = model.assess(frame.head(40))
        return [
            model.predict_proba(frame.head(40)),
            assessment.prediction,
            *assessment.robustness.values(),
        ]


def same(first, second):
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_a_saved_model_says_the_same(fitted, tmp_path):
    path = tmp_path / "model"
    fitted.save(path)
    loaded = robustq.load(path)
    assert type(loaded) is type(fitted)
    assert loaded.get_params() == fitted.get_params()
    assert loaded.training_ == fitted.training_
    assert loaded.classes_.dtype == fitted.classes_.dtype
    assert same(ask(loaded), ask(fitted))
    assert loaded.to_dict() == fitted.to_dict()
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_saving_what_was_loaded_gives_the_same_bytes(fitted, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    fitted.save(first)
    robustq.load(first).save(second)
    assert first.read_bytes() == second.read_bytes()


def test_training_facts_are_kept(tmp_path):
    model = NaiveBayesClassifier(smoothing="cv").fit(FRAME, Y)
    model.save(tmp_path / "m")
    loaded = robustq.load(tmp_path / "m")
    assert loaded.training_["rows"] == ROWS
    assert loaded.training_["robustq"] == robustq.__version__
    assert loaded.smoothing_ == model.smoothing_


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1], dtype=np.int8),
        np.array([0, 1], dtype=">i4"),
        np.array([0, 1], dtype=np.int64),
        np.array([1.0, 2.0]),
        np.array([False, True]),
        np.array(["é", "日本"]),
        np.array(["a", "b"], dtype=object),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_keep_their_type(labels, tmp_path):
    model = NaiveBayesClassifier().fit([["x"], ["y"]], labels)
    model.save(tmp_path / "m")
    loaded = robustq.load(tmp_path / "m")
    assert loaded.classes_.dtype.kind == labels.dtype.kind
    assert loaded.predict([["x"]]).tolist() == labels[:1].tolist()


@pytest.mark.parametrize("damage", ["overwritten", "truncated", "removed"])
def test_a_loaded_model_does_not_depend_on_its_file(fitted, damage, tmp_path):
    path = tmp_path / "m"
    fitted.save(path)
    loaded = robustq.load(path)
    if damage == "removed":
        path.unlink()
    else:
        with path.open("r+b") as file:  # in place, as cp does
            size = file.seek(0, 2)
            file.seek(0)
            file.write(b"\xff" * size)
            file.truncate(size if damage == "overwritten" else 10)
    expected, found = fitted.assess(FRAME).to_arrow(), loaded.assess(FRAME).to_arrow()
    assert found.equals(expected)
    assert loaded.to_dict() == fitted.to_dict()


def test_documents_are_loaded_too(fitted, tmp_path):
    path = tmp_path / "model.json"
    path.write_text(json.dumps(fitted.to_dict()))
    assert robustq.load(path).to_dict() == fitted.to_dict()


def test_a_model_that_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        NaiveBayesClassifier().save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_refuses_is_explained(tmp_path):
    model = NaiveBayesClassifier().fit([["x"], ["y"]], [0, 1])
    with pytest.raises(FileError, match="cannot be written"):
        model.save(tmp_path / "nowhere" / "m")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match="cannot be written"):
        model.save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"x",
        b"\x00" * 100,
        b"\xff" * 100,
        b"PAR1" + b"\x00" * 100,
        b"{}",
        b"[1, 2]",
        b'{"format": "robustq-model"',
        b"{" * 100_000,
        b'{"format": "robustq-model", "version": 1, "kind": "naive_bayes", "classes": [NaN]}',
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 2) + b"{}",
        struct.pack("<Q", 4) + b"null",
        struct.pack("<Q", 10**9) + b"{}" * 100,
        b"\x80\x04\x95pickle",
    ],
    ids=range(15),
)
def test_what_is_no_model_is_refused(content, tmp_path):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(InputError, match="m: "):
        robustq.load(tmp_path / "m")


def test_files_that_cannot_be_read_are_explained(tmp_path):
    with pytest.raises(FileError, match="nothing cannot be read"):
        robustq.load(tmp_path / "nothing")
    with pytest.raises(FileError, match="cannot be read"):
        robustq.load(tmp_path)


def test_other_safetensors_are_refused(tmp_path):
    save_file({"weights": np.ones(3)}, tmp_path / "m", {"format": "pt"})
    with pytest.raises(InputError, match="no model of robustq"):
        robustq.load(tmp_path / "m")


def read_parts(path):
    with path.open("rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        text = json.loads(file.read(length))["__metadata__"]["robustq"]
        header = json.loads(text.partition(" ")[2])
    return header, load_file(path)


def write_parts(path, header, arrays):
    """Write a file whose checksum is right, whatever it holds."""
    text = json.dumps(header)
    path.unlink(missing_ok=True)
    save_file(arrays, path, {"robustq": f"{model_files._checksum(text, arrays)} {text}"})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    for name, model in MODELS.items():
        model.fit(FRAME, Y).save(folder / name)
    return folder


def change(saved, tmp_path, name, edit):
    header, arrays = read_parts(saved / name)
    arrays = {key: array.copy() for key, array in arrays.items()}
    edit(header, arrays)
    write_parts(tmp_path / "m", header, arrays)
    return tmp_path / "m"


def put(key, index, value):
    def edit(header, arrays):
        arrays[key][index] = value

    edit.__name__ = f"{key}[{index}]={value}"
    return edit


def say(key, value):
    def edit(header, arrays):
        header[key] = value

    edit.__name__ = f"{key}={value}"
    return edit


def drop(header, arrays):
    arrays.pop("class_probs")


def add(header, arrays):
    arrays["more"] = np.ones(2)


def shorten(header, arrays):
    arrays["class_probs"] = arrays["class_probs"][:-1]


def widen(header, arrays):
    arrays["class_probs"] = arrays["class_probs"].astype(np.float32)


def fewer_categories(header, arrays):
    header["features"][0]["categories"].pop()


def odd_verdicts(header, arrays):
    header["verdicts"] = [["yes", 1, None]]


def odd_edges(header, arrays):
    header["training"]["target_edges"] = [3, 1, "x"]


def more_categories(header, arrays):
    header["features"][1]["categories"].append(10**6)


def swap_kinds(header, arrays):
    header["features"][2] = {"name": "number", "categories": ["a"]}


def rename(name):
    def edit(header, arrays):
        header["features"][0]["name"] = name

    edit.__name__ = f"feature {name!r}"
    return edit


def flatten(key):
    def edit(header, arrays):
        arrays[key] = np.array(arrays[key].reshape(-1)[0])

    edit.__name__ = f"{key} without axes"
    return edit


HOSTILE = [
    say("version", 3),
    say("version", True),
    say("kind", "neural_network"),
    say("kind", "naive_bayes"),
    say("classes", ["yes"]),
    say("classes", ["yes", "yes"]),
    say("classes", []),
    say("classes_type", "<i8"),
    say("classes_type", "V1000000000"),
    say("classes_type", 5),
    say("estimator", "os.system"),
    say("estimator", "NaiveBayesClassifier"),
    say("parameters", {"n_jobs": "all"}),
    say("parameters", {"evil": 1}),
    say("parameters", None),
    say("learned", None),
    say("training", []),
    say("training", {"rows": "many"}),
    say("training", {"date": 5}),
    say("training", {"gate": {"ball": "tv", "above": "high"}}),
    say("training", {"gate": {"above": 0.5}}),
    say("training", {"gate": {"ball": "tv", "above": 10**400}}),
    say("training", {"note": [[[[[[[[[[[[1]]]]]]]]]]]]}),
    say("kind", ["generative_forest"]),
    say("classes_type", {}),
    say("classes", [1, "a"]),
    say("classes", [1, 2**70]),
    say("classes", ["no", "\ud800"]),
    rename("sch\ud800"),
    rename(5),
    flatten("nodes"),
    flatten("class_probs"),
    flatten("roots"),
    say("features", []),
    say("named", "yes"),
    drop,
    add,
    shorten,
    widen,
    fewer_categories,
    more_categories,
    odd_verdicts,
    odd_edges,
    swap_kinds,
    put("roots", 0, 1),
    put("roots", 1, 10**9),
    put("roots", 1, -1),
    put("nodes", (0, 0), 77),
    put("nodes", (0, 0), -2),
    put("nodes", (0, 1), 0),  # a cycle
    put("nodes", (0, 1), -5),
    put("nodes", (0, 1), 2**31 - 1),
    put("nodes", (1, 1), 1),
    put("rows", 1, -1.0),
    put("rows", 1, np.inf),
    put("weights", 1, np.nan),
    put("weights", 1, -0.5),
    put("weights", 1, 2.0),
    put("class_probs", (0, 0), np.nan),
    put("class_probs", (0, 0), np.inf),
    put("class_probs", (0, 0), 0.123456),
    put("entry_probs", 0, np.nan),
    put("entry_probs", 0, -1e-3),
    put("entry_probs", 0, 0.99),
    put("starts", 0, 1),
    put("starts", 1, 10**9),
    put("starts", -1, 0),
    put("seen", 0, 2**63),
    put("seen", 1, 2**60),
    put("normals", (0, 0), np.nan),
    put("normals", (0, 1), 0.0),
    put("normals", (0, 1), -1.0),
    put("normals", (0, 3), -np.inf),
    put("normals", (0, 4), 1.0),
]


@pytest.mark.parametrize("edit", HOSTILE, ids=lambda edit: edit.__name__)
def test_hostile_files_are_refused_though_their_checksum_is_right(saved, tmp_path, edit):
    for name in ("additive",) if "normals" in edit.__name__ else ("additive", "forest"):
        path = change(saved, tmp_path, name, edit)
        with pytest.raises(InputError, match="m: "):
            robustq.load(path)


def without_trees(header, arrays):
    arrays["roots"] = arrays["roots"][:1]


def two_parents(header, arrays):
    arrays["nodes"][0, CHILD] += 2


def one_leaf_twice(header, arrays):
    leaves = np.flatnonzero(arrays["nodes"][:, FEATURE] == LEAF)
    arrays["nodes"][leaves[0], CHILD] = arrays["nodes"][leaves[1], CHILD]


def threshold_of_nothing(header, arrays):
    arrays["nodes"].view(np.float64)[first_split(arrays, "number"), 1] = np.nan


def list_beyond_the_lists(header, arrays):
    arrays["nodes"][first_split(arrays, "many"), FIRST] = len(arrays["lists"])


def value_twice(key):
    def edit(header, arrays):
        rising = np.flatnonzero(np.diff(arrays[key]) > 0)
        arrays[key][rising + 1] = arrays[key][rising]

    edit.__name__ = f"{key} with values twice"
    return edit


def codes_beyond_the_codes(header, arrays):
    arrays["seen"][1] = len(arrays["entry_codes"])


def density_beyond_the_path(header, arrays):
    arrays["normals"][:, 2:4] = -np.inf, np.inf
    measure_heights(arrays["normals"])


def first_split(arrays, name):
    return int(np.argmax(arrays["nodes"][:, FEATURE] == list(FRAME).index(name)))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (without_trees, "no trees"),
        (two_parents, "must have one parent"),
        (one_leaf_twice, "every leaf must stand at one node"),
        (threshold_of_nothing, "threshold is no finite number"),
        (list_beyond_the_lists, "a split lies outside the lists"),
        (put("lists", 0, -1), "a split names values that its feature does not have"),
        (put("lists", 0, 84), "a split names values that its feature does not have"),
        (value_twice("lists"), "a split names values out of order"),
        (codes_beyond_the_codes, "a leaf lies outside the lists"),
        (put("entry_codes", 0, 84), "a leaf names values that its feature does not have"),
        (value_twice("entry_codes"), "a leaf names values out of order"),
        (put("seen", 0, 0), "not as many probabilities as values"),
        (density_beyond_the_path, "a normal density beyond what its path allows"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_forgery_is_named(saved, tmp_path, edit, message):
    path = change(saved, tmp_path, "additive", edit)
    with pytest.raises(InputError, match=message):
        robustq.load(path)


@pytest.mark.parametrize(
    "edit",
    [
        put("class_probs", 0, np.nan),
        put("class_probs", 0, 0.75),
        put("feature_probs", 0, -0.1),
        put("feature_probs", 3, 0.9),
        put("feature_probs", -1, np.inf),
        put("feature_rows", (0, 0), -1.0),
        put("feature_rows", (0, 0), np.inf),
        put("prior_rows", 0, -1.0),
        shorten,
        fewer_categories,
        say("features", [{"name": "x", "numeric": True}] * 5),
    ],
    ids=lambda edit: edit.__name__,
)
def test_hostile_naive_bayes_is_refused(saved, tmp_path, edit):
    path = change(saved, tmp_path, "naive_bayes", edit)
    with pytest.raises(InputError, match="m: "):
        robustq.load(path)


def test_a_newer_version_says_to_update(saved, tmp_path):
    path = change(saved, tmp_path, "forest", say("version", 7))
    with pytest.raises(InputError, match=r"of version 7.*update robustq"):
        robustq.load(path)


def test_no_flip_cut_or_splice_gets_through(saved, tmp_path):
    """Damage is told by the checksum: nothing but the very same bytes is a model."""
    rng = np.random.default_rng(0)
    originals = [(saved / name).read_bytes() for name in MODELS]
    path = tmp_path / "m"
    for index in range(MUTANTS):
        content = bytearray(originals[index % len(originals)])
        kind = rng.integers(4)
        # Every other one in the header: behind it the checksum sees all bytes alike.
        header = 8 + int.from_bytes(content[:8], "little")
        at = int(rng.integers(header if rng.integers(2) else len(content)))
        if kind == 0:
            content[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            del content[at:]
        elif kind == 2:
            other = originals[int(rng.integers(len(originals)))]
            content[at:] = other[int(rng.integers(len(other))) :]
        else:
            content[at : at + int(rng.integers(1, 9))] = rng.bytes(int(rng.integers(9)))
        if bytes(content) in originals:
            continue
        path.unlink(missing_ok=True)  # written over, it would be waited for until it is on disk
        path.write_bytes(content)
        with pytest.raises(RobustqError):
            robustq.load(path)


def test_arrays_changed_at_random_are_refused_or_harmless(saved, tmp_path):
    """With a right checksum, what is loaded must at least be safe to use."""
    rng = np.random.default_rng(1)
    parts = {name: read_parts(saved / name) for name in MODELS}
    refused = 0
    for index in range(MUTANTS):
        header, arrays = parts[list(MODELS)[index % len(MODELS)]]
        key = sorted(arrays)[int(rng.integers(len(arrays)))]
        if not arrays[key].size:
            continue
        changed = arrays[key].copy()
        flat = changed.reshape(-1)
        at = int(rng.integers(len(flat)))
        if changed.dtype == np.float64:
            flat[at] = rng.choice([np.nan, np.inf, -np.inf, -1.0, 0.0, 0.5, 1.0, 1e300, 5e-324])
        else:
            bits = flat.view(np.uint32 if changed.itemsize == 4 else np.uint64)
            bits[at] ^= bits.dtype.type(1) << bits.dtype.type(rng.integers(8 * changed.itemsize))
        write_parts(tmp_path / "m", header, arrays | {key: changed})
        try:
            model = robustq.load(tmp_path / "m")
        except RobustqError:
            refused += 1
            continue
        if index % 20 == 0:
            probs, *rest = ask(model)
            assert np.all((probs >= 0) & (probs <= 1))
            assert all(np.all(robustness >= 0) for robustness in rest[1:])
            model.to_dict()
    assert refused > MUTANTS // 2


def test_a_huge_number_for_the_smoothing_is_not_believed(saved, tmp_path):
    path = change(saved, tmp_path, "naive_bayes", say("learned", {"smoothing": 10**400}))
    assert not hasattr(robustq.load(path), "smoothing_")


def test_checking_takes_memory_for_a_part_of_the_tree_only(tmp_path):
    """Some 15,000 leaves times 40,000 values are 70 MB of bits, and a check needs several."""
    rows, wide = 1 << 15, 40_000
    frame = pd.DataFrame({f"b{i}": np.arange(rows) >> i & 1 for i in range(15)} | {"wide": "v0"})
    y = np.random.default_rng(0).integers(0, 2, rows)
    model = GenerativeTreeClassifier(max_depth=15, purity=1.0, smoothing=1e-6).fit(frame, y)
    model.save(tmp_path / "narrow")

    def widen_last(header, arrays):
        header["features"][-1]["categories"] += [f"v{i}" for i in range(1, wide)]
        # Every leaf has seen the first value; the others are impossible.
        arrays["entry_codes"] = np.zeros(1, dtype=np.int32)
        arrays["seen"][15::16] = 0
        arrays["entry_probs"][arrays["starts"][15::16]] = 0.0

    path = change(tmp_path, tmp_path, "narrow", widen_last)
    tracemalloc.start()
    loaded = robustq.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert loaded.model_.leaves * wide / 8 > 50e6
    assert peak < 100e6
    assert np.array_equal(loaded.predict_proba(frame.head(40)), model.predict_proba(frame.head(40)))


def test_a_pipe_is_no_model(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="no regular file"):
        robustq.load(tmp_path / "pipe")


def test_special_files_are_not_written_over(tmp_path):
    model = NaiveBayesClassifier().fit([["x"], ["y"]], [0, 1])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="no regular file"):
        model.save(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").is_file()


def as_version_1(saved, tmp_path, name):
    """Rewrite a file as an older robustq wrote it: without rows, and weights by another name."""
    header, arrays = read_parts(saved / name)
    header["version"] = 1
    old = {
        "shares" if key == "weights" else key: value
        for key, value in arrays.items()
        if key not in ("rows", "prior_rows", "feature_rows")
    }
    write_parts(tmp_path / "old", header, old)
    return tmp_path / "old"


@pytest.mark.parametrize("name", MODELS)
def test_files_of_version_1_are_read_and_have_no_rows(saved, tmp_path, name):
    new, old = robustq.load(saved / name), robustq.load(as_version_1(saved, tmp_path, name))
    assert np.array_equal(new.robustness(FRAME), old.robustness(FRAME))
    assert new.robustness(FRAME, "tv_rows").shape == (ROWS,)
    with pytest.raises(RobustqError, match="rows"):
        old.robustness(FRAME, "tv_rows")


@pytest.mark.parametrize("name", MODELS)
def test_the_same_data_and_seed_give_the_same_bytes(tmp_path, name):
    for copy in ("one", "two"):
        clone(MODELS[name]).fit(FRAME, Y).save(tmp_path / copy)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
