"""Attacks on `herdbook serve`: other sites in the same browser, other names, other bytes.

The server is the installed program in a process of its own, and what is sent is sent over raw
sockets, byte by byte as an attacker would.
"""

import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psutil
import pytest

from herdbook.entrypoints.http import lifecycle
from herdbook.entrypoints.http.app import static_files
from tests.attacks.conftest import PROGRAM, Person
from tests.e2e.rpc_process import until
from tests.e2e.serve_process import JSON, SECONDS, Serving, serving

CALL = {"jsonrpc": "2.0", "id": 1, "method": "task.add", "params": {"name": "an attack"}}
PRIVATE = ("/rpc", "/feed", "/spaces", "/metrics", "/mcp")
READS = ("/feed", "/spaces", "/metrics", "/mcp")


@pytest.fixture
def server(person: Person, app: Path) -> Iterator[Serving]:
    """A server that says nothing, ends well, and has no task but the one that was there."""
    person.runs(app, "task", "add", "a secret plan")
    with serving(person, app) as running:
        yield running
        names = [each["name"] for each in running.calls("task.list")]
        assert names == ["a secret plan"]


def head(method: str, path: str, *lines: str) -> bytes:
    """The head of a request."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode("latin-1")


def status(answer: bytes) -> int:
    """The status of an answer; 0 if there was none."""
    return int(answer.split(b" ", 2)[1]) if answer else 0


def test_another_name_is_answered_nothing(server: Serving) -> None:
    """DNS rebinding: whatever a foreign name leads here is told 421, before any route."""
    names = [
        "evil.example",
        f"evil.example:{server.port}",
        "127.0.0.1",
        f"127.0.0.1:{(server.port or 0) + 1}",
        f"127.0.0.1.evil.example:{server.port}",
        f"localhost.:{server.port}",
        f"0.0.0.0:{server.port}",
        f"127.0.0.1:{server.port}@evil.example",
        f"evil.example, 127.0.0.1:{server.port}",
        "",
    ]

    def check(name: str) -> None:
        for path in ("/", "/static/page.js", "/healthz", "/nothing", *PRIVATE):
            answer = server.raw(
                head("GET", path, f"Host: {name}", f"Authorization: Bearer {server.token}")
            )
            assert status(answer) == 421, (path, answer)
            assert b"secret plan" not in answer

    for each in names:
        check(each)
    twice = head("GET", "/spaces", f"Host: {server.host}", "Host: evil.example", *bearer(server))
    assert status(server.raw(twice)) in (400, 421)
    assert status(server.raw(head("GET", "/spaces", *bearer(server)))) in (400, 421)


def bearer(server: Serving) -> list[str]:
    """The line that shows the token."""
    return [f"Authorization: Bearer {server.token}"]


def test_a_page_of_another_origin_reads_and_writes_nothing(server: Serving) -> None:
    """Also with the cookie of the person's own browser, and also from another port of this host."""
    own = server.browser()
    origins = [
        "https://evil.example",
        "null",
        "file://",
        f"http://evil.example:{server.port}",
        f"https://{server.host}",
        "http://127.0.0.1:1",
        "http://127.0.0.1",
        f"{server.url}",
        f"{own['Origin']}.evil.example",
        "",
    ]

    def check(origin: str) -> None:
        for path in PRIVATE:
            for shown in ({"Cookie": own["Cookie"]}, server.bearer):
                sent = {**shown, "Origin": origin, **JSON}
                assert server.asks("POST", path, sent, CALL).status == 403
                assert server.asks("GET", path, sent).status == 403

    for each in origins:
        check(each)


def test_a_request_that_another_site_caused_is_refused(server: Serving) -> None:
    """Links, images, forms and frames of others; a visit of the page itself holds nothing."""
    own = server.browser()
    for site in ("cross-site", "same-site", "strange"):
        for path in (*PRIVATE, "/static/page.js", "/healthz", "/nothing"):
            sent = {**own, "Sec-Fetch-Site": site}
            assert server.asks("GET", path, sent).status == 403
            assert server.asks("POST", path, sent, CALL).status == 403
        visit = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
        assert server.asks("GET", "/", visit).status == 200
        assert server.asks("GET", "/", {"Sec-Fetch-Site": site}).status == 403
        assert server.asks("POST", "/session", {**visit, **JSON}, {"ticket": "x"}).status == 403


def test_what_a_plain_form_can_send_is_no_request(server: Serving) -> None:
    """JSON as text needs no permission of a browser, so it is not taken for JSON."""
    own = server.browser()
    kinds = [
        "text/plain",
        "text/plain; application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "",
    ]
    for kind in kinds:
        for shown in (own, server.bearer):
            answer = server.asks("POST", "/rpc", {**shown, "Content-Type": kind}, CALL)
            assert answer.status == 415
    bare = head("POST", "/rpc", f"Host: {server.host}", *bearer(server), "Content-Length: 2")
    assert status(server.raw(bare + b"{}")) == 415
    # A page that hides its origin is not taken for a program either.
    hidden = {"Cookie": own["Cookie"], **JSON}
    assert server.asks("POST", "/rpc", hidden, CALL).status == 403


def test_nothing_is_answered_without_the_token(server: Serving) -> None:
    """Missing, wrong, cut, in a query, or as another scheme; nor by a cookie that was made up."""
    token = server.token
    shown: list[dict[str, str]] = [
        {},
        {"Authorization": f"Bearer {'0' * 64}"},
        {"Authorization": f"Bearer {token[:-1]}"},
        {"Authorization": f"Bearer {token}0"},
        {"Authorization": f"Basic {token}"},
        {"Authorization": token},
        {"Authorization": "Bearer"},
        {"Cookie": f"herdbook-{server.port}={token}"},
        {"Cookie": f"herdbook-{server.port}=a.99999999999.{'0' * 64}"},
        {"Cookie": f"herdbook-{server.port}=.."},
        {"Cookie": 'herdbook="\\'},
    ]

    def check(headers: dict[str, str]) -> None:
        for path in READS:
            for target in (path, f"{path}?token={token}", f"{path}?t={token}"):
                assert server.asks("GET", target, headers).status == 401
        sent = {**headers, **JSON, "Origin": server.url.rstrip("/")}
        assert server.asks("POST", "/rpc", sent, CALL).status == 401
        assert server.asks("DELETE", "/mcp", headers).status == 401

    for each in shown:
        check(each)


def test_a_ticket_works_once(server: Serving) -> None:
    """Whoever finds it later in a history or a screenshot gets nothing for it."""
    page = {"Origin": server.url.rstrip("/"), **JSON}
    assert server.asks("POST", "/session", page, {"ticket": "x" * 43}).status == 401
    cookie = server.browser()["Cookie"]
    again = server.asks("POST", "/session", page, {"ticket": server.ticket})
    assert again.status == 401
    assert "set-cookie" not in again.headers
    tampered = cookie[:-1] + ("0" if cookie[-1] != "0" else "1")
    assert server.asks("GET", "/spaces", {"Cookie": tampered}).status == 401
    for wrong in (b"", b"[]", b"{}", b'{"ticket": 1}', b"\xff", b"[" * 3_000):
        assert server.asks("POST", "/session", page, wrong).status in (400, 401)
    assert server.asks("POST", "/session", page, {"ticket": "x" * 5_000}).status == 413
    assert server.asks("GET", "/session", {}).status == 405


def test_the_cookie_and_every_answer_are_closed_to_others(server: Serving) -> None:
    """No script reads it, no other site sends it; no frame, no guessed types, no inline code."""
    page = {"Origin": server.url.rstrip("/"), **JSON}
    made = server.asks("POST", "/session", page, {"ticket": server.ticket})
    parts = [each.strip() for each in made.headers["set-cookie"].split(";")]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(parts)
    assert not any(each.lower().startswith("domain") for each in parts)
    for path in ("/", "/static/page.js", "/healthz", "/nothing", *READS):
        headers = server.asks("GET", path, {}).headers
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert not any(name.startswith("access-control-") for name in headers)
    for path in (*PRIVATE, "/"):
        wanted = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        asked = server.asks("OPTIONS", path, wanted)
        assert asked.status in (403, 405)
        assert not any(name.startswith("access-control-") for name in asked.headers)


def test_the_page_has_no_inline_code(server: Serving) -> None:
    """Its policy would forbid it; and what agents write is only ever put in as text."""
    page = server.asks("GET", "/", {}).body.decode()
    assert "<style" not in page
    assert " on" not in "".join(page.split("<")[1:]).replace(" one", "").split("content=")[0]
    assert page.count("<script") == page.count('<script src="/static/')
    scripts = [path for path in static_files() if path.endswith(".js")]
    assert "/static/page.js" in scripts
    unsafe = (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
    )
    for path in scripts:
        script = server.asks("GET", path, {}).body.decode()
        assert not any(word in script for word in unsafe), path


def test_large_requests_are_refused_before_they_are_read(server: Serving) -> None:
    """Bodies by what they say and by what comes, heads in one piece and in many."""
    memory = psutil.Process(server.process.pid)
    before = memory.memory_info().rss
    own = [f"Host: {server.host}", *bearer(server), "Content-Type: application/json"]
    declared = head("POST", "/rpc", *own, "Content-Length: 17000000")
    assert status(server.raw(declared)) == 413
    assert status(server.raw(head("POST", "/rpc", *own, "Content-Length: -1"))) == 400
    with socket.create_connection(("127.0.0.1", server.port or 0), timeout=SECONDS) as sock:
        sock.sendall(head("POST", "/rpc", *own, "Transfer-Encoding: chunked"))
        piece = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
        try:
            for _ in range(40):
                sock.sendall(piece)
            answer = sock.recv(65_536)
        except (BrokenPipeError, ConnectionResetError):
            answer = b"HTTP/1.1 413"  # it was closed while we sent
    assert status(answer) == 413
    for size in (17_000, 60_000):
        huge = head("GET", "/healthz", f"Host: {server.host}", f"X: {'x' * size}")
        assert status(server.raw(huge)) in (400, 431)
    many = head("GET", "/healthz", f"Host: {server.host}", *(f"X-{n}: 1" for n in range(3_000)))
    assert status(server.raw(many)) in (400, 431)
    long = head("GET", f"/healthz?{'x' * 70_000}", f"Host: {server.host}")
    assert status(server.raw(long)) in (400, 414, 431)
    assert memory.memory_info().rss - before < 100_000_000


def test_a_message_with_two_lengths_is_refused_and_ends_the_connection(server: Serving) -> None:
    """A proxy may believe the one and we the other: what lies between would be a request."""
    own = [f"Host: {server.host}", *bearer(server), "Content-Type: application/json"]
    hidden = head("GET", "/spaces", f"Host: {server.host}", *bearer(server))
    message = b"0\r\n\r\n" + hidden
    lengths = [f"Content-Length: {len(message)}", "Transfer-Encoding: chunked"]
    for both in (lengths, lengths[::-1]):
        answer = server.raw(head("POST", "/rpc", *own, *both) + message)
        assert status(answer) == 400
        assert answer.count(b"HTTP/1.1") == 1


def test_bytes_that_are_no_http_end_the_connection(server: Serving) -> None:
    """With 400 or nothing; two lengths, a length and chunks, and bare line ends among them."""
    own = f"Host: {server.host}\r\n{bearer(server)[0]}\r\nContent-Type: application/json\r\n"
    lengths = "Content-Length: 5\r\nContent-Length: 6\r\n"
    both = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"
    cases = [
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\n\r\n",
        f"POST /rpc HTTP/1.1\r\n{own}{lengths}\r\n12345".encode(),
        f"POST /rpc HTTP/1.1\r\n{own}{both}\r\n5\r\n{{}}\r\n0\r\n\r\n".encode(),
        f"POST /rpc HTTP/1.1\r\n{own}Transfer-Encoding: x, chunked\r\n\r\n0\r\n\r\n".encode(),
        f"GET /feed HTTP/1.1\r\n{own}Upgrade: websocket\r\nConnection: upgrade\r\n\r\n".encode(),
    ]
    for each in cases[:-1]:
        assert status(server.raw(each + b"\r\n\r\n")) in (0, 400, 421), each
    upgraded = server.raw(cases[-1])
    assert status(upgraded) != 101


def test_slow_clients_are_closed_and_others_are_answered(server: Serving) -> None:
    """Silent ones, and such that send a byte now and then, before and after a first request.

    That each is closed takes as long as the limit, half a minute; meanwhile everybody else is
    served. The limit itself is not measured here.
    """
    first = head("GET", "/healthz", f"Host: {server.host}")
    begun = b"GET /healthz HTTP/1.1\r\nHost: "
    own = [f"Host: {server.host}", *bearer(server), "Content-Type: application/json"]
    slow_body = head("POST", "/rpc", *own, "Content-Length: 100") + b"{"
    openings = [b"", begun, first + begun, slow_body]
    clients = []
    for opening in openings * 5:
        sock = socket.create_connection(("127.0.0.1", server.port or 0), timeout=SECONDS)
        sock.sendall(opening)
        clients.append(sock)
    dripping = threading.Event()

    def drip() -> None:
        while not dripping.wait(1.0):
            for each in clients:
                try:
                    each.send(b"x")
                except OSError:
                    continue

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        assert server.calls("task.list")
        for each in clients:
            read_to_the_end(each)
    finally:
        dripping.set()
        thread.join()
        for each in clients:
            each.close()
    assert lifecycle.IDLE_SECONDS <= 30


def read_to_the_end(sock: socket.socket) -> None:
    """Read until the other side has closed."""
    with suppress(ConnectionResetError):
        while sock.recv(65_536):
            pass


def test_seven_tabs_leave_room_for_requests(server: Serving) -> None:
    """A browser has six connections to a server: feeds may not take them all."""
    own = server.browser()
    sockets = []
    answers = []
    for _ in range(7):
        sock = socket.create_connection(("127.0.0.1", server.port or 0), timeout=SECONDS)
        lines = [f"Host: {server.host}", f"Cookie: {own['Cookie']}", "Sec-Fetch-Site: same-origin"]
        sock.sendall(head("GET", "/feed", *lines))
        answers.append(status(sock.recv(65_536)))
        sockets.append(sock)
    assert answers == [200] * 4 + [429] * 3
    call = server.asks("POST", "/rpc", own, {**CALL, "method": "task.list", "params": {}})
    assert call.status == 200
    for each in sockets:
        each.close()


def test_no_path_leads_out_of_the_page(server: Serving, person: Person) -> None:
    """The files of the page are read once and looked up by name."""
    secret = person.home / "secret.txt"
    secret.write_text("a secret plan")
    up = "../" * 12
    paths = [
        f"/static/{up}{secret}",
        f"/static/..%2f..%2f..%2f{secret}",
        f"/static/%2e%2e/%2e%2e/{secret}",
        f"/static//{secret}",
        "/static/../app.py",
        "/static/..%5capp.py",
        "/static/.",
        "/static/",
        "/static/page.js%00.html",
        "/static/page.js/..",
    ]

    def check(path: str) -> None:
        for shown in ([], bearer(server)):
            answer = server.raw(head("GET", path, f"Host: {server.host}", *shown))
            assert status(answer) in (400, 401, 404), answer
            assert b"secret plan" not in answer

    for each in paths:
        check(each)


def test_no_folder_is_opened_that_is_not_served(
    server: Serving, person: Person, tmp_path: Path
) -> None:
    """Whatever a client calls it; nothing is created or read there, and no program is started."""
    other = person.repository(tmp_path / "other")
    person.runs(other, "task", "add", "another secret")
    link = Path(server.folder) / "link"
    link.symlink_to(other)
    files = {each: each.stat().st_mtime_ns for each in other.rglob("*")}
    named = [
        str(other),
        f"{server.folder}/../other",
        f"{server.folder}/../app/../other",
        "other",
        "",
        "\0",
    ]
    for each in named:
        answer = server.asks(
            "POST", f"/rpc?folder={each.replace(chr(0), '%00')}", {**server.bearer, **JSON}, CALL
        )
        assert answer.status == 400, each
        assert answer.json["error"]["data"]["field"] == "folder"
        assert server.asks("GET", f"/feed?folder={each.replace(chr(0), '%00')}").status == 400
    inside = server.calls("task.list", link)
    assert [each["name"] for each in inside] == ["a secret plan"]
    assert {each: each.stat().st_mtime_ns for each in other.rglob("*")} == files
    methods = ("sql", "serve", "journal.prune", "import.plan", "backup", "mcp", "hooks.install")
    for method in methods:
        assert server.calls(method, path="/etc/passwd")["code"] == -32601


HOSTILE = """
host = "0.0.0.0"
serve = true
port = 1
[serve]
host = "0.0.0.0"
behind_proxy = true
allow_host = ["evil.example"]
"""


def test_a_repository_cannot_configure_the_server(person: Person, app: Path) -> None:
    """Neither where it listens, nor by which names, nor what it serves."""
    (app / "herdbook.toml").write_text(HOSTILE)
    (app / ".git" / "herdbook").mkdir(exist_ok=True)
    (app / ".git" / "herdbook" / "config.toml").write_text(HOSTILE)
    (app / ".herdbook").mkdir()
    (app / ".herdbook" / "serve.json").write_text(json.dumps({"folders": ["/"]}))
    (app / "sitecustomize.py").write_text("raise SystemExit('ran')")
    (app / "static").mkdir()
    (app / "static" / "index.html").write_text("evil")
    with serving(person, app) as server:
        assert server.url == f"http://127.0.0.1:{server.port}/"
        found = [each.laddr for each in psutil.Process(server.process.pid).net_connections("tcp")]
        assert {each.ip for each in found} == {"127.0.0.1"}
        assert server.asks("GET", "/healthz", {"Host": "evil.example"}).status == 421
        assert b"evil" not in server.asks("GET", "/", {}).body
        assert {each["folder"] for each in server.asks("GET", "/spaces").json} == {str(app)}


def test_the_token_is_seen_nowhere(person: Person, app: Path) -> None:
    """In no output, no process list, no file that others can read, and no answer."""
    with serving(person, app, HERDBOOK_DEBUG="1") as server:
        own = server.browser()
        process = psutil.Process(server.process.pid)
        shown = [
            " ".join(process.cmdline()),
            json.dumps(process.environ()),
            json.dumps(server.told),
        ]
        for path in ("/", "/healthz", *READS[1:], "/nothing"):
            answer = server.asks("GET", path, own)
            shown.append(f"{answer.headers}{answer.body!r}")
        answer = server.asks("GET", "/spaces", {"Authorization": f"Bearer {server.token[:-1]}0"})
        shown.append(f"{answer.headers}{answer.body!r}")
        assert not any(server.token in each for each in shown)
        for each in server.state.iterdir():
            assert each.stat().st_mode & 0o077 == 0, each
        assert server.state.stat().st_mode & 0o077 == 0
        code, err = server.ends()
        assert server.token not in err
        assert server.ticket not in err
        assert code == 0


def test_a_token_that_others_can_read_is_not_used(person: Person, app: Path) -> None:
    """A new one takes its place."""
    with serving(person, app) as server:
        first = server.token
    (server.state / "token").chmod(0o644)
    with serving(person, app) as again:
        assert again.token != first
        assert again.asks("GET", "/spaces", {"Authorization": f"Bearer {first}"}).status == 401


def socket_of(server: Serving) -> str:
    """The path of the socket for local programs."""
    return str(json.loads((server.state / "server.json").read_text())["socket"])


def ask_socket(path: str, data: bytes) -> bytes:
    """Send bytes to the socket, and read one answer; nothing if it was closed."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(SECONDS)
        sock.connect(path)
        try:
            sock.sendall(data)
            return sock.recv(65_536)
        except (BrokenPipeError, ConnectionResetError):
            return b""


def test_the_socket_takes_nothing_but_its_first_message(server: Serving, tmp_path: Path) -> None:
    """Another method, another folder, no JSON, or too much of it: it is closed."""
    path = socket_of(server)
    assert Path(path).stat().st_mode & 0o777 == 0o600

    def first(method: str, **params: Any) -> bytes:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return ask_socket(path, json.dumps(message).encode() + b"\n")

    assert b"begins with serve.connect" in first("task.list")
    assert b"not served" in first("serve.connect", folder=str(tmp_path))
    assert b"must be the absolute path" in first("serve.connect", folder=1)
    assert b"not served" in first("serve.connect", folder="../app")
    assert ask_socket(path, b"GET / HTTP/1.1\r\n\r\n") == b""
    assert ask_socket(path, b"{" * 70_000) == b""
    both = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "serve.connect"}).encode() + b"\n"
    assert b"task" not in ask_socket(path, both + json.dumps(CALL).encode() + b"\n")


def test_a_browser_that_never_ends_holds_up_nothing(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """Some stay in the foreground: the address is printed and served meanwhile."""
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 600\n")
    browser.chmod(0o755)
    person.variables |= {"BROWSER": f"{browser} %s", "DISPLAY": ":0"}
    process = subprocess.Popen(
        [PROGRAM, "serve", "--json"],
        cwd=app,
        env=person.variables,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    address = json.loads(process.stdout.readline())["url"].removeprefix("http://").rstrip("/")
    connection = HTTPConnection(address, timeout=SECONDS)
    connection.request("GET", "/healthz")
    assert connection.getresponse().status == 200
    connection.close()
    until((tmp_path / "pid").exists)
    process.terminate()
    process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_the_browser_is_opened_without_the_ticket_in_its_command(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """Everybody can read the arguments of a process: a private file leads to the page."""
    browser = tmp_path / "browser"
    browser.write_text(
        f'#!/bin/sh\ncd {tmp_path}\ncp "${{1#file://}}" page\necho "$@" > new\nmv new arguments\n'
    )
    browser.chmod(0o755)
    person.variables |= {"BROWSER": f"{browser} %s", "DISPLAY": ":0"}
    program = [PROGRAM, "serve", "--json"]
    process = subprocess.Popen(
        program, cwd=app, env=person.variables, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    link = json.loads(process.stdout.readline())["link"]
    until((tmp_path / "arguments").exists)
    ticket = link.partition("#t=")[2]
    assert ticket not in (tmp_path / "arguments").read_text()
    assert link in (tmp_path / "page").read_text()
    opened = Path((tmp_path / "arguments").read_text().strip().removeprefix("file://"))
    assert opened.stat().st_mode & 0o777 == 0o600
    process.terminate()
    process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert not opened.exists()
