"""MessagePack read in plain Python: what another library writes comes back, nonsense is refused."""

import sys
from contextlib import suppress
from typing import Any

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.adapters.langgraph.split_checkpoint import join_map, split, split_map
from herdbook.adapters.msgpack_reader import MAX_DEPTH, MsgpackReader, UnreadableValue
from herdbook.domain.errors import StoreUnavailable
from tests.cases import for_each

sizes = st.sampled_from([0, 1, 2, 4, 8, 15, 16, 17, 31, 32, 255, 256, 70_000])
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | sizes.map(lambda size: "ü" * size)
    | sizes.map(bytes)
    | st.builds(ormsgpack.Ext, st.integers(0, 127), sizes.map(bytes))
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=3), inner, max_size=20)
    ),
    max_leaves=20,
)


class Seen(MsgpackReader):
    """Tells extensions as what they are."""

    def extension(self, kind: int, body: bytes, _: int) -> Any:
        """A kind and bytes."""
        return "extension", kind, body


@given(values)
def test_every_value_is_read_as_others_read_it(value: Any) -> None:
    """Of all sizes and kinds, to its last byte."""
    data = ormsgpack.packb(value)
    other = ormsgpack.unpackb(data, ext_hook=lambda kind, body: ("extension", kind, body))
    assert Seen(data).read_single() == other
    assert split_map(b"\x81\xa1k" + data) == [(b"\xa1k", data)]


@given(st.dictionaries(st.text(max_size=3), values, max_size=40))
def test_a_map_taken_apart_and_put_together_is_the_same(value: dict[str, Any]) -> None:
    """Byte by byte, and each part is a value of its own."""
    data = ormsgpack.packb(value)
    entries = list(split_map(data))
    assert join_map(entries) == data
    assert [Seen(key).read_single() for key, _ in entries] == list(value)


@for_each("count", [0, 15, 16, 65_535, 65_536])
def test_maps_of_all_sizes_can_be_made(count: int) -> None:
    """With the head that their number of entries takes."""
    data = ormsgpack.packb({str(number): None for number in range(count)})
    assert join_map(list(split_map(data))) == data


@given(st.binary() | values.map(ormsgpack.packb).flatmap(lambda data: st.just(data[:-1])))
def test_nonsense_is_unreadable_and_nothing_worse(data: bytes) -> None:
    """Whatever the bytes, there is a value, or an error that says why not."""
    with suppress(UnreadableValue):
        Seen(data).read_single()
    with suppress(UnreadableValue):
        assert split_map(b"\x81\xa1k" + data) == [(b"\xa1k", data)]
    with suppress(UnreadableValue):
        assert join_map(split_map(data))


@for_each(
    ("data", "reason"),
    [
        (b"\x91" * (MAX_DEPTH + 2) + b"\x01", "deeper than"),
        (b"\xdd\xff\xff\xff\xff", "4294967295 values should follow"),
        (b"\xc1", "nothing begins with"),
        (b"\x01\x02", "1 bytes are left"),
        (b"\xa1\xff", "not Unicode"),
        (b"\xd4\x05\x00", "kind 0x5"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, reason: str) -> None:
    """In words that say what was met."""
    with pytest.raises(UnreadableValue, match=reason):
        MsgpackReader(data).read_single()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "cut off"),
        (b"\x91\x01", "no map"),
        (b"\xc1", "no map"),
        (b"\x81\xa1k\xdd\xff\xff\xff\xff", "cut off"),
        (b"\x81\xa1k\xc6\xff\xff\xff\xff", "cut off"),
        (b"\x81\xa1k\xc1", "no MessagePack"),
        (b"\x81\xa1k" + b"\x91" * 5_000 + b"\x01", "no MessagePack"),
        (b"\x81\xa1k\x01\x02", "1 bytes are left"),
    ],
)
def test_what_cannot_be_cut_is_said(data: bytes, reason: str) -> None:
    """In words that say what was met."""
    with pytest.raises(UnreadableValue, match=reason):
        split_map(data)


def test_a_value_is_cut_as_deep_as_its_writer_can_write_it() -> None:
    """LangGraph's own encoder and decoder give up at 1,024 levels."""
    data = b"\x91" * 1_020 + b"\x01"
    assert ormsgpack.unpackb(data)
    assert split_map(b"\x81\xa1k" + data) == [(b"\xa1k", data)]


def test_a_missing_library_is_named_with_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only MessagePack needs it; JSON is cut without."""
    monkeypatch.setitem(sys.modules, "msgpack", None)
    with pytest.raises(
        StoreUnavailable, match=r"msgpack is not installed; .*pip install '\.\[langgraph\]'"
    ):
        split("msgpack", b"\x80")
    assert split("json", b'{"channel_values": {}}')[1] == {}
