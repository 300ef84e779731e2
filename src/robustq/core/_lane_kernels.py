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

__all__ = ["COLUMNS", "LANES", "SUMS", "add_up", "climb", "join", "start"]

LANES = 8
# The columns of edges: the weight, minus what it falls by, and what it rises by.
COLUMNS = W, FALL, RISE = (0, 1, 2)
# The rows of what is summed over trees: what is positive, what is negative, and the sizes.
SUMS = P, N, SIZE = (0, 1, 2)

VECTOR = ir.VectorType(ir.DoubleType(), LANES)
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

    def column(self, edges, edge, column):
        """Return a number of an edge in every lane."""
        start = self.builder.mul(edge, ir.Constant(edge.type, len(COLUMNS)))
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
        line = builder.fadd(weight, builder.fmul(x, slope))
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
def start(_context, stack, height, term, xs, edges, first, last):
    """Put a leaf's value onto the stack, times the bounds of edges from first to last."""

    def generate(context, builder, signature, arguments):
        write = _Writer(context, builder, signature, arguments)
        values, row, number, points, paths, low, high = write.data
        x = write.load(points, ir.Constant(row.type, 0))
        value = cgutils.alloca_once_value(builder, write.spread(number))
        # No bound changes a sign, and no lane has one of its own.
        falls = builder.fcmp_ordered(">", number, ir.Constant(number.type, 0.0))
        column = builder.select(falls, ir.Constant(low.type, FALL), ir.Constant(low.type, RISE))
        with write.each(low, high) as (edge, _):
            bound = write.bound(x, paths, edge, write.column(paths, edge, column))
            builder.store(builder.fmul(builder.load(value), bound), value)
        twice = builder.mul(row, ir.Constant(row.type, 2))
        write.store(builder.load(value), values, twice)
        write.store(write.size(builder.load(value)), values, twice, 1)
        return context.get_dummy_value()

    return types.void(stack, height, term, xs, edges, first, last), generate


@intrinsic
def climb(_context, stack, height, xs, edges, first, last):
    """Multiply a value on the stack, and its size, by the bounds of edges from first to last."""

    def generate(context, builder, signature, arguments):
        write = _Writer(context, builder, signature, arguments)
        values, row, points, paths, low, high = write.data
        x = write.load(points, ir.Constant(row.type, 0))
        twice = builder.mul(row, ir.Constant(row.type, 2))
        value, size = (
            cgutils.alloca_once_value(builder, write.load(values, twice, k)) for k in (0, 1)
        )
        falls = builder.fcmp_ordered(">", builder.load(value), ZERO)
        with write.each(low, high) as (edge, _):
            bound = write.bound(x, paths, edge, write.slope(paths, edge, falls))
            for part in (value, size):
                builder.store(builder.fmul(builder.load(part), bound), part)
        write.store(builder.load(value), values, twice)
        write.store(builder.load(size), values, twice, 1)
        return context.get_dummy_value()

    return types.void(stack, height, xs, edges, first, last), generate


@intrinsic
def join(_context, stack, height, xs, edges, edge):
    """Replace two values on the stack, and their sizes, by those of their join.

    The edges to the left child and to the right one stand next to each other. Of the two the higher
    one loses what the lower one gains; one of them if they tie.
    """

    def generate(context, builder, signature, arguments):
        write = _Writer(context, builder, signature, arguments)
        values, row, points, paths, left = write.data
        right = builder.add(left, ir.Constant(left.type, 1))
        x = write.load(points, ir.Constant(row.type, 0))
        twice = builder.mul(row, ir.Constant(row.type, 2))
        one, one_size, two, two_size = (write.load(values, twice, k) for k in range(4))
        higher = builder.fcmp_ordered(">", one, two)
        one_bound = write.bound(x, paths, left, write.slope(paths, left, higher))
        two_bound = write.bound(x, paths, right, write.slope(paths, right, builder.not_(higher)))
        for k, (first, second) in enumerate(((one, two), (one_size, two_size))):
            both = builder.fmul(first, one_bound), builder.fmul(second, two_bound)
            write.store(builder.fadd(*both), values, twice, k)
        return context.get_dummy_value()

    return types.void(stack, height, xs, edges, edge), generate


@intrinsic
def add_up(_context, stack, sums):
    """Add the value at the bottom of the stack, and its size, to what is summed over trees."""

    def generate(context, builder, signature, arguments):
        write = _Writer(context, builder, signature, arguments)
        values, totals = write.data
        none = ir.Constant(ir.IntType(64), 0)
        value, size = write.load(values, none), write.load(values, none, 1)
        falls = builder.fcmp_ordered(">", value, ZERO)
        gained = builder.select(falls, value, ZERO)
        lost = builder.select(falls, ZERO, builder.fneg(value))
        for row, part in ((P, gained), (N, lost), (SIZE, size)):
            write.store(builder.fadd(write.load(totals, none, row), part), totals, none, row)
        return context.get_dummy_value()

    return types.void(stack, sums), generate
