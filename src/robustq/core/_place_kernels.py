"""Where the factors of several rows stand in a table, rows side by side."""

from robustq.kernels import inner
from robustq.vectors import AT_ONCE, WIDE, WIDTH, spread_cells

__all__ = ["CLASS", "ITEM", "OWN", "PLACES", "RIVAL", "ROW", "SCOUT", "locate"]

# Which row and rival a lane has, and whether other rivals wait for it; where the row's cells start,
# and where in the lines of the first class what belongs to the best stands, and to the rival; then,
# where in the table, for each cell.
ITEM, CLASS, SCOUT, ROW, OWN, RIVAL, PLACES = range(0, 7 * WIDE, WIDE)


@inner
def locate(cells, nothing, whole):
    """Write where each lane's cells stand in the table; what is missing never moves."""
    rows, moves, places = whole[ROW:], whole[OWN:], whole[PLACES:]
    features = cells.shape[1]
    if features < AT_ONCE:
        for lane in range(WIDE):
            for k in range(features):
                cell = cells[whole[ITEM + lane], k]
                place = (cell if cell >= 0 else nothing) * WIDTH
                places[2 * k * WIDE + lane] = place + whole[OWN + lane]
                places[(2 * k + 1) * WIDE + lane] = place + whole[RIVAL + lane]
        return
    for start in range(0, features, AT_ONCE):
        first = min(start, features - AT_ONCE)
        spread_cells(cells, rows, first, nothing, moves, places, 2 * first * WIDE)
