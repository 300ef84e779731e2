"""Draw the picture of docs/trust.md: nine indicators on data that comes with scikit-learn."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from robustq import GenerativeForestClassifier, indicators, rejection

NAMES = ("r_epsilon", "r_tv", "r_chi2", "u_marg", "u_max", "u_H", "u_t", "u_a", "u_e")


def main() -> None:
    """Write images/curves.png: the mean over ten splits."""
    X, y = load_breast_cancer(return_X_y=True)
    curves: dict[str, list[rejection.Curve]] = {name: [] for name in NAMES}
    for seed in range(10):
        learn, test, own, truth = train_test_split(X[:, :10], y, test_size=0.5, random_state=seed)
        model = GenerativeForestClassifier(random_state=seed).fit(learn, own)
        ensemble = indicators.BootstrapEnsemble(model, random_state=seed).fit(learn, own)
        scores = indicators.compute(model, test, NAMES, ensemble=ensemble)
        correct = model.predict(test) == truth
        for name, score in scores.items():
            curves[name].append(rejection.accuracy_rejection_curve(correct, score))
    averages = {name: rejection.average_curves(runs) for name, runs in curves.items()}
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    title = "A forest on breast cancer data, ten splits"
    rejection.plot_curves(averages, ax=figure.subplots(), title=title)
    figure.savefig(Path(__file__).parent / "images" / "curves.png", dpi=110)


if __name__ == "__main__":
    main()
