"""Databases as LangGraph's SqliteSaver writes them, and imports of them that are killed."""

import operator
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt

from herdbook.adapters.langgraph.sqlite_reader import SqliteCheckpoints, open_database
from herdbook.ports.world.foreign_checkpoints import ForeignCheckpoint, ReadFailure
from herdbook.services.checkpoints.import_foreign import import_checkpoints
from tests.contract.children import Place
from tests.contract.children import opened as opened_store


@contextmanager
def sqlite_saver(file: Path) -> Iterator[SqliteSaver]:
    """LangGraph's own saver on a database."""
    with closing(sqlite3.connect(file, check_same_thread=False)) as connection:
        yield SqliteSaver(connection)


class StatementRunner(TypedDict):
    """What is said and what comes of it."""

    messages: Annotated[list[Any], operator.add]
    parts: Annotated[list[str], operator.add]
    long: str
    answer: str


class Question(TypedDict):
    """What a sub-graph knows."""

    answer: str


def workflow(saver: Any) -> Any:
    """A graph that asks a question, sends out parts and waits for a person in a sub-graph."""
    inner = StateGraph(Question)
    inner.add_node("ask", lambda _: {"answer": interrupt("May I?")})
    inner.add_edge(START, "ask")
    graph = StateGraph(StatementRunner)
    graph.add_node("begin", lambda state: {"long": state["long"] + "word " * 2_000})
    graph.add_node("part", lambda state: {"parts": [state["name"]]})
    graph.add_node("inner", inner.compile())
    graph.add_edge(START, "begin")
    graph.add_conditional_edges(
        "begin", lambda _: [Send("part", {"name": name}) for name in "abc"], ["part"]
    )
    graph.add_edge("part", "inner")
    graph.add_node("end", lambda state: {"messages": [AIMessage(state["answer"])]})
    graph.add_edge("inner", "end")
    graph.add_edge("end", END)
    return graph.compile(checkpointer=saver)


def begun(saver: Any, thread: str) -> None:
    """Run the graph until it waits for a person."""
    given = {"messages": [HumanMessage("Hello")], "parts": [], "long": "", "answer": ""}
    workflow(saver).invoke(given, {"configurable": {"thread_id": thread}})


def tuples(saver: Any, thread: str) -> list[Any]:
    """Every checkpoint of a thread as a graph gets it, with all that belongs to it."""
    found = [
        (
            *each.config["configurable"].values(),
            each.checkpoint,
            each.metadata,
            each.parent_config and each.parent_config["configurable"]["checkpoint_id"],
            sorted(each.pending_writes or (), key=repr),
        )
        for each in saver.list({"configurable": {"thread_id": thread}})
    ]
    return sorted(found, key=lambda each: (each[2], each[1]))


class Killed:
    """A source whose reader is killed after some checkpoints."""

    def __init__(self, source: SqliteCheckpoints, last: int) -> None:
        self.total, self.left_out, self.size = source.total, source.left_out, source.size
        self._source = source
        self._last = last

    def checkpoints(self) -> Iterator[ForeignCheckpoint | ReadFailure]:
        """Some, and then no more."""
        for number, each in enumerate(self._source.checkpoints()):
            if number == self._last:
                os.kill(os.getpid(), signal.SIGKILL)
            yield each


def import_until_killed(place: Place, space: str, file: Path, last: int) -> None:
    """Take over a database, and be killed in the middle of it."""
    with opened_store(place) as store, open_database(file) as source:
        import_checkpoints(Killed(source, last), store, space)
