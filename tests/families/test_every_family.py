"""What users of one family can do, those of the others can too."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.utils.class_weight import compute_sample_weight

import robustq
from robustq import (
    GenerativeForestClassifier,
    GenerativeTreeClassifier,
    InputError,
    NaiveBayesClassifier,
)

RNG = np.random.RandomState(0)
ROWS = 600
TABLE = pa.table(
    {
        "colour": RNG.choice(["red", "green", "blue"], ROWS),
        "size": RNG.normal(size=ROWS),
        "count": RNG.randint(4, size=ROWS),
    }
)
LABELS = np.where(TABLE["size"].to_numpy() + RNG.normal(size=ROWS) > 1.0, "rare", "usual")
FAMILIES = [
    lambda **given: NaiveBayesClassifier(smoothing=1.0, **given),
    lambda **given: GenerativeForestClassifier(5, random_state=0, **given),
    lambda **given: GenerativeTreeClassifier(random_state=0, **given),
]
every_family = pytest.mark.parametrize("make", FAMILIES, ids=["naive Bayes", "forest", "tree"])


@every_family
def test_class_weights_are_weights_of_rows(make):
    weights = {"balanced": "balanced", "some": {"rare": 2.5}}
    for class_weight in weights.values():
        given = make(class_weight=class_weight).fit(TABLE, LABELS)
        by_rows = make().fit(TABLE, LABELS, compute_sample_weight(class_weight, LABELS))
        assert np.array_equal(
            given.predict_joint_log_proba(TABLE), by_rows.predict_joint_log_proba(TABLE)
        )
    assert np.mean(given.predict(TABLE) == "rare") > np.mean(
        make().fit(TABLE, LABELS).predict(TABLE) == "rare"
    )


@every_family
def test_balanced_weights_count_rows_as_often_as_their_weights_say(make):
    repeats = np.where(LABELS == "rare", 2, 1)
    often = np.repeat(np.arange(ROWS), repeats)
    weighted = make(class_weight="balanced").fit(TABLE, LABELS, repeats)
    _, labels = weighted.sample(5000, random_state=0)
    assert abs(np.mean(labels == "rare") - 0.5) < 0.04
    repeated = make(class_weight="balanced").fit(TABLE.take(often), LABELS[often])
    _, labels = repeated.sample(5000, random_state=0)
    assert abs(np.mean(labels == "rare") - 0.5) < 0.04


@every_family
@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("equal", "must be None, \"balanced\" or a dictionary of labels, got 'equal'"),
        ({"rare": -1}, "of 'rare' must be a number of at least 0, got -1"),
        ({"rare": float("nan")}, "of 'rare' must be a number"),
        ({"rare": "much"}, "of 'rare' must be a number"),
        ({"Rare": 2.0}, "names 'Rare', which is none of the classes"),
        ({"rare": 0, "usual": 0}, "there is nothing to learn from"),
        ([1, 2], "a dictionary of labels"),
    ],
)
def test_class_weights_that_are_none_are_refused(make, class_weight, message):
    with pytest.raises(InputError, match=message):
        make(class_weight=class_weight).fit(TABLE, LABELS)


@every_family
def test_weights_of_classes_that_are_absent_do_no_harm(make):
    weights = {"rare": 2.0, "usual": 1.0, "never": 5.0}
    assert make(class_weight=weights).fit(TABLE, LABELS).classes_.tolist() == ["rare", "usual"]


def test_partial_fit_weighs_classes_but_cannot_balance_them():
    model = NaiveBayesClassifier(smoothing=1.0, class_weight={"rare": 3.0})
    whole = NaiveBayesClassifier(smoothing=1.0, class_weight={"rare": 3.0})
    colours = TABLE.select(["colour"])
    for part in (slice(0, 200), slice(200, ROWS)):
        rows = np.arange(ROWS)[part]
        model.partial_fit(colours.take(rows), LABELS[part], classes=["rare", "usual"])
    assert np.allclose(
        model.predict_proba(colours), whole.fit(colours, LABELS).predict_proba(colours)
    )
    with pytest.raises(InputError, match="needs all rows at once"):
        NaiveBayesClassifier(1.0, class_weight="balanced").partial_fit(
            colours, LABELS, classes=["rare", "usual"]
        )


@every_family
@pytest.mark.parametrize("class_weight", ["balanced", {"rare": 2.0}])
def test_class_weights_survive_a_file(make, class_weight, tmp_path):
    make(class_weight=class_weight).fit(TABLE, LABELS).save(tmp_path / "m.robustq")
    assert robustq.load(tmp_path / "m.robustq").class_weight == class_weight


@every_family
def test_class_weights_of_numbers_are_not_kept_as_those_of_texts(make, tmp_path):
    labels = (LABELS == "rare").astype(int)
    make(class_weight={1: 2.0}).fit(TABLE, labels).save(tmp_path / "m.robustq")
    assert robustq.load(tmp_path / "m.robustq").class_weight is None


@every_family
def test_drawn_rows_can_be_given_back_and_look_like_those_learned_from(make):
    model = make(numeric=["size"]).fit(TABLE, LABELS)
    drawn, labels = model.sample(4000, random_state=0)
    assert drawn.column_names == TABLE.column_names
    assert np.isfinite(model.log_likelihood(drawn)).all()
    assert abs(np.mean(labels == "rare") - np.mean(LABELS == "rare")) < 0.03
    for name in ("colour", "count"):
        values, counts = np.unique(TABLE[name].to_numpy(), return_counts=True)
        found = drawn[name].to_numpy()
        assert np.allclose([np.mean(found == v) for v in values], counts / ROWS, atol=0.05)
    again = model.sample(4000, random_state=0)
    assert again[0].equals(drawn)
    assert np.array_equal(again[1], labels)
    # The joint distribution itself: drawn labels go with drawn features.
    assert model.score(drawn, labels) > 0.7


@every_family
def test_log_likelihood_sums_the_joint_over_the_classes(make):
    model = make().fit(TABLE, LABELS)
    joint = model.predict_joint_log_proba(TABLE)
    assert np.allclose(model.log_likelihood(TABLE), np.log(np.exp(joint).sum(axis=1)))


@every_family
def test_any_number_of_jobs_gives_the_same(make):
    results = [
        make(n_jobs=n_jobs).fit(TABLE, LABELS).robustness(TABLE) for n_jobs in (1, 2, -1, None)
    ]
    assert all(np.array_equal(results[0], other) for other in results[1:])
    for wrong in (0, -2, 1.5, "all"):
        with pytest.raises(InputError, match="n_jobs must be at least 1"):
            make(n_jobs=wrong).fit(TABLE, LABELS)


def test_numbers_drawn_from_bins_lie_in_them():
    wild = np.array([[-1e308], [0.0], [1e-300], [5e-324], [1e308], [1e308], [3.0], [2.0]])
    for column in (wild, np.full((8, 1), np.nan), np.ones((8, 1)), np.arange(8.0)[:, None]):
        model = NaiveBayesClassifier(1.0, numeric=[0], n_bins=4).fit(column, [0, 1] * 4)
        (binned,) = model.encoding_.columns
        codes = np.arange(len(binned.categories), dtype=np.int32)
        assert np.array_equal(binned.encode(binned.decode(codes), "x"), codes)
        assert np.isnan(binned.decode(np.array([-1]))).all()


def test_rows_without_any_value_are_drawn_as_missing():
    model = NaiveBayesClassifier(1.0).fit([[None, "a"], [None, "b"]], [0, 1])
    drawn, _ = model.sample(5, random_state=0)
    assert drawn[:, 0].tolist() == [None] * 5
