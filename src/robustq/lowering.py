"""How what kernels do most is written down for LLVM: no longer than it must be.

numba looks up the code of every item of an array, and of every sum and product, among all that it
knows, and writes it for any array there could be: most of the time to compile went there. Like
`compiler`, this leans on names of numba that are not public.
"""

import operator
from collections import Counter
from typing import Any

from numba import types
from numba.core import ir
from numba.core.cgutils import alloca_once, unpack_tuple
from numba.core.lowering import Lower
from numba.core.typing.templates import AbstractTemplate, signature
from numba.extending import lower_builtin
from numba.np.arrayobj import fix_integer_index, load_item, store_item

__all__ = ["OF_TWO", "KernelLower"]

# By the methods of LLVM's builder.
_OF_FLOATS = {operator.add: "fadd", operator.sub: "fsub", operator.mul: "fmul"}
_OF_FLOATS |= {operator.truediv: "fdiv"}  # as in numpy, without a look at what it divides by
_OF_INTEGERS = {operator.add: "add", operator.sub: "sub", operator.mul: "mul"}
_COMPARED = {operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">="}
_COMPARED |= {operator.eq: "==", operator.ne: "!="}


class _Smaller(AbstractTemplate):
    """The smaller of two numbers of one kind, for which numba would compile a function."""

    key = min

    def generic(self, args, kws):
        if not kws and args in _PAIRS:
            return signature(args[0], *args)
        return None


class _Larger(_Smaller):
    """The larger one."""

    key = max


OF_TWO: dict[Any, Any] = {min: _Smaller, max: _Larger}
_PAIRS = {(types.float64, types.float64), (types.int64, types.int64)}


def _take_one(sign):
    def take(_context, builder, given, arguments):
        one, other = arguments
        compare = builder.icmp_signed
        if given.return_type == types.float64:
            compare = builder.fcmp_ordered
        return builder.select(compare(sign, other, one), other, one)

    return take


for _pair in _PAIRS:
    lower_builtin(min, *_pair)(_take_one("<"))
    lower_builtin(max, *_pair)(_take_one(">"))


class KernelLower(Lower):
    """Writes a function in LLVM's language."""

    def init(self):
        """Find what need not be in memory."""
        super().init()
        # What is passed is there from the first block on.
        self._passed = {}
        self._kept = {name for name in self.func_ir.arg_names if self._assigned[name] == 1}

    def _find_singly_assigned_variable(self):
        """Find what is set once, and used after that in the same block alone."""
        self._assigned: Counter[str] = Counter()
        elsewhere: set[str] = set()
        for block in self.blocks.values():
            here = set()
            for step in block.body:
                names = [variable.name for variable in step.list_vars()]
                if isinstance(step, ir.Assign):
                    self._assigned[step.target.name] += 1
                    if names.count(step.target.name) == 1:
                        here.add(step.target.name)
                elsewhere.update(name for name in names if name not in here)
        once = {name for name, times in self._assigned.items() if times == 1}
        self._singly_assigned_vars, self._blk_local_varmap = once - elsewhere, {}

    @property
    def _counts(self):
        """Whether references are counted, or variables shown to a debugger."""
        return self.context.enable_nrt or self._disable_sroa_like_opt

    def loadvar(self, name):
        """Return the value of a variable."""
        if name in self._passed:
            return self._passed[name]
        return super().loadvar(name)

    def storevar(self, value, name, argidx=None):
        """Set a variable."""
        if self._counts:
            super().storevar(value, name, argidx=argidx)
        elif argidx is not None and name in self._kept:
            self._passed[name] = value
        elif name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def delvar(self, name):
        """Let go of a variable: nothing to do, where references are not counted."""
        if self._counts:
            super().delvar(name)

    def _alloca_var(self, name, fetype):
        if self._counts or name not in self._kept:
            super()._alloca_var(name, fetype)

    def alloca_lltype(self, name, lltype, datamodel=None):
        """Return room for a variable; how large it is only a debugger would ask."""
        if self._disable_sroa_like_opt:
            return super().alloca_lltype(name, lltype, datamodel)
        return alloca_once(self.builder, lltype, name=name)

    def lower_binop(self, resty, expr, op):
        """Return a sum, a product or a comparison."""
        kinds = [types.unliteral(kind) for kind in self.fndesc.calltypes[expr].args]
        given = [types.unliteral(self.typeof(each.name)) for each in (expr.lhs, expr.rhs)]
        make = None
        if kinds == given == [types.float64, types.float64]:
            make = self._combine_floats(op)
        elif kinds == given == [types.int64, types.int64]:
            make = self._combine_integers(op)
        if make is None or self.fndesc.calltypes[expr].return_type != resty:
            return super().lower_binop(resty, expr, op)
        return make(self.loadvar(expr.lhs.name), self.loadvar(expr.rhs.name))

    def _combine_floats(self, op):
        if op in _OF_FLOATS:
            return getattr(self.builder, _OF_FLOATS[op])
        if op in _COMPARED:
            of = self.builder.fcmp_unordered if op is operator.ne else self.builder.fcmp_ordered
            return lambda one, other: of(_COMPARED[op], one, other)
        return None

    def _combine_integers(self, op):
        if op in _OF_INTEGERS:
            return getattr(self.builder, _OF_INTEGERS[op])
        if op in _COMPARED:
            return lambda one, other: self.builder.icmp_signed(_COMPARED[op], one, other)
        return None

    def lower_getitem(self, resty, expr, value, index, signature):
        """Return an item of an array."""
        array = self.typeof(value.name)
        place = self._point(array, value, index)
        if place is None or array.dtype != resty:
            return super().lower_getitem(resty, expr, value, index, signature)
        return load_item(self.context, self.builder, array, place)

    def lower_setitem(self, target_var, index_var, value_var, signature):
        """Set an item of an array."""
        array = self.typeof(target_var.name)
        place = self._point(array, target_var, index_var)
        if place is None:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        kind = self.typeof(value_var.name)
        value = self.loadvar(value_var.name)
        value = self.context.cast(self.builder, value, kind, array.dtype)
        return store_item(self.context, self.builder, array, value, place)

    def _point(self, array, variable, index_variable):
        """Return where one item of an array is; None where more than one is meant."""
        if not isinstance(array, types.Array) or array.layout != "C" or self.flags.boundscheck:
            return None
        index = self.typeof(index_variable.name)
        kinds = tuple(index) if isinstance(index, types.BaseTuple) else (index,)
        if len(kinds) != array.ndim or not all(isinstance(k, types.Integer) for k in kinds):
            return None
        indices = self.loadvar(index_variable.name)
        indices = unpack_tuple(self.builder, indices) if index is not kinds[0] else [indices]
        model = self.context.data_model_manager[array]
        given = self.loadvar(variable.name)
        sizes = unpack_tuple(self.builder, model.get(self.builder, given, "shape"))
        place = None
        for kind, index, size in zip(kinds, indices, sizes, strict=True):
            at = fix_integer_index(self.context, self.builder, kind, index, size)
            before = None if place is None else self.builder.mul(place, size)
            place = at if before is None else self.builder.add(before, at)
        return self.builder.gep(model.get(self.builder, given, "data"), [place])
