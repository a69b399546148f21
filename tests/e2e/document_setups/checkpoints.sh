# A database of LangGraph's SqliteSaver.
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
