"""Bayesian-network classifiers: structures, tables, files, and what others make of the same."""

import itertools
import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from typer.testing import CliRunner

import robustq
from robustq import (
    BayesianNetworkClassifier,
    InputError,
    NaiveBayesClassifier,
    UnsupportedError,
    load,
)
from robustq.cli.main import app
from robustq.experiments import Plan
from robustq.families.table import find_recipe, recipe_of

from .weather import weather

STRUCTURES = ("naive", "tan", "fan", "kdb", "aode")
EDGES = [("sky", "wind"), ("wind", "weekend"), ("sky", "degrees"), ("wind", "degrees")]
FILES = Path(__file__).parent / "networks"

every_structure = pytest.mark.parametrize(
    "structure", [*STRUCTURES, EDGES], ids=[*STRUCTURES, "edges"]
)


def sample(rows=3000, seed=0):
    """Draw rows in which `b` copies `a`, and `d` hangs on `b` and `c`, beside the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    a = np.where(rng.random(rows) < 0.3, y, rng.integers(0, 3, rows))
    b = np.where(rng.random(rows) < 0.8, a, rng.integers(0, 3, rows))
    c = np.where(rng.random(rows) < 0.4, 1 - y, rng.integers(0, 3, rows))
    d = np.where(rng.random(rows) < 0.8, (b + c) % 3, rng.integers(0, 3, rows))
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d}), pd.Series(y, name="label")


@parametrize_with_checks(
    [
        BayesianNetworkClassifier(),
        BayesianNetworkClassifier("aode"),
        BayesianNetworkClassifier("kdb"),
    ]
)
def test_scikit_learns_contract_is_kept(estimator, check):
    check(estimator)


# Structures


def test_trees_have_the_edges_that_tell_most():
    X, y = sample()
    tan = BayesianNetworkClassifier("tan").fit(X, y)
    own = {frozenset(edge) for edge in tan.edges_ if "label" not in edge}
    assert len(own) == 3
    assert {frozenset("ab"), frozenset("bd")} <= own or {frozenset("ab"), frozenset("cd")} <= own
    assert [edge for edge in tan.edges_ if "label" in edge] == [("label", n) for n in "abcd"]
    assert BayesianNetworkClassifier("naive").fit(X, y).edges_ == [("label", n) for n in "abcd"]


def test_forests_leave_out_edges_that_do_not_pay():
    rng = np.random.default_rng(0)
    X, y = sample(400)
    X["noise"] = rng.integers(0, 5, len(X))
    fan = BayesianNetworkClassifier("fan").fit(X, y)
    assert ("a", "b") in fan.edges_ or ("b", "a") in fan.edges_
    assert not [edge for edge in fan.edges_ if "noise" in edge and "label" not in edge]


def test_k_dependence_gives_as_many_parents_as_asked_for():
    X, y = sample()
    for most in (0, 1, 2, 3):
        model = BayesianNetworkClassifier("kdb", max_parents=most).fit(X, y)
        parents = [sum(child == name for _, child in model.edges_) - 1 for name in "abcd"]
        assert sorted(parents) == sorted(min(k, most) for k in range(4))


def test_edges_are_those_that_were_given():
    X, y = sample()
    model = BayesianNetworkClassifier([("a", "b"), ("b", "d"), ("c", "d")]).fit(X, y)
    assert ("label", "d") in model.edges_
    assert len(model.edges_) == 7
    some = BayesianNetworkClassifier([("class", "a"), ("a", "b"), ("c", "label")]).fit(X, y)
    assert sorted(some.edges_) == [("a", "b"), ("c", "label"), ("label", "a")]
    # What the class hangs on cannot hang on it.
    above = BayesianNetworkClassifier([("d", "c"), ("c", "label")]).fit(X, y)
    assert sorted(above.edges_) == [("c", "label"), ("d", "c"), ("label", "a"), ("label", "b")]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("a", "b"), ("b", "a")], "close a cycle: .* → "),
        ([("a", "label"), ("label", "b"), ("b", "a")], "close a cycle"),
        ([("a", "nobody")], "names 'nobody', which is no column"),
        ([("a", "b"), ("a", "b")], "given twice"),
        ([("a", "a")], "to itself"),
        (["ab"], "a pair"),
        ([("a", "b", "c")], "a pair"),
        ([("a", 7)], "names 7"),
    ],
)
def test_wrong_edges_are_refused_by_name(edges, message):
    with pytest.raises(InputError, match=message):
        BayesianNetworkClassifier(edges).fit(*sample(50))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"structure": "star"}, "structure must be one of"),
        ({"structure": 3}, "structure must be one of"),
        ({"smoothing": -1}, "smoothing must be"),
        ({"max_parents": 1.5}, "max_parents must be"),
        ({"min_rows": -1}, "min_rows must be"),
        ({"n_bins": 0}, "n_bins must be"),
        ({"class_prior": [0.5, 0.6]}, "sum to 1"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(InputError, match=message):
        BayesianNetworkClassifier(**parameters).fit(*sample(50))


def test_tables_too_large_for_memory_are_refused_before_they_are_made():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, (200, 12)).astype(str)
    edges = [(str(i), "11") for i in range(11)]
    with pytest.raises(UnsupportedError, match="tables of this network need"):
        BayesianNetworkClassifier(edges).fit(X, rng.integers(0, 2, 200))


# Probabilities


def test_naive_networks_are_naive_bayes():
    X, y = weather()
    ours, plain = BayesianNetworkClassifier("naive").fit(X, y), NaiveBayesClassifier(1.0).fit(X, y)
    # Logarithms are taken by other kernels.
    close = partial(np.testing.assert_allclose, rtol=1e-12)
    close(ours.predict_proba(X), plain.predict_proba(X))
    for name in ("epsilon", "tv_rows", "chi2_all", "kl"):
        close(ours.robustness(X, name), plain.robustness(X, name))


def test_tables_back_off_to_the_distribution_given_the_class():
    X = pd.DataFrame({"a": list("uuuuvv"), "b": list("xxyyxx")})
    y = [0, 0, 0, 1, 1, 1]
    model = BayesianNetworkClassifier([("a", "b")], smoothing=0.5).fit(X, y)
    given = (np.array([2, 1]) + 0.5) / 4  # p(b | class 0)
    counted = (np.array([2, 1]) + 3 * 0.5 * 2 * given) / (3 + 3 * 0.5 * 2)
    assert model.model_.table(1)[0, :, 0] == pytest.approx(counted)
    # Nobody of class 0 had a = v.
    assert model.model_.table(1)[1, :, 0] == pytest.approx(given)
    assert model.model_.rows_of(1).tolist() == [[3.0, 1.0], [0.0, 2.0]]


def test_averaged_networks_follow_their_formula():
    X, y = sample(300)
    model = BayesianNetworkClassifier("aode", min_rows=90).fit(X, y).model_
    layout, codes = model.layout, X.to_numpy(dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum(layout.sizes)])
    for row in codes[:50]:
        leads = [j for j in range(4) if model.lead_rows[starts[j] + row[j]] >= 90]
        terms = [
            np.prod(
                [
                    layout.table(model.probs, j, i)[0 if i == j else row[j], row[i]]
                    for i in range(4)
                ],
                axis=0,
            )
            for j in leads
        ]
        plain = np.prod([layout.table(model.probs, i, i)[0, row[i]] for i in range(4)], axis=0)
        joint = model.class_probs * (np.mean(terms, axis=0) if leads else plain)
        got = model.log_joint(robustq.tables.Rows(row[None], np.empty((1, 0))))[0]
        assert got == pytest.approx(np.log(joint), rel=1e-12)


@pytest.mark.parametrize("structure", ["naive", "tan", "fan", "kdb", EDGES])
def test_posteriors_with_gaps_are_sums_over_all_values(structure):
    X, y = weather()
    model = BayesianNetworkClassifier(structure, n_bins=3).fit(X, y)
    sizes = model.encoding_.sizes
    every = np.array(list(itertools.product(*map(range, sizes))), dtype=np.int32)
    rows = robustq.tables.Rows(every, np.empty((len(every), 0)))
    joint = np.exp(model.model_.log_joint(rows))
    assert joint.sum() == pytest.approx(1.0)
    rng = np.random.default_rng(0)
    some = every[rng.integers(0, len(every), 60)]
    some[rng.random(some.shape) < 0.5] = -1
    got = np.exp(model.model_.log_joint(robustq.tables.Rows(some, np.empty((60, 0)))))
    want = np.array([joint[((every == row) | (row < 0)).all(axis=1)].sum(axis=0) for row in some])
    assert got == pytest.approx(want, rel=1e-12)


def test_posteriors_that_would_not_fit_into_memory_are_refused_before():
    rng = np.random.default_rng(0)
    # A hidden ring of spokes: each pair of hubs has a child that was seen, so all hubs meet.
    hubs, size = 8, 40
    pairs = list(itertools.combinations(range(hubs), 2))
    X = rng.integers(0, 2, (60, hubs + len(pairs))).astype(str).astype(object)
    X[:, :hubs] = rng.integers(0, size, (60, hubs)).astype(str)
    edges = [(str(i), str(hubs + k)) for k, pair in enumerate(pairs) for i in pair]
    model = BayesianNetworkClassifier(edges).fit(X, rng.integers(0, 2, 60))
    row = X[:1].copy()
    row[0, :3] = None
    assert model.predict_proba(row).sum() == pytest.approx(1.0)
    row[0, :hubs] = None
    with pytest.raises(UnsupportedError, match="so many missing cells need"):
        model.predict_proba(row)


def test_a_feature_with_one_category_changes_nothing():
    X, y = sample(200)
    plain = BayesianNetworkClassifier([("a", "b")], smoothing=0.0).fit(X, y)
    X["one"] = "x"
    edges = [("a", "b"), ("a", "one"), ("one", "c")]
    more = BayesianNetworkClassifier(edges, smoothing=0.0).fit(X, y)
    X.loc[::2, "a"] = None
    X.loc[::3, "one"] = None
    assert np.array_equal(more.predict_proba(X), plain.predict_proba(X))
    assert np.array_equal(more.robustness(X, "chi2"), plain.robustness(X, "chi2"))


def test_weights_count_as_rows():
    X, y = sample(200)
    weights = np.random.default_rng(0).integers(0, 4, 200)
    for structure in STRUCTURES:
        model = BayesianNetworkClassifier(structure)
        weighed = clone(model).fit(X, y, sample_weight=weights)
        repeated = clone(model).fit(X.loc[X.index.repeat(weights)], y.repeat(weights))
        assert weighed.predict_proba(X) == pytest.approx(repeated.predict_proba(X), rel=1e-12)


def test_smoothing_can_be_chosen_by_cross_validation():
    X, y = sample(400)
    for structure in ("tan", "aode"):
        model = BayesianNetworkClassifier(structure, "cv").fit(X, y)
        assert model.smoothing_ in robustq.learning.smoothing.SMOOTHING_GRID


def test_sizes_by_rows_count_the_rows_of_each_table():
    X, y = sample()
    for structure in ("tan", "aode"):
        model = BayesianNetworkClassifier(structure).fit(X, y)
        by_rows = model.robustness(X[:20], "epsilon_rows")
        assert (by_rows > 1.0).all()
        assert model.parts[:2] == ("prior", "features")


# Files


@every_structure
def test_models_survive_files_documents_and_pickling(structure, tmp_path):
    X, y = weather()
    model = BayesianNetworkClassifier(structure).fit(X, pd.Series(y, name="plan"))
    X = X.copy()
    X.loc[::7, "sky"] = None
    want = model.predict_proba(X)
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert back.edges_ == model.edges_
    assert recipe_of(back) is recipe_of(model)
    for other in (
        back,
        BayesianNetworkClassifier.from_dict(model.to_dict()),
        pickle.loads(pickle.dumps(model)),  # noqa: S301
    ):
        assert np.array_equal(other.predict_proba(X), want)
        assert np.array_equal(
            other.robustness(X[1:6], "tv_all_rows"), model.robustness(X[1:6], "tv_all_rows")
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["tables"].pop(), "none of feature"),
        (lambda d: d["tables"].append(d["tables"][1]), "already"),
        (lambda d: d["tables"][1]["parents"].append(9), "position of a feature"),
        (lambda d: d["tables"][1].update(parents=["class", 1, 1]), "different features"),
        (lambda d: d["tables"][1]["probs"].pop(), "one for each configuration"),
        (lambda d: d["tables"][1]["probs"][0].__setitem__(0, 0.9), "sum to 1"),
        (lambda d: d["tables"][1].update(rows=[-1] * 99), "shape|counts"),
        (lambda d: d.update(tables=3), "lacks 'tables'"),
    ],
)
def test_damaged_documents_are_refused(change, message):
    model = BayesianNetworkClassifier([("a", "b")]).fit(*sample(60))
    document = model.to_dict()
    change(document)
    with pytest.raises(InputError, match=message):
        BayesianNetworkClassifier.from_dict(document)


def test_a_cycle_in_a_document_is_refused():
    document = BayesianNetworkClassifier([("a", "b")]).fit(*sample(60)).to_dict()
    one = document["tables"][1]
    one.update(parents=["class", 1], probs=one["probs"] * 3, rows=None)
    with pytest.raises(InputError, match="cycle"):
        BayesianNetworkClassifier.from_dict(document)


# BIF


def ask(bn, target, names, row):
    """Return the posterior that pyAgrum's own inference gives, by label."""
    gum = pytest.importorskip("pyagrum")
    engine = gum.LazyPropagation(bn)
    engine.setEvidence({n: v for n, v in zip(names, row, strict=True) if v is not None})
    engine.makeInference()
    return dict(zip(bn.variable(target).labels(), engine.posterior(target).tolist(), strict=True))


def every_row(model):
    return [
        list(row)
        for row in itertools.product(*((*c.categories, None) for c in model.encoding_.columns))
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(4))
def test_networks_of_pyagrum_give_its_posteriors(seed, tmp_path):
    gum = pytest.importorskip("pyagrum")
    gum.initRandom(seed + 1)
    bn = gum.fastBN("A{a1|a2|a3}->B[2]->C{x|y|z};A->C<-D{u|v};D->E[3]<-B;E->F[2]")
    gum.saveBN(bn, str(tmp_path / "their.bif"))
    for target in "ABCDEF":
        model = BayesianNetworkClassifier.from_bif(tmp_path / "their.bif", target)
        rows = every_row(model)[seed::97]
        found = model.predict_proba(rows)
        for row, got in zip(rows, found, strict=True):
            want = ask(bn, target, model.encoding_.names, row)
            assert got == pytest.approx([want[c] for c in model.classes_.tolist()], abs=1e-12)
        # And back: its reader keeps the digits of a single float.
        model.to_bif(tmp_path / "ours.bif")
        back = gum.loadBN(str(tmp_path / "ours.bif"))
        want = ask(back, target, model.encoding_.names, rows[0])
        assert found[0] == pytest.approx([want[c] for c in model.classes_.tolist()], abs=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("structure", ["tan", "kdb"])
def test_networks_that_were_learned_give_pyagrums_posteriors(structure, tmp_path):
    gum = pytest.importorskip("pyagrum")
    X, y = sample(500)
    model = BayesianNetworkClassifier(structure).fit(X.astype(str), y.astype(str))
    model.to_bif(tmp_path / "ours.bif")
    bn = gum.loadBN(str(tmp_path / "ours.bif"))
    for row in every_row(model)[::11]:
        want = ask(bn, "label", model.encoding_.names, row)
        got = model.predict_proba([row])[0]
        assert got == pytest.approx([want["0"], want["1"]], abs=1e-6)


def test_a_file_of_pgmpy_is_read():
    model = BayesianNetworkClassifier.from_bif(FILES / "pgmpy.bif", "out")
    assert sorted(model.edges_) == [("sky", "out"), ("sky", "wind"), ("wind", "out")]
    got = model.predict_proba([["rain", "no"], ["rain", None]])
    assert got[0] == pytest.approx([1 / 7, 6 / 7], abs=1e-15)
    assert got[1, 0] == pytest.approx(0.7 * 0.5 + 0.3 / 7, abs=1e-15)
    # By Bayes' rule, with another class.
    sky = BayesianNetworkClassifier.from_bif(FILES / "pgmpy.bif", "sky")
    assert sky.classes_.tolist() == ["cloud", "rain", "sun"]
    joint = np.array([0.3 * (2 / 3) * 0.6, 0.5 * 0.3 * 6 / 7, 0.2 * 0.9 * 0.8])
    assert sky.predict_proba([["out", "no"]])[0] == pytest.approx(joint / joint.sum())


def test_a_file_of_pyagrum_is_read_and_written_back(tmp_path):
    for target in "ABCD":
        model = BayesianNetworkClassifier.from_bif(FILES / "pyagrum.bif", target)
        model.to_bif(tmp_path / "back.bif")
        back = BayesianNetworkClassifier.from_bif(tmp_path / "back.bif", target)
        assert sorted(back.edges_) == sorted(model.edges_)
        assert np.array_equal(
            back.predict_proba(every_row(model)), model.predict_proba(every_row(model))
        )
        with pytest.raises(UnsupportedError, match="rows"):
            model.robustness(every_row(model)[:1], "tv_rows")


def test_names_that_bif_cannot_hold_are_spelled(tmp_path):
    X, y = weather()
    X = X.rename(columns={"sky": "the sky", "wind": "the.sky"})
    model = BayesianNetworkClassifier("tan").fit(X, y)
    model.to_bif(tmp_path / "n.bif")
    back = BayesianNetworkClassifier.from_bif(tmp_path / "n.bif", "class")
    assert back.encoding_.names[:2] == ("the_sky", "the_sky_2")
    assert len(back.edges_) == len(model.edges_)


VARIABLE = "variable {} {{\n  type discrete [ 2 ] {{ u, v }};\n}}\n"
A, B = VARIABLE.format("A"), VARIABLE.format("B")
P = "probability ( A ) {\n  table 0.5, 0.5;\n}\n"
Q = "probability ( B | A ) {\n  (u) 0.1, 0.9;\n  (v) 0.2, 0.8;\n}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: not a network in BIF"),
        ("{" * 100_000, "line 1: expected network, variable"),
        ("network n {" * 1000, "line 1: expected property"),
        (A + B + P + Q.replace("0.9", "0.8"), "line 11: the probabilities of 'B' sum to 0.9"),
        (A + B + P + Q.replace("0.1, 0.9", "0.1"), "line 11: 1 probabilities for the 2 states"),
        (A + B + P + Q.replace("0.1", "1e999"), "line 11: .* from 0 to 1"),
        (A + B + P + Q.replace("0.1", "nan"), "line 11: 'nan' is no probability"),
        (A + B + P + Q.replace("0.1, 0.9", "-0.1, 1.1"), "line 11: .* from 0 to 1"),
        (A + B + P + Q.replace("(u)", "(w)"), "line 11: 'A' has no state 'w'"),
        (A + B + P + Q.replace("(u)", "(v)"), r"line 12: the configuration \(v\) is there twice"),
        (A + B + P + Q.replace("  (u) 0.1, 0.9;\n", ""), "line 10: 1 of 2 configurations"),
        (A + B + P + Q.replace("| A", "| C"), "line 10: there is no variable 'C'"),
        (A + B + P + Q.replace("| A", "| A, A"), "line 10: a parent of 'B' is there twice"),
        (A + B + P + Q.replace("| A", "| B"), "line 10: a parent of 'B' .* itself"),
        (A + B + P + P + Q, "line 10: the probabilities of 'A' are there twice"),
        (A + A, "line 4: variable 'A' is there twice"),
        (A.replace("2", "999999999999"), "line 2: said to have 999999999999 states, and 2"),
        (A.replace("u, v", "u, u"), "line 2: state 'u' is there twice"),
        (A.replace("discrete", "continuous"), "line 2: a variable must be discrete"),
        (A + B + P, "variable 'B' has no probabilities"),
        (A + B + P + Q[:-10], "line 12: expected a probability, found 'the end'"),
        (A + "/* never", "line 4: a comment does not end"),
        (A + 'network "n {\n', "line 4: a quotation does not end"),
        (
            A + B + Q + Q.replace("B | A", "A | B"),
            "line 1?[0-9]: the parents form a cycle: (A → B → A|B → A → B)",
        ),
        (A + B + P + Q.replace("(u)", "table"), "line 11: programs differ"),
        ("\x00\x01", "line 1: expected network"),
    ],
)
def test_damaged_files_are_refused_with_their_line(text, message, tmp_path):
    (tmp_path / "bad.bif").write_text(text)
    with pytest.raises(InputError, match=message):
        BayesianNetworkClassifier.from_bif(tmp_path / "bad.bif", "A")


def test_a_billion_cells_by_default_are_refused_before_they_are_made(tmp_path):
    states = ", ".join(f"s{k}" for k in range(3000))
    variables = [f"variable V{i} {{ type discrete [ 3000 ] {{ {states} }}; }}" for i in range(4)]
    numbers = " ".join(["1", *["0"] * 2999])
    tables = [f"probability ( V{i} ) {{ table {numbers}; }}" for i in range(3)]
    tables.append(f"probability ( V3 | V0, V1, V2 ) {{ default {numbers}; }}")
    (tmp_path / "wide.bif").write_text("\n".join([*variables, *tables]))
    with pytest.raises(UnsupportedError, match="tables of this network need"):
        BayesianNetworkClassifier.from_bif(tmp_path / "wide.bif", "V0")


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(robustq.FileError, match="does not exist"):
        BayesianNetworkClassifier.from_bif(tmp_path / "nothing.bif", "A")
    (tmp_path / "x.bif").write_bytes(b"variable \xff\xfe")
    with pytest.raises(InputError, match="line 1: not text"):
        BayesianNetworkClassifier.from_bif(tmp_path / "x.bif", "A")
    with pytest.raises(InputError, match="no variable 'Z' to predict"):
        BayesianNetworkClassifier.from_bif(FILES / "pgmpy.bif", "Z")


# The rest of the house


def test_the_network_is_drawn():
    model = BayesianNetworkClassifier("tan").fit(*sample(200))
    axes = model.plot_structure()
    assert {text.get_text() for text in axes.texts} >= {"a", "b", "c", "d", "label"}
    with pytest.raises(UnsupportedError, match="cannot be drawn"):
        BayesianNetworkClassifier("aode").fit(*sample(200)).plot_structure()


@pytest.mark.parametrize("name", ["tan", "fan", "kdb", "aode", "network"])
def test_the_command_trains_it(name, tmp_path):
    X, y = sample(300)
    X.assign(label=y.map({0: "no", 1: "yes"})).to_csv(tmp_path / "d.csv", index=False)
    more = ["--option", 'structure=[["a", "b"]]'] if name == "network" else []
    arguments = ["fit", tmp_path / "d.csv", "--target", "label", "--model", name, *more]
    done = CliRunner().invoke(app, [*map(str, arguments), "-o", str(tmp_path / "m")])
    assert done.exit_code == 0, done.output
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "m")]).output
    assert ("networks" if name == "aode" else "edges") in shown
    scored = ["score", str(tmp_path / "m"), str(tmp_path / "d.csv"), "-o", str(tmp_path / "s.csv")]
    assert CliRunner().invoke(app, scored).exit_code == 0
    assert len(pd.read_csv(tmp_path / "s.csv")) == 300


def test_what_a_recipe_says_cannot_be_said_again():
    with pytest.raises(InputError, match="leave structure out"):
        find_recipe("tan").make({"structure": "fan"})
    assert find_recipe("aode").make({"smoothing": 2.0}).structure == "aode"
    assert Plan(models=("tan", "aode")).models == ("tan", "aode")


def test_probabilities_are_those_of_joint_logarithms():
    X, y = sample(300)
    for structure in STRUCTURES:
        model = BayesianNetworkClassifier(structure).fit(X, y)
        assert model.predict_proba(X) == pytest.approx(
            softmax(model.predict_joint_log_proba(X), axis=1)
        )
