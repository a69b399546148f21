"""Where the tasks of a plan stand in a drawing."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.plan.graph_layout import GraphLayout, GridPlace, NodeToPlace, lay_out

BANDS = (None, "one", "two")


@st.composite
def plans(draw: st.DrawFn) -> list[NodeToPlace]:
    """Nodes that wait for nodes of earlier waves, and for some that are not drawn."""
    sizes = draw(st.lists(st.integers(1, 6), max_size=5))
    nodes: list[NodeToPlace] = []
    for wave, size in enumerate(sizes, start=1):
        others = st.sampled_from([*(node.id for node in nodes), "elsewhere"])
        for at in range(size):
            after = draw(st.lists(others, max_size=4, unique=True))
            band = draw(st.sampled_from(BANDS))
            nodes.append(NodeToPlace(f"{wave}.{at}", wave, band, tuple(after)))
    return nodes


def length(nodes: list[NodeToPlace], found: GraphLayout) -> int:
    """The rows that all edges cross together."""
    spots = found.spots
    return sum(
        abs(spots[node.id].row - spots[other].row)
        for node in nodes
        for other in node.after
        if other in spots
    )


@given(plans())
def test_every_node_has_a_spot_of_its_own_in_its_wave_and_band(nodes: list[NodeToPlace]) -> None:
    found = lay_out(nodes, ["two", "empty"])
    assert len(set(found.spots.values())) == len(nodes) == len(found.spots)
    bands = {band.id: band for band in found.bands}
    assert set(bands) == {node.band for node in nodes}
    for node in nodes:
        spot, band = found.spots[node.id], bands[node.band]
        assert spot.column == node.wave - 1
        assert band.first_row <= spot.row < band.first_row + band.rows
    ends = [0]
    for band in found.bands:
        assert band.first_row == ends[-1]
        ends.append(band.first_row + band.rows)
    assert ends[-1] == found.rows
    assert found.columns == max((node.wave for node in nodes), default=0)


@given(plans())
def test_the_order_is_never_worse_than_that_of_the_plan(nodes: list[NodeToPlace]) -> None:
    """And the same plan is drawn the same way."""
    found = lay_out(nodes)
    plain = lay_out([NodeToPlace(node.id, node.wave, node.band) for node in nodes])
    assert length(nodes, found) <= length(nodes, plain)
    assert found == lay_out(nodes)


def test_crossed_edges_are_uncrossed() -> None:
    nodes = [
        *(NodeToPlace(f"a{n}", 1, None) for n in range(3)),
        *(NodeToPlace(f"b{n}", 2, None, (f"a{2 - n}",)) for n in range(3)),
    ]
    assert length(nodes, lay_out(nodes)) == 0


def test_bands_come_in_the_order_that_is_given() -> None:
    nodes = [NodeToPlace(f"{band}{n}", 1, band) for band, n in product(BANDS, range(2))]
    found = lay_out(nodes, ["two", "one"])
    assert [band.id for band in found.bands] == ["two", "one", None]
    assert found.spots["two0"] == GridPlace(0, 0)


def test_nothing_is_an_empty_drawing() -> None:
    assert lay_out([]) == GraphLayout({}, (), 0)
