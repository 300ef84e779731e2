"""Loops over rows of codes and the tables of all pairs of features; see `mixture.Lead`."""

import math

import numpy as np
from numba import types

from robustq.core.evidence import CLASS, FEATURE, NONE, PRODUCT, SUM
from robustq.kernels import (
    bool_vector,
    code_matrix,
    code_vector,
    code_vector_out,
    float_matrix_out,
    float_vector,
    float_vector_out,
    inner,
    int_vector,
    int_vector_out,
    kernel,
)
from robustq.vectors import LANES, fill, get, load, store

from ._network_kernels import is_whole

__all__ = ["count", "lay", "read"]

PRIOR, FEATURES, ROOT = range(3)
SMALL = 1e-150  # products are kept above this by taking their logarithm in time
SAFE = 1e-250  # a product above this has not underflowed on the way

int_matrix = types.Array(types.int64, 2, "C", readonly=True)
code_cube = types.Array(types.int32, 3, "C", readonly=True)
code_cube_out = types.Array(types.int32, 3, "C")
byte_vector_out = types.Array(types.int8, 1, "C")


@inner
def _find_cell(codes, row, lead, feature, sizes, offsets, classes):
    given = 0 if lead == feature else codes[row, lead] * sizes[feature]
    return offsets[lead, feature] + (given + codes[row, feature]) * classes


@kernel(
    types.void(
        *(code_matrix, int_vector, float_vector, int_vector, int_matrix, types.int64),
        float_vector_out,
    )
)
def count(codes, labels, weights, sizes, offsets, classes, counts):
    """Add the weight of each row to the cells of its pairs of codes, where both are there."""
    features = codes.shape[1]
    for row in range(codes.shape[0]):
        for lead in range(features):
            if codes[row, lead] < 0:
                continue
            for feature in range(features):
                if codes[row, feature] >= 0:
                    cell = _find_cell(codes, row, lead, feature, sizes, offsets, classes)
                    counts[cell + labels[row]] += weights[row]


@kernel(
    types.void(
        *(code_matrix, int_vector, int_vector, bool_vector, int_matrix, bool_vector),
        *(types.boolean, code_vector, code_matrix),
        *(float_vector, float_vector, code_cube_out, int_vector_out, float_matrix_out),
    ),
    allocates=True,
)
def read(
    codes,
    sizes,
    own,
    leads,
    offsets,
    alone,
    none_alone,
    some_sizes,
    some_offsets,
    class_probs,
    probs,
    cells,
    terms,
    joint,
):
    """Write where the codes of rows stand in the tables, and log p(c, f).

    Parameters
    ----------
    codes : (rows, features)
    sizes, offsets : see `mixture.Lead`
    own : where the values of each feature begin in `leads`
    leads : which values let their feature lead
    alone : which features have a single category; no ball moves it
    none_alone : whether none is
    some_sizes, some_offsets : the same, narrower, so that more of them fit into a vector
    class_probs, probs : the model; more numbers follow what belongs to the last class
    cells : (rows, terms, features), written; −1 where the factor is constant
    terms : (rows,), written: how many terms there are
    joint : (rows, classes), written
    """
    features, classes = codes.shape[1], len(class_probs)
    part, logs = np.zeros((max(features, 1), classes)), np.zeros((max(features, 1), classes))
    sums = np.zeros(classes + LANES)
    for row in range(codes.shape[0]):
        count, whole = 0, none_alone and is_whole(codes[row])
        for lead in range(features):
            code = codes[row, lead]
            if code >= 0 and leads[own[lead] + code]:
                if whole:
                    _read_whole_term(
                        *(codes[row], lead, some_sizes, some_offsets[lead]),
                        *(np.int32(classes), cells[row, count]),
                    )
                else:
                    _read_term(codes, row, lead, sizes, offsets, alone, classes, cells, count)
                count += 1
        if count == 0:
            # Nobody leads: naive Bayes.
            _read_term(codes, row, -1, sizes, offsets, alone, classes, cells, 0)
            count = 1
        terms[row] = count
        if _sum_up(cells[row], count, whole, classes, probs, sums):
            for c in range(classes):
                whole = sums[c] / count * class_probs[c]
                joint[row, c] = math.log(whole) if whole > 0.0 else -math.inf
            continue
        for j in range(count):
            _multiply(cells[row, j], classes, probs, part[j], logs[j])
        for c in range(classes):
            most, total = -math.inf, 0.0
            for j in range(count):
                if part[j, c] > 0.0:
                    most = max(most, logs[j, c])
            for j in range(count):
                if part[j, c] > 0.0:
                    lag = logs[j, c] - most
                    total += part[j, c] * (math.exp(lag) if lag < 0.0 else 1.0)
            joint[row, c] = -math.inf
            if total > 0.0 and class_probs[c] > 0.0:
                joint[row, c] = most + math.log(total / count * class_probs[c])


@inner
def _multiply_four(cells, j, first, probs, total, least):
    """Add the products of four terms, of which none waits for another; see `_sum_up`."""
    one, two, three, four = fill(1.0), fill(1.0), fill(1.0), fill(1.0)
    of_one, of_two, of_three, of_four = cells[j], cells[j + 1], cells[j + 2], cells[j + 3]
    for feature in range(cells.shape[1]):
        one *= load(probs, of_one[feature] + first)
        two *= load(probs, of_two[feature] + first)
        three *= load(probs, of_three[feature] + first)
        four *= load(probs, of_four[feature] + first)
    total = (((total + one) + two) + three) + four
    some, others = min(one, two), min(three, four)
    some = min(some, others)
    return total, min(least, some)


@inner
def _sum_up(cells, count, whole, classes, probs, sums):
    """Write the sums of the products of all terms; tell whether none of them is tiny.

    Whole are rows without a cell that is missing. What comes after the last class is of no use.
    """
    fours = count // 4 * 4 if whole else 0
    for first in range(0, classes, LANES):
        total, least = fill(0.0), fill(1.0)
        for j in range(0, fours, 4):
            total, least = _multiply_four(cells, j, first, probs, total, least)
        for j in range(fours, count):
            product = fill(1.0)
            for feature in range(cells.shape[1]):
                cell = cells[j, feature]
                if cell >= 0:
                    product *= load(probs, cell + first)
            total, least = total + product, min(least, product)
        store(sums, first, total)
        for c in range(first, min(first + LANES, classes)):
            # Products of probabilities only fall: one that is not tiny has never been.
            if not get(least, c - first) > SAFE:
                return False
    return True


@inner
def _read_whole_term(codes, lead, sizes, offsets, classes, cells):
    """Write the cells of a term, where nothing is missing and no feature is alone."""
    given = np.int32(codes[lead] * classes)
    for feature in range(len(cells)):
        here = offsets[feature] + given * sizes[feature] + codes[feature] * classes
        cells[feature] = np.int32(here)
    cells[lead] = offsets[lead] + given


@inner
def _read_term(codes, row, lead, sizes, offsets, alone, classes, cells, at):
    """Write the cells of a term; without a lead, those of each feature given the class alone."""
    code = codes[row, lead] if lead >= 0 else 0
    for feature in range(codes.shape[1]):
        own = codes[row, feature]
        if own < 0 or alone[feature]:
            cells[row, at, feature] = -1
        elif lead < 0 or lead == feature:
            cells[row, at, feature] = offsets[feature, feature] + own * classes
        else:
            here = offsets[lead, feature] + (code * sizes[feature] + own) * classes
            cells[row, at, feature] = here


@inner
def _multiply(cells, classes, probs, part, logs):
    """Write the products of a term, as part · e^logs."""
    for c in range(classes):
        part[c], logs[c] = 1.0, 0.0
    for feature in range(len(cells)):
        if cells[feature] >= 0:
            for c in range(classes):
                part[c] *= probs[cells[feature] + c]
    for c in range(classes):
        # Products of probabilities only fall: one that is not tiny has never been.
        if part[c] > SAFE:
            continue
        part[c] = 1.0
        for feature in range(len(cells)):
            if cells[feature] < 0:
                continue
            factor = probs[cells[feature] + c]
            if part[c] < SMALL and part[c] > 0.0:
                logs[c] += math.log(part[c])
                part[c] = 1.0
            part[c] *= factor


@kernel(
    types.void(
        *(code_matrix, int_vector, int_vector, bool_vector, int_matrix),
        *(float_vector, types.float64, float_vector, float_vector, int_vector, types.int64),
        *(byte_vector_out, code_vector_out, float_vector_out, int_vector_out, int_vector_out),
        *(code_vector_out, byte_vector_out, code_vector_out, float_vector_out),
    )
)
def lay(
    codes,
    sizes,
    own,
    leads,
    offsets,
    class_probs,
    prior_rows,
    probs,
    table_rows,
    line,
    lines,
    op,
    arity,
    p,
    extra,
    local,
    slot,
    part,
    of,
    rows,
):
    """Write the nodes of rows: for each class, for each term an indicator, leaves and a product.

    Parameters
    ----------
    codes … probs : as in `read`
    prior_rows, table_rows : the rows behind the prior, and behind the rows of tables
    line : for each cell the row of a table it stands in
    lines : how many of these there are
    others : the columns of the evidence
    """
    features, classes = codes.shape[1], len(class_probs)
    at = np.int64(0)
    for row in range(codes.shape[0]):
        count = 0
        for lead in range(features):
            code = codes[row, lead]
            count += 1 if code >= 0 and leads[own[lead] + code] else 0
        for c in range(classes):
            term = 0
            for lead in range(-1, features):
                # Without a lead: naive Bayes.
                if lead < 0 and count > 0:
                    continue
                if lead >= 0:
                    code = codes[row, lead]
                    if code < 0 or not leads[own[lead] + code]:
                        continue
                op[at], arity[at], p[at], extra[at], local[at] = CLASS, 0, 1.0, -1, NONE
                slot[at], part[at], of[at], rows[at] = c, NONE, NONE, math.nan
                at += 1
                children = 1
                for feature in range(features):
                    code = codes[row, feature]
                    if code < 0:
                        continue
                    by = feature if lead < 0 else lead
                    cell = _find_cell(codes, row, by, feature, sizes, offsets, classes) + c
                    op[at], arity[at], p[at], extra[at] = FEATURE, 0, probs[cell], 0
                    local[at], slot[at] = 1 + line[cell], code
                    part[at] = FEATURES if sizes[feature] > 1 else NONE
                    of[at], rows[at] = feature, table_rows[line[cell]]
                    at += 1
                    children += 1
                op[at], arity[at], extra[at], of[at] = PRODUCT, children, 0, NONE
                if count > 1:
                    p[at], slot[at] = 1.0 / count, term
                    local[at] = 1 + lines + count * classes + c
                    part[at], rows[at] = ROOT, math.nan
                else:
                    p[at], local[at], slot[at] = class_probs[c], 0, c
                    part[at], rows[at] = PRIOR if classes > 1 else NONE, prior_rows
                at += 1
                term += 1
            if count > 1:
                op[at], arity[at], extra[at], of[at] = SUM, count, 0, NONE
                p[at], local[at], slot[at] = class_probs[c], 0, c
                part[at], rows[at] = PRIOR if classes > 1 else NONE, prior_rows
                at += 1
        op[at], arity[at], p[at], extra[at], local[at] = SUM, classes, 1.0, 0, NONE
        slot[at], part[at], of[at], rows[at] = 0, NONE, NONE, math.nan
        at += 1
