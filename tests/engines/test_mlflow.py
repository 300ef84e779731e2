"""The example that serves with MLflow: what is logged and loaded back says what the model says."""

import runpy
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import robustq

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # mlflow's own, while it is imported
    mlflow = pytest.importorskip("mlflow.pyfunc", reason="needs mlflow: make test-engines")
    mlflow = sys.modules["mlflow"]

EXAMPLE = Path(__file__).parents[2] / "examples" / "mlflow_model.py"
BALLS = ("tv", "chi2")

# MLflow warns of itself: of its type hints, and of a folder in place of a server.
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:mlflow"),
    pytest.mark.filterwarnings("ignore::FutureWarning:mlflow"),
]


@pytest.fixture
def tracking(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield tmp_path
    mlflow.set_tracking_uri(None)


def _frame(rows):
    rng = np.random.default_rng(rows)
    X = pd.DataFrame(
        {"colour": rng.choice(["red", "green", "blue"], rows), "size": rng.normal(size=rows)}
    )
    return X, np.where(X["size"] + rng.normal(size=rows) > 0, "large", "small")


@pytest.mark.parametrize(
    "model",
    [
        robustq.NaiveBayesClassifier(),
        robustq.GenerativeForestClassifier(n_estimators=5, random_state=0),
    ],
    ids=["naive Bayes", "forest"],
)
def test_what_mlflow_serves_is_what_the_model_says(model, tracking):
    model = model.fit(*_frame(300))
    log = runpy.run_path(str(EXAMPLE))["log"]
    with mlflow.start_run():
        uri = log(model, _frame(300)[0], tracking)
    (tracking / "model.robustq").unlink()  # what was logged is a copy
    served = mlflow.pyfunc.load_model(uri)
    X, _ = _frame(50)
    X.loc[3, "size"] = np.nan
    for ball in BALLS:
        told = served.predict(X, params={"perturbation": ball})
        right = model.assess(X, perturbations=(ball,)).to_pandas()
        assert list(told) == ["prediction", "probability", "robustness", "tipping_class"]
        assert told["prediction"].tolist() == right["prediction"].tolist()
        assert told["tipping_class"].tolist() == right[f"tipping_class_{ball}"].tolist()
        np.testing.assert_array_equal(told["probability"], right["probability"])
        np.testing.assert_array_equal(told["robustness"], right[f"robustness_{ball}"])
    pd.testing.assert_frame_equal(
        served.predict(X), served.predict(X, params={"perturbation": "tv"})
    )


def test_the_example_runs(tracking, capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "tipping_class" in capsys.readouterr().out
