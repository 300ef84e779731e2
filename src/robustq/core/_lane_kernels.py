"""Values of trees for several x at once, side by side: what LLVM will not find out by itself.

A lane holds what one x gives. No step asks which way it goes, so that all lanes go together:

    edge     V times w − x l if V > 0, or else w + x u, cut to [0, 1]
    join     the higher child times its lower bound, and the lower one times its upper bound

Beside each value on the stack stands its size: the same without signs.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = [
    "FALL",
    "LANES",
    "RISE",
    "SIZE",
    "SUMS",
    "WIDTH",
    "N",
    "P",
    "W",
    "add_up",
    "climb",
    "join",
    "start",
]

LANES = 8
# The columns of edges: the weight, minus what it falls by, and what it rises by.
W, FALL, RISE = range(3)
WIDTH = 4  # with what makes them a half of a line of the cache
# The rows of what is summed over trees: what is positive, what is negative, and the sizes.
SUMS = P, N, SIZE = (0, 1, 2)

VECTOR = ir.VectorType(ir.DoubleType(), LANES)
FUSED = ("contract",)  # a product and a sum may be one instruction
ZERO, ONE = (ir.Constant(VECTOR, [number] * LANES) for number in (0.0, 1.0))


class _Writer:
    """Writes the instructions of one function."""

    def __init__(self, context, builder, signature, arguments):
        self.builder = builder
        self.data = [
            context.make_array(type_)(context, builder, value).data
            if isinstance(type_, types.Array)
            else value
            for type_, value in zip(signature.args, arguments, strict=True)
        ]

    def place(self, array, row, more=0):
        """Return where the lanes of a row of an array stand."""
        start = self.builder.mul(row, ir.Constant(row.type, LANES))
        start = self.builder.add(start, ir.Constant(row.type, LANES * more))
        pointer = self.builder.gep(array, [start])
        return self.builder.bitcast(pointer, VECTOR.as_pointer())

    def load(self, array, row, more=0):
        return self.builder.load(self.place(array, row, more), align=8)

    def store(self, vector, array, row, more=0):
        self.builder.store(vector, self.place(array, row, more), align=8)

    def spread(self, number):
        """Return a number in every lane."""
        none = ir.Constant(VECTOR, ir.Undefined)
        first = self.builder.insert_element(none, number, ir.Constant(ir.IntType(32), 0))
        same = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        return self.builder.shuffle_vector(first, none, same)

    def node(self, paths, step):
        """Return the node that stands somewhere on a path."""
        number = self.builder.load(self.builder.gep(paths, [step]))
        return self.builder.sext(number, step.type)

    def column(self, edges, edge, column):
        """Return a number of an edge in every lane."""
        start = self.builder.mul(edge, ir.Constant(edge.type, WIDTH))
        at = self.builder.add(start, column)
        return self.spread(self.builder.load(self.builder.gep(edges, [at])))

    def slope(self, edges, edge, falls):
        """Return the slope of an edge in every lane, that of the lower bound where it falls."""
        fall, rise = (
            self.column(edges, edge, ir.Constant(edge.type, column)) for column in (FALL, RISE)
        )
        return self.builder.select(falls, fall, rise)

    def bound(self, x, edges, edge, slope):
        """Return w + x s, cut to [0, 1]."""
        builder = self.builder
        weight = self.column(edges, edge, ir.Constant(edge.type, W))
        line = builder.fadd(weight, builder.fmul(x, slope, flags=FUSED), flags=FUSED)
        line = builder.select(builder.fcmp_ordered(">", line, ZERO), line, ZERO)
        return builder.select(builder.fcmp_ordered("<", line, ONE), line, ONE)

    def size(self, vector):
        falls = self.builder.fcmp_ordered("<", vector, ZERO)
        return self.builder.select(falls, self.builder.fneg(vector), vector)

    def each(self, first, last):
        """Return a loop over edges."""
        one = ir.Constant(first.type, 1)
        return cgutils.for_range_slice(self.builder, first, last, one, inc=True)


@intrinsic
def start(_context, stack, height, term, xs, slot, edges, paths, first, last):
    """Put a leaf's value onto the stack, times the bounds of the edges on a piece of a path."""

    def generate(context, builder, signature, arguments):
        write = _Writer(context, builder, signature, arguments)
        values, row, number, points, place, lines, nodes, low, high = write.data
        x = write.load(points, place)
        value = cgutils.alloca_once_value(builder, write.spread(number))
        # No bound changes a sign, and no lane has one of its own.
        falls = builder.fcmp_ordered(">", number, ir.Constant(number.type, 0.0))
        column = builder.select(falls, ir.Constant(low.type, FALL), ir.Constant(low.type, RISE))
        with write.each(low, high) as (step, _):
            edge = write.node(nodes, step)
            bound = write.bound(x, lines, edge, write.column(lines, edge, column))
            builder.store(builder.fmul(builder.load(value), bound), value)
        twice = builder.mul(row, ir.Constant(row.type, 2))
        write.store(builder.load(value), values, twice)
        write.store(write.size(builder.load(value)), values, twice, 1)
        return context.get_dummy_value()

    return types.void(stack, height, term, xs, slot, edges, paths, first, last), generate


def _climb(write, both, x, lines, nodes, low, high):
    """Return a value and its size times the bounds of a piece of a path."""
    builder = write.builder
    falls = builder.fcmp_ordered(">", both[0], ZERO)
    value, size = (cgutils.alloca_once_value(builder, part) for part in both)
    with write.each(low, high) as (step, _):
        edge = write.node(nodes, step)
        bound = write.bound(x, lines, edge, write.slope(lines, edge, falls))
        for part in (value, size):
            builder.store(builder.fmul(builder.load(part), bound), part)
    return builder.load(value), builder.load(size)


@intrinsic
def climb(_context, stack, height, xs, slot, edges, paths, first, last):
    """Multiply a value on the stack, and its size, by the bounds of a piece of a path."""

    def generate(context, builder, signature, arguments):
        write = _Writer(context, builder, signature, arguments)
        values, row, points, place, lines, nodes, low, high = write.data
        x = write.load(points, place)
        twice = builder.mul(row, ir.Constant(row.type, 2))
        both = [write.load(values, twice, k) for k in (0, 1)]
        for k, part in enumerate(_climb(write, both, x, lines, nodes, low, high)):
            write.store(part, values, twice, k)
        return context.get_dummy_value()

    return types.void(stack, height, xs, slot, edges, paths, first, last), generate


@intrinsic
def join(_context, stack, height, xs, slot, edges, paths, first, last):
    """Replace two values on the stack, and their sizes, by those of their join, and climb on.

    The right child stands on the path before the first edge, and the left one is the node before
    it. Of the two the higher one loses what the lower one gains; one of them if they tie.
    """

    def generate(context, builder, signature, arguments):
        write = _Writer(context, builder, signature, arguments)
        values, row, points, place, lines, nodes, low, high = write.data
        right = write.node(nodes, builder.sub(low, ir.Constant(low.type, 1)))
        left = builder.sub(right, ir.Constant(right.type, 1))
        x = write.load(points, place)
        twice = builder.mul(row, ir.Constant(row.type, 2))
        one, one_size, two, two_size = (write.load(values, twice, k) for k in range(4))
        higher = builder.fcmp_ordered(">", one, two)
        one_bound = write.bound(x, lines, left, write.slope(lines, left, higher))
        two_bound = write.bound(x, lines, right, write.slope(lines, right, builder.not_(higher)))
        both = [
            builder.fadd(
                builder.fmul(first, one_bound, flags=FUSED),
                builder.fmul(second, two_bound, flags=FUSED),
                flags=FUSED,
            )
            for first, second in ((one, two), (one_size, two_size))
        ]
        for k, part in enumerate(_climb(write, both, x, lines, nodes, low, high)):
            write.store(part, values, twice, k)
        return context.get_dummy_value()

    return types.void(stack, height, xs, slot, edges, paths, first, last), generate


@intrinsic
def add_up(_context, stack, sums, slot):
    """Add the value at the bottom of the stack, and its size, to what is summed over trees."""

    def generate(context, builder, signature, arguments):
        write = _Writer(context, builder, signature, arguments)
        values, totals, place = write.data
        none = ir.Constant(ir.IntType(64), 0)
        value, size = write.load(values, none), write.load(values, none, 1)
        falls = builder.fcmp_ordered(">", value, ZERO)
        gained = builder.select(falls, value, ZERO)
        lost = builder.select(falls, ZERO, builder.fneg(value))
        first = builder.mul(place, ir.Constant(place.type, len(SUMS)))
        for row, part in ((P, gained), (N, lost), (SIZE, size)):
            write.store(builder.fadd(write.load(totals, first, row), part), totals, first, row)
        return context.get_dummy_value()

    return types.void(stack, sums, slot), generate
