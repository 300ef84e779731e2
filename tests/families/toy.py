"""A toy family: p(c, f) = Σ_g w_g p_g(c) Π p_g(f_i), groups of rows dealt at random.

All that a new family needs stands here; beside it, a row in each of two tables.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from robustq.core.engine import Reading
from robustq.core.evidence import CLASS, FEATURE, PRODUCT, SUM, Evidence, split_evidence
from robustq.core.frequency import by_frequency
from robustq.documents.checking import check_shape, check_sums
from robustq.exceptions import InputError
from robustq.families.base import GenerativeClassifier, encode
from robustq.families.kinds import Kind, Option, Recipe
from robustq.families.labels import find_classes, read_labels, read_weights
from robustq.families.parameters import is_between, is_count, read_random_state
from robustq.tables import Table

ARRAYS = ("weights", "class_probs", "feature_probs", "rows")


@dataclass(frozen=True, eq=False)
class Groups:
    """The model; it is a view on its own local mass functions, weights first, then classes."""

    sizes: tuple[int, ...]
    weights: np.ndarray  # (groups,)
    class_probs: np.ndarray  # (groups, classes)
    feature_probs: np.ndarray  # (groups, features, categories), with zeros at the end
    rows: np.ndarray  # (1 + 2 groups,): behind the weights, and twice those of each group

    parts, default_parts, on_classes = ("weights", "classes", "features"), ("weights",), (1,)
    depth, has_numbers = 2, False

    @property
    def locals(self):
        return Locals(self)

    @cached_property
    def by_frequency(self):
        return by_frequency(self.weights @ self.class_probs)

    def log_joint(self, rows):
        joint = np.empty((len(rows), *self.class_probs.shape))
        with np.errstate(divide="ignore"):
            joint[:] = np.log(self.weights)[:, None] + np.log(self.class_probs)
            for i, codes in enumerate(rows.codes.T):
                seen = codes >= 0
                joint[seen] += np.log(self.feature_probs[:, i, codes[seen]].T)[:, :, None]
        return logsumexp(joint, axis=1)

    def read(self, rows):
        return Reading(self.log_joint(rows), [])

    def reach(self, rows):
        counts = 1 + len(self.weights) * (2 + (rows.codes >= 0).sum(axis=1))
        for block in split_evidence(counts):
            starts = np.concatenate([[0], np.cumsum(counts[block])])
            evidence = Evidence.empty(starts)
            for first, codes in zip(starts[:-1].tolist(), rows.codes[block], strict=True):
                self._lay(evidence, first, codes)
            yield block, evidence

    def _lay(self, e, at, codes):
        """Write what one row reaches: of each group a product, and their sum at the end."""
        groups, width = len(self.weights), len(self.sizes)
        seen = np.flatnonzero(codes >= 0)
        for g in range(groups):
            e.op[at], e.local[at], e.slot[at] = CLASS, 1 + g, -1
            inside, at = slice(at + 1, at + 1 + len(seen)), at + 1 + len(seen)
            e.op[inside], e.slot[inside] = FEATURE, codes[seen]
            e.p[inside] = self.feature_probs[g, seen, codes[seen]]
            e.local[inside] = 1 + groups + g * width + seen
            e.op[at], e.arity[at] = PRODUCT, 1 + len(seen)
            e.p[at], e.local[at], e.slot[at] = self.weights[g], 0, g
            at += 1
        e.op[at], e.arity[at] = SUM, groups


class Locals:
    parts, on_classes, counted = Groups.parts, Groups.on_classes, np.ones(3, dtype=bool)

    def __init__(self, model):
        self.model, self.groups = model, len(model.weights)
        self.wide = (0,) if self.groups > 2 else ()

    def part(self, local):
        return np.searchsorted([1, 1 + self.groups], local, side="right")

    def feature(self, local):
        at = local - 1 - self.groups
        return np.where(at < 0, -1, at % len(self.model.sizes))

    def outcomes(self, local):
        few = np.array([self.groups, self.model.class_probs.shape[1]])
        sizes = np.array(self.model.sizes)[self.feature(local)]
        return np.where(self.part(local) == 2, sizes, few[np.minimum(self.part(local), 1)])

    def rows(self, local):
        group = 1 + (local - 1 - self.groups) // len(self.model.sizes)
        return self.model.rows[np.where(self.part(local) == 2, group, local)]

    def expand(self, local):
        return np.array([self._expand(one) for one in local.tolist()])

    def _expand(self, one):
        if one <= self.groups:
            return self.model.weights if one == 0 else self.model.class_probs[one - 1]
        g, i = divmod(one - 1 - self.groups, len(self.model.sizes))
        return self.model.feature_probs[g, i, : self.model.sizes[i]]


class ToyClassifier(GenerativeClassifier):
    def __init__(
        self,
        n_groups=2,
        *,
        smoothing=1.0,
        handle_unknown="missing",
        categorical=None,
        numeric=None,
        random_state=None,
    ):
        self.n_groups, self.smoothing, self.handle_unknown = n_groups, smoothing, handle_unknown
        self.categorical, self.numeric, self.random_state = categorical, numeric, random_state

    def _check_parameters(self):
        if not is_count(self.n_groups, 1) or not is_between(self.smoothing, 0.0, 1e9):
            msg = f"n_groups must be a count and smoothing positive, got {self.get_params()}"
            raise InputError(msg)

    def fit(self, X, y, sample_weight=None):
        self._check_parameters()
        table = Table.read(X)
        classes, labels = find_classes(read_labels(y, table.rows))
        weights = read_weights(sample_weight, table.rows)
        encoding = self._learn_encoding(table, weights, 5)
        codes, sizes = encode(encoding, table).codes, encoding.sizes
        group = read_random_state(self.random_state).randint(self.n_groups, size=table.rows)
        found = np.full((self.n_groups, len(sizes), max(sizes)), self.smoothing)
        own = np.full((self.n_groups, len(classes)), self.smoothing)
        np.add.at(own, (group, labels), weights)
        for i, size in enumerate(sizes):
            seen = codes[:, i] >= 0
            np.add.at(found, (group[seen], i, codes[seen, i]), weights[seen])
            found[:, i, size:] = 0.0
        rows = np.bincount(group, weights, minlength=self.n_groups)
        own, found = (a / a.sum(axis=-1, keepdims=True) for a in (own, found))
        shares = (rows + self.smoothing) / (rows + self.smoothing).sum()
        model = Groups(sizes, shares, own, found, np.concatenate([[rows.sum()], rows, rows]))
        self._note_training(table.rows)
        self._set_model(model, encoding, classes)
        return self


def unpack(model):
    return {name: getattr(model, name) for name in ARRAYS}


def pack(arrays, encoding, classes):
    groups = len(arrays["weights"])
    shape = (groups, len(encoding.sizes), max(encoding.sizes))
    for name, wanted in zip(ARRAYS, [(groups,), (groups, classes), shape], strict=False):
        check_shape(name, arrays[name], wanted)
        check_sums(arrays[name], name)
    check_shape("rows", arrays["rows"], (1 + 2 * groups,))
    return Groups(encoding.sizes, **arrays)


KIND = Kind(
    "toy",
    arrays=dict.fromkeys(ARRAYS, np.float64),
    unpack=unpack,
    pack=pack,
    write=lambda model: {name: array.tolist() for name, array in unpack(model).items()},
    read=lambda told, *rest: pack({name: np.array(told[name]) for name in ARRAYS}, *rest),
    estimators=(ToyClassifier,),
)
RECIPE = Recipe(
    "toy",
    aliases=("groups",),
    title="toy of groups",
    estimator=ToyClassifier,
    options={"smoothing": Option("smoothing", 0.5)},
    describe=lambda classifier: [("groups", str(len(classifier.model_.weights)))],
)
