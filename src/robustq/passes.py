"""Passes of numba's over the functions that kernels are made of, without what these never ask for.

They leave the same behind as numba's own. Like `compiler`, this leans on names that are not public.
"""

from collections import defaultdict
from typing import Any, ClassVar

from numba.core import interpreter, ir, ssa
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.compiler_machinery import register_pass
from numba.core.inline_closurecall import InlineWorker
from numba.core.ir_utils import build_definitions
from numba.core.rewrites import rewrite_registry
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import PreLowerStripPhis
from numba.core.untyped_passes import (
    GenericRewrites,
    InlineInlinables,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)

__all__ = ["OWN", "RELIED_ON"]

# What is overridden or called here: if it had another name, nobody would notice.
RELIED_ON: dict[Any, str] = {
    interpreter.Interpreter: "interpret post_process",
    ssa: "_CacheListVars _fix_ssa_vars _fresh_vars _iterated_domfronts",
    InlineInlinables: "_do_work",
    InlineWorker: "run_untyped_passes",
    ReconstructSSA: "_patch_locals",
    PreLowerStripPhis: "_strip_phi_nodes",
}

# What is looked for in every statement of a function, for `with` and for dictionaries.
_OF_OTHERS = {"peep_hole_delete_with_exit", "peep_hole_fuse_dict_add_updates"}


class _Interpreter(interpreter.Interpreter):
    def post_process(self, peepholes, func_ir):
        needed = [peep for peep in peepholes if peep.__name__ not in _OF_OTHERS]
        return super().post_process(needed, func_ir)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Translation(TranslateByteCode):
    """Makes numba's language of Python's."""

    _name = "kernel_translation"

    def run_pass(self, state):
        state["func_ir"] = _Interpreter(state["func_id"]).interpret(state["bc"])
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Inlining(InlineInlinables):
    """Puts functions where they are called, which are translated once."""

    _name = "kernel_inlining"
    _translated: ClassVar[dict[Any, Any]] = {}

    def _do_work(self, state, work_list, block, i, expr, inline_worker):
        translate = type(inline_worker).run_untyped_passes

        def translate_once(function):
            if function not in self._translated:
                self._translated[function] = translate(inline_worker, function)
            return self._translated[function]

        inline_worker.run_untyped_passes = translate_once
        return super()._do_work(state, work_list, block, i, expr, inline_worker)


# numba's own look, after this and the next ones, at how long variables live, which only counters
# of references ask for.
@register_pass(mutates_CFG=True, analysis_only=False)
class _Rewriting(GenericRewrites):
    """Writes indices that are known as such."""

    _name = "kernel_rewriting"

    def run_pass(self, state):
        blocks = state.func_ir.blocks
        for kind in rewrite_registry.rewrites["before-inference"]:
            rewrite = kind(state)
            for label in list(blocks):
                while rewrite.match(state.func_ir, blocks[label], state.typemap, state.calltypes):
                    blocks[label] = rewrite.apply()
        state.func_ir.blocks = canonicalize_cfg(blocks)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Processing(IRProcessing):
    """Gives loops the form that later passes rely on."""

    _name = "kernel_processing"

    def run_pass(self, state):
        state.func_ir.blocks = canonicalize_cfg(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Versions(ReconstructSSA):
    """Makes several variables of one that is set several times."""

    _name = "kernel_versions"

    def run_pass(self, state):
        state.func_ir.blocks = _tell_versions_apart(state.func_ir.blocks)
        self._patch_locals(state)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)  # noqa: SLF001
        return True


def _tell_versions_apart(blocks):
    """Return blocks in which every variable is set once.

    numba goes through the whole function for each variable, here through the blocks that have to
    do with it.
    """
    cfg = compute_cfg_from_blocks(blocks)
    fronts = ssa._iterated_domfronts(cfg)  # noqa: SLF001
    set_in, used_in = _find_places(blocks)
    listed = ssa._CacheListVars()  # noqa: SLF001
    blocks = dict(blocks)
    for name in _list_violators(set_in, used_in, cfg.dominators()):
        # Where branches meet, one of its versions may have to be chosen.
        places = used_in[name].union(set_in[name])
        concerned = places.union(*(fronts[label] for label in places))
        some = {label: block for label, block in blocks.items() if label in concerned}
        some, defined = ssa._fresh_vars(some, name)  # noqa: SLF001
        some = ssa._fix_ssa_vars(some, name, defined, cfg, fronts, listed)  # noqa: SLF001
        blocks |= some
    return blocks


def _find_places(blocks):
    """Return in which blocks each variable is set, as often as it is, and in which it is used."""
    set_in, used_in = defaultdict(list), defaultdict(set)
    for label, block in blocks.items():
        for step in block.body:
            target = step.target.name if isinstance(step, ir.Assign) else None
            if target is not None:
                set_in[target].append(label)
            for variable in step.list_vars():
                if variable.name != target:
                    used_in[variable.name].add(label)
    return set_in, used_in


def _list_violators(set_in, used_in, dominators):
    """Yield variables that are set several times, and those that may be used before they are."""
    yield from (name for name, labels in set_in.items() if len(labels) > 1)
    for name, labels in list(used_in.items()):
        early = (dominators[label].isdisjoint(set_in[name]) for label in labels)
        if len(set_in[name]) < 2 and any(early):
            yield name


@register_pass(mutates_CFG=True, analysis_only=False)
class _Joining(PreLowerStripPhis):
    """Sets variables where branches part, not where they meet."""

    _name = "kernel_joining"

    def run_pass(self, state):
        state.func_ir = self._strip_phi_nodes(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)  # noqa: SLF001
        return True


# By those of numba's that they stand in for.
OWN = {
    TranslateByteCode: _Translation,
    InlineInlinables: _Inlining,
    GenericRewrites: _Rewriting,
    IRProcessing: _Processing,
    ReconstructSSA: _Versions,
    PreLowerStripPhis: _Joining,
}
