# A database of LangGraph's SqliteSaver, and a thread in a store in the home directory.
mkdir -p ~/.agentos
python - <<'MADE'
from pathlib import Path
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph


class Issue(TypedDict):
    title: str


with SqliteSaver.from_conn_string(str(Path.home() / ".agentos" / "issue_workflow.db")) as saver:
    builder = StateGraph(Issue)
    builder.add_node("read", lambda issue: {"title": issue["title"].upper()})
    builder.set_entry_point("read")
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"title": "a crash"}, {"configurable": {"thread_id": "issue-16"}})
    graph.invoke({"title": "a leak"}, {"configurable": {"thread_id": "issue-17"}})
MADE
HERDBOOK_CHECKPOINTS=global python - <<'MADE'
from typing import TypedDict

from langgraph.graph import StateGraph

from herdbook.adapters.langgraph import HerdbookSaver


class Issue(TypedDict):
    title: str


builder = StateGraph(Issue)
builder.add_node("read", lambda issue: {"title": issue["title"].upper()})
builder.set_entry_point("read")
with HerdbookSaver() as saver:
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"title": "a loop"}, {"configurable": {"thread_id": "issue-18"}})
MADE
