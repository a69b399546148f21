"""The page of what is wrong with the installation, by things that really are."""

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.browser.conftest import NARROW, OpenDesk
from tests.browser.test_dashboard import violations
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving

SECRET = "hunter2-hunter2"  # noqa: S105 - nobody's


def sets_a_line_aside(person: Person, app: Path) -> None:
    """Leave a line in the spool that no host writes, as a broken disk or an editor would."""
    spool = person.home / ".local" / "state" / "herdbook" / "spool"
    spool.mkdir(parents=True, exist_ok=True)
    with (spool / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(f"no event, {SECRET}\n")
    person.runs(app, "flush")


def test_what_is_wrong_stands_first_with_what_to_do(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """A line that was set aside, settings that nobody trusted, and hooks whose program is gone."""
    sets_a_line_aside(person, app)
    (app / "herdbook.toml").write_text('work = "repo"\n')
    person.runs(app, "hooks", "install", "claude-code")
    settings = app / ".claude" / "settings.local.json"
    settings.write_text(settings.read_text().replace("/entrypoints/", "/gone/entrypoints/"))
    page = open_desk(server).opens("/health")
    answer = person.tries(app, "doctor", "--json", "--full")
    told: list[dict[str, Any]] = json.loads(answer.stdout)["checks"]
    wrong = [each for each in told if each["health"] != "ok"]
    found = {(each["check"], each["health"]) for each in wrong}
    assert found >= {("spool", "warning"), ("repository", "warning"), ("hooks", "problem")}
    list_ = page.get_by_role("list", name="Problems and warnings")
    for each in wrong:
        expect(list_).to_contain_text(each["says"].replace("`", ""))
        if each["advice"]:
            expect(list_).to_contain_text(each["advice"].replace("`", ""))
    health = [each["health"] for each in wrong]
    findings = page.locator(".finding")
    expect(findings).to_have_count(len(wrong))
    shown = [(each.get_attribute("class") or "").split()[-1] for each in findings.all()]
    assert shown == sorted(health)
    expect(page.get_by_text("checks are well")).to_be_visible()
    expect(page.get_by_text("no agent is halted")).to_be_hidden()
    page.get_by_text("checks are well").click()
    expect(page.get_by_text("no agent is halted")).to_be_visible()
    assert violations(page) == []
    assert SECRET not in page.content()
    assert SECRET not in json.dumps(server.calls("doctor"))


def test_health_is_asked_when_it_is_opened_and_by_its_button(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """Changes of the plan ask for nothing; what was mended is gone after the next check."""
    page = open_desk(server, viewport=NARROW).opens("/health")
    called: list[str] = []
    page.on("request", lambda request: called.append(request.post_data or ""))
    sets_a_line_aside(person, app)
    person.runs(app, "task", "add", "another")
    expect(page.get_by_text("set aside no event", exact=False)).to_have_count(0)
    person.registers(app, "third")
    page.get_by_role("button", name="Check again").click()
    expect(page.locator(".finding", has_text="spool")).to_contain_text("set aside")
    assert sum('"method":"doctor"' in each for each in called) == 1
    expect(page.locator(".store", has_text="work")).to_contain_text("lmdb")
    expect(page.locator(".store", has_text="server")).to_contain_text("1 connection")
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert violations(page) == []


def test_the_page_and_the_probe_are_two_things(server: Serving) -> None:
    """`/healthz` is for programs that watch the server, and needs no token."""
    assert server.asks("GET", "/healthz", {}).json == {"ok": True}
    assert server.asks("GET", "/health", {}).body.startswith(b"<!doctype html>")
