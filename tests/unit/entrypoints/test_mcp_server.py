"""The server inside this process: what the SDK makes of our tools when they fail."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from herdbook.domain.errors import StoreBusy
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.mcp import server as served
from herdbook.entrypoints.mcp.client_session import ClientSession

PLACE = "at /people/me/secret.py"


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_defect_is_told_in_a_sentence_and_the_session_goes_on(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model hears that it happened and what to do, and nothing of where."""

    def broken(*_: object) -> dict[str, Any]:
        raise RuntimeError(PLACE)

    async def twice() -> list[Any]:
        caller = ClientSession(AppContext.at(tmp_path, {}), print)
        made = served.create_server(lambda: caller, "1")
        async with Client(made, mode=mode) as client:
            return [await client.call_tool("status", {}) for _ in range(2)]

    monkeypatch.setattr(served, "call", broken)
    for answer in anyio.run(twice):
        assert answer.is_error
        (content,) = answer.content
        assert "RuntimeError" in content.text
        assert "look with status" in content.text
        assert PLACE not in answer.model_dump_json()
        assert answer.meta["herdbook/error"]["type"] == "RuntimeError"


def test_a_document_that_cannot_be_read_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the sentence of the error."""

    def busy(*_: object) -> dict[str, Any]:
        raise StoreBusy("lmdb:///src/app/work.lmdb", 30.0)

    async def read() -> None:
        caller = ClientSession(AppContext.at(tmp_path, {}), print)
        made = served.create_server(lambda: caller, "1")
        async with Client(made) as client:
            with pytest.raises(MCPError, match="StoreBusy: .* Nothing was written; try again"):
                await client.read_resource("herdbook://board")

    monkeypatch.setattr(served, "board", busy)
    anyio.run(read)
