"""A toy family: p(c, f) = Σ_g w_g p_g(c) Π p_g(f_i), groups of rows dealt at random."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from robustq.core.engine import Reading
from robustq.core.evidence import CLASS, FEATURE, NONE, PRODUCT, SUM, Evidence, split_evidence
from robustq.core.frequency import by_frequency
from robustq.documents.checking import check_shape, check_sums
from robustq.exceptions import InputError
from robustq.families.base import GenerativeClassifier, encode
from robustq.families.kinds import Kind, Option, Recipe
from robustq.families.labels import find_classes, read_labels
from robustq.families.parameters import read_random_state
from robustq.tables import Table

PARTS = ("weights", "classes", "features")
ARRAYS = ("weights", "class_probs", "feature_probs", "counts")
PLAIN = {"arity": 0, "p": 1.0, "extra": 0, "local": NONE, "slot": 0, "part": NONE, "feature": NONE}


@dataclass(frozen=True, eq=False)
class Groups:
    """The model, and a view on its mass functions: the weights, then classes, then features."""

    sizes: tuple[int, ...]
    weights: np.ndarray  # (groups,)
    class_probs: np.ndarray  # (groups, classes)
    feature_probs: np.ndarray  # (groups, features, categories), with zeros at the end
    counts: np.ndarray  # (groups,): the rows of each

    parts, default_parts, on_classes, wide = PARTS, PARTS[:1], (1,), ()
    depth, counted, has_numbers, leaf_parts, merges_rows = 2, np.ones(3, bool), False, (), False
    locals = property(lambda self: self)
    class_table = property(lambda self: self.class_probs)
    by_frequency = property(lambda self: by_frequency(self.weights @ self.class_probs))

    def log_joint(self, rows):
        joint = np.tile(np.log(self.weights[:, None] * self.class_probs), (len(rows), 1, 1))
        for i, codes in enumerate(rows.codes.T):
            seen = codes >= 0
            joint[seen] += np.log(self.feature_probs[:, i, codes[seen]].T)[:, :, None]
        return logsumexp(joint, axis=1)

    def read(self, rows):
        return Reading(self.log_joint(rows), [])

    def reach(self, rows, *, fold=False):
        counts = 1 + len(self.weights) * (2 + (rows.codes >= 0).sum(axis=1))
        for block in split_evidence(counts):
            evidence = Evidence.empty(np.concatenate([[0], np.cumsum(counts[block])]))
            for name, plain in PLAIN.items():
                getattr(evidence, name)[:] = plain
            for first, codes in zip(evidence.starts.tolist(), rows.codes[block], strict=False):
                self._lay(evidence, first, codes)
            yield block, evidence

    def _lay(self, e, at, codes):
        groups, width, seen = len(self.weights), len(self.sizes), np.flatnonzero(codes >= 0)
        for g in range(groups):
            e.op[at], e.local[at], e.slot[at], e.extra[at] = CLASS, 1 + g, -1, g
            e.part[at], e.rows[at] = 1, self.counts[g]
            inside, at = slice(at + 1, at + 1 + len(seen)), at + 1 + len(seen)
            e.op[inside], e.slot[inside] = FEATURE, codes[seen]
            e.p[inside] = self.feature_probs[g, seen, codes[seen]]
            e.local[inside] = 1 + groups + g * width + seen
            e.part[inside] = np.where(np.array(self.sizes)[seen] > 1, 2, NONE)
            e.feature[inside], e.rows[inside] = seen, self.counts[g]
            e.op[at], e.arity[at], e.local[at], e.slot[at] = PRODUCT, 1 + len(seen), 0, g
            e.p[at], e.part[at], e.rows[at] = self.weights[g], 0, self.counts.sum()
            at += 1
        e.op[at], e.arity[at] = SUM, groups

    def outcomes(self, local):
        few = [len(self.weights), *([self.class_probs.shape[1]] * len(self.weights))]
        return np.array([*few, *self.sizes * len(self.weights)])[local]

    def expand(self, local):
        padded = [self.weights, *self.class_probs, *np.concatenate(self.feature_probs)]
        return np.array([padded[one][: self.outcomes(one)] for one in local.tolist()])

    def position(self, local, slot):
        return slot


class ToyClassifier(GenerativeClassifier):
    handle_unknown = "missing"

    def __init__(
        self, n_groups=2, smoothing=1.0, categorical=None, numeric=None, random_state=None
    ):
        self.n_groups, self.smoothing, self.random_state = n_groups, smoothing, random_state
        self.categorical, self.numeric = categorical, numeric

    def _check_parameters(self):
        if self.n_groups not in (1, 2):
            msg = f"n_groups must be 1 or 2, got {self.n_groups!r}"
            raise InputError(msg)

    def fit(self, X, y):
        self._check_parameters()
        table, (classes, labels) = Table.read(X), find_classes(read_labels(y))
        encoding = self._learn_encoding(table, np.ones(table.rows), bins=5)
        codes, sizes = encode(encoding, table).codes, encoding.sizes
        group = read_random_state(self.random_state).randint(self.n_groups, size=table.rows)
        own = np.full((self.n_groups, len(classes)), self.smoothing)
        found = np.full((self.n_groups, len(sizes), max(sizes)), self.smoothing)
        np.add.at(own, (group, labels), 1.0)
        for i, size in enumerate(sizes):
            seen = codes[:, i] >= 0
            np.add.at(found, (group[seen], i, codes[seen, i]), 1.0)
            found[:, i, size:] = 0.0
        counts = np.bincount(group, minlength=self.n_groups).astype(np.float64)
        probs = (a / a.sum(axis=-1, keepdims=True) for a in (counts + 1.0, own, found))
        self._note_training(table.rows)
        self._set_model(Groups(*(sizes, *probs, counts)), encoding, classes)
        return self


def unpack(model):
    return {name: getattr(model, name) for name in ARRAYS}


def pack(arrays, encoding, classes):
    n, sizes = len(arrays["counts"]), encoding.sizes
    shapes = ((n,), (n, classes), (n, len(sizes), max(sizes)))
    for name, shape in zip(ARRAYS, shapes, strict=False):
        check_shape(name, arrays[name], shape)
        check_sums(arrays[name], name)
    return Groups(sizes, **arrays)


def read(document, encoding, classes):
    return pack({name: np.array(document[name]) for name in ARRAYS}, encoding, classes)


def write(model):
    return {name: array.tolist() for name, array in unpack(model).items()}


def describe(classifier):
    return [("groups", str(len(classifier.model_.weights)))]


TYPES, OPTIONS = dict.fromkeys(ARRAYS, np.float64), {"smoothing": Option("smoothing", 0.5)}
KIND = Kind("toy", TYPES, unpack, pack, write, read, (ToyClassifier,))
RECIPE = Recipe("toy", ("groups",), "toy of groups", ToyClassifier, OPTIONS, describe=describe)
