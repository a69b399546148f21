"""The life of a language server as pytest-lsp lives it, with what real editors say they can do."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import LanguageClient, client_capabilities, make_test_lsp_client

from tests.clients.conftest import LINES, Reviewed

EDITORS = ("neovim@v0.7.0", "neovim", "emacs", "visual_studio_code")
COMMENT = "you: an f-string?"
Shown = Sequence[types.Diagnostic]


@asynccontextmanager
async def editing(reviewed: Reviewed, herdbook: str) -> AsyncIterator[LanguageClient]:
    """A client with a server in the repository; the server must end well."""
    client = make_test_lsp_client()
    converter = client.protocol._converter
    # lsprotocol takes an action that holds a command for a bare command.
    converter.register_structure_hook(
        types.Command | types.CodeAction,
        lambda value, _: converter.structure(
            value, types.Command if isinstance(value["command"], str) else types.CodeAction
        ),
    )
    client.feature(types.WORKSPACE_CODE_LENS_REFRESH)(lambda *_: None)
    await client.start_io(herdbook, "rpc", cwd=str(reviewed.folder), env=reviewed.person.variables)
    yield client
    await client.shutdown_session()
    server = client._server
    assert server is not None
    assert server.returncode == 0
    await client.stop()
    assert client.error is None
    errors = [each for each in client.log_messages if each.type == types.MessageType.Error]
    assert errors == []


async def initialized(client: LanguageClient, reviewed: Reviewed, editor: str) -> Any:
    """What the server says it can do for an editor that opens the repository."""
    root = reviewed.folder.as_uri()
    params = types.InitializeParams(
        capabilities=client_capabilities(editor),
        root_uri=root,
        workspace_folders=[types.WorkspaceFolder(uri=root, name="app")],
    )
    return await client.initialize_session(params)


def open_file(client: LanguageClient, reviewed: Reviewed) -> str:
    """Open the file under review; its URI."""
    uri = reviewed.file.as_uri()
    document = types.TextDocumentItem(uri, "python", 1, reviewed.file.read_text())
    client.text_document_did_open(types.DidOpenTextDocumentParams(document))
    return uri


async def shown(client: LanguageClient, uri: str, holds: Callable[[Shown], bool]) -> Shown:
    """The diagnostics of a file, as soon as they are as they should be."""
    async with asyncio.timeout(60):
        while not (uri in client.diagnostics and holds(client.diagnostics[uri])):
            await client.wait_for_notification("textDocument/publishDiagnostics")
    return client.diagnostics[uri]


def at_lines(*numbers: int) -> Callable[[Shown], bool]:
    """Whether comments stand at these lines, and nowhere else."""
    return lambda found: [each.range.start.line for each in found] == list(numbers)


async def actions_at(client: LanguageClient, uri: str, found: Shown) -> list[types.CodeAction]:
    """What the editor's menu offers at the first comment."""
    context = types.CodeActionContext(diagnostics=list(found))
    document = types.TextDocumentIdentifier(uri)
    params = types.CodeActionParams(document, found[0].range, context)
    offered = await client.text_document_code_action_async(params) or []
    return [each for each in offered if isinstance(each, types.CodeAction)]


async def given(client: LanguageClient, command: types.Command | None) -> Any:
    """What the server answers to a command of a code action."""
    assert command is not None
    params = types.ExecuteCommandParams(command.command, command.arguments)
    return await client.workspace_execute_command_async(params)


@pytest.mark.parametrize("editor", EDITORS)
def test_a_life_from_initialize_to_exit(editor: str, reviewed: Reviewed, herdbook: str) -> None:
    """An editor opens a file, sees a comment, moves it, resolves it and ends the server with 0."""

    async def live() -> None:
        async with editing(reviewed, herdbook) as client:
            told = await initialized(client, reviewed, editor)
            assert told.server_info.name == "herdbook"
            assert "herdbook.claim" in told.capabilities.execute_command_provider.commands
            uri = open_file(client, reviewed)
            (comment,) = await shown(client, uri, at_lines(2))
            assert comment.message == COMMENT
            start = types.Position(0, 0)
            change = types.TextDocumentContentChangePartial(
                text="import sys\n\n", range=types.Range(start, start)
            )
            document = types.VersionedTextDocumentIdentifier(version=2, uri=uri)
            client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))
            found = await shown(client, uri, at_lines(4))
            resolve, reply = await actions_at(client, uri, found)
            assert resolve.title.startswith("Resolve")
            assert reply.title.startswith("Reply")
            await given(client, resolve.command)
            await shown(client, uri, at_lines())
            closing = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri))
            client.text_document_did_close(closing)

    asyncio.run(live())
    assert reviewed.asks("review", "show", reviewed.comment)["resolved"] is True


@pytest.mark.parametrize("editor", EDITORS)
def test_columns_count_as_the_editor_counts(editor: str, reviewed: Reviewed, herdbook: str) -> None:
    """A comment on a line with a cow ends where the encoding that was agreed upon says."""
    on_line = ("--file-path", reviewed.file.name, "--line-number", "2", "--line-type", "added")
    reviewed.runs("review", "add", "which cow?", "--phase", reviewed.phase, *on_line)

    async def live() -> tuple[Any, Shown]:
        async with editing(reviewed, herdbook) as client:
            told = await initialized(client, reviewed, editor)
            uri = open_file(client, reviewed)
            found = await shown(client, uri, lambda found: len(found) == 2)
            return told.capabilities.position_encoding, found

    encoding, found = asyncio.run(live())
    (cow,) = [each for each in found if each.message == "you: which cow?"]
    codec, unit = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2)}[encoding]
    assert cow.range.start == types.Position(1, 4)
    assert cow.range.end == types.Position(1, len(LINES[1].encode(codec)) // unit)


def test_what_another_process_resolves_goes_from_the_margin(
    reviewed: Reviewed, herdbook: str
) -> None:
    """A client that only listens is told when somebody else resolves a comment."""

    async def live() -> None:
        async with editing(reviewed, herdbook) as client:
            await initialized(client, reviewed, "emacs")
            uri = open_file(client, reviewed)
            await shown(client, uri, at_lines(2))
            await asyncio.to_thread(reviewed.runs, "review", "resolve", reviewed.comment)
            await shown(client, uri, at_lines())

    asyncio.run(live())


def test_a_command_that_fails_is_an_error_and_no_end(reviewed: Reviewed, herdbook: str) -> None:
    """A command that cannot be carried out is answered with its error, and the server goes on."""

    async def live() -> None:
        async with editing(reviewed, herdbook) as client:
            await initialized(client, reviewed, "visual_studio_code")
            with pytest.raises(JsonRpcException) as refused:
                await given(
                    client, types.Command("Resolve", "herdbook.resolve", arguments=["rev_0000"])
                )
            assert refused.value.code == 3001
            with pytest.raises(JsonRpcException) as unknown:
                await given(client, types.Command("Nothing", "herdbook.nothing"))
            assert "herdbook.nothing" in str(unknown.value)
            uri = open_file(client, reviewed)
            await shown(client, uri, at_lines(2))

    asyncio.run(live())
