"""What an explanation says is what the model says when it is asked one question at a time."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import robustq
from robustq import (
    BayesianNetworkClassifier,
    GenerativeForestClassifier,
    InputError,
    NaiveBayesClassifier,
    UnsupportedError,
)
from robustq.core.neighbourhoods import read
from robustq.explaining.words import say_value
from tests.families.toy import ToyClassifier

RNG = np.random.default_rng(0)
ROWS = 240
COLOURS = RNG.choice(["red", "green", "blue"], ROWS)
X = pd.DataFrame(
    {
        "colour": COLOURS,
        "size": RNG.normal(size=ROWS).round(2),
        "shape": RNG.choice(["round", "square"], ROWS),
        "count": RNG.integers(0, 4, ROWS),
    },
    index=np.arange(1000, 1000 + ROWS),
)
X.loc[1003, "colour"] = None
Y = np.where((COLOURS == "red") ^ (RNG.random(ROWS) < 0.25), "bad", "good")
Y[:30] = "ugly"
MODELS = {
    "naive Bayes": NaiveBayesClassifier(1.0).fit(X, Y),
    "forest": GenerativeForestClassifier(5, random_state=0).fit(X, Y),
    "toy": ToyClassifier(random_state=0).fit(X.drop(columns="size"), Y),
    **{
        name: BayesianNetworkClassifier(name, n_bins=4).fit(X, Y)
        for name in ("naive", "tan", "fan", "kdb", "aode")
    },
    "own edges": BayesianNetworkClassifier(
        [("colour", "class"), ("class", "size"), ("class", "shape"), ("size", "count")], n_bins=4
    ).fit(X, Y),
}
MODELS["circuit"] = MODELS["tan"].to_circuit()
every_model = pytest.mark.parametrize("name", MODELS)
every_name = pytest.mark.parametrize("perturbation", ["tv", "chi2_all", "epsilon_rows", "kl"])


TANGLED = ("kdb", "own edges")  # some cells cannot be missing


def table_of(name):
    table = X.fillna({"colour": "red"}) if name in TANGLED else X
    return table.drop(columns="size") if name == "toy" else table


@every_model
@every_name
def test_every_number_is_the_one_a_question_of_its_own_gives(name, perturbation):
    model, table = MODELS[name], table_of(name).iloc[:12]
    explanations = model.explain(table, perturbation)
    assessment = model.assess(table, perturbation)
    sizes = "rows" if perturbation.endswith("_rows") else None
    ball = perturbation.split("_")[0]
    assert len(explanations) == 12
    for column in table.columns:
        alone = model.robustness(table, ball, parts=[f"feature:{column}"], sizes=sizes)
        try:
            lost = model.assess(table.assign(**{column: None}), perturbation)
        except UnsupportedError:
            assert name in TANGLED
            lost = None
        for row, explanation in enumerate(explanations):
            feature = explanation.features[list(table.columns).index(column)]
            assert feature.name == column
            assert feature.alone == alone[row]
            assert (feature.without is None) == (lost is None)
            if lost is not None:
                assert feature.without.prediction == lost.prediction[row]
                assert feature.without.robustness == lost.robustness[perturbation][row]
    for row, explanation in enumerate(explanations):
        assert explanation.prediction == assessment.prediction[row]
        assert explanation.robustness == assessment.robustness[perturbation][row]
        assert explanation.tipping_class == assessment.tipping_class[perturbation][row]


@every_model
def test_support_is_what_the_cell_adds_to_the_log_odds(name):
    model, table = MODELS[name], table_of(name).iloc[:8]
    classes = model.classes_.tolist()
    for row, explanation in enumerate(model.explain(table, "tv_all")):
        best, rival = (
            classes.index(label) for label in (explanation.prediction, explanation.tipping_class)
        )
        joint = model.predict_joint_log_proba(table.iloc[[row]])[0]
        for feature in explanation.features:
            lost = table.iloc[[row]].assign(**{feature.name: None})
            left = model.predict_joint_log_proba(lost)[0]
            added = (joint[best] - joint[rival]) - (left[best] - left[rival])
            assert feature.support == pytest.approx(added, abs=1e-12)


def test_the_support_of_naive_bayes_is_the_log_ratio_of_its_tables():
    model = MODELS["naive Bayes"]
    explanation = model.explain(X.iloc[[40]])[0]
    column, classes = model.encoding_.columns[0], model.classes_.tolist()
    table = model.model_.local_model(0)[column.categories.index(X.colour.iloc[40])]
    best, rival = (
        classes.index(label) for label in (explanation.prediction, explanation.tipping_class)
    )
    expected = np.log(table[best] / table[rival])
    assert explanation.features[0].support == pytest.approx(expected)


@every_model
def test_a_prediction_hangs_on_the_feature_that_flips_it_first(name):
    model, table = MODELS[name], table_of(name)
    explanations = model.explain(table, "chi2_all")
    for explanation in explanations[:40]:
        sizes = [feature.alone for feature in explanation.features]
        names = [f.name for f in explanation.features if f.alone == min(sizes)]
        expected = names if np.isfinite(min(sizes)) else [None]
        assert explanation.hangs_on in expected
    summary = explanations.summary()
    counts = pd.Series(explanations.hangs_on).value_counts()
    assert summary.rows == ROWS
    told = {line["feature"]: line["hanging"] for line in summary.to_dict()}
    assert {name: count for name, count in told.items() if count} == counts.to_dict()
    assert list(summary.hanging) == sorted(summary.hanging, reverse=True)
    assert len(summary.to_pandas()) == len(model.encoding_.names)


def test_changes_are_in_words_of_the_table_the_largest_first():
    model = MODELS["naive Bayes"]
    explanation = model.explain(X.iloc[[40]], "chi2")[0]
    sizes = [change.size for change in explanation.changes]
    assert sizes == sorted(sizes, reverse=True)
    colour = X.colour.iloc[40]
    texts = [repr(change) for change in explanation.changes]
    assert any(
        text.startswith(f"colour = {colour} among {explanation.prediction}: ") for text in texts
    )
    assert any(text.startswith("class = ") for text in texts)
    assert any(" ≤ " in text or " > " in text for text in texts if "size" in text)
    change = next(c for c in explanation.changes if repr(c).startswith("colour"))
    assert change.outcomes[change.outcome] == f"colour = {colour}"
    before, after = (100 * mass[change.outcome] for mass in (change.before, change.after))
    assert f"{before:.0f} %" in repr(change) or f"{before:.1f} %" in repr(change)
    assert before != after
    assert change.before.sum() == pytest.approx(1.0)
    assert change.after.sum() == pytest.approx(1.0)


def test_a_structure_that_cannot_do_without_a_cell_says_so():
    model, table = MODELS["own edges"], table_of("own edges").iloc[:40].copy()
    lost = {f.name: f.without for f in model.explain(table)[0].features}
    assert None in lost.values()
    needed = next(name for name, without in lost.items() if without is None)
    table.loc[table.index[2], needed] = None
    with pytest.raises(UnsupportedError, match=f"a cell of '{needed}' is missing"):
        model.explain(table)
    # In a neighbourhood that does without local models, the rest can be told.
    features = model.explain(table, "tv_posterior")[2].features
    assert {feature.alone for feature in features} == {None}
    assert all(isinstance(f.alone, float) for f in model.explain(table, "tv_posterior")[3].features)
    assert "–" in repr(model.explain(table, "tv_posterior")[2])
    json.dumps(model.explain(table, "tv_posterior")[2].to_dict())


def test_changes_of_networks_tell_the_parents():
    def say(name, parts="all"):
        told = MODELS[name].explain(table_of(name).iloc[[40]], "chi2", parts=parts)[0]
        return told.prediction, [repr(change) for change in told.changes]

    prediction, texts = say("tan")
    parents = [child for parent, child in MODELS["tan"].edges_ if parent != "class"]
    assert parents
    for child in parents:
        own = [text for text in texts if text.startswith(child) or f" {child} " in text]
        assert any(f"among {prediction} where " in text for text in own)
    assert any(text.startswith("class = ") for text in texts)
    _, texts = say("own edges")
    colour = X.colour.iloc[40]
    assert any(
        text.startswith("class = ") and f" where colour = {colour}: " in text for text in texts
    )
    prediction, texts = say("aode")
    assert any(f" among {prediction} where colour = {colour}: " in text for text in texts)
    assert any(re.match(rf"network of \w+ among {prediction}: ", text) for text in texts)


def test_nothing_changes_that_does_not_matter():
    """How the count hangs on the size says nothing of the class, whichever way it moves."""
    explanations = MODELS["own edges"].explain(table_of("own edges").iloc[:60], "chi2")
    texts = [repr(change) for explanation in explanations for change in explanation.changes]
    assert any(text.startswith("shape = ") for text in texts)
    assert not any(text.startswith("count = ") for text in texts)


def test_changes_of_circuits_tell_what_their_sums_split():
    tan, circuit = (MODELS[name].explain(X.iloc[[40]], "chi2")[0] for name in ("tan", "circuit"))
    nodes = re.compile(r" in node \d+")
    told = [nodes.sub("", repr(change)) for change in circuit.changes]
    assert all(nodes.search(repr(change)) for change in circuit.changes)
    assert sorted(told) == sorted(map(repr, tan.changes))
    forest = MODELS["forest"].to_circuit().explain(X.iloc[[40]], "tv_all")[0].changes
    assert any(re.match(r"branch \d in node \d+: ", repr(change)) for change in forest)
    texts = [repr(change) for change in forest if change.part == "weights"]
    assert all(re.match(r"(colour|size|shape|count|[-0-9.]+ <) ", text) for text in texts)


def test_so_many_training_records_flip_the_prediction():
    """The sentence of an explanation, tried: fitted anew with these records, and with fewer."""
    table = X[["colour", "shape", "count"]].astype({"count": str}).iloc[30:100]
    labels = np.where(Y == "ugly", "good", Y)[30:100]
    model = NaiveBayesClassifier(1.0).fit(table, labels)
    told = 0
    for row in range(40):
        one = table.iloc[[row]]
        explanation = model.explain(one)[0]
        count = int(explanation.records)
        assert f"{count:,} more" in explanation.story[1] or count <= 10
        if count <= 5 and told < 4:
            told += 1
            assert any(_flips(table, labels, one, explanation, count))
            assert not any(_flips(table, labels, one, explanation, count - 1))
    assert told == 4


def _flips(table, labels, one, explanation, count):
    """Yield whether records that look like a row and have the other class flip it."""
    best = explanation.prediction
    rival = "good" if best == "bad" else "bad"
    other = {column: next(v for v in table[column] if v != one[column].iloc[0]) for column in one}
    for like in range(count + 1):
        more = pd.concat([one] * like + [one.assign(**other)] * (count - like), ignore_index=True)
        added = pd.concat([table, more], ignore_index=True)
        y = np.concatenate([labels, [rival] * like + [best] * (count - like)])
        joint = NaiveBayesClassifier(1.0).fit(added, y).predict_joint_log_proba(one)[0]
        order = {"bad": joint[0], "good": joint[1]}
        yield order[best] <= order[rival] + 1e-9


def test_changes_of_forests_tell_the_path():
    changes = MODELS["forest"].explain(X.iloc[[40]], "tv_all")[0].changes
    parts = {change.part for change in changes}
    assert parts == {"root", "weights", "leaf_classes", "leaf_features"}
    assert any("where " in repr(change) and "in tree " in repr(change) for change in changes)
    assert any(repr(change).startswith("tree ") for change in changes)


@every_model
@every_name
def test_a_summary_alone_is_the_summary_of_the_explanations(name, perturbation):
    model, table = MODELS[name], table_of(name)
    alone = model._summarise(table, read(perturbation))
    assert alone.to_dict() == model.explain(table, perturbation).summary().to_dict()


@every_model
def test_explanations_are_a_sequence_and_plain_data(name):
    explanations = MODELS[name].explain(table_of(name).iloc[:30])
    assert explanations[-1].prediction == explanations[29].prediction
    assert len(explanations[5:9]) == 4
    assert explanations[5:9][0].to_dict() == explanations[5].to_dict()
    with pytest.raises(IndexError, match="there is no row 30: 30 rows were explained"):
        explanations[30]
    told = json.loads(json.dumps(explanations[3].to_dict()))
    assert told["hangs_on"] == explanations[3].hangs_on
    assert told["features"][0]["value"] == ("red" if name in TANGLED else None)
    assert "hangs on" in repr(explanations)
    assert "alone" in repr(explanations[0])


def test_where_nothing_flips_there_are_no_changes_and_a_note_says_so():
    model = NaiveBayesClassifier(0.0).fit([["a"], ["b"], ["b"]], [0, 1, 1])
    explanation = model.explain([["a"]], "chi2", parts=["features"])[0]
    assert explanation.tipping_class is None
    assert explanation.changes == ()
    assert "Nothing in this neighbourhood flips" in repr(explanation)
    assert explanation.hangs_on is None


def test_one_class_has_nothing_to_explain_but_can_be():
    explanation = NaiveBayesClassifier(1.0).fit([["a"], ["b"]], [1, 1]).explain([["a"]])[0]
    assert (explanation.robustness, explanation.tipping_class) == (np.inf, None)
    assert explanation.features[0].support == 0.0


def test_neighbourhoods_of_the_whole_say_why_they_have_no_changes():
    explanation = MODELS["naive Bayes"].explain(X.iloc[[5]], "tv_joint")[0]
    assert explanation.changes == ()
    assert "not perturbed each on its own" in explanation.note
    with pytest.raises(UnsupportedError, match="a column is a number"):
        GenerativeForestClassifier(2, smoothing=1e-6).fit(X, Y).explain(X.iloc[[5]], "tv_joint")


def test_names_and_values_have_no_power_over_terminals_and_pages():
    nasty = "<script>alert(1)</script>\x1b[31m\u202e"
    table = pd.DataFrame({nasty: [nasty, "b"] * 5, "b$c$": ["x", "y", "x", "x", "y"] * 2})
    labels = [nasty, "fine"] * 5
    model = NaiveBayesClassifier(1.0).fit(table, labels)
    explanations = model.explain(table)
    flips = model.counterfactuals(table.iloc[[0]])
    shown = [
        *(repr(one) for one in (explanations, explanations[0], explanations.summary(), flips)),
        *(
            one._repr_html_()
            for one in (explanations, explanations[0], explanations.summary(), flips)
        ),
    ]
    for text in shown:
        assert "\x1b" not in text
        assert "\u202e" not in text
    for page in shown[4:]:
        assert "<script" not in page
    explanations[0].plot()
    explanations.plot()


def test_unknown_values_are_shown_as_they_are_and_count_as_missing():
    with pytest.warns(robustq.UnknownValueWarning):
        explanation = MODELS["naive Bayes"].explain(X.iloc[[7]].assign(colour="pink"))[0]
    assert explanation.features[0].value == "pink"
    assert explanation.features[0].support == 0.0


def test_tables_without_names_have_columns_by_position():
    model = NaiveBayesClassifier(1.0).fit([["a", 1], ["b", 2], ["a", 2]], [0, 1, 1])
    explanation = model.explain([["a", 1]])[0]
    assert [feature.name for feature in explanation.features] == ["0", "1"]
    assert any(repr(change).startswith("column 0 = a among") for change in explanation.changes)


def test_functions_take_pipelines():
    pipeline = make_pipeline(FunctionTransformer(), MODELS["naive Bayes"])
    row = X.iloc[[9]]
    assert (
        robustq.explain(pipeline, row)[0].to_dict()
        == MODELS["naive Bayes"].explain(row)[0].to_dict()
    )
    assert (
        robustq.counterfactuals(pipeline, row, limit=3).to_dict()
        == MODELS["naive Bayes"].counterfactuals(row, limit=3).to_dict()
    )
    assert robustq.witness(pipeline, row).to_dict() == MODELS["naive Bayes"].witness(row).to_dict()
    with pytest.raises(InputError, match="one row, got 2"):
        robustq.witness(pipeline, X.iloc[:2])


@pytest.mark.parametrize(
    ("value", "text"),
    [(176756.0, "176756"), (0.1234567, "0.123457"), (-3.0, "-3"), (1e20, "1e+20"), (None, "–")],
)
def test_values_are_told_as_the_table_has_them(value, text):
    assert say_value(value) == text
