"""What users can import, and what importing must not cost."""

import subprocess
import sys

import robustq
import robustq.perturbations

HEAVY = ("numba", "pandas", "sklearn", "matplotlib", "scipy", "pyarrow", "rich", "typer")


def test_the_public_names_are_these():
    assert sorted(robustq.__all__) == [
        "Assessment",
        "BayesianNetworkClassifier",
        "CircuitClassifier",
        "DomainError",
        "FileError",
        "GenerativeForestClassifier",
        "GenerativeTreeClassifier",
        "InputError",
        "NaiveBayesClassifier",
        "NoGuaranteeWarning",
        "OtherPredictionWarning",
        "RigidModelWarning",
        "RobustqError",
        "SelectiveClassifier",
        "TableWarning",
        "UnknownNameError",
        "UnknownValueWarning",
        "UnsupportedError",
        "assess",
        "counterfactuals",
        "credal",
        "credal_predict",
        "datasets",
        "explain",
        "fit_files",
        "indicators",
        "is_robust",
        "load",
        "perturbations",
        "posterior_bounds",
        "posterior_robustness",
        "read",
        "rejection",
        "robustness",
        "witness",
    ]
    assert sorted(robustq.perturbations.__all__) == [
        "ChiSquared",
        "Domain",
        "Epsilon",
        "KullbackLeibler",
        "OddsRatio",
        "PariMutuel",
        "Perturbation",
        "TotalVariation",
        "get",
        "names",
        "register",
    ]


def test_every_public_name_is_there():
    for module in (robustq, robustq.perturbations):
        for name in module.__all__:
            assert getattr(module, name) is not None


def test_importing_is_fast_and_imports_nothing_heavy():
    script = (
        "import sys, time; start = time.perf_counter(); import robustq;"
        "seconds = time.perf_counter() - start;"
        f"print(seconds, *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    runs = [_run(script).split() for _ in range(3)]
    assert all(imported == [] for _, *imported in runs)
    # The best of three: the first may read from a cold disk.
    assert min(float(seconds) for seconds, *_ in runs) < 0.3


def test_perturbations_need_nothing_heavy_either():
    script = (
        "import sys, robustq; robustq.perturbations.get('kl');"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert _run(script).split() == []


def _run(script: str) -> str:
    command = [sys.executable, "-c", script]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
