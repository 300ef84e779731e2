"""How numba compiles kernels: with as little as they need.

This file leans on names of numba that are not public. Where one is missing, it cannot be imported,
and kernels are compiled as numba does by itself: to the same results, in more time.
"""

import copy
import functools
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.core.types import Function
from numba.core.typing import Context
from numba.extending import models, register_model

from .lowering import OF_TWO, KernelLower
from .passes import OWN, RELIED_ON

__all__ = ["KernelCompiler", "PartCompiler"]

# What is overridden here and in `lowering`: if it had another name, nobody would notice.
_RELIED_ON: dict[Any, str] = {
    JITCodeLibrary: "_optimize_final_module _finalize_final_module _finalize_dynamic_globals",
    Compiler: "define_pipelines _compile_core",
    PassManager: "_ENFORCING",
    Context: "_lookup_global",
    Function: "get_call_type get_impl_key",
    NativeLowering: "lowering_class name",
    Lower: "init loadvar storevar delvar getvar _alloca_var alloca_lltype lower_binop "
    "_find_singly_assigned_variable _disable_sroa_like_opt lower_getitem lower_setitem",
    **RELIED_ON,
}
_MISSING = [
    f"{kind.__name__}.{name}"
    for kind, names in _RELIED_ON.items()
    for name in names.split()
    if not hasattr(kind, name)
]
if _MISSING:
    raise ImportError(*_MISSING)


class _Part(JITCodeLibrary):
    """What is compiled of a function that only kernels call: no more than they need to link it.

    They optimize all that they call, together with what they are themselves. Every function on
    the way would do so too, and make machine code that nobody runs.
    """

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True

    @property
    def codegen(self):
        return self

    def set_env(self, name, environment):
        """Leave out what Python objects in a function would need: there are none."""


class _Function(Function):
    """A function of numba's that remembers what it returns for arguments of which types.

    numba tries all its definitions (of a product some forty) whenever it meets one, and does so
    again when it makes code of it.
    """

    def __init__(self, templates):
        super().__init__(templates)
        self._known = {}

    def get_call_type(self, context, args, kws):
        key = tuple(args), tuple(kws.items())
        signature = self._known.get(key)
        if signature is None:
            signature = super().get_call_type(context, args, kws)
            # Others are compiled for the flags of whoever calls them, but for intrinsics.
            own = self.get_impl_key(signature) is self.typing_key
            if own or hasattr(self.typing_key, "_defn"):
                self._known[key] = signature
        return signature


register_model(_Function)(models.OpaqueModel)


@functools.cache
def _remember(context):
    """Return a typing context that shares all that numba's own has, and remembers."""
    remembered: dict[Function, _Function] = {}

    def look_up(value):
        found = context._lookup_global(value)  # noqa: SLF001
        if type(found) is not Function:
            return found
        # numba adds definitions by making the function anew.
        if found not in remembered:
            own = OF_TWO.get(found.typing_key)
            remembered[found] = _Function((*filter(None, [own]), *found.templates))
        return remembered[found]

    shared = copy.copy(context)
    shared._lookup_global = look_up  # noqa: SLF001
    # What numba learns later it adds to its own.
    shared.refresh = context.refresh
    return shared


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    """Makes LLVM's language of a function in our way."""

    _name = "kernel_lowering"

    @property
    def lowering_class(self):
        return KernelLower


_OWN: dict[Any, Any] = {NativeLowering: _Lowering, **OWN}
# What passes are for that kernels have no use for, and that take a seventh of the time: closures,
# expressions of whole arrays, `with`, `raise`, `None`, branches that depend on types, and what is
# told of types to readers.
_UNUSED = {
    "LiteralPropagation",
    "Rewrite dynamic raises",
    "annotate_types",
    "dead_branch_prune",
    "dump_parfor_diagnostics",
    "find_literally",
    "inline_overloads",
    "inline_closure_likes",
    "literal_unroll",
    "make_function_op_code_to_jit_function",
    "nopython_rewrites",
    "rewrite_semantic_constants",
    "with_lifting",
}
# And where no references are counted: when variables are not needed any more.
_OF_REFERENCES = {"ir_legalization"}


class KernelCompiler(Compiler):
    """Compiles with as few passes as kernels need."""

    def __init__(self, typingctx, targetctx, *arguments):
        typingctx = _remember(typingctx)
        super().__init__(typingctx, targetctx, *arguments)
        self.state.targetctx.typing_context = typingctx

    def define_pipelines(self):
        """Return numba's, without what is not needed."""
        pipelines = super().define_pipelines()
        unused = _UNUSED if self.state.flags.nrt else _UNUSED | _OF_REFERENCES
        for pipeline in pipelines:
            # Else numba looks after each pass at how long variables live, which nobody asks for.
            pipeline._ENFORCING = False  # noqa: SLF001
            pipeline.passes = [
                (_OWN.get(step, step), *rest)
                for step, *rest in pipeline.passes
                if step.name() not in unused
            ]
        return pipelines


class PartCompiler(KernelCompiler):
    """Compiles a function to a part."""

    def _compile_core(self):
        if self.state.library is None:
            name = self.state.func_id.func_qualname
            self.state.library = _Part(self.state.targetctx.codegen(), name)
        return super()._compile_core()
