"""The hook that coding agents and git start: it appends one line to the spool and is gone.

Started as `python -I -S …/hook.py EVENT`, so it imports nothing that costs, and it never fails its
host: the exit code is 0 whatever happens, and trouble goes into `hook.log` beside the spool. Who
reads the spool, and what a line means, is told in `herdbook.adapters.user_state.spool`.
"""

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

OWN = ("HERDBOOK_AGENT", "HERDBOOK_SESSION")
VARIABLES = (*OWN, "CLAUDE_CODE_SESSION_ID", "CODEX_THREAD_ID")
"""What is told of the environment; the hosts' own variables only where they are set."""
ASKS = "PreToolUse"
ENDS = frozenset({"SessionEnd", "session.deleted", "pre-push"})
"""After these the spool is flushed."""
FULL = 1 << 20
"""So is it by whoever makes it as long as this, unless a flush has left another length."""
KEPT = 1 << 20
"""How many bytes of what a hook was given are kept."""
_PARSED = 16 << 20
"""Up to here what is too long is parsed, to keep its fields and shorten the long ones."""
_LONGEST_TEXTS = (1 << 18, 1 << 15, 1 << 11)
"""To how many characters the texts in it are shortened, the first that is enough."""
_SHORT = 2_000
_MOST_ARGUMENTS = 20
_LONGEST_ESCAPE = 9
"""How many bytes one byte of what is no text may take in the spool."""
_OPEN = 0o200  # a reader takes this away from a file that it will read no more
_LOG_LIMIT = 1 << 20
_NAME_LIMIT = 200
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_ESCAPES = {code: f"\\u{code:04x}" for code in (*range(32), 34, 92, 127)}


def main(words: list[str]) -> int:
    """Spool the event that the first word names, answer if it asks something, and give 0."""
    try:
        state = state_folder(os.environ, sys.platform)
        event = words[0].rpartition(":")[2] if words else ""
        try:
            given = _read(0)
            try:
                text = line(words, given.spool_text())
                size = append(state + "/spool", text)
                if event in ENDS or size - len(text) < _flush_size(state) <= size:
                    _hand_over()
            finally:  # a full disk is no way round a halt
                if event == ASKS:
                    _answer(state, given.head())
        except BaseException as error:  # noqa: BLE001 - also an interrupted hook must not fail its host
            _log(state, words, error)
    except BaseException:  # noqa: BLE001 - nowhere is left to tell it, and the host goes on
        return 0
    return 0


def state_folder(variables: "os._Environ[str] | dict[str, str]", platform: str) -> str:
    """The folder that `adapters.user_state.dirs.state_folder` names, without what that imports."""
    chosen = variables.get("XDG_STATE_HOME", "")
    if chosen.startswith("/"):
        return chosen.rstrip("/") + "/herdbook"
    home = variables.get("HOME") or os.path.expanduser("~")
    inside = "/Library/Application Support" if platform == "darwin" else "/.local/state"
    return home.rstrip("/") + inside + "/herdbook"


def line(words: list[str], given: bytes) -> bytes:
    """One event as a line of JSON.

    It begins with a newline, too: should the line before it be cut off, only that one is lost.
    """
    told = [
        '\n{"id": ' + _text(os.urandom(16).hex()),
        f'"at": {time.time_ns() // 1000}',
        '"event": ' + _text(words[0][:_SHORT] if words else ""),
        '"cwd": ' + _text(_here()),
        '"env": {' + ", ".join(_text(k) + ": " + _text(_variable(k)) for k in _variables()),
    ]
    return _encode(", ".join(told) + '}, "raw": ') + _raw(words[1:], given) + b"}\n"


def _raw(arguments: list[str], given: bytes) -> bytes:
    """What came on standard input: an object as it is, other text as a string.

    A string in JSON holds no bare newline, so each one in an object is a blank between two words.
    """
    stripped = given.strip()
    if not arguments and stripped[:1] == b"{" and stripped[-1:] == b"}" and _is_text(stripped):
        return stripped.replace(b"\n", b" ").replace(b"\r", b" ")
    text = _encode(_text(given.decode("utf-8", "backslashreplace")))
    if not arguments:
        return text
    listed = _encode(", ".join(_text(each[:_SHORT]) for each in arguments[:_MOST_ARGUMENTS]))
    return b'{"arguments": [' + listed + b'], "input": ' + text + b"}"


def _is_text(given: bytes) -> bool:
    try:
        given.decode()
    except UnicodeDecodeError:
        return False
    return True


def _text(text: str) -> str:
    return '"' + text.translate(_ESCAPES) + '"'


def _encode(text: str) -> bytes:
    # What stands for an undecodable byte of a path is a lone surrogate, which JSON may escape.
    return text.encode("utf-8", "backslashreplace")


def _variables() -> "list[str]":
    return [each for each in VARIABLES if each in OWN or os.environ.get(each)]


def _variable(name: str) -> str:
    return os.environ.get(name, "")[:_SHORT]


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""  # somebody removed the folder


class CappedInput:
    """What came on standard input: all of it up to a limit, and the size and digest of the rest."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._digest: object = None

    def add(self, part: bytes) -> None:
        """Take the next piece; what is beyond the limit is only counted and digested."""
        self._size += len(part)
        if self._size > KEPT and self._digest is None:
            from hashlib import blake2b  # noqa: PLC0415 - only for what is too long

            self._digest = blake2b(b"".join(self._parts))
        if self._digest is not None:
            self._digest.update(part)  # type: ignore[attr-defined]
        if self._size <= _PARSED:
            self._parts.append(part)

    def head(self) -> bytes:
        """All of it, or its beginning where it is too long to be parsed."""
        return b"".join(self._parts)

    def spool_text(self) -> bytes:
        """What goes into the spool: all of it, or an object that tells what was left out."""
        head = self.head()
        fits = self._size <= KEPT // _LONGEST_ESCAPE
        if fits or (self._size <= KEPT and len(_raw([], head)) <= KEPT):
            return head
        import json  # noqa: PLC0415 - only for what is too long

        cut: dict[str, object] = {"size": self._size, "blake2b": self._whole_digest(head)}
        fields = _fields(json.loads, head) if self._size <= _PARSED else {}
        for longest in _LONGEST_TEXTS if fields else ():
            text = json.dumps({**_cut(fields, longest), "herdbook_cut": cut})
            if len(text) <= KEPT:
                return text.encode()
        size = KEPT
        while True:
            cut["beginning"] = head[:size].decode("utf-8", "backslashreplace")
            text = json.dumps({"herdbook_cut": cut})
            if len(text) <= KEPT:
                return text.encode()
            size //= 2

    def _whole_digest(self, head: bytes) -> str:
        from hashlib import blake2b  # noqa: PLC0415 - only for what is too long

        digest = self._digest or blake2b(head)
        return str(digest.hexdigest())  # type: ignore[attr-defined]


def _fields(parse: "Callable[[bytes], Any]", data: bytes) -> "dict[str, Any]":
    """The fields of a JSON object; none where it is something else."""
    try:
        parsed = parse(data)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _cut(value: "Any", longest: int) -> "Any":
    """The same value with its texts cut to a length; its fields stay: they say what happened."""
    if isinstance(value, str):
        return value if len(value) <= longest else value[:longest] + "\u2026"
    if isinstance(value, dict):
        return {key[:longest]: _cut(each, longest) for key, each in value.items()}
    if isinstance(value, list):
        return [_cut(each, longest) for each in value]
    return value


def _read(descriptor: int) -> CappedInput:
    given = CappedInput()
    if not os.isatty(descriptor):
        while part := os.read(descriptor, 1 << 16):
            given.add(part)
    return given


def append(spool: str, text: bytes) -> int:
    """Append a line in one write; once more if it was cut off, or its file is sealed or gone.

    Gives the length of the spool behind it.
    """
    size = _append_once(spool, text) or _append_once(spool, text)
    if not size:
        raise OSError("the line could not be written as a whole")
    return size


def _append_once(spool: str, text: bytes) -> int:
    descriptor = _open_file(spool, "/events.jsonl")
    try:
        written = os.write(descriptor, text)
        status = os.fstat(descriptor)
        whole = written == len(text) and status.st_nlink > 0 and status.st_mode & _OPEN > 0
        return status.st_size if whole else 0
    finally:
        os.close(descriptor)


def _flush_size(state: str) -> int:
    """The length at which the spool is flushed, as the last flush has left it."""
    try:
        descriptor = os.open(state + "/spool/flush-size", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return FULL
    try:
        text = os.read(descriptor, 32)
    finally:
        os.close(descriptor)
    return int(text) if text.isdigit() else FULL


def _hand_over() -> None:
    """Let a process of its own bring the spool into the record; nobody waits for it."""
    nowhere = [(os.POSIX_SPAWN_OPEN, each, os.devnull, os.O_RDWR, 0) for each in (0, 1, 2)]
    command = [sys.executable, "-I", "-m", "herdbook.entrypoints", "flush", "--gently"]
    os.posix_spawn(sys.executable, command, os.environ, file_actions=nowhere, setsid=True)


def _open_file(folder: str, name: str) -> int:
    try:
        return os.open(folder + name, _APPEND, 0o600)
    except FileNotFoundError:
        _make_private(folder)
        return os.open(folder + name, _APPEND, 0o600)


def _make_private(folder: str) -> None:
    above = os.path.dirname(folder)
    if above != folder and not os.path.isdir(above):
        _make_private(above)
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        return  # another hook was quicker


def _answer(state: str, given: bytes) -> None:
    """Deny what a halted agent or session wants to do, and once what one does that lost its lease.

    Where nobody is halted and no lease was lost, nothing is parsed.
    """
    halted, lost = state + "/halted", state + "/lost-leases"
    markers = [(folder, set(found)) for folder in (halted, lost) if (found := _list(folder))]
    if not markers:
        return
    import json  # noqa: PLC0415 - costs as much as all the rest, and is needed only here

    sessions = [os.environ.get("HERDBOOK_SESSION", "")]
    try:
        told = json.loads(given)
        sessions.append(str(told.get("session_id", "")) if isinstance(told, dict) else "")
    except ValueError:
        sessions.append("")
    agent = "agent=" + marker(os.environ.get("HERDBOOK_AGENT", ""))
    names = (agent, *map(marker, filter(None, sessions)))
    for path in [
        f"{folder}/{name}" for folder, known in markers for name in names if name in known
    ]:
        with open(path, encoding="utf-8") as file:
            reason = file.readline().strip()
        decision = {
            "hookEventName": ASKS,
            "permissionDecision": "deny",
            "permissionDecisionReason": reason or "this agent is halted",
        }
        os.write(1, json.dumps({"hookSpecificOutput": decision}).encode() + b"\n")
        if path.startswith(lost):
            os.unlink(path)  # it may claim another task with its next tool
        return


def _list(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def marker(session: str) -> str:
    """The name of the file that says that a session is halted."""
    data = session.encode("utf-8", "backslashreplace")
    return "".join(chr(each) if each in _PLAIN else f"%{each:02X}" for each in data)[:_NAME_LIMIT]


def _log(state: str, words: list[str], error: BaseException) -> None:
    descriptor = _open_file(state, "/hook.log")
    try:
        if os.fstat(descriptor).st_size < _LOG_LIMIT:
            at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            told = f"{at} {' '.join(words[:1])}: {type(error).__name__}: {error}"
            os.write(descriptor, _encode(told.replace("\n", " ")) + b"\n")
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # nothing is left to tidy up, and tidying takes time
