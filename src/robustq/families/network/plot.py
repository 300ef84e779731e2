"""A drawing of a network: parents above their children."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .structure import CLASS

if TYPE_CHECKING:
    from .model import Network

__all__ = ["draw_structure"]

WIDEST = 7  # in one line
LONGEST = 14  # of a name, before it is cut


def draw_structure(model: Network, classifier: Any, ax: Any = None) -> Any:
    """Draw a network; edges from the class are thin, those between features are not."""
    import matplotlib.pyplot as plt  # noqa: PLC0415 (slow to import)

    names = [*classifier.encoding_.names, classifier.target_name_]
    lines = _arrange(model)
    places = _place(lines)
    if ax is None:
        widest = max(len(line) for line in lines)
        _, ax = plt.subplots(figsize=(max(5.0, 1.6 * widest), max(3.0, 1.2 * len(lines))))
    structure = model.structure
    every = {CLASS: structure.class_parents}
    every |= {i: structure.parents_of(i) for i in range(len(structure.sizes))}
    for child, parents in every.items():
        for parent in parents:
            faint = CLASS in (parent, child)
            _draw_edge(ax, places[parent], places[child], faint=faint)
    for variable, (x, y) in places.items():
        own = variable == CLASS
        name = names[variable]
        shown = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
        colours = {"facecolor": "#1f4e79" if own else "white", "edgecolor": "#1f4e79"}
        ax.text(
            *(x, y, shown),
            ha="center",
            va="center",
            fontsize=9,
            color="white" if own else "black",
            bbox={"boxstyle": "round,pad=0.35", "linewidth": 1.0, **colours},
            zorder=3,
            parse_math=False,
        )
    xs, ys = zip(*places.values(), strict=True)
    ax.set_xlim(min(xs) - 0.6, max(xs) + 0.6)
    ax.set_ylim(min(ys) - 0.4, max(ys) + 0.4)
    ax.set_axis_off()
    return ax


def _draw_edge(ax: Any, start: tuple[float, float], end: tuple[float, float], faint: bool) -> None:
    ax.annotate(
        "",
        xy=end,
        xytext=start,
        zorder=1 if faint else 2,
        arrowprops={
            "arrowstyle": "-|>",
            "color": "#b8c4d0" if faint else "#1f4e79",
            "linewidth": 0.8 if faint else 1.6,
            "shrinkA": 12.0,
            "shrinkB": 13.0,
            # Bent, so that an edge past another box can be told from one to it.
            "connectionstyle": "arc3,rad=0.0" if faint else "arc3,rad=0.08",
        },
    )


def _arrange(model: Network) -> list[list[int]]:
    """Return the variables line by line: each below all of its parents."""
    structure = model.structure
    depth: dict[int, int] = {}
    for variable in structure.order:
        parents = structure.class_parents if variable == CLASS else structure.parents_of(variable)
        depth[variable] = 1 + max((depth[parent] for parent in parents), default=-1)
    lines: list[list[int]] = []
    for level in range(max(depth.values()) + 1):
        own = [variable for variable in structure.order if depth[variable] == level]
        lines.extend(own[start : start + WIDEST] for start in range(0, len(own), WIDEST))
    return lines


def _place(lines: list[list[int]]) -> dict[int, tuple[float, float]]:
    places = {}
    for y, line in enumerate(lines):
        for k, variable in enumerate(line):
            # Every other line a little to the side: fewer edges run through boxes.
            x = k - (len(line) - 1) / 2 + (0.25 if y % 2 and len(line) > 1 else 0.0)
            places[variable] = (x, float(-y))
    return places
