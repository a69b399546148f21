"""Checkpoints of LangGraph workflows in any store.

`HerdbookSaver` is the checkpointer that a graph is compiled with. LangGraph's types stay in this
package: ports and stores see ids, tags and bytes.
"""

from typing import TYPE_CHECKING, Any

from herdbook.adapters.system.extras import describe_missing

if TYPE_CHECKING:
    from herdbook.adapters.langgraph.saver import HerdbookSaver

__all__ = ["HerdbookSaver"]


def __getattr__(name: str) -> Any:
    if name != "HerdbookSaver":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from herdbook.adapters.langgraph.saver import HerdbookSaver  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("langgraph", "langchain_core", "ormsgpack"):
            raise
        reason = describe_missing("langgraph-checkpoint", "langgraph")
        raise ImportError(reason, name="langgraph") from error
    return HerdbookSaver
