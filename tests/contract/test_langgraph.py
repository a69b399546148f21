"""The saver's laws that LangGraph's own suite leaves out, on every store."""

import asyncio
import operator
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from herdbook.adapters.langgraph import HerdbookSaver
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.ports.engine.store import Store
from tests.contract import raw
from tests.contract.children import at_once, barrier
from tests.contract.workflows import checkpoint, config, keep_going, put, steps

LIMIT = 5 * 1_000_000
NAMES = ["\0", "a\0b", "'; DROP TABLE checkpoints; --", "é" * 1_000, "x" * 2_048, "🐄"]
NewUrl = Callable[[str], str]


@pytest.fixture
def place(space: str) -> str:
    return f"checkpoints/{space.partition('/')[2]}"


@pytest.fixture
def saver(store: Store, place: str) -> HerdbookSaver:
    return HerdbookSaver(store, place)


def _ids(tuples: Any) -> list[str]:
    return [each.config["configurable"]["checkpoint_id"] for each in tuples]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_any_text_is_a_thread_a_namespace_and_a_channel(saver: HerdbookSaver, name: str) -> None:
    """Long, with NUL, in any script: it comes back, and no other thread is touched."""
    put(saver, config("other"), 0, {"n": 0})
    stored = put(saver, config(name, name), 0, {name: [name]})
    saver.put_writes(stored, [(name, name)], name, name)
    found = saver.get_tuple(config(name, name))
    assert found is not None
    assert found.config == stored
    assert found.checkpoint["channel_values"] == {name: [name]}
    assert found.pending_writes == [(name, name, name)]
    assert [each.config for each in saver.list(config(name, None))] == [stored]
    saver.copy_thread(name, "copy")
    saver.prune([name])
    saver.delete_thread(name)
    assert saver.get_tuple(config(name, name)) is None
    assert saver.get_tuple(config("copy", name)) is not None
    assert saver.get_tuple(config("other")) is not None


def test_every_method_has_its_twin() -> None:
    """What can be done in a coroutine can be done without one, and the other way round."""
    names = [name for name in vars(HerdbookSaver) if f"a{name}" in vars(BaseCheckpointSaver)]
    assert sorted(names) == [
        "copy_thread",
        "delete_for_runs",
        "delete_thread",
        "get_tuple",
        "list",
        "prune",
        "put",
        "put_writes",
    ]
    assert all(f"a{name}" in vars(HerdbookSaver) for name in names)


def test_the_twins_do_the_same(store: Store, place: str) -> None:
    """A thread kept by the plain methods is the same as one kept by the coroutines."""
    plain, other = HerdbookSaver(store, place), HerdbookSaver(store, f"{place}-async")
    made = [checkpoint(n, {"n": n}, {"n": n}) for n in range(3)]
    where = config("t")
    for each in made:
        where = plain.put(where, each, {"run_id": each["id"]}, {"n": 1})
        plain.put_writes(where, [("n", each["id"])], "task")
    plain.copy_thread("t", "copy")
    plain.delete_for_runs([made[0]["id"]])
    plain.prune(["copy"])
    plain.prune(["gone"], strategy="delete")
    plain.delete_thread("gone")

    async def again() -> tuple[Any, list[Any]]:
        where = config("t")
        for each in made:
            where = await other.aput(where, each, {"run_id": each["id"]}, {"n": 1})
            await other.aput_writes(where, [("n", each["id"])], "task")
        await other.acopy_thread("t", "copy")
        await other.adelete_for_runs([made[0]["id"]])
        await other.aprune(["copy"])
        await other.aprune(["gone"], strategy="delete")
        await other.adelete_thread("gone")
        return await other.aget_tuple(config("t")), [each async for each in other.alist(None)]

    newest, listed = asyncio.run(again())
    assert newest == plain.get_tuple(config("t"))
    assert listed == list(plain.list(None))
    assert len(listed) == 3
    assert plain.get(config("t")) == newest.checkpoint


def test_coroutines_let_others_go_on(saver: HerdbookSaver) -> None:
    """While one waits for the store, the loop's thread is free."""
    threads: set[int] = set()
    began, go_on = threading.Event(), threading.Event()
    inner = saver.put

    def slow(*args: Any) -> Any:
        threads.add(threading.get_ident())
        began.set()
        assert go_on.wait(60)
        return inner(*args)

    saver.put = slow  # type: ignore[method-assign]

    async def both() -> None:
        putting = asyncio.create_task(saver.aput(config("t"), checkpoint(0, {}, {}), {}, {}))
        assert await asyncio.to_thread(began.wait, 60)
        go_on.set()
        await putting

    asyncio.run(both())
    assert threading.get_ident() not in threads
    assert len(threads) == 1


FILTERS: list[tuple[dict[str, Any], list[int]]] = [
    ({"who": "o'brien"}, [0]),
    ({"who": "'; DROP TABLE checkpoints; --"}, []),
    ({"'; DROP TABLE checkpoints; --": 1}, [1]),
    ({"$.a.b": "deep"}, [2]),
    ({"a.b": "deep"}, []),
    ({"a": {"b": "deep"}}, [2]),
    ({"who": "%"}, []),
    ({"%": '"'}, [3]),
    ({"step": 2, "$.a.b": "deep"}, [2]),
    ({"step": {"$gt": 0}}, []),
    ({"who": None}, [3, 2, 1]),
    ({"who') OR 1=1 --": 1}, []),
]


@pytest.mark.parametrize(("wanted", "found"), FILTERS, ids=lambda each: str(each)[:40])
def test_filters_are_compared_as_data(
    saver: HerdbookSaver, wanted: dict[str, Any], found: list[int]
) -> None:
    """Quotes, operators and paths in names and values mean themselves."""
    said: list[dict[str, Any]] = [
        {"who": "o'brien"},
        {"'; DROP TABLE checkpoints; --": 1},
        {"$.a.b": "deep", "a": {"b": "deep"}},
        {"%": '"'},
    ]
    for step, each in enumerate(said):
        put(saver, config("t"), step, {}, **each)
    listed = saver.list(config("t"), filter=wanted)
    assert [each.metadata["step"] for each in listed] == found
    assert len(list(saver.list(None))) == len(said)


def test_a_listing_goes_over_namespaces_and_threads_newest_first(saver: HerdbookSaver) -> None:
    """Without a namespace all of a thread's come, without a config everybody's."""
    made = [
        put(saver, config("tu"[n % 2], "n" * (n % 3)), n, {"n": n})["configurable"]
        for n in range(12)
    ]
    ids = [each["checkpoint_id"] for each in reversed(made)]
    assert _ids(saver.list(None)) == ids
    assert _ids(saver.list(config("t", None))) == ids[1::2]
    assert _ids(saver.list(config("t", "n"))) == [ids[1], ids[7]]
    assert _ids(saver.list(None, before=config("u", "", ids[3]), limit=4)) == ids[4:8]
    assert _ids(saver.list(None, filter={"source": "loop"}, limit=5)) == ids[:5]
    assert _ids(saver.list(config("t", None, ids[3]))) == [ids[3]]
    assert _ids(saver.list(config("u", None, ids[3]))) == []
    assert _ids(saver.list(None, limit=0)) == []
    assert [each.checkpoint["channel_values"]["n"] for each in saver.list(None)] == [*range(12)][
        ::-1
    ]


def test_a_long_listing_comes_in_pages_that_hold_nothing_open(saver: HerdbookSaver) -> None:
    """Whoever stops in the midst, or writes meanwhile, is in nobody's way."""
    made = [put(saver, config("t"), n, {}, even=n % 2 == 0) for n in range(45)]
    listing = saver.list(config("t"))
    assert next(listing).config == made[-1]
    saver.delete_thread("other")
    put(saver, config("t"), 50, {})
    assert _ids(listing) == [each["configurable"]["checkpoint_id"] for each in made[-2::-1]]
    evens = saver.list(config("t"), filter={"even": True}, limit=20)
    assert [each.metadata["step"] for each in evens] == list(range(44, 4, -2))


def test_writes_come_in_the_order_in_which_tasks_are_applied(saver: HerdbookSaver) -> None:
    """By path, then task, then number; special ones before, and the last of those counts."""
    stored = put(saver, config("t"), 0, {})
    saver.put_writes(stored, [("b", 1), ("a", 2)], "task 2", "~1")
    saver.put_writes(stored, [("c", 3)], "task 1", "~2")
    saver.put_writes(stored, [("__error__", "old")], "task 2", "~1")
    saver.put_writes(stored, [("__error__", "new")], "task 2", "~1")
    saver.put_writes(stored, [("b", "ignored")], "task 2", "~1")
    found = saver.get_tuple(config("t"))
    assert found is not None
    assert found.pending_writes == [
        ("task 2", "__error__", "new"),
        ("task 2", "b", 1),
        ("task 2", "a", 2),
        ("task 1", "c", 3),
    ]


@pytest.mark.parametrize("shape", ["one channel", "many channels"])
def test_every_step_is_found_as_it_was(store: Store, place: str, shape: str) -> None:
    """Also by a saver that has never seen any of it."""
    saver, where = HerdbookSaver(store, place), config("t")
    made = []
    for each, metadata, fresh in steps(shape, 12, size=100_000):
        where = saver.put(where, each, metadata, fresh)
        made.append((where, each))
    other = HerdbookSaver(store, place)
    assert [other.get_tuple(one).checkpoint for one, _ in made] == [each for _, each in made]  # type: ignore[union-attr]
    assert [each.checkpoint for each in saver.list(config("t"))] == [
        each for _, each in reversed(made)
    ]


@pytest.mark.parametrize("engine", ["lmdb", "postgres"], indirect=True)
@pytest.mark.parametrize("shape", ["one channel", "many channels"])
def test_two_hundred_steps_over_a_megabyte_are_small(
    engine: str, shape: str, new_url: NewUrl
) -> None:
    """A state of 1 MB that changes 1 KB per step takes less than 5 MB, on disk."""
    url = new_url(engine)
    with HerdbookSaver(url, "checkpoints/size") as saver:
        where = config("t")
        for each in steps(shape, 200):
            where = saver.put(where, *each)
        found = saver.get_tuple(config("t"))
    assert found is not None
    assert found.checkpoint == each[0]
    assert _size(engine, url) < LIMIT


def _size(engine: str, url: str) -> int:
    if engine == "lmdb":
        return (raw.path_of(url) / "data.mdb").stat().st_size
    schema = url.rpartition("schema=")[2]
    with psycopg.connect(url.rpartition("schema=")[0].rstrip("?&")) as server:
        row = server.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = %s::regnamespace",
            [f'"{schema}"'],
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_two_processes_on_one_thread_lose_nothing(
    engine: str, store: Store, place: str, new_url: NewUrl
) -> None:
    """Both keep all their steps, whole, with what was written since."""
    where: str | Store = store if engine == "memory" else new_url(engine)
    jobs = [(place, name, barrier(where, 2), 8) for name in ("first", "second")]
    start = jobs[0][2]
    answers = at_once(where, keep_going, [(*job[:2], start, job[3]) for job in jobs])
    saver = HerdbookSaver(where, place)
    with saver:
        found = {each.config["configurable"]["checkpoint_id"]: each for each in saver.list(None)}
        assert sorted(found) == sorted(answers[0] + answers[1])
        for (_, name, _, _), ids in zip(jobs, answers, strict=True):
            for step, each in enumerate(found[one] for one in ids):
                assert each.checkpoint["channel_values"] == {
                    "name": name,
                    "steps": list(range(step)),
                }
                assert each.pending_writes == [(f"{name} {step}", "name", name)]


class StatementRunner(TypedDict):
    messages: Annotated[list[Any], operator.add]
    approved: bool


def _graph(saver: HerdbookSaver) -> Any:
    def ask(_: StatementRunner) -> dict[str, Any]:
        return {"messages": [AIMessage("May I?")]}

    def wait(_: StatementRunner) -> dict[str, Any]:
        return {"approved": interrupt("May it?")}

    graph = StateGraph(StatementRunner)
    graph.add_node("ask", ask)
    graph.add_node("wait", wait)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "wait")
    graph.add_edge("wait", END)
    return graph.compile(checkpointer=saver)


def test_a_graph_is_interrupted_resumed_and_forked(store: Store, place: str) -> None:
    """Another saver goes on where the first one stopped, and an earlier step can be taken again."""
    where = {"configurable": {"thread_id": "t"}}
    first = _graph(HerdbookSaver(store, place))
    first.invoke({"messages": [HumanMessage("Hello")], "approved": False}, where)
    second = _graph(HerdbookSaver(store, place))
    assert [each.value for each in second.get_state(where).interrupts] == ["May it?"]
    done = second.invoke(Command(resume=True), where)
    assert [each.content for each in done["messages"]] == ["Hello", "May I?"]
    assert done["approved"] is True
    before = next(each for each in second.get_state_history(where) if each.next == ("ask",))
    fork = second.update_state(before.config, {"messages": [HumanMessage("Wait")]})
    again = second.invoke(None, fork)
    assert [each.content for each in again["messages"]] == ["Hello", "Wait", "May I?"]
    assert again["approved"] is False


def _both(before: list[Any], updates: list[list[Any]]) -> list[Any]:
    return [*before, *(each for update in updates for each in update)]


class Log(TypedDict):
    log: Annotated[list[Any], DeltaChannel(_both, snapshot_frequency=4)]


@pytest.mark.filterwarnings("ignore:.*DeltaChannel.*")
def test_values_made_from_writes_outlast_copies_and_pruning(saver: HerdbookSaver) -> None:
    """A channel that keeps differences is the same after its thread was copied and pruned."""
    graph = StateGraph(Log)
    graph.add_node("say", lambda state: {"log": [f"step {len(state['log'])}"]})
    graph.add_edge(START, "say")
    compiled = graph.compile(checkpointer=saver)
    where = {"configurable": {"thread_id": "t"}}
    for number in range(3):
        compiled.invoke({"log": [f"in {number}"]}, where)
    log = compiled.get_state(where).values["log"]
    assert log == ["in 0", "step 1", "in 1", "step 3", "in 2", "step 5"]
    saver.copy_thread("t", "copy")
    saver.prune(["t"])
    copied = {"configurable": {"thread_id": "copy"}}
    for each in (where, copied):
        assert compiled.get_state(each).values["log"] == log
        assert compiled.invoke({"log": ["more"]}, each)["log"] == [*log, "more", "step 7"]


def test_versions_grow_whatever_they_began_as() -> None:
    """Numbers are counted, and so are the texts of threads that came from elsewhere."""
    saver = HerdbookSaver("memory://", "checkpoints/x")
    assert [saver.get_next_version(each, None) for each in (None, 1, 1.0)] == [1, 2, 2.0]
    assert saver.get_next_version("0009.0123", None) == "0010.0123"
    with pytest.raises(InvalidValue, match="does not begin with a number"):
        saver.get_next_version("first", None)


def test_a_saver_closes_what_it_opened_and_nothing_else(store: Store, place: str) -> None:
    """A store that was given stays open; a closed saver says so."""
    with HerdbookSaver(store, place) as given:
        put(given, config("t"), 0, {})
    assert HerdbookSaver(store, place).get_tuple(config("t")) is not None
    with pytest.raises(StoreUnavailable, match="it has been closed here"):
        given.get_tuple(config("t"))
    given.close()


def test_unknown_ways_to_prune_are_refused(saver: HerdbookSaver) -> None:
    """Nothing is taken for something else."""
    with pytest.raises(InvalidValue, match="neither keep_latest nor delete"):
        saver.prune(["t"], strategy="keep_some")
    with pytest.raises(InvalidValue, match="not one text"):
        saver.prune("thread")


PROGRAM = """
import sys
from herdbook.adapters.langgraph import HerdbookSaver
from tests.contract.workflows import config, put
with HerdbookSaver() as saver:
    before = saver.get_tuple(config("t"))
    put(saver, config("t"), 0, {"n": 1})
    store, space = saver._saver_store.place[:2]
    print(before is None, store.url, space)
"""


def _python(folder: Path, code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), *filter(None, sys.path)])
    names = ("PATH", "LANG", "HERDBOOK_BACKUP")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**kept, "HOME": str(folder.parent), "PYTHONPATH": path, **variables},
        check=False,
        capture_output=True,
        text=True,
    )


def test_without_arguments_it_is_the_checkpoints_of_this_worktree(tmp_path: Path) -> None:
    """Two worktrees of one repository have a store and a space each, and find them again."""
    main, other = tmp_path / "main", tmp_path / "other"
    main.mkdir()
    person = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    variables = {**os.environ, "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    for words in (
        ["init", "-q"],
        [*person, "commit", "-q", "--allow-empty", "-m", "first"],
        ["worktree", "add", "-q", str(other)],
    ):
        subprocess.run(["git", *words], cwd=main, env=variables, check=True)  # noqa: S607
    told = [_python(folder, PROGRAM) for folder in (main, other, main)]
    assert [each.stderr for each in told] == [""] * 3
    first, second, again = (each.stdout.split() for each in told)
    assert (first[0], second[0], again[0]) == ("True", "True", "False")
    assert again[1:] == first[1:]
    kept = f"lmdb://{main}/.git/herdbook/worktrees/"
    assert first[1].startswith(kept)
    assert second[1].startswith(kept)
    assert second[1] != first[1]
    assert first[2].startswith("checkpoints/")
    assert first[2] != second[2]


def test_what_is_missing_is_said_in_one_sentence(tmp_path: Path) -> None:
    """Without LangGraph the error names what to install."""
    (tmp_path / "here").mkdir()
    code = (
        "import sys; sys.modules['langgraph.checkpoint'] = None\n"
        "from herdbook.adapters.langgraph import HerdbookSaver"
    )
    told = _python(tmp_path / "here", code)
    assert told.stderr.splitlines()[-1] == (
        "ImportError: the package langgraph-checkpoint is not installed; "
        "in a clone of Herdbook, `pip install '.[langgraph]'` brings it"
    )
