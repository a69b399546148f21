"""Places the tasks of a plan in a drawing: waves from left to right, phases from top to bottom.

Each phase is a band of rows of its own, so that a wave of many phases is still readable. Within a
band the tasks of a wave are ordered so that what depends on one another is near: the order that
makes all edges together shortest, of a few that are tried.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from statistics import fmean

from attrs import frozen

SWEEPS = 8
"""How often rows are ordered by their neighbours, in turn by those before and those behind."""


@frozen
class NodeToPlace:
    """A task of a drawing: its wave, its band, and the nodes of the drawing it waits for."""

    id: str
    wave: int
    band: str | None
    after: tuple[str, ...] = ()


@frozen
class GridPlace:
    """Where a node stands; columns and rows begin with 0."""

    column: int
    row: int


@frozen
class PhaseBand:
    """The rows of a phase, or of the tasks without one."""

    id: str | None
    first_row: int
    rows: int


@frozen
class GraphLayout:
    """The spots of all nodes by their ids, and the bands from top to bottom."""

    spots: Mapping[str, GridPlace]
    bands: tuple[PhaseBand, ...]
    columns: int

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return sum(band.rows for band in self.bands)


_Cells = dict[tuple[str | None, int], list[str]]


def lay_out(nodes: Sequence[NodeToPlace], bands: Iterable[str | None] = ()) -> GraphLayout:
    """Place nodes, which are in the order of the plan; bands come as given, then as they occur."""
    cells: _Cells = defaultdict(list)
    for node in nodes:
        cells[node.band, node.wave].append(node.id)
    heights: dict[str | None, int] = dict.fromkeys([*bands, *(node.band for node in nodes)], 0)
    for (band, _), ids in cells.items():
        heights[band] = max(heights[band], len(ids))
    starts = accumulate(heights.values(), initial=0)
    first_rows = dict(zip(heights, starts, strict=False))
    before, behind = _neighbours(nodes)
    rows = _rows(cells, first_rows)
    best, shortest = rows, _length(rows, before)
    for sweep in range(SWEEPS):
        _sort_cells(cells, rows, before if sweep % 2 == 0 else behind, backwards=bool(sweep % 2))
        rows = _rows(cells, first_rows)
        length = _length(rows, before)
        if length < shortest:
            best, shortest = rows, length
    first_wave = min((node.wave for node in nodes), default=0)
    return GraphLayout(
        {node.id: GridPlace(node.wave - first_wave, best[node.id]) for node in nodes},
        tuple(
            PhaseBand(band, first_rows[band], height) for band, height in heights.items() if height
        ),
        max((node.wave for node in nodes), default=first_wave - 1) - first_wave + 1,
    )


def _neighbours(
    nodes: Iterable[NodeToPlace],
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """For each node, the drawn nodes that it waits for, and those that wait for it."""
    before: dict[str, list[str]] = {node.id: [] for node in nodes}
    behind: dict[str, list[str]] = {key: [] for key in before}
    for node in nodes:
        for other in node.after:
            if other in before:
                before[node.id].append(other)
                behind[other].append(node.id)
    return before, behind


def _rows(cells: _Cells, first_rows: Mapping[str | None, int]) -> dict[str, int]:
    return {
        key: first_rows[band] + at for (band, _), ids in cells.items() for at, key in enumerate(ids)
    }


def _length(rows: Mapping[str, int], before: Mapping[str, list[str]]) -> int:
    return sum(abs(rows[key] - rows[other]) for key, others in before.items() for other in others)


def _sort_cells(
    cells: _Cells,
    rows: Mapping[str, int],
    neighbours: Mapping[str, list[str]],
    *,
    backwards: bool,
) -> None:
    """Sort the nodes of each cell by the mean row of their neighbours, wave after wave."""
    current = dict(rows)
    for cell in sorted(cells, key=lambda cell: cell[1], reverse=backwards):
        ids = cells[cell]
        first = min(current[key] for key in ids)
        # One without neighbours stays where it is.
        wanted = {
            key: fmean(current[other] for other in neighbours[key])
            if neighbours[key]
            else current[key]
            for key in ids
        }
        ids.sort(key=wanted.__getitem__)
        current |= {key: first + at for at, key in enumerate(ids)}
