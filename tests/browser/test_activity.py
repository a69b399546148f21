"""What agents do at this moment shows on the dashboard, from their hooks and without a flush."""

import json
import shlex
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from herdbook.entrypoints.hooks.hosts import local_command
from tests.browser.conftest import OpenDesk
from tests.e2e.conftest import Person
from tests.e2e.serve_process import Serving


def tells(person: Person, folder: Path, event: str, agent: str, **fields: object) -> None:
    """Run the installed hook program as a coding agent does."""
    subprocess.run(
        shlex.split(local_command(event)),
        input=json.dumps({"session_id": f"session of {agent}", **fields}).encode(),
        env={**person.variables, "HERDBOOK_AGENT": agent},
        cwd=folder,
        check=True,
    )


def count_calls(page: Page) -> list[str]:
    """The methods that a window calls from now on."""
    called: list[str] = []

    def note(request: Any) -> None:
        if request.url.endswith("/rpc") or "/rpc?" in request.url:
            called.append(json.loads(request.post_data)["method"])

    page.on("request", note)
    return called


def test_a_hook_event_shows_in_all_windows_and_asks_for_nothing(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """On Agents, on Now, and in a window that is opened later; the record is not read for it."""
    desk = open_desk(server)
    agents, now = desk.opens("/agents"), desk.opens("/")
    called = count_calls(agents)
    tells(person, app, "PreToolUse", "calm-lynx", tool_name="Bash", tool_input={"command": "ls"})
    row = agents.locator(".row", has_text="calm-lynx")
    expect(row).to_contain_text("Bash for ")
    expect(now.locator(".worker", has_text="calm-lynx")).to_contain_text("Bash for ")
    expect(agents.locator(".row", has_text="brisk-otter")).not_to_contain_text("Bash")
    tells(person, app, "PostToolUse", "calm-lynx", tool_name="Bash")
    expect(row).to_contain_text("s ago")
    expect(row).to_contain_text("Bash, ")
    later = desk.opens("/agents")
    expect(later.locator(".row", has_text="calm-lynx")).to_contain_text("Bash, ")
    assert called == []
    tells(person, app, "Stop", "calm-lynx")
    expect(row).to_contain_text("ended its turn")


def test_an_agent_of_the_same_name_elsewhere_is_another(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """A pulse of a folder that is not served is nobody's here."""
    other = person.repository(app.parent / "other")
    page = open_desk(server).opens("/agents")
    tells(person, other, "PreToolUse", "calm-lynx", tool_name="Bash")
    tells(person, app, "PreToolUse", "brisk-otter", tool_name="Read")
    expect(page.locator(".row", has_text="brisk-otter")).to_contain_text("Read for ")
    expect(page.locator(".row", has_text="calm-lynx")).not_to_contain_text("Bash")


def test_pulses_redraw_at_most_once_a_second(
    server: Serving, person: Person, app: Path, open_desk: OpenDesk
) -> None:
    """However many there are."""
    page = open_desk(server).opens("/agents")
    row = page.locator(".row", has_text="calm-lynx")
    tells(person, app, "PreToolUse", "calm-lynx", tool_name="Bash")
    expect(row).to_contain_text("Bash")
    page.evaluate(
        """() => {
          const times = (window.redrawn = []);
          const seen = new MutationObserver(() => times.push(performance.now()));
          seen.observe(document.querySelector(".windowed"), { subtree: true, characterData: true });
        }"""
    )
    for number in range(12):
        tells(person, app, "PreToolUse", "calm-lynx", tool_name=f"Tool{number}")
    expect(row).to_contain_text("Tool11")
    times = page.evaluate("window.redrawn")
    gaps = [later - earlier for earlier, later in pairwise(times)]
    # The page's own clock draws too, every five seconds: one gap in that time may be shorter.
    assert sum(gap < 900 for gap in gaps) <= 1 + len(times) // 5
