"""A stand-in for a model on loopback, which knows nothing but the text it is sent.

It speaks what Claude Code (Messages), Codex (Responses) and OpenCode (Chat Completions) speak. Its
only knowledge of Herdbook is the text of `prime` in what its host sent: it runs the commands that
it reads there, in the order register, claim, ask, complete. A host that sends no such text gets no
command, so what it did proves that the text arrived and is enough.
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ORDERS = ("# take the", "# ask the person", "# complete")
"""By what the text says of a command, the model knows which one it wants next."""
REGISTERS = re.compile(r"run `(herdbook agent add)` first")
FILLED = {"QUESTION": "may I rename the parser?", "RESULT": "the parser is written"}


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a request, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts_in(each)


def commands_in(request: dict[str, Any]) -> list[str]:
    """The commands that the text of `prime` in a request tells an agent to run, in our order."""
    found: list[str] = []
    for text in texts_in(request):
        if "Herdbook has the plan" not in text:
            continue
        lines = text.splitlines()
        if register := REGISTERS.search(text):
            found.append(register[1])
        for order in ORDERS:
            for line in lines:
                command, mark, note = line.partition("  #")
                if mark and f"#{note}".startswith(order):
                    found.append(command.strip())
        break
    return [_fill(each) for each in found]


def _fill(command: str) -> str:
    for placeholder, text in FILLED.items():
        command = command.replace(placeholder, text)
    return command


class StandIn:
    """What the model was sent and what it ran."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.ran: list[str] = []
        self.port = 0
        self._plan: list[str] | None = None

    def next_command(self, path: str, request: dict[str, Any], *, tools: bool) -> str | None:
        """The next command; None if there is none left. Requests without tools are side jobs."""
        self.requests.append((path, request))
        if not tools:
            return None
        if self._plan is None and (found := commands_in(request)):
            self._plan = found
        if not self._plan:
            return None
        command = self._plan.pop(0)
        self.ran.append(command)
        return command

    def saw(self, text: str) -> bool:
        """Whether a text was in any request."""
        return any(text in each for _, request in self.requests for each in texts_in(request))


@contextmanager
def serve_model() -> Iterator[StandIn]:
    """Serve a model on a free port of loopback."""
    state = StandIn()

    class Handler(_Handler):
        stand_in = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stand_in: StandIn

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """There are no models to list."""
        self._answer(b'{"models": [], "data": []}', "application/json")

    do_HEAD = do_GET  # noqa: N815 - the name that the library calls

    def do_POST(self) -> None:
        """Answer one request of a host with a tool call or with an end."""
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            request = json.loads(body)
        except ValueError:
            request = {}
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._answer(b'{"input_tokens": 10}', "application/json")
        elif path.endswith("/messages"):
            self._stream(_messages(self.stand_in, path, request))
        elif path.endswith("/responses"):
            self._stream(_responses(self.stand_in, path, request))
        elif path.endswith("/chat/completions"):
            self._stream(_completions(self.stand_in, path, request))
        else:
            self._answer(b"{}", "application/json")

    def _stream(self, events: list[tuple[str, Any]]) -> None:
        parts = []
        for name, data in events:
            parts.append(f"event: {name}\n" if name else "")
            parts.append(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n")
        self._answer("".join(parts).encode(), "text/event-stream")

    def _answer(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def _tool_names(request: dict[str, Any]) -> list[str]:
    return [
        each.get("name") or each.get("function", {}).get("name", "")
        for each in request.get("tools") or []
    ]


def _messages(model: StandIn, path: str, request: dict[str, Any]) -> list[tuple[str, Any]]:
    """The answer of Anthropic's Messages, as a stream."""
    command = model.next_command(path, request, tools="Bash" in _tool_names(request))
    number = len(model.requests)
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": "done"}
    stop = "end_turn"
    if command is not None:
        block = {"type": "tool_use", "id": f"toolu_{number:04}", "name": "Bash", "input": {}}
        given = json.dumps({"command": command, "description": "as the briefing says"})
        delta, stop = {"type": "input_json_delta", "partial_json": given}, "tool_use"
    message = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", ""),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 120, "output_tokens": 17},
    }
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": {"output_tokens": 17},
        },
        {"type": "message_stop"},
    ]
    return [(each["type"], each) for each in events]


_SHELLS = {
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["bash", "-lc", command]},
}


def _responses(model: StandIn, path: str, request: dict[str, Any]) -> list[tuple[str, Any]]:
    """The answer of OpenAI's Responses, as a stream."""
    shell = next((each for each in _SHELLS if each in _tool_names(request)), None)
    command = model.next_command(path, request, tools=shell is not None)
    number = len(model.requests)
    item: dict[str, Any] = {
        "type": "message",
        "id": f"m_{number}",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "done"}],
    }
    if command is not None and shell is not None:
        item = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": shell,
            "arguments": json.dumps(_SHELLS[shell](command)),
        }
    usage = {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 110,
    }
    name = f"r_{number}"
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": name}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": name, "output": [item], "usage": usage}},
    ]
    return [(each["type"], each) for each in events]


def _completions(model: StandIn, path: str, request: dict[str, Any]) -> list[tuple[str, Any]]:
    """The answer of OpenAI's Chat Completions, as a stream."""
    command = model.next_command(path, request, tools="bash" in _tool_names(request))
    number = len(model.requests)
    delta: dict[str, Any] = {"role": "assistant", "content": "done"}
    finish = "stop"
    if command is not None:
        given = json.dumps({"command": command, "description": "as the briefing says"})
        call = {"index": 0, "id": f"call_{number}", "type": "function"}
        call["function"] = {"name": "bash", "arguments": given}
        delta, finish = {"role": "assistant", "tool_calls": [call]}, "tool_calls"
    head = {"id": f"c_{number}", "object": "chat.completion.chunk", "created": 1, "model": "stand"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return [
        ("", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}),
        ("", {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}),
        ("", {**head, "choices": [], "usage": usage}),
        ("", "[DONE]"),
    ]
