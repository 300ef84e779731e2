"""What all engines are asked, and what the plain scorer answers."""

import numpy as np
import pyarrow as pa

from robustq import GenerativeForestClassifier, NaiveBayesClassifier
from robustq.scoring import open_scorer

ROWS = 1000
KEY = "id"
FEATURES = ["colour", "code", "size"]
# How many values of each column no model has seen.
UNKNOWN = {"column 'code'": 1, "column 'colour'": 3}


def make_table():
    """Return rows with gaps, three colours and a code that nobody knows."""
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], ROWS).astype(object)
    colour[[3, 400, 999]], colour[[10, 500]] = "mauve", None
    code = rng.integers(1, 5, ROWS).astype(object)
    code[700], code[20] = 9, None
    size = rng.normal(size=ROWS).astype(object)
    size[30] = None
    return pa.table(
        {
            KEY: np.arange(ROWS),
            "colour": pa.array(colour, pa.string()),
            "code": pa.array(code, pa.int64()),
            "size": pa.array(size, pa.float64()),
        }
    )


def save_model(folder, kind="nbc"):
    """Return the path of a model of other rows."""
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "colour": rng.choice(["red", "green", "blue"], ROWS),
            "code": rng.integers(1, 5, ROWS),
            "size": rng.normal(size=ROWS),
        }
    )
    total = table["size"].to_numpy() + table["code"].to_numpy() + rng.normal(size=ROWS)
    model = (
        NaiveBayesClassifier()
        if kind == "nbc"
        else GenerativeForestClassifier(n_estimators=5, random_state=0)
    )
    path = folder / f"{kind}.robustq"
    model.fit(table, np.where(total > 2.5, "yes", "no")).save(path)
    return path


def score_plainly(path, table=None, **settings):
    """Return what the plain scorer says, of plain types."""
    scored = open_scorer(path, keep=[KEY], **settings).score(
        make_table() if table is None else table
    )
    return flatten(scored)


def flatten(scored):
    """Return a table without dictionaries, which each engine has in its own way."""
    kinds = {"prediction", "runner_up"} | {
        name for name in scored.column_names if name.startswith(("tipping_class", "classes"))
    }
    columns = {
        name: scored[name].cast(pa.string()) if name in kinds else scored[name]
        for name in scored.column_names
    }
    return pa.table(columns).combine_chunks()


def sort(scored):
    """Return results of an engine that has no order."""
    return flatten(scored).sort_by(KEY).combine_chunks()
