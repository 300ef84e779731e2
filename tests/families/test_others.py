"""Somebody else's classifiers: posteriors, and forests as they are."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, load_wine
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import robustq
from robustq import (
    NaiveBayesClassifier,
    OtherPredictionWarning,
    RobustqError,
    SelectiveClassifier,
    UnsupportedError,
    credal,
    indicators,
)
from robustq.core.evidence import NONE
from robustq.indicators.scores import examine
from robustq.perturbations import Domain, Perturbation, get

X, NUMBERS = load_wine(return_X_y=True, as_frame=True)
X = X.iloc[:, :5]
Y = np.array(["a", "b", "c"])[NUMBERS]
FITTED = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y),
    "neighbours": KNeighborsClassifier(7).fit(X, Y),
    "forest": RandomForestClassifier(9, max_depth=3, random_state=0).fit(X, Y),
    "extra": ExtraTreesClassifier(5, max_depth=3, random_state=0).fit(X, Y),
    "tree": DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, Y),
    "boosted": HistGradientBoostingClassifier(max_iter=3).fit(X, Y),
    "voting": VotingClassifier([("g", GaussianNB())], voting="soft").fit(X, Y),
}
FORMULAS = {
    "epsilon": lambda a, b: (a - b) / (1 + a - b),
    "tv": lambda a, b: (a - b) / 2,
    "chi2": lambda a, b: (a - b) ** 2 / (a + b - (a - b) ** 2),
    "odds_ratio": lambda a, b: np.where(b > 0, 1 - b / a, np.inf),
}


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize("ball", FORMULAS)
def test_of_any_classifier_the_posterior_is_perturbed(name, ball):
    model = FITTED[name]
    b, a = np.sort(model.predict_proba(X), axis=1)[:, -2:].T
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = FORMULAS[ball](a, b)
    found = robustq.assess(model, X, [ball, f"{ball}_posterior"])
    np.testing.assert_allclose(found.robustness[ball], expected, rtol=1e-9, atol=1e-15)
    np.testing.assert_array_equal(found.robustness[f"{ball}_posterior"], found.robustness[ball])
    np.testing.assert_array_equal(found.prediction, model.predict(X))
    np.testing.assert_array_equal(
        robustq.posterior_robustness(model.predict_proba(X), ball), found.robustness[ball]
    )
    np.testing.assert_array_equal(
        robustq.is_robust(model, X, ball, 0.1), found.robustness[ball] > 0.1
    )
    alone = robustq.credal_predict(model, X, ball, 0.1).sum(axis=1) == 1
    np.testing.assert_array_equal(alone, found.robustness[ball] > 0.1)


class Largest(Perturbation):
    """No probability moves by more than δ: no outcomes can be put together in it."""

    domain = Domain(1.0, closed=True)

    def lower_expectation(self, q, f, delta):
        q, f, delta = self.check(q, f, delta)
        shape = np.broadcast_shapes(q.shape, f.shape)
        q, f = np.broadcast_to(q, shape), np.broadcast_to(f, shape)
        low, high = np.maximum(q - delta[..., None], 0), np.minimum(q + delta[..., None], 1)
        order = np.argsort(f, axis=-1, kind="stable")
        low, high, f = (np.take_along_axis(part, order, -1) for part in (low, high, f))
        room, left = high - low, 1 - low.sum(axis=-1, keepdims=True)
        before = np.cumsum(room, axis=-1) - room
        return ((low + np.clip(left - before, 0, room)) * f).sum(axis=-1)


def test_a_ball_of_ones_own_sees_the_whole_posterior():
    proba = np.array([[0.5, 0.3, 0.2], [0.6, 0.4, 0.0], [0.4, 0.4, 0.2]])
    np.testing.assert_allclose(
        robustq.posterior_robustness(proba, Largest()), [0.1, 0.1, 0.0], rtol=1e-9
    )


def test_ties_are_zero_and_certainty_is_what_the_ball_says():
    proba = [[0.5, 0.5], [1.0, 0.0], [0.1 + 0.2, 0.7], [1 / 3, 1 / 3]]
    with pytest.raises(RobustqError, match=r"sums to 0\.666667 in row 3"):
        robustq.posterior_robustness(proba, "tv")
    np.testing.assert_allclose(robustq.posterior_robustness(proba[:3], "tv"), [0.0, 0.5, 0.2])
    assert robustq.posterior_robustness(proba[:2], "chi2").tolist() == [0.0, np.inf]
    assert robustq.robustness(DummyClassifier().fit(X, np.ones(len(X))), X).tolist()[0] == np.inf


@pytest.mark.parametrize(
    ("proba", "message"),
    [
        ([0.2, 0.8], "of two classes give both"),
        ([[0.2, np.nan]], "holds nan in row 0"),
        ([[0.2, -0.1, 0.9]], r"holds -0\.1 in row 0"),
        ([["a", "b"]], "must be numbers"),
        ([[0.9, 0.8]], r"sums to 1\.7 in row 0"),
    ],
)
def test_what_is_no_posterior_is_refused(proba, message):
    with pytest.raises(RobustqError, match=message):
        robustq.posterior_robustness(proba)


@pytest.mark.parametrize("name", ["forest", "extra", "tree"])
@pytest.mark.parametrize("ball", ["epsilon", "tv", "chi2"])
@pytest.mark.parametrize("parts", ["all", ["root"], ["leaf_classes"]])
def test_a_forest_as_it_is_agrees_with_the_recursion_by_hand(name, ball, parts):
    model = FITTED[name]
    trees = getattr(model, "estimators_", [model])
    numbers = X.to_numpy(np.float32)
    shares = [tree.tree_.predict(numbers).reshape(len(X), -1) for tree in trees]
    leaves = np.stack(shares, axis=1)
    found = robustq.assess(model, X, [ball], parts=parts)
    (key,) = found.robustness
    size = found.robustness[key]
    np.testing.assert_array_equal(found.prediction, model.predict(X))
    finite = np.flatnonzero(np.isfinite(size) & (size > 0))[:40]
    for row in finite:
        best, rival = (
            np.flatnonzero(model.classes_ == label)[0]
            for label in (found.prediction[row], found.tipping_class[key][row])
        )
        below, above = (
            margin(get(ball), leaves[row], best, rival, size[row] * step, parts)
            for step in (1 - 1e-8, 1 + 1e-8)
        )
        assert below > 0
        assert above <= 1e-15 or size[row] * (1 + 1e-8) > get(ball).domain.end
    for row in np.flatnonzero(np.isinf(size))[:10]:
        best = np.flatnonzero(model.classes_ == found.prediction[row])[0]
        end = 1.0 if ball in ("epsilon", "tv") else 1e6
        for rival in set(range(3)) - {best}:
            assert margin(get(ball), leaves[row], best, rival, end, parts) > 0


def margin(ball, leaves, best, rival, delta, parts):
    """Return R(δ) of one row, as circuits have it."""
    delta = min(delta, ball.domain.end)
    values = leaves[:, best] - leaves[:, rival]
    if parts != ["root"]:
        f = np.zeros(leaves.shape[1])
        f[best], f[rival] = 1.0, -1.0
        values = np.array([float(ball.lower_expectation(q, f, delta)) for q in leaves])
    if parts == ["leaf_classes"] or len(values) == 1:
        return values.mean()
    return float(ball.lower_expectation(np.full(len(values), 1 / len(values)), values, delta))


def test_kernels_and_recursion_agree_on_forests():
    from robustq.core import engine  # noqa: PLC0415
    from robustq.core.leaves import Votes  # noqa: PLC0415
    from robustq.core.neighbourhoods import read  # noqa: PLC0415
    from robustq.tables import Rows  # noqa: PLC0415

    rng = np.random.default_rng(0)
    table = rng.dirichlet([0.4, 0.3, 0.3], 60)
    table[rng.random(60) < 0.3] = np.eye(3)[0]
    table[rng.random(60) < 0.2] = [0.0, 0.5, 0.5]
    votes = Votes(table, np.ones(60), 7)
    assert votes.root_part != NONE
    rows = Rows(rng.integers(0, 60, (150, 7)).astype(np.int32), np.empty((150, 0)))
    for ball in ("epsilon", "tv", "chi2"):
        for parts in ("all", ["root"], ["leaf_classes"]):
            bound = [read(ball, parts).bind(votes, ())]
            fast = engine.quantify(votes, rows, bound)
            slow = engine.quantify(votes, rows, bound, general=True)
            np.testing.assert_allclose(fast.robustness, slow.robustness, rtol=1e-9, atol=1e-15)


def test_sizes_by_rows_count_the_records_of_leaves():
    forest = FITTED["forest"]
    sizes = robustq.robustness(forest, X, "tv", parts="all", sizes="rows")
    assert (sizes > 0).all()
    tree = FITTED["tree"]
    counts = tree.tree_.weighted_n_node_samples[tree.apply(X)]
    # One leaf: a share δ of its rows is δ · rows of its records.
    np.testing.assert_allclose(
        robustq.robustness(tree, X, "tv_all_rows"),
        counts * robustq.robustness(tree, X, "tv_all"),
        rtol=1e-9,
    )
    with pytest.raises(UnsupportedError, match='take parts="all", whose leaves have rows'):
        robustq.robustness(forest, X, "tv_rows")
    with pytest.raises(UnsupportedError, match="nobody counted any"):
        robustq.robustness(FITTED["logistic"], X, "tv_rows")


def test_boosting_says_why_it_has_a_posterior_only():
    with pytest.raises(UnsupportedError, match="add up scores"):
        robustq.robustness(FITTED["boosted"], X, parts="all")
    with pytest.raises(UnsupportedError, match="no joint"):
        robustq.robustness(FITTED["logistic"], X, parts="joint")
    with pytest.raises(RobustqError, match="has no part 'prior'"):
        robustq.robustness(FITTED["forest"], X, parts=["prior"])


def test_searches_and_pipelines_are_looked_into_and_wrappers_are_not():
    ours = NaiveBayesClassifier(1.0)
    plain = ours.fit(X, Y).robustness(X, "tv")
    search = GridSearchCV(make_pipeline(ours), {"naivebayesclassifier__n_bins": [10]}).fit(X, Y)
    np.testing.assert_array_equal(robustq.robustness(search, X), plain)
    np.testing.assert_array_equal(robustq.robustness(FrozenEstimator(search), X), plain)
    forest = make_pipeline(StandardScaler(), RandomForestClassifier(3, random_state=0)).fit(X, Y)
    scaled = forest[:-1].transform(X)
    np.testing.assert_array_equal(
        robustq.robustness(forest, X, "tv_all"), robustq.robustness(forest[-1], scaled, "tv_all")
    )
    calibrated = CalibratedClassifierCV(FrozenEstimator(search)).fit(X, Y)
    proba = np.sort(calibrated.predict_proba(X), axis=1)
    np.testing.assert_allclose(
        robustq.robustness(calibrated, X), (proba[:, -1] - proba[:, -2]) / 2, atol=1e-15
    )
    unfitted = GridSearchCV(ours, {"n_bins": [5]}, refit=False)
    with pytest.raises(RobustqError, match="not fitted"):
        robustq.robustness(unfitted, X)
    with pytest.raises(RobustqError, match="refit=False"):
        robustq.robustness(unfitted.fit(X, Y), X)


def test_a_prediction_that_is_not_the_most_probable_class_is_counted():
    two = Y != "c"
    logistic = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[two], Y[two])
    strict = FixedThresholdClassifier(logistic, threshold=0.9, pos_label="b").fit(X[two], Y[two])
    differs = int((strict.predict(X[two]) != logistic.predict(X[two])).sum())
    assert differs
    with pytest.warns(OtherPredictionWarning, match=f"in {differs} of 130 rows") as caught:
        found = robustq.assess(strict, X[two])
    assert caught[0].message.count == differs
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(found.prediction, logistic.predict(X[two]))
    # Ties broken otherwise are no other class.
    robustq.assess(KNeighborsClassifier(2).fit(X, Y), X)


def test_what_cannot_be_asked_is_explained():
    with pytest.raises(UnsupportedError, match=r"LinearSVC has no predict_proba.*Calibrated"):
        robustq.robustness(LinearSVC().fit(X, Y), X)
    with pytest.raises(RobustqError, match="not fitted"):
        robustq.robustness(RandomForestClassifier(), X, parts="all")
    with pytest.raises(RobustqError, match="predict_proba did not take this table"):
        robustq.robustness(FITTED["logistic"], X[["ash"]])
    with pytest.raises(RobustqError, match=r"apply did not take|did not take this table"):
        robustq.robustness(FITTED["forest"], X[["ash"]], parts="all")
    several = RandomForestClassifier(2).fit(X, np.stack([NUMBERS, NUMBERS], axis=1))
    with pytest.raises(UnsupportedError, match="2 targets at once"):
        robustq.robustness(several, X)


def test_indicators_and_abstaining_take_any_classifier():
    forest = FITTED["forest"]
    scores = indicators.compute(forest, X, ["r_tv", "r_tv_all", "u_marg"])
    np.testing.assert_allclose(2 * scores["r_tv"], scores["u_marg"], atol=1e-15)
    np.testing.assert_array_equal(
        scores["r_tv_all"], robustq.robustness(forest, X, "tv", parts="all")
    )
    gate = SelectiveClassifier(RandomForestClassifier(20, random_state=0), "r_tv_all", 0.3)
    gate.fit(X, Y)
    assert gate.accepts(X).any()
    assert robustq.assess(FITTED["logistic"], X).index.equals(X.index)


def test_threads_and_blocks_change_nothing(monkeypatch):
    from robustq.families import others  # noqa: PLC0415

    forest = FITTED["forest"]
    whole = robustq.robustness(forest, X, "chi2_all")
    monkeypatch.setattr(others, "TREE_ROWS", 50)
    monkeypatch.setattr(others, "BLOCK_ROWS", 7)
    np.testing.assert_array_equal(robustq.robustness(forest, X, "chi2_all"), whole)


@pytest.mark.parametrize(
    "model",
    [
        CategoricalNB(alpha=0.3),
        BernoulliNB(),
        BernoulliNB(binarize=1.5),
        CategoricalNB(fit_prior=False),
    ],
    ids=str,
)
def test_naive_bayes_of_scikit_learn_is_ours(model):
    rng = np.random.default_rng(0)
    codes = pd.DataFrame(rng.integers(0, 4, (200, 4)), columns=list("pqrs"))
    labels = np.array(["no", "yes"])[(codes["p"] + rng.normal(0, 1, 200) > 1.5).astype(int)]
    model.fit(codes, labels)
    ours = NaiveBayesClassifier.from_sklearn(model)
    np.testing.assert_allclose(ours.predict_proba(codes), model.predict_proba(codes), rtol=1e-9)
    np.testing.assert_array_equal(ours.predict(codes), model.predict(codes))
    assert (ours.robustness(codes, "tv_rows") > 0).all()
    assert NaiveBayesClassifier.from_dict(ours.to_dict()).to_dict() == ours.to_dict()
    if isinstance(model, CategoricalNB) and model.fit_prior:
        own = NaiveBayesClassifier(0.3).fit(codes, labels)
        np.testing.assert_allclose(
            ours.robustness(codes, "chi2_rows"), own.robustness(codes, "chi2_rows"), rtol=1e-9
        )


def test_other_models_are_no_naive_bayes():
    with pytest.raises(RobustqError, match="expected a CategoricalNB or BernoulliNB"):
        NaiveBayesClassifier.from_sklearn(GaussianNB())
    with pytest.raises(RobustqError, match="not fitted"):
        NaiveBayesClassifier.from_sklearn(CategoricalNB())


def test_arrays_and_polars_go_in_too():
    import polars as pl  # noqa: PLC0415

    iris, labels = load_iris(return_X_y=True)
    forest = RandomForestClassifier(5, random_state=0).fit(iris, labels)
    expected = robustq.robustness(forest, iris, "tv_all")
    frame = RandomForestClassifier(5, random_state=0).fit(pl.DataFrame(iris), labels)
    np.testing.assert_array_equal(robustq.robustness(frame, pl.DataFrame(iris), "tv_all"), expected)


@pytest.mark.parametrize("ball", ["epsilon", "tv", "chi2"])
@pytest.mark.parametrize("name", ["logistic", "forest"])
def test_bounds_of_a_posterior_are_the_balls(name, ball):
    model, delta = FITTED[name], 0.05
    lower, upper = robustq.posterior_bounds(model, X, ball, delta)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(lower, get(ball).lower_probability(proba, delta), atol=1e-12)
    np.testing.assert_allclose(upper, get(ball).upper_probability(proba, delta), atol=1e-12)


@pytest.mark.parametrize("ball", ["epsilon", "tv", "chi2"])
def test_bounds_of_a_forest_are_those_of_its_leaves_and_trees(ball):
    forest, delta, found = FITTED["forest"], 0.05, get(ball)
    lower, upper = robustq.posterior_bounds(forest, X[::9], ball, delta, parts="all")
    leaves = np.stack([tree.predict_proba(X[::9].to_numpy()) for tree in forest.estimators_], 1)
    weights = np.full(leaves.shape[1], 1 / leaves.shape[1])
    for c in range(3):
        least = found.lower_probability(leaves[:, :, c], delta)
        most = found.upper_probability(leaves[:, :, c], delta)
        np.testing.assert_allclose(
            lower[:, c], found.lower_expectation(weights, least, delta), rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(
            upper[:, c], found.upper_expectation(weights, most, delta), rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("parts", [None, "all"])
def test_sets_by_intervals_hold_those_by_maximality(parts):
    maximal, wide = (
        robustq.credal_predict(FITTED["forest"], X, "tv", 0.1, parts=parts, rule=rule)
        for rule in ("maximality", "interval")
    )
    assert not (maximal & ~wide).any()
    lower, upper = robustq.posterior_bounds(FITTED["forest"], X, "tv", 0.1, parts=parts)
    np.testing.assert_array_equal(wide, maximal | (upper >= lower.max(axis=1, keepdims=True)))
    with pytest.raises(RobustqError, match="rule must be 'maximality' or 'interval', got 'best'"):
        robustq.credal_predict(FITTED["forest"], X, "tv", 0.1, rule="best")


def test_records_are_for_naive_bayes():
    for model in (FITTED["forest"], FITTED["logistic"]):
        with pytest.raises(UnsupportedError, match="idm adds records to a naive Bayes model"):
            robustq.robustness(model, X, "idm")


def test_curves_of_sets_are_drawn_for_any_classifier():
    found = credal.curve(FITTED["logistic"], X, Y, "tv", [0.0, 0.1])
    assert found.measures[0].determinacy > found.measures[1].determinacy


def test_what_is_examined_says_where_predict_differs_and_warns_of_nothing():
    strict = FixedThresholdClassifier(LogisticRegression(), threshold=0.9).fit(
        X[Y != "c"], Y[Y != "c"] == "a"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seen = examine(strict, X, ["r_tv", "u_max"])
    with pytest.warns(OtherPredictionWarning) as caught:
        told = robustq.assess(strict, X, "tv")
    assert seen.assessment.others == told.others == caught[0].message.count > 0
    np.testing.assert_allclose(seen.values["u_max"], 1 - strict.predict_proba(X).max(axis=1))


@pytest.mark.parametrize("ball", ["epsilon", "tv", "chi2", "odds_ratio", "pari_mutuel", "kl"])
def test_of_a_posterior_the_nearest_one_that_disagrees_is_told(ball):
    model = FITTED["logistic"]
    told = robustq.explain(model, X, ball)
    sizes = robustq.robustness(model, X, ball)
    for row in range(0, len(X), 11):
        explanation = told[row]
        assert explanation.features == ()
        assert (explanation.robustness, explanation.hangs_on) == (sizes[row], None)
        (change,) = explanation.changes
        best = model.classes_.tolist().index(explanation.prediction)
        rival = model.classes_.tolist().index(explanation.tipping_class)
        np.testing.assert_allclose(change.before, model.predict_proba(X.iloc[[row]])[0])
        assert change.after.sum() == pytest.approx(1.0)
        # It lies in the ball, at whose edge both classes are equally probable.
        assert change.after[best] == pytest.approx(change.after[rival], rel=1e-6)
        payoff = np.eye(3)[best] - np.eye(3)[rival]
        least = get(ball).lower_expectation(change.before, payoff, sizes[row])
        assert payoff @ change.after == pytest.approx(least, abs=1e-9)
        outcomes = {outcome.label: outcome for outcome in explanation.outcomes}
        assert explanation.outcomes[0] == (explanation.prediction, *explanation.outcomes[0][1:])
        assert outcomes[explanation.tipping_class].alone == pytest.approx(sizes[row], rel=1e-9)
        near = [outcomes[label].nearest for label in model.classes_]
        assert near == change.after.tolist()
    assert "nearest that disagrees" in repr(told[0])
    assert "nearest that disagrees" in told[0]._repr_html_()


def test_posteriors_of_a_table_are_counted_by_what_they_turn_into():
    model = FITTED["logistic"]
    told, found = robustq.explain(model, X, "tv").summary(), robustq.assess(model, X, "tv")
    assert told.count.sum() == told.rows == len(X)
    for line in told.to_dict():
        own = (found.prediction == line["prediction"]) & (
            found.tipping_class["tv"] == line["tipping_class"]
        )
        assert own.sum() == line["count"]
        assert found.robustness["tv"][own].min() == line["least"]
    assert "would turn into" in repr(told)


@pytest.mark.parametrize("rows", [1, 60])
def test_posteriors_can_be_drawn(rows):
    axes = robustq.explain(FITTED["logistic"], X[:rows], "tv").plot()
    assert axes.patches
    plt.close(axes.figure)


def test_what_only_a_model_known_from_inside_can_tell_is_refused():
    for ask in (robustq.witness, robustq.counterfactuals):
        with pytest.raises(UnsupportedError, match=r"only p\(c \| f\) is known"):
            ask(FITTED["boosted"], X.iloc[[0]])
    told = robustq.explain(FITTED["forest"], X.iloc[[0]], "tv_all")[0]
    assert told.changes == ()
    assert "not told" in told.note
