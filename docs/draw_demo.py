"""Draw the picture of the README: what `robustq demo` finds with naive Bayes."""

from pathlib import Path

from matplotlib.figure import Figure

from robustq import NaiveBayesClassifier, datasets
from robustq.experiments.evaluation import evaluate
from robustq.rejection import plot_robustness
from robustq.selection.training import split_rows
from robustq.tables.table import take_rows

TARGET = Path(__file__).parent / "images" / "demo.png"


def main() -> None:
    """Draw it."""
    german = datasets.load("german", download=False)
    train, test = split_rows(len(german.y), 0.4, seed=0)
    model = NaiveBayesClassifier("cv").fit(take_rows(german.X, train), german.y[train])
    found = evaluate(
        model, take_rows(german.X, test), german.y[test], title="naive Bayes", names=["r_tv"]
    )
    figure = Figure(figsize=(10, 4), layout="constrained")
    first, second = figure.subplots(1, 2)
    plot_robustness(**found["points"], name="robustness (tv)", axes=(first, second))
    figure.savefig(TARGET, dpi=110, metadata={"Software": None})
    print(TARGET)


if __name__ == "__main__":
    main()
