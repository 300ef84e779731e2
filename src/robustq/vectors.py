"""Several floats side by side, as types that kernels compute with.

Compilers find out by themselves that a loop over lanes can run on several at once only where they
can prove much; and they keep what is between two such loops in memory. Here is it said: what is of
type `floats` are `LANES` floats, in registers, and arithmetic with them is of all lanes at once.
Conditions are `flags`, and the bits of floats are `words`.

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
    "LANES",
    "bits_of",
    "choose",
    "fill",
    "from_bits",
    "get",
    "load",
    "look_up",
    "multiply_add",
    "some",
    "store",
    "transpose",
]

LANES = 8
FUSED = ("contract",)
COLUMNS = 4  # that are read at once
WIDTH = 8  # columns of a table for `look_up`


class Floats(types.Type):
    """Floats of 64 bits, one in each lane."""


class Flags(types.Type):
    """Truth values, one in each lane."""


class Words(types.Type):
    """Whole numbers of 64 bits without a sign, one in each lane."""


floats, flags, words = Floats("floats"), Flags("flags"), Words("words")
_float, _bit, _word = ir.DoubleType(), ir.IntType(1), ir.IntType(64)


def _register(kind, element):
    @register_model(kind)
    class Model(models.PrimitiveModel):
        def __init__(self, manager, fe_type):
            super().__init__(manager, fe_type, ir.VectorType(element, LANES))


for _kind, _element in ((Floats, _float), (Flags, _bit), (Words, _word)):
    _register(_kind, _element)


def _spread(builder, value):
    """Return a number in all lanes."""
    if isinstance(value.type, ir.VectorType):
        return value
    vector = ir.VectorType(value.type, LANES)
    first = builder.insert_element(
        ir.Constant(vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0)
    )
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)


def _define(function, emit, result, *kinds):
    """Let a function of Python's take vectors, and single numbers beside them."""
    single = {floats: types.float64, words: types.int64}
    cases = [kinds]
    if len(kinds) == 2 and kinds[0] in single:
        cases += [(kinds[0], single[kinds[1]]), (single[kinds[0]], kinds[1])]

    @infer_global(function)
    class Template(ConcreteTemplate):
        pass

    Template.cases = [signature(result, *case) for case in cases]

    def lower(_context, builder, _signature, arguments):
        return emit(builder, *(_spread(builder, argument) for argument in arguments))

    for case in cases:
        lower_builtin(function, *case)(lower)


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
            f"llvm.{name}.v{LANES}f64",
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


@intrinsic
def fill(_context, _value):
    """Return a number in all lanes."""

    def generate(_context, builder, _signature, arguments):
        return _spread(builder, arguments[0])

    return floats(types.float64), generate


@intrinsic
def choose(_context, _condition, _one, _other):
    """Return for each lane, or for a number, the one where a condition holds, or else the other."""

    def generate(_context, builder, signature, arguments):
        condition, *both = arguments
        if signature.return_type == floats:
            both = [_spread(builder, argument) for argument in both]
        return builder.select(condition, *both)

    if not isinstance(_condition, Flags):
        return types.float64(types.boolean, types.float64, types.float64), generate
    given = [floats if isinstance(kind, Floats) else types.float64 for kind in (_one, _other)]
    return floats(flags, *given), generate


@intrinsic
def some(_context, _condition):
    """Tell whether a condition holds in some lane."""

    def generate(_context, builder, _signature, arguments):
        bits = builder.bitcast(arguments[0], ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(flags), generate


@intrinsic
def bits_of(_context, _number):
    """Return the bits of a float, or of floats, as whole numbers."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

    kinds = (words, floats) if isinstance(_number, Floats) else (types.int64, types.float64)
    return kinds[0](kinds[1]), generate


@intrinsic
def from_bits(_context, _word):
    """Return the float, or floats, that have these bits."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

    kinds = (floats, words) if isinstance(_word, Words) else (types.float64, types.int64)
    return kinds[0](kinds[1]), generate


def _point(context, builder, kind, array, place, element):
    """Return where something stands in an array, counted from its first number."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), element.as_pointer())


@intrinsic
def load(_context, _array, _place):
    """Return what stands in an array of floats from a place on, whatever its axes."""

    def generate(context, builder, signature, arguments):
        array, place = arguments
        vector = ir.VectorType(_float, LANES)
        return builder.load(
            _point(context, builder, signature.args[0], array, place, vector), align=8
        )

    return floats(_array, types.int64), generate


@intrinsic
def store(_context, _array, _place, _values):
    """Write to an array of floats from a place on."""

    def generate(context, builder, signature, arguments):
        array, place, values = arguments
        target = _point(context, builder, signature.args[0], array, place, values.type)
        builder.store(values, target, align=8)
        return context.get_dummy_value()

    return types.void(_array, types.int64, floats), generate


@intrinsic
def get(_context, _values, _lane):
    """Return what stands in a lane."""

    def generate(_context, builder, _signature, arguments):
        return builder.extract_element(*arguments)

    return types.float64(floats, types.int64), generate


def _transpose_four(builder, lines):
    """Return the columns of four lines of four floats."""

    def shuffle(one, other, *places):
        mask = ir.Constant(ir.VectorType(ir.IntType(32), COLUMNS), list(places))
        return builder.shuffle_vector(one, other, mask)

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
    halves = [
        _transpose_four(builder, lines[first : first + COLUMNS])
        for first in range(0, LANES, COLUMNS)
    ]
    return [_join(builder, parts) for parts in zip(*halves, strict=True)]


def _join(builder, parts):
    """Return one vector of several, side by side."""
    while len(parts) > 1:
        width = 2 * parts[0].type.count
        order = ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(width)))
        parts = [
            builder.shuffle_vector(parts[i], parts[i + 1], order) for i in range(0, len(parts), 2)
        ]
    return parts[0]


def _read_numbers(context, builder, kind, array, element=_word):
    """Return the first numbers of an array, one for each lane."""
    places = [ir.Constant(_word, lane) for lane in range(LANES)]
    points = [_point(context, builder, kind, array, place, element) for place in places]
    return [builder.load(point) for point in points]


@intrinsic
def transpose(_context, _table, _places):
    """Return four columns of a table, each lane's from the place on that an array has for it."""

    def generate(context, builder, signature, arguments):
        (table, places), (kind, numbers) = arguments, signature.args
        found = _read_numbers(context, builder, numbers, places)
        columns = _read_lines(context, builder, kind, table, found)
        return context.make_tuple(builder, signature.return_type, columns)

    return types.UniTuple(floats, COLUMNS)(_table, _places), generate


@intrinsic
def look_up(_context, _table, _cells, _feature, _starts, _shifts, _nothing):
    """Return four columns of a table of places `WIDTH` apart, looked up through cells.

    A lane's cell of a feature stands `feature` after where its row starts; what is negative is
    replaced by `nothing`. To that, in places of the table, the lane's shift is added.
    """

    def generate(context, builder, signature, arguments):
        table, cells, feature, starts, shifts, nothing = arguments
        kinds, code = signature.args, ir.IntType(32)
        places = []
        for start, shift in zip(
            _read_numbers(context, builder, kinds[3], starts),
            _read_numbers(context, builder, kinds[4], shifts),
            strict=True,
        ):
            at = _point(context, builder, kinds[1], cells, builder.add(start, feature), code)
            cell = builder.sext(builder.load(at), _word)
            there = builder.icmp_signed(">=", cell, ir.Constant(_word, 0))
            cell = builder.select(there, cell, nothing)
            places.append(builder.add(builder.mul(cell, ir.Constant(_word, WIDTH)), shift))
        columns = _read_lines(context, builder, kinds[0], table, places)
        return context.make_tuple(builder, signature.return_type, columns)

    whole = types.int64
    kinds = (_table, _cells, whole, _starts, _shifts, whole)
    return types.UniTuple(floats, COLUMNS)(*kinds), generate


@intrinsic
def multiply_add(_context, _one, _other, _more):
    """Return one · other + more: here the product is the one that is fused, if there is a way."""

    def generate(_context, builder, _signature, arguments):
        vector = arguments[0].type
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(vector, [vector] * 3),
            f"llvm.fmuladd.v{LANES}f64",
        )
        return builder.call(function, arguments)

    return floats(floats, floats, floats), generate
