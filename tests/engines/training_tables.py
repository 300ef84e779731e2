"""Tables to learn from, and what it means that two models are the same."""

import numpy as np
import pandas as pd


def make_frame(rows, seed=0):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, rows)
    colour = np.array(["red", "green", "blue", "grey"], dtype=object)
    frame = pd.DataFrame(
        {
            "colour": colour[(label + rng.integers(0, 3, rows)) % 4],
            "size": rng.integers(0, 5, rows) + label,
            "amount": rng.normal(label, 1.0),
            "count": rng.integers(0, 900, rows),
            "flag": rng.random(rows) < 0.3 + 0.2 * label,
        }
    )
    frame.loc[rng.random(rows) < 0.1, "colour"] = None
    frame.loc[rng.random(rows) < 0.1, "amount"] = np.nan
    return frame.assign(y=np.array(["no", "yes"], dtype=object)[label])


def assert_same(parted, whole):
    assert parted.to_dict() == whole.to_dict()
    assert parted.encoding_.verdicts == whole.encoding_.verdicts
    assert parted.training_ == whole.training_
    assert getattr(parted, "smoothing_", None) == getattr(whole, "smoothing_", None)
