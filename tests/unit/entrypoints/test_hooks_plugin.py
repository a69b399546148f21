"""The plugin for OpenCode in a real JavaScript engine: what it spools, refuses and starts."""

import json
import shutil
import stat
import subprocess
import time
from pathlib import Path

import pytest

from herdbook.adapters.user_state import halt_markers, spool
from herdbook.entrypoints.hooks.file_changes import apply_plan
from herdbook.entrypoints.hooks.hosts import install, settings_file
from tests.unit.entrypoints.records import OUT_OF_REACH

NODE = shutil.which("node")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HERDBOOK_RECORD", OUT_OF_REACH)
    root = tmp_path / "app"
    root.mkdir()
    return root


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home")}


if NODE is not None:

    def test_the_plugin_spools_what_opencode_tells_it(
        root: Path, variables: dict[str, str]
    ) -> None:
        """The events it knows, from a real JavaScript engine, readable as any other."""
        there = settings_file("opencode", root, variables, user=False)
        apply_plan(install("opencode", there))
        module = root / "plugin.mjs"
        shutil.copy(there.path, module)
        script = f"""
        const {{ Herdbook }} = await import({json.dumps(str(module))})
        const hooks = await Herdbook({{ directory: "/some/where" }})
        await hooks["tool.execute.after"]({{ tool: "bash", sessionID: "s1", callID: "c" }}, {{}})
        const properties = {{ sessionID: "é\\n" }}
        await hooks.event({{ event: {{ type: "session.idle", properties }} }})
        await hooks.event({{ event: {{ type: "message.part.updated", properties: {{}} }} }})
        """
        subprocess.run([str(NODE), "--input-type=module", "-e", script], check=True)
        tool, idle = spool.take_batch()
        assert (tool.event, tool.cwd, tool.raw["tool"]) == (
            "tool.execute.after",
            "/some/where",
            "bash",
        )
        assert idle.raw == {"type": "session.idle", "properties": {"sessionID": "é\n"}}
        assert stat.S_IMODE((spool.folder()).stat().st_mode) == 0o700

    def test_the_plugin_refuses_the_tools_of_a_halted_session(
        root: Path, variables: dict[str, str]
    ) -> None:
        """With the reason as its error, as OpenCode wants it; the tools of others it lets be."""
        there = settings_file("opencode", root, variables, user=False)
        apply_plan(install("opencode", there))
        module = root / "plugin.mjs"
        shutil.copy(there.path, module)
        halt_markers.set_halts(
            "r1", {"sés/1": "otter: it is halted"}, {"hér/on": "heron: it is halted"}
        )
        script = f"""
        const {{ Herdbook }} = await import({json.dumps(str(module))})
        const hooks = await Herdbook({{ directory: "/some/where" }})
        await hooks["tool.execute.before"]({{ tool: "bash", sessionID: "another" }}, {{}})
        for (const [agent, session, id] of [
          ["", "", "sés/1"], ["", "sés/1", "b"], ["", "a", "sés/1"], ["hér/on", "", "b"],
        ]) {{
          process.env.HERDBOOK_AGENT = agent
          process.env.HERDBOOK_SESSION = session
          await hooks["tool.execute.before"]({{ tool: "bash", sessionID: id }}, {{}})
            .catch((error) => console.log(error.message))
        }}
        """
        told = subprocess.run(
            [str(NODE), "--input-type=module", "-e", script],
            check=True,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        assert told.stdout == "otter: it is halted\n" * 3 + "heron: it is halted\n"

    def test_the_plugin_tells_how_a_tool_ended_and_with_which_model(
        root: Path, variables: dict[str, str]
    ) -> None:
        """OpenCode says the one beside the tool and the other with the person's message."""
        there = settings_file("opencode", root, variables, user=False)
        apply_plan(install("opencode", there))
        module = root / "plugin.mjs"
        shutil.copy(there.path, module)
        script = f"""
        const {{ Herdbook }} = await import({json.dumps(str(module))})
        const hooks = await Herdbook({{ directory: "/some/where" }})
        const message = {{ agent: "plan", model: {{ providerID: "p", modelID: "m-1" }} }}
        await hooks["chat.message"]({{ sessionID: "s1" }}, {{ message, parts: [] }})
        const after = hooks["tool.execute.after"]
        await after({{ tool: "bash", sessionID: "s1" }}, {{ metadata: {{ exit: 3 }} }})
        await after({{ tool: "read", sessionID: "s2" }}, {{ metadata: {{}} }})
        """
        subprocess.run([str(NODE), "--input-type=module", "-e", script], check=True)
        assert [each.raw for each in spool.take_batch()] == [
            {"tool": "bash", "sessionID": "s1", "exit": 3, "agent": "plan", "model": "m-1"},
            {"tool": "read", "sessionID": "s2"},
        ]

    @pytest.mark.parametrize(
        "over",
        [
            'hooks.event({ event: { type: "session.deleted", properties: {} } })',
            'hooks["tool.execute.after"]({ tool: "bash", sessionID: "s1" }, {}); hooks.dispose()',
        ],
    )
    def test_the_plugin_lets_the_spool_be_flushed_when_a_session_is_over(
        over: str, root: Path, variables: dict[str, str]
    ) -> None:
        """By a program that it does not wait for; where there is none, nothing happens."""
        there = settings_file("opencode", root, variables, user=False)
        apply_plan(install("opencode", there))
        module = root / "plugin.mjs"
        shutil.copy(there.path, module)
        script = f"""
        const {{ Herdbook }} = await import({json.dumps(str(module))})
        const hooks = await Herdbook({{ directory: {json.dumps(str(root))} }})
        {over}
        """
        program = root / "herdbook"
        for made in (False, True):
            if made:
                program.write_text('#!/bin/sh\necho "$@" > told.new; mv told.new told\n')
                program.chmod(0o700)
            subprocess.run(
                [str(NODE), "--input-type=module", "-e", script],
                check=True,
                env={**variables, "PATH": f"{root}:/bin:/usr/bin" if made else str(root)},
            )
        told = root / "told"
        for _ in range(300):
            if told.exists():
                break
            time.sleep(0.1)
        assert told.read_text() == "flush --gently\n"
