"""Kernels run by Python itself, where a call is so small that compiling would take far longer.

What is compiled computes the same numbers as the lines that are written there, to the last digit,
unless it says otherwise (`fastmath`) or means what Python has no word for (vectors): then it is
always compiled.
"""

import builtins
import dis
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import types
from numba.core.dispatcher import Dispatcher
from numba.core.typing.templates import Signature

__all__ = ["PATIENCE", "Interpreted", "is_small"]

MOST_NUMBERS = 1 << 12  # in all arrays of a call
PATIENCE = 0.25  # seconds for all calls of a kernel, and then it is compiled

# What kernels may use of modules, with the digits they have there.
_SAME: dict[Any, set[str]] = {
    np: {"int32", "int64", "uint64", "float64", "zeros", "ones", "full"},
    math: {"inf", "nan", "sqrt", "log", "exp", "log1p", "expm1", "isnan", "isinf", "floor"},
}
_SCALARS: dict[Any, Callable[[Any], Any]] = {
    types.int64: int,
    types.uint64: np.uint64,
    types.float64: np.float64,  # divides by zero as kernels do
    types.boolean: bool,
}
_RESULTS: dict[Any, Callable[[Any], Any]] = {types.void: lambda _: None, types.int64: int}
_RESULTS |= {types.float64: float, types.boolean: bool}
# Of arrays. A float of 32 bits makes one of a number that is written down beside it.
_KINDS = {types.int8, types.int32, types.int64, types.uint8, types.uint64, types.boolean}
_KINDS |= {types.float64}


class Interpreted:
    """A kernel that Python runs.

    Parameters
    ----------
    function : function
    signature : Signature
    meanings : dict of intrinsic to function
        What Python is to call instead.

    Raises
    ------
    LookupError
        If Python would not find the same digits.
    """

    def __init__(
        self, function: FunctionType, signature: Any, meanings: Mapping[Any, Callable[[Any], Any]]
    ) -> None:
        if not isinstance(signature, Signature) or signature.return_type not in _RESULTS:
            raise LookupError(signature)  # nobody told what it returns
        if not all(map(_is_known, signature.args)):
            raise LookupError(signature)
        self._function = _translate(function, dict(meanings))
        self._kinds = signature.args
        self._result = _RESULTS[signature.return_type]

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """Return what the kernel does.

        Raises
        ------
        LookupError
            If it has to be compiled, as where Python refuses to compute what has no value. Arrays
            are then as they were.
        """
        before = [(each, each.copy()) for each in _flatten(arguments) if _is_written(each)]
        given = [_convert(kind, each) for kind, each in zip(self._kinds, arguments, strict=True)]
        try:
            with np.errstate(all="ignore"):
                return self._result(self._function(*given))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            for array, content in before:
                array[...] = content
            raise LookupError(*error.args) from error


def is_small(arguments: Sequence[Any]) -> bool:
    """Tell whether a call is worth a try."""
    sizes = (each.size for each in _flatten(arguments) if isinstance(each, np.ndarray))
    return sum(sizes) <= MOST_NUMBERS


def _flatten(arguments: Sequence[Any]) -> Iterator[Any]:
    for each in arguments:
        if isinstance(each, tuple):
            yield from _flatten(each)
        else:
            yield each


def _convert(kind: Any, argument: Any) -> Any:
    if kind in _SCALARS:
        return _SCALARS[kind](argument)
    if isinstance(kind, types.BaseTuple):
        return tuple(_convert(*each) for each in zip(kind, argument, strict=True))
    return argument


def _is_known(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        return all(map(_is_known, kind))
    return kind in _SCALARS or (isinstance(kind, types.Array) and kind.dtype in _KINDS)


def _is_written(argument: Any) -> bool:
    return isinstance(argument, np.ndarray) and bool(argument.flags.writeable)


def _translate(function: FunctionType, known: dict[Any, Any]) -> Any:
    """Return a function that calls others as they are written, not as they are compiled."""
    if function in known:
        return known[function]
    if function.__closure__ or any(isinstance(c, CodeType) for c in function.__code__.co_consts):
        raise LookupError(function)  # no kernel has functions within
    namespace: dict[str, Any] = {"__builtins__": builtins}
    translated = FunctionType(function.__code__, namespace, function.__name__)
    known[function] = translated
    for name, attribute in _list_names(function.__code__):
        if name in function.__globals__:
            namespace[name] = _translate_value(function.__globals__[name], attribute, known)
    return translated


def _translate_value(value: Any, attribute: Any, known: dict[Any, Any]) -> Any:
    if isinstance(value, Dispatcher):
        if value.targetoptions.get("fastmath"):
            raise LookupError(value)
        return _translate(value.py_func, known)
    if isinstance(value, ModuleType):
        if attribute not in _SAME.get(value, ()):
            raise LookupError(attribute)
        return value
    if callable(value):
        return known[value]  # an intrinsic, of which the meaning is known or not
    return value


def _list_names(code: CodeType) -> Iterator[tuple[str, Any]]:
    """Yield the names that are looked up, and which attribute is asked for, if one is."""
    for step, after in itertools.pairwise(dis.get_instructions(code)):
        if step.opname == "LOAD_GLOBAL":
            yield step.argval, after.argval
