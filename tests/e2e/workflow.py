"""A workflow of LangGraph as people run it: `python -m tests.e2e.workflow run THREAD`.

It plans, drafts and reviews at the same time, merges and files; each node leaves its name in
`effects.txt` of the folder it works in, which is what it does to the world. It goes on from the
last checkpoint of its thread, if there is one, and tells as one line of JSON what it came to and
which nodes it ran. `--pause NODE` says `at NODE` there and waits to be killed; `--from CONFIG` goes
back to a checkpoint, and `--note TEXT` changes the state there first. `--sqlite FILE` keeps the
checkpoints with LangGraph's own saver.

`crowd THREAD FOLDER…` runs it in many folders at once, a process each: it says `ready`, waits for a
line, and tells what each came to.
"""

import argparse
import json
import operator
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from herdbook.adapters.langgraph import HerdbookSaver

NODES = ("plan", "draft", "review", "merge", "file")
AFTER = {"plan": START, "draft": "plan", "review": "plan", "file": "merge"}


class Issue(TypedDict):
    """What the workflow knows of an issue."""

    messages: Annotated[list[Any], operator.add]
    done: Annotated[list[str], operator.add]
    text: str
    notes: Annotated[list[str], operator.add]


class Workflow:
    """The graph, and what of it ran in this process."""

    def __init__(self, saver: BaseCheckpointSaver[Any], pause: str | None = None) -> None:
        self.saver = saver
        self.pause = pause
        self.ran: list[str] = []
        graph = StateGraph(Issue)
        for name in NODES:
            graph.add_node(name, self._node(name))
        for name, before in AFTER.items():
            graph.add_edge(before, name)
        graph.add_edge(["draft", "review"], "merge")
        graph.add_edge("file", END)
        self.graph = graph.compile(checkpointer=saver)

    def _node(self, name: str) -> Callable[[Issue], dict[str, Any]]:
        def work(state: Issue) -> dict[str, Any]:
            if name == self.pause:
                self._wait_to_be_killed(name)
            with Path("effects.txt").open("a") as effects:
                effects.write(f"{name}\n")
            self.ran.append(name)
            told: dict[str, Any] = {"done": [name], "messages": [AIMessage(f"{name} is done")]}
            if name == "merge":
                told["text"] = state["text"] + f"merged {state['notes']}. " * 500
            return told

        return work

    def _wait_to_be_killed(self, name: str) -> None:
        """Once the node beside this one is done and kept."""
        while name == "review" and "draft" not in self._kept_beside():
            time.sleep(0.01)
        sys.stdout.write(f"at {name}\n")
        sys.stdout.flush()
        sys.stdin.read()

    def _kept_beside(self) -> list[str]:
        found = self.saver.get_tuple({"configurable": {"thread_id": self.thread}})
        assert found is not None
        writes = found.pending_writes or []
        return [value[0] for _, channel, value in writes if channel == "done"]

    def go(self, thread: str, back_to: Any = None, note: str | None = None) -> dict[str, Any]:
        """Begin, or go on; what it came to."""
        self.thread = thread
        where: Any = {"configurable": {"thread_id": thread}}
        given: Any = {"messages": [HumanMessage("please")], "done": [], "text": "", "notes": []}
        if back_to is not None or self.graph.get_state(where).next:
            given, where = None, back_to or where
        if note is not None:
            where = self.graph.update_state(where, {"notes": [note]})
        values = self.graph.invoke(given, where, durability="sync")
        words = [each.content for each in values["messages"]]
        return {**values, "messages": words, "ran": self.ran, "text": len(values["text"])}


@contextmanager
def _saver(file: str | None) -> Iterator[BaseCheckpointSaver[Any]]:
    if file is None:
        with HerdbookSaver() as ours:
            yield ours
    else:
        with closing(sqlite3.connect(file, check_same_thread=False)) as connection:
            yield SqliteSaver(connection)


def _crowd(thread: str, folders: list[str]) -> None:
    """Fork a process for each folder: the libraries are loaded once for all of them."""
    forks = get_context("fork")
    start, told = forks.Event(), forks.SimpleQueue()

    def work(folder: str) -> None:
        os.chdir(folder)
        start.wait()
        with HerdbookSaver() as saver:
            told.put((folder, Workflow(saver).go(thread)))

    running = [forks.Process(target=work, args=(folder,)) for folder in folders]
    for each in running:
        each.start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    start.set()
    answers = []
    while len(answers) < len(folders) and (any(each.is_alive() for each in running)):
        while not told.empty():
            answers.append(told.get())
        time.sleep(0.01)
    for each in running:
        each.join()
    while not told.empty():
        answers.append(told.get())
    codes = [each.exitcode for each in running]
    sys.stdout.write(json.dumps({"codes": codes, "told": dict(answers)}))


def main() -> None:
    """Run what the command line says."""
    words = argparse.ArgumentParser()
    words.add_argument("what", choices=("run", "crowd"))
    words.add_argument("thread")
    words.add_argument("folders", nargs="*")
    for name in ("--pause", "--from", "--note", "--sqlite"):
        words.add_argument(name)
    given = vars(words.parse_args())
    if given["what"] == "crowd":
        _crowd(given["thread"], given["folders"])
        return
    back_to = json.loads(given["from"]) if given["from"] else None
    with _saver(given["sqlite"]) as saver:
        told = Workflow(saver, given["pause"]).go(given["thread"], back_to, given["note"])
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
