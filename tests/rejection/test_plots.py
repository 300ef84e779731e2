"""Pictures: that something is drawn, in colours that can be told apart."""

import io

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from robustq import InputError, rejection
from robustq.rejection.plots import FIXED, _spread, choose_styles, style_line

mpl.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def results(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(rows)
    return rng.random(rows) < 0.5 + 0.5 * score, score


def pixels(figure):
    file = io.BytesIO()
    figure.savefig(file, format="rgba", dpi=60)
    return np.frombuffer(file.getvalue(), dtype=np.uint8).reshape(-1, 4)[:, :3]


def shows(figure, colour):
    """Tell whether a colour is really there."""
    wanted = np.array([round(255 * part) for part in to_rgb(colour)])
    return (np.abs(pixels(figure).astype(int) - wanted).max(axis=1) < 30).sum() > 20


def test_nine_curves_are_drawn_and_labelled():
    correct, score = results()
    rng = np.random.default_rng(1)
    curves = {
        f"r_{i}": rejection.accuracy_rejection_curve(correct, score + i * rng.random(400))
        for i in range(9)
    }
    band = rejection.confidence_band(correct, score, n_resamples=50)
    axes = rejection.plot_curves(curves, bands={"r_0": band}, title="Nine")
    drawn = [line for line in axes.lines if line.get_transform() == axes.transData]
    assert len(drawn) == 9
    labels = [text.get_text() for text in axes.texts]
    for name, curve in curves.items():
        assert f"{name}  {curve.auc:.3f}" in labels
    for index in range(7):
        assert shows(axes.figure, style_line(index)[0])


def test_styles_of_many_curves_differ():
    assert len({str(style_line(index)) for index in range(21)}) == 21


def test_curves_are_drawn_where_one_wants_them():
    correct, score = results()
    figure = Figure()
    given = figure.subplots()
    average = rejection.average_curves([rejection.accuracy_rejection_curve(correct, score)])
    assert rejection.plot_curves({"mean": average}, ax=given) is given
    with pytest.raises(InputError, match="no curve to draw"):
        rejection.plot_curves({})


def test_a_single_prediction_can_be_drawn():
    curve = rejection.accuracy_rejection_curve([True], [0.5])
    assert shows(rejection.plot_curves({"one": curve, "two": curve}).figure, style_line(1)[0])
    rejection.plot_robustness([True], [0.5])


def test_labels_do_not_overlap():
    heights = _spread([0.9, 0.9, 0.91, 0.99, 1.0], 0.05, 1.0)
    assert np.all(np.diff(heights) >= 0.05 - 1e-12)
    assert max(heights) <= 1.0


@pytest.mark.parametrize("special", [None, np.inf, 0.0])
def test_robustness_is_drawn_for_right_and_wrong(special):
    correct, score = results()
    if special is not None:
        score[::3] = special
    first, second = rejection.plot_robustness(correct, score, name="r_tv")
    assert shows(first.figure, style_line(0)[0])
    assert shows(first.figure, style_line(1)[0])
    assert first.get_xlabel() == "r_tv"
    assert second.get_ylabel() == "accuracy"
    pair = Figure().subplots(1, 2)
    assert rejection.plot_robustness(correct, score, axes=tuple(pair)) == tuple(pair)


def test_all_right_or_all_infinite_can_be_drawn():
    first, _ = rejection.plot_robustness([True] * 5, [np.inf] * 5)
    assert "right (5)" in [text.get_text() for text in first.get_legend().get_texts()]


def test_the_order_of_tied_rows_does_not_show():
    right = np.r_[np.ones(50), np.zeros(50)].astype(bool)
    _, axes = rejection.plot_robustness(right, np.full(100, 0.5))
    assert axes.lines[0].get_ydata().tolist() == [0.5]


def test_odd_names_and_rates_can_be_drawn():
    correct, score = results()
    curve = rejection.accuracy_rejection_curve(correct, score)
    axes = rejection.plot_curves({"$_{$": rejection.average_curves([curve], [0.96, 0.97])})
    assert len(pixels(axes.figure))
    first, _ = rejection.plot_robustness(correct, score, name="$_{$")
    assert len(pixels(first.figure))


def test_new_figures_are_those_that_notebooks_and_scripts_show():
    before = plt.get_fignums()
    curve = rejection.accuracy_rejection_curve([True, False], [1.0, 0.0])
    axes = rejection.plot_curves({"one": curve})
    first, second = rejection.plot_robustness([True, False], [1.0, 0.0])
    numbers = [number for number in plt.get_fignums() if number not in before]
    assert [plt.figure(number) for number in numbers] == [axes.figure, first.figure]
    assert second.figure is first.figure


def test_figures_of_ones_own_are_used():
    before = plt.get_fignums()
    curve = rejection.accuracy_rejection_curve([True, False], [1.0, 0.0])
    axes = Figure().subplots()
    assert rejection.plot_curves({"one": curve}, ax=axes) is axes
    assert plt.get_fignums() == before


def test_an_indicator_looks_the_same_in_every_picture():
    few, many = ["r_tv", "u_max"], ["u_max", "r_mine", "r_chi2", "r_tv", "r_tv_all", "other"]
    styles = choose_styles(many)
    for name in few:
        assert choose_styles(few)[name] == styles[name]
    assert len({repr(style) for style in styles.values()}) == len(many)
    assert styles["r_tv"][0] == styles["r_tv_all"][0] != styles["r_chi2"][0]
    known = choose_styles(list(FIXED))
    assert len({repr(style) for style in known.values()}) == len(FIXED)
