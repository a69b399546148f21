"""LangGraph's published conformance suite, on every store, each of its tests one by one."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from langgraph.checkpoint.conformance.capabilities import Capability, DetectedCapabilities
from langgraph.checkpoint.conformance.spec import (
    test_copy_thread,
    test_delete_for_runs,
    test_delete_thread,
    test_get_tuple,
    test_list,
    test_prune,
    test_put,
    test_put_writes,
)

from herdbook.adapters.langgraph import HerdbookSaver
from herdbook.ports.engine.store import Store
from tests.cases import for_each

LISTED = (
    *test_put.ALL_PUT_TESTS,
    *test_put_writes.ALL_PUT_WRITES_TESTS,
    *test_get_tuple.ALL_GET_TUPLE_TESTS,
    *test_list.ALL_LIST_TESTS,
    *test_delete_thread.ALL_DELETE_THREAD_TESTS,
    *test_delete_for_runs.ALL_DELETE_FOR_RUNS_TESTS,
    *test_copy_thread.ALL_COPY_THREAD_TESTS,
    *test_prune.ALL_PRUNE_TESTS,
)
MODULES = (
    test_put,
    test_put_writes,
    test_get_tuple,
    test_list,
    test_delete_thread,
    test_delete_for_runs,
    test_copy_thread,
    test_prune,
)


def test_every_test_of_the_suite_is_run_here() -> None:
    """All eight capabilities have their tests in our list, and their number is the known one."""
    defined = {
        value
        for module in MODULES
        for name, value in vars(module).items()
        if name.startswith("test_") and value.__module__ == module.__name__
    }
    assert defined == set(LISTED)
    assert len(LISTED) == len(defined) == 81
    assert len(MODULES) == len(Capability) == 8


def test_every_capability_is_detected() -> None:
    """The suite decides by what a class overrides, and it finds all of it."""
    found = DetectedCapabilities.from_instance(HerdbookSaver("memory://", "checkpoints/x"))
    assert found.detected == set(Capability)


@for_each("law", LISTED, ids=lambda law: law.__name__.removeprefix("test_"))
def test_the_suite_holds(store: Store, space: str, law: Callable[[Any], Awaitable[None]]) -> None:
    """A test of the suite passes on a space of its own."""
    saver = HerdbookSaver(store, f"checkpoints/{space.partition('/')[2]}")
    asyncio.run(_run(law, saver))


async def _run(law: Callable[[Any], Awaitable[None]], saver: HerdbookSaver) -> None:
    await law(saver)
