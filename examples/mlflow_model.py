"""Serve a robustq model with MLflow: a prediction, and how far it is from flipping.

A model from code: MLflow keeps this file and the model file, no pickle, and runs the one with the
other wherever it serves. Needs mlflow (or mlflow-skinny) and pandas.

Run it: python examples/mlflow_model.py
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from mlflow.models import infer_signature, set_model
from mlflow.pyfunc import PythonModel

import robustq

PERTURBATION = "tv"


class Robust(PythonModel):
    """A model file of robustq, asked about frames."""

    def load_context(self, context: Any) -> None:
        """Read the model file, once for each process that serves."""
        self.model = robustq.load(context.artifacts["model"])

    def predict(
        self,
        context: Any,  # noqa: ARG002 (MLflow gives it)
        model_input: pd.DataFrame,
        params: dict[str, Any] | None = None,
    ) -> pd.DataFrame:
        """Return prediction, probability, robustness and tipping class, a row for each row."""
        ball = (params or {}).get("perturbation", PERTURBATION)
        told = self.model.assess(model_input, perturbations=(ball,)).to_pandas()
        names = ["prediction", "probability", f"robustness_{ball}", f"tipping_class_{ball}"]
        return told[names].set_axis(
            ["prediction", "probability", "robustness", "tipping_class"], axis="columns"
        )


# What MLflow takes of this file when it reads it.
set_model(Robust())


def log(model: Any, X: pd.DataFrame, folder: Path) -> str:
    """Log a fitted model of robustq with the active run, and return where MLflow finds it.

    Parameters
    ----------
    model : estimator
    X : DataFrame
        Rows as it will be asked about: MLflow takes their types for those of all rows.
    folder : Path
        For the model file, until it is logged.
    """
    path = folder / "model.robustq"
    model.save(path)
    signature = infer_signature(X, params={"perturbation": PERTURBATION})
    logged = mlflow.pyfunc.log_model(
        name="robust",
        python_model=str(Path(__file__).resolve()),
        artifacts={"model": str(path)},
        signature=signature,
        pip_requirements=["robustq", "pandas"],
    )
    return str(logged.model_uri)


def main() -> None:
    """Learn, log, load as a server would, and ask."""
    X = pd.DataFrame(
        {"outlook": ["sun", "rain", "sun", "fog", "rain", "fog"], "wind": [1.5, 7, 3, 2, 8.5, 4]}
    )
    y = ["play", "stay", "play", "play", "stay", "stay"]
    model = robustq.NaiveBayesClassifier(smoothing=1.0, n_bins=2).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        # Here a folder, which MLflow wants to be asked for; where you work, your server.
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
        mlflow.set_tracking_uri(Path(folder, "runs").as_uri())
        with mlflow.start_run():
            uri = log(model, X, Path(folder))
        served = mlflow.pyfunc.load_model(uri)
        print(served.predict(X).to_string())


if __name__ == "__main__":
    main()
