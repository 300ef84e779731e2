"""Which kernels another process may compile while a forest is learned and evaluated."""

__all__ = ["NEEDED_LATER"]

# Half of the time that compiling takes: what is needed last, and before it what can be had in time.
NEEDED_LATER = (
    "robustq.core._divergence_kernels.search",
    "robustq.core._mixture_kernels.search",
    "robustq.families.forest._reach_kernels.count_reached",
    "robustq.families.forest._reach_kernels.reach",
    "robustq.core._circuit_kernels.solve",
    "robustq.families.forest._factor_kernels.gather_dense",
    "robustq.core._whole_kernels.solve",
    "robustq.families.forest._spread_kernels.spread",
    "robustq.families.forest._spread_kernels.weigh_reached",
)
