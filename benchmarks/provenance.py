"""What it costs a local write that journal entries can tell where a change comes from.

The same message is added to a store of ours and to one whose journal has no such fields, in turn,
each in a durable transaction of its own. Figures are processor time, because a disk's waiting would
hide the difference; the medians of many stretches are compared. What a Postgres server spends is
not in them. Run with `make bench`; `--quick` takes fewer stretches.
"""

import argparse
import inspect
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any
from unittest.mock import patch

from benchmarks.stores import STRETCH, begin, message, places
from herdbook.adapters import open_store
from herdbook.domain.entity import REQUIRED, entity, fields_of
from herdbook.domain.journal import JournalEntry
from herdbook.ports.engine.dictionary import DICTIONARY, JOURNAL
from herdbook.ports.engine.kinds import Dictionary, Kind
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work import journal_writer

BARS = {"lmdb": 1.03}
"""The others have none: their own figures differ by as much from one run to the next, and of a
write on Postgres only the program's share is measured."""
STRETCHES = {"lmdb": 200, "postgres": 300, "duckdb": 80}
PROVENANCE = frozenset({"trace_id", "cause", "root", "origin", "origin_tx", "parents"})


def plain_entity() -> type[Any]:
    """The class of journal entries, without the fields on provenance."""
    left = [each for each in fields_of(JournalEntry) if each.name not in PROVENANCE]
    body: dict[str, Any] = {"__annotations__": {each.name: each.annotation for each in left}}
    body |= {each.name: each.default for each in left if each.default is not REQUIRED}
    return entity(type("PlainEntry", (), body))


def plain_journal() -> Kind[Any]:
    """The journal as a kind, without the fields on provenance."""
    kept = {name: vars(JOURNAL)[name] for name in inspect.signature(Kind).parameters}
    return Kind(**{**kept, "entity": plain_entity()})


def processor_time(work: Callable[[], object]) -> float:
    """How many seconds of a processor this process needs for a stretch of a piece of work."""
    start = time.process_time()
    for _ in range(STRETCH):
        work()
    return (time.process_time() - start) / STRETCH


def add_message(store: Store) -> None:
    """One local write, journalled."""
    with begin(store) as uow:
        uow.messages.add(message(7))
        uow.commit()


def compare(engine: str, stretches: int) -> Iterator[tuple[float, float]]:
    """Seconds per write with and without the fields, stretch by stretch."""
    journal = plain_journal()
    kinds = {**DICTIONARY.kinds, JOURNAL.name: journal}
    plain = Dictionary(DICTIONARY.version, kinds.values())

    def without_provenance() -> AbstractContextManager[Any]:
        return patch.multiple(journal_writer, JOURNAL=journal, LOCAL_PROVENANCE={})

    with (
        places(engine) as place,
        open_store(place("ours")) as ours,
        open_store(place("plain"), dictionary=plain) as other,
    ):
        sides = ((ours, nullcontext), (other, without_provenance))
        for number in range(stretches + 2):
            times: list[float] = []
            # Each side goes first as often as the other.
            for store, variant in sides if number % 2 else sides[::-1]:
                with variant():
                    times.append(processor_time(partial(add_message, store)))
            if number >= 2:  # after a warm-up
                with_fields, without = times if number % 2 else times[::-1]
                yield with_fields, without
        with begin(ours, write=False) as uow:
            assert uow.journal.last() == STRETCH * (stretches + 2)


def main() -> int:
    """Print the ratio per engine; say which bars were missed."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("engines", nargs="*", default=list(STRETCHES))
    arguments.add_argument("--quick", action="store_true", help="a quarter of the stretches")
    chosen = arguments.parse_args()
    for engine in chosen.engines:
        stretches = STRETCHES[engine] // (4 if chosen.quick else 1)
        figures = list(compare(engine, stretches))
        ours, plain = (statistics.median(each) for each in zip(*figures, strict=True))
        ratio = statistics.median(one / other for one, other in figures)
        bar = BARS.get(engine)
        missed = bar is not None and ratio > bar
        verdict = "" if bar is None else f", bar {bar:g}{'  missed' if missed else ''}"
        print(
            f"{engine:9} add with provenance {ours * 1e6:6.0f} µs, without {plain * 1e6:6.0f} µs: "
            f"{ratio:.3f} times that{verdict}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
