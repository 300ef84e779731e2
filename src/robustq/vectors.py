"""Several floats side by side, as types that kernels compute with.

Compilers find out by themselves that a loop over lanes can run on several at once only where they
can prove much; and they keep what is between two such loops in memory. Here is it said: what is of
type `floats` are `LANES` floats, in registers, or `WIDE` of them, and arithmetic with them is of
all lanes at once. Conditions are `flags`, and the bits of floats are `words`. Wide ones take two
registers of the largest processors: while one of them waits, the other is worked on.

A product and a sum may be one instruction, in all lanes alike: no lane's digits depend on its
neighbours.
"""

import math
import operator

from numba import types
from numba.core import cgutils
from numba.core.cgutils import ir
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

__all__ = [
    "AT_ONCE",
    "LANES",
    "WIDE",
    "WIDTH",
    "bits_of",
    "choose",
    "fill",
    "fill_wide",
    "first_lanes",
    "from_bits",
    "get",
    "how_many",
    "lane_is",
    "largest",
    "load",
    "load_singles",
    "load_some",
    "load_wide",
    "look_up",
    "multiply_add",
    "pick",
    "product",
    "some",
    "spread_cells",
    "store",
    "total",
    "turn",
]

LANES, WIDE = 8, 16
FUSED = ("contract",)
COLUMNS = 4  # that are read at once
AT_ONCE = 8  # cells that are spread at once
WIDTH = 8  # columns of a table for `look_up`


class Vector(types.Type):
    """So many numbers, one in each lane."""

    def __init__(self, name, lanes):
        super().__init__(f"{name} × {lanes}")
        self.lanes = lanes


class Floats(Vector):
    """Floats of 64 bits."""


class Flags(Vector):
    """Truth values."""


class Words(Vector):
    """Whole numbers of 64 bits without a sign."""


_float, _bit, _word = ir.DoubleType(), ir.IntType(1), ir.IntType(64)
floats, flags, words = (
    {lanes: kind(kind.__name__.lower(), lanes) for lanes in (LANES, WIDE)}
    for kind in (Floats, Flags, Words)
)


def _register(kind, element):
    @register_model(kind)
    class Model(models.PrimitiveModel):
        def __init__(self, manager, fe_type):
            super().__init__(manager, fe_type, ir.VectorType(element, fe_type.lanes))


for _kind, _element in ((Floats, _float), (Flags, _bit), (Words, _word)):
    _register(_kind, _element)


def _spread(builder, value, lanes):
    """Return a number in all lanes."""
    if isinstance(value.type, ir.VectorType):
        return value
    vector = ir.VectorType(value.type, lanes)
    first = builder.insert_element(
        ir.Constant(vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0)
    )
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)


def _define(function, emit, result, *kinds):
    """Let a function of Python's take vectors, and single numbers beside them."""
    cases = [kinds]
    if len(kinds) == 2 and kinds[0] is not flags:
        number = types.float64 if kinds[0] is floats else types.int64
        cases += [(kinds[0], number), (number, kinds[1])]

    @infer_global(function)
    class Template(ConcreteTemplate):
        pass

    Template.cases = []
    for lanes in (LANES, WIDE):
        for case in cases:
            given = [kind[lanes] if isinstance(kind, dict) else kind for kind in case]
            Template.cases.append(signature(result[lanes], *given))
            lower_builtin(function, *given)(_lower(emit, lanes))


def _lower(emit, lanes):
    def lower(_context, builder, _signature, arguments):
        return emit(builder, *(_spread(builder, argument, lanes) for argument in arguments))

    return lower


def _compare(sign):
    return lambda builder, one, other: builder.fcmp_ordered(sign, one, other)


def _pick(sign):
    """Return the instruction that keeps the one that is, say, larger; the other of a NaN."""
    return lambda builder, one, other: builder.select(
        builder.fcmp_ordered(sign, one, other), one, other
    )


def _call(name):
    """Return an instruction of LLVM's."""

    def emit(builder, value):
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(value.type, [value.type]),
            f"llvm.{name}.v{value.type.count}f64",
        )
        return builder.call(function, [value])

    return emit


def _arithmetic(name):
    return lambda builder, *arguments: getattr(builder, name)(*arguments, flags=FUSED)


for _name, _functions in (
    ("fadd", (operator.add, operator.iadd)),
    ("fsub", (operator.sub, operator.isub)),
    ("fmul", (operator.mul, operator.imul)),
    ("fdiv", (operator.truediv, operator.itruediv)),
):
    for _function in _functions:
        _define(_function, _arithmetic(_name), floats, floats, floats)
_define(operator.neg, lambda builder, value: builder.fneg(value), floats, floats)
_define(abs, _call("fabs"), floats, floats)
_define(math.sqrt, _call("sqrt"), floats, floats)
_define(max, _pick(">"), floats, floats, floats)
_define(min, _pick("<"), floats, floats, floats)
for _function, _sign in (
    (operator.lt, "<"),
    (operator.le, "<="),
    (operator.gt, ">"),
    (operator.ge, ">="),
    (operator.eq, "=="),
):
    _define(_function, _compare(_sign), flags, floats, floats)

_define(operator.and_, lambda builder, one, other: builder.and_(one, other), flags, flags, flags)
_define(operator.or_, lambda builder, one, other: builder.or_(one, other), flags, flags, flags)
_define(operator.invert, lambda builder, value: builder.not_(value), flags, flags)

_define(operator.add, lambda builder, one, other: builder.add(one, other), words, words, words)
_define(operator.sub, lambda builder, one, other: builder.sub(one, other), words, words, words)
_define(operator.and_, lambda builder, one, other: builder.and_(one, other), words, words, words)
_define(operator.rshift, lambda builder, one, other: builder.lshr(one, other), words, words, words)


def _fill(lanes):
    @intrinsic
    def fill(_context, _value):
        """Return a number in all lanes."""

        def generate(_context, builder, _signature, arguments):
            return _spread(builder, arguments[0], lanes)

        return floats[lanes](types.float64), generate

    return fill


fill, fill_wide = _fill(LANES), _fill(WIDE)


@intrinsic
def choose(_context, _condition, _one, _other):
    """Return for each lane, or for a number, the one where a condition holds, or else the other."""

    def generate(_context, builder, signature, arguments):
        condition, *both = arguments
        if isinstance(signature.return_type, Floats):
            both = [_spread(builder, each, signature.return_type.lanes) for each in both]
        return builder.select(condition, *both)

    if not isinstance(_condition, Flags):
        return types.float64(types.boolean, types.float64, types.float64), generate
    given = [kind if isinstance(kind, Floats) else types.float64 for kind in (_one, _other)]
    return floats[_condition.lanes](_condition, *given), generate


@intrinsic
def some(_context, _condition):
    """Tell whether a condition holds in some lane."""

    def generate(_context, builder, _signature, arguments):
        bits = builder.bitcast(arguments[0], ir.IntType(arguments[0].type.count))
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(_condition), generate


@intrinsic
def how_many(_context, _condition):
    """Return in how many lanes a condition holds."""

    def generate(_context, builder, _signature, arguments):
        bits = builder.bitcast(arguments[0], ir.IntType(arguments[0].type.count))
        return builder.zext(builder.ctpop(bits), _word)

    return types.int64(_condition), generate


def _reinterpret(context, builder, signature, arguments):
    return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))


@intrinsic
def bits_of(_context, _number):
    """Return the bits of a float, or of floats, as whole numbers."""
    if isinstance(_number, Floats):
        return words[_number.lanes](_number), _reinterpret
    return types.int64(types.float64), _reinterpret


@intrinsic
def from_bits(_context, _word):
    """Return the float, or floats, that have these bits."""
    if isinstance(_word, Words):
        return floats[_word.lanes](_word), _reinterpret
    return types.float64(types.int64), _reinterpret


def _point(context, builder, kind, array, place, element):
    """Return where something stands in an array, counted from its first number."""
    # Not `make_array`, which has numba look for what it may have learned, each time.
    data = context.data_model_manager[kind].get(builder, array, "data")
    return builder.bitcast(builder.gep(data, [place]), element.as_pointer())


def _load(lanes):
    @intrinsic
    def load(_context, _array, _place):
        """Return what stands in an array of floats from a place on, whatever its axes."""

        def generate(context, builder, signature, arguments):
            array, place = arguments
            vector = ir.VectorType(_float, lanes)
            return builder.load(
                _point(context, builder, signature.args[0], array, place, vector), align=8
            )

        return floats[lanes](_array, types.int64), generate

    return load


load, load_wide = _load(LANES), _load(WIDE)


@intrinsic
def load_singles(_context, _array, _place):
    """Return what stands in an array of floats of 32 bits from a place on."""

    def generate(context, builder, signature, arguments):
        array, place = arguments
        single = ir.VectorType(ir.FloatType(), LANES)
        point = _point(context, builder, signature.args[0], array, place, single)
        return builder.fpext(builder.load(point, align=4), ir.VectorType(_float, LANES))

    return floats[LANES](_array, types.int64), generate


def _find_first(builder, count):
    """Return which lanes are among the first so many."""
    lanes = ir.Constant(ir.VectorType(_word, LANES), list(range(LANES)))
    return builder.icmp_signed("<", lanes, _spread(builder, count, LANES))


@intrinsic
def load_some(_context, _array, _place, _count):
    """Return what stands in an array of floats from a place on, in so many lanes; 0 in others."""

    def generate(context, builder, signature, arguments):
        array, place, count = arguments
        vector = ir.VectorType(_float, LANES)
        among = _find_first(builder, count)
        point = _point(context, builder, signature.args[0], array, place, vector)
        given = vector.as_pointer(), ir.IntType(32), among.type, vector
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(vector, given),
            f"llvm.masked.load.v{LANES}f64.p0v{LANES}f64",
        )
        nothing = ir.Constant(vector, [0.0] * LANES)
        return builder.call(function, [point, ir.Constant(ir.IntType(32), 8), among, nothing])

    return floats[LANES](_array, types.int64, types.int64), generate


def _load_words(context, builder, kind, array, place):
    """Return whole numbers that stand side by side in an array."""
    vector = ir.VectorType(_word, LANES)
    return builder.load(_point(context, builder, kind, array, place, vector), align=8)


@intrinsic
def store(_context, _array, _place, _values):
    """Write to an array of floats from a place on."""

    def generate(context, builder, signature, arguments):
        array, place, values = arguments
        target = _point(context, builder, signature.args[0], array, place, values.type)
        builder.store(values, target, align=8)
        return context.get_dummy_value()

    return types.void(_array, types.int64, _values), generate


@intrinsic
def get(_context, _values, _lane):
    """Return what stands in a lane."""

    def generate(_context, builder, _signature, arguments):
        return builder.extract_element(*arguments)

    return types.float64(_values, types.int64), generate


def _fold(combine):
    """Return what becomes of all lanes: of neighbours first, then of neighbouring pairs."""

    def generate(_context, builder, _signature, arguments):
        (values,) = arguments
        lanes, apart = values.type.count, 1
        while apart < lanes:
            order = [lane ^ apart for lane in range(lanes)]
            values = combine(builder, values, _shuffle(builder, values, values, order))
            apart *= 2
        return builder.extract_element(values, ir.Constant(ir.IntType(32), 0))

    return generate


@intrinsic
def total(_context, _values):
    """Return the sum of all lanes."""
    return types.float64(_values), _fold(lambda builder, a, b: builder.fadd(a, b))


@intrinsic
def product(_context, _values):
    """Return the product of all lanes."""
    return types.float64(_values), _fold(lambda builder, a, b: builder.fmul(a, b))


@intrinsic
def largest(_context, _values):
    """Return the largest of all lanes."""
    return types.float64(_values), _fold(_pick(">"))


def _shuffle(builder, one, other, order):
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(order)), list(order))
    return builder.shuffle_vector(one, other, mask)


def _join(builder, one, other):
    """Return one vector of two, side by side."""
    return _shuffle(builder, one, other, range(2 * one.type.count))


def _transpose_twice(builder, lines):
    """Return the columns of lines of four floats; each of these holds two, of lanes 4 apart."""

    def shuffle(one, other, *places):
        # The numbers of the second half, and those of the other one, come 4 and 8 later.
        half = [place + 4 * (place // 4) for place in places]
        return _shuffle(builder, one, other, half + [place + 4 for place in half])

    a, b, c, d = lines
    even = [shuffle(one, other, 0, 4, 2, 6) for one, other in ((a, b), (c, d))]
    odd = [shuffle(one, other, 1, 5, 3, 7) for one, other in ((a, b), (c, d))]
    pairs = (even, 0), (odd, 0), (even, 2), (odd, 2)
    return [shuffle(*two, at, at + 1, at + 4, at + 5) for two, at in pairs]


def _read_lines(context, builder, kind, table, places):
    """Return four columns, each lane's from a place in the table on."""
    line = ir.VectorType(_float, COLUMNS)
    points = [_point(context, builder, kind, table, place, line) for place in places]
    lines = [builder.load(point, align=8) for point in points]
    eights = []
    for first in range(0, WIDE, 8):
        pairs = [(lines[first + lane], lines[first + lane + 4]) for lane in range(4)]
        eights.append(_transpose_twice(builder, [_join(builder, *pair) for pair in pairs]))
    return [_join(builder, *halves) for halves in zip(*eights, strict=True)]


@intrinsic
def look_up(_context, _table, _places, _at, _shift):
    """Return four columns of a table, each lane's from a place on.

    The places of the lanes stand in an array from `at` on; to each of them, the shift is added.
    """

    def generate(context, builder, signature, arguments):
        (table, places, at, shift), kinds = arguments, signature.args
        found = []
        for lane in range(WIDE):
            place = builder.add(at, ir.Constant(_word, lane))
            number = builder.load(_point(context, builder, kinds[1], places, place, _word))
            found.append(builder.add(number, shift))
        columns = _read_lines(context, builder, kinds[0], table, found)
        return context.make_tuple(builder, signature.return_type, columns)

    kinds = (_table, _places, types.int64, types.int64)
    return types.UniTuple(floats[WIDE], COLUMNS)(*kinds), generate


def _transpose(builder, rows):
    """Return the columns of eight rows of eight numbers: thrice, each row between two others."""
    for _ in range(3):
        pairs = list(zip(rows[:4], rows[4:], strict=True))
        low = [_shuffle(builder, a, b, [0, 8, 1, 9, 2, 10, 3, 11]) for a, b in pairs]
        high = [_shuffle(builder, a, b, [4, 12, 5, 13, 6, 14, 7, 15]) for a, b in pairs]
        rows = [row for both in zip(low, high, strict=True) for row in both]
    return rows


@intrinsic
def spread_cells(_context, _cells, _starts, _first, _nothing, _shifts, _places, _at):
    """Write where eight cells of every lane's row are looked up, lanes side by side.

    A row starts where its lane's start says; what is negative in it is replaced by `nothing`. Cells
    are `WIDTH` numbers of a table apart. To each lane's place a shift is added; there are two of
    them, so of each cell there are two places.
    """

    def generate(context, builder, signature, arguments):
        cells, starts, first, nothing, shifts, places, at = arguments
        kinds, code = signature.args, ir.VectorType(ir.IntType(32), 8)
        lines = []
        for lane in range(WIDE):
            start = builder.load(
                _point(context, builder, kinds[1], starts, ir.Constant(_word, lane), _word)
            )
            point = _point(context, builder, kinds[0], cells, builder.add(start, first), code)
            lines.append(builder.load(point, align=4))
        blank = _spread(builder, builder.trunc(nothing, ir.IntType(32)), 8)
        for half in range(WIDE // 8):
            columns = _transpose(builder, lines[half * 8 : half * 8 + 8])
            moves = [
                _load_words(
                    *(context, builder, kinds[4], shifts),
                    ir.Constant(_word, side * WIDE + half * 8),
                )
                for side in range(2)
            ]
            for feature, column in enumerate(columns):
                there = builder.icmp_signed(">=", column, ir.Constant(code, [0] * 8))
                cell = builder.sext(builder.select(there, column, blank), ir.VectorType(_word, 8))
                place = builder.mul(cell, ir.Constant(cell.type, [WIDTH] * 8))
                for side, move in enumerate(moves):
                    offset = (2 * feature + side) * WIDE + half * 8
                    target = builder.add(at, ir.Constant(_word, offset))
                    point = _point(context, builder, kinds[5], places, target, cell.type)
                    builder.store(builder.add(place, move), point, align=8)
        return context.get_dummy_value()

    whole = types.int64
    return types.void(_cells, _starts, whole, whole, _shifts, _places, whole), generate


@intrinsic
def turn(_context, _array, _places, _out, _at):
    """Write eight numbers from each of eight places on, those of all places side by side."""

    def generate(context, builder, signature, arguments):
        (array, places, out, at), kinds = arguments, signature.args
        lines = []
        for lane in range(LANES):
            which = ir.Constant(_word, lane)
            place = builder.load(_point(context, builder, kinds[1], places, which, _word))
            vector = ir.VectorType(_float, LANES)
            point = _point(context, builder, kinds[0], array, place, vector)
            lines.append(builder.load(point, align=8))
        for column, values in enumerate(_transpose(builder, lines)):
            place = builder.add(at, ir.Constant(_word, column * LANES))
            target = _point(context, builder, kinds[2], out, place, values.type)
            builder.store(values, target, align=8)
        return context.get_dummy_value()

    return types.void(_array, _places, _out, types.int64), generate


@intrinsic
def multiply_add(_context, _one, _other, _more):
    """Return one · other + more: here the product is the one that is fused, if there is a way."""

    def generate(_context, builder, _signature, arguments):
        vector = arguments[0].type
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(vector, [vector] * 3),
            f"llvm.fmuladd.v{vector.count}f64",
        )
        return builder.call(function, arguments)

    return _one(_one, _one, _one), generate


@intrinsic
def pick(_context, _array, _places, _at):
    """Return what an array of floats holds at eight places, which stand from `at` on."""

    def generate(context, builder, signature, arguments):
        (array, places, at), kinds = arguments, signature.args
        found = ir.Constant(ir.VectorType(_float, LANES), ir.Undefined)
        for lane in range(LANES):
            which = builder.add(at, ir.Constant(_word, lane))
            point = _point(context, builder, kinds[1], places, which, ir.IntType(32))
            place = builder.zext(builder.load(point), _word)
            number = builder.load(_point(context, builder, kinds[0], array, place, _float))
            found = builder.insert_element(found, number, ir.Constant(ir.IntType(32), lane))
        return found

    return floats[LANES](_array, _places, types.int64), generate


@intrinsic
def lane_is(_context, _lane):
    """Return which lane has a number, if any."""

    def generate(_context, builder, _signature, arguments):
        lanes = ir.Constant(ir.VectorType(_word, LANES), list(range(LANES)))
        return builder.icmp_signed("==", lanes, _spread(builder, arguments[0], LANES))

    return flags[LANES](types.int64), generate


@intrinsic
def first_lanes(_context, _count):
    """Return which lanes are among the first so many."""

    def generate(_context, builder, _signature, arguments):
        return _find_first(builder, arguments[0])

    return flags[LANES](types.int64), generate
