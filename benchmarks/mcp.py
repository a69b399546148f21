"""What a claim through the tools costs, over the same use case in-process on an open store.

A client claims and gives back the same task, again and again: as the use cases do it in this
process, as the tools do it without the protocol, and through a server and the SDK's own client. The
bar is for the tools; what the protocol adds is the SDK's. Run with `make bench`.
"""

import asyncio
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.types import TextContent

from benchmarks.commands import repository
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.mcp.client_session import ClientSession
from herdbook.entrypoints.mcp.invoke import call
from herdbook.entrypoints.mcp.tools import TOOLS
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims

ROUNDS, BLOCKS = 40, 5
"""So many claims each way, in turn, so many times: other work on the machine slows down both."""
BAR = 2.0
_TOOLS = {tool.name: tool for tool in TOOLS}


def timed(claim: Callable[[], Any], give_back: Callable[[Any], object]) -> float:
    """The median of what a claim takes, in microseconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        claimed = claim()
        times.append(time.perf_counter() - start)
        give_back(claimed)
    return statistics.median(times) * 1_000_000


def in_process(context: AppContext, agent_id: str) -> float:
    """The use case on an open store."""
    space, actor = context.workspace.space(Area.WORK), context.actor
    with context.open(Area.WORK, create=True) as store:
        return timed(
            lambda: run(store, space, claims.claim, agent_id, halts=NO_HALTS, actor=actor),
            lambda held: run(store, space, claims.release, held.task.id, held.fence, actor=actor),
        )


def by_tools(caller: ClientSession) -> float:
    """The tools, called as the server calls them."""

    def use(tool: str, **given: object) -> Any:
        return call(_TOOLS[tool], caller, given, threading.Event())

    return timed(lambda: use("claim"), lambda held: use("release", task=held["task"]["id"]))


async def by_protocol(program: str, root: Path, variables: dict[str, str]) -> float:
    """The tools of a server in a process of its own, through the SDK's client."""
    server = StdioServerParameters(command=program, args=["mcp"], env=variables, cwd=root)
    times = []
    async with Client(server) as client:
        await client.call_tool("introduce", {"name": "heron"})
        for _ in range(ROUNDS):
            start = time.perf_counter()
            answer = await client.call_tool("claim", {})
            times.append(time.perf_counter() - start)
            (content,) = answer.content
            assert isinstance(content, TextContent)
            await client.call_tool("release", {"task": json.loads(content.text)["task"]["id"]})
    return statistics.median(times) * 1_000_000


def main() -> int:
    """Print each figure, and whether the bar was missed."""
    program = shutil.which("herdbook", path=str(Path(sys.executable).parent))
    assert program is not None, "`make setup` installs it"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        variables = {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "USER": "bench"}
        variables["HERDBOOK_BACKUP"] = "off"
        os.environ.update(variables)  # what this process writes itself belongs there too
        root = repository(folder, variables)
        caller = ClientSession(AppContext.at(root, variables), print)
        agent = call(_TOOLS["introduce"], caller, {"name": "otter"}, threading.Event())
        call(_TOOLS["note"], caller, {"task": "there is a record"}, threading.Event())
        context = AppContext.at(root, variables)
        blocks = [(in_process(context, agent["id"]), by_tools(caller)) for _ in range(BLOCKS)]
        within, tools = (statistics.median(each) for each in zip(*blocks, strict=True))
        ratio = statistics.median(tool / use_case for use_case, tool in blocks)
        caller.close()
        protocol = asyncio.run(by_protocol(program, root, variables))
    missed = "" if ratio <= BAR else "  missed"
    print(f"claim in-process on an open store: {within:.0f} µs (medians of {BLOCKS} x {ROUNDS})")
    print(f"claim by the tool: {tools:.0f} µs, {ratio:.2f} times, bar {BAR:g}{missed}")
    print(f"claim by the SDK's client: {protocol:.0f} µs, {protocol / within:.2f} times that")
    return 0


if __name__ == "__main__":
    sys.exit(main())
