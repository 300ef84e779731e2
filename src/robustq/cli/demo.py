"""`robustq demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robustq.ahead import compile_ahead
from robustq.blocks import count_cores
from robustq.families.compiling import NEEDED_LATER

from .consoles import (
    check_folder,
    fill_row,
    make_console,
    make_table,
    say,
    showing_progress,
    start_up,
)
from .evaluate import show_areas, show_cautions, show_verdicts

if TYPE_CHECKING:
    import numpy as np

__all__ = ["demo"]

MODELS = ("naive_bayes", "forest")
SHOWN = 10


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder for models and report.")
    ] = Path("robustq-demo"),
) -> None:
    """Show the whole story on data that ships with robustq: German credit data.

    Example: [bold]robustq demo[/bold]
    """
    check_folder(output)
    if count_cores() > 1:
        compile_ahead(NEEDED_LATER)
    start_up()
    from robustq import datasets  # noqa: PLC0415 (slow to import)
    from robustq.experiments.evaluation import evaluate  # noqa: PLC0415
    from robustq.families.table import find_recipe  # noqa: PLC0415
    from robustq.files import make_folder  # noqa: PLC0415
    from robustq.report import draw_evaluation, write_evaluation  # noqa: PLC0415
    from robustq.selection.training import split_rows  # noqa: PLC0415
    from robustq.tables.table import take_rows  # noqa: PLC0415

    from .models import make_estimator  # noqa: PLC0415

    make_folder(output)
    console = make_console()
    data = datasets.load("german", download=False)
    X, y = data.in_words()
    train, test = split_rows(len(y), 0.4, seed=0)
    say(
        console,
        f"German credit data: {len(y):,} people who borrowed money, {X.num_columns} things known "
        "about each, and whether they were a good or a bad risk. Two models learn from "
        f"{len(train)} of them and predict the other {len(test)}.\n",
    )
    X_test, y_test = take_rows(X, test), y[test]
    found: list[dict[str, Any]] = []
    models: list[Any] = []
    pictures: list[dict[str, str]] = []
    for recipe in map(find_recipe, MODELS):
        with showing_progress(f"training: {recipe.title}"):
            model = make_estimator(recipe, {}, (), seed=0).fit(take_rows(X, train), y[train])
            model.training_ |= {"target": "class", "source": "german (UCI)"}
            model.save(output / f"{recipe.aliases[0]}.robustq")
            found.append(evaluate(model, X_test, y_test, title=recipe.title))
            # Not at the end: meanwhile the other process compiles.
            pictures.append(draw_evaluation(found[-1]))
        models.append(model)
    show_verdicts(console, found)
    show_cautions(found)
    _show_predictions(console, models[0], X_test, y_test)
    _show_accuracy(console, found)
    report = output / "report.html"
    text = (
        "German credit data (Statlog, UCI Machine Learning Repository, CC BY 4.0): "
        f"{len(train)} rows to learn from, {len(test)} to test on."
    )
    with showing_progress("writing the report"):
        title = "robustq demo: German credit data"
        write_evaluation(found, report, title=title, text=text, pictures=pictures)
    for what, path in (("Report", report), ("Models", output / "*.robustq")):
        console.print(f"{what}: {path.resolve()}", soft_wrap=True, markup=False)


def _show_accuracy(console: Any, found: list[dict[str, Any]]) -> None:
    """Show how often the models are right, and which indicators tell when."""
    for item in found:
        console.print(f"{item['title']}: accuracy {item['accuracy']:.1%}", markup=False)
    say(
        console,
        "\nReject the predictions that an indicator trusts least, ever more of them: the mean "
        "accuracy of the rest is AU-ARC. r_… is a robustness, u_… an uncertainty.",
    )
    show_areas(console, found, brief=True)


def _show_predictions(console: Any, model: Any, X: Any, y: np.ndarray[Any, Any]) -> None:
    """Show ten predictions, from the least robust to the most robust."""
    import numpy as np  # noqa: PLC0415 (slow to import)
    from rich.text import Text  # noqa: PLC0415

    assessment = model.assess(X, ["tv", "chi2"])
    order = np.argsort(assessment.robustness["tv"], kind="stable")
    table = make_table(
        *("prediction", "truth", "probability", "robustness (tv)", "(chi2)", "flips to"),
        right=("probability", "robustness (tv)", "(chi2)", "flips to"),
        title="Ten of naive Bayes' predictions, the least robust first",
    )
    for row in order[np.linspace(0, len(order) - 1, SHOWN).astype(int)].tolist():
        right = assessment.prediction[row] == y[row]
        fill_row(
            table,
            str(assessment.prediction[row]),
            Text(str(y[row]), style="" if right else "bold red"),
            f"{assessment.probability[row]:.3f}",
            f"{assessment.robustness['tv'][row]:.3g}",
            f"{assessment.robustness['chi2'][row]:.3g}",
            str(assessment.tipping_class["tv"][row]),
        )
    console.print(table)
    say(
        console,
        "robustness (tv) 0.05: moving 5 % of the mass in every one of the model's distributions, "
        "in the worst direction, just flips the prediction. A probability cannot tell you that.\n",
    )
