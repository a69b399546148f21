"""Other people's JSON settings keep every byte that is not ours."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.entrypoints.hooks import json_settings
from herdbook.entrypoints.hooks.hosts import installed_command, typed_command
from herdbook.entrypoints.hooks.jsonc import parsed
from tests.cases import for_each

EVENTS = ("PreToolUse", "PostToolUse", "SessionEnd")
GROUPS: dict[str, dict[str, Any]] = {
    event: {"hooks": [{"type": "command", "command": installed_command(event)}]} for event in EVENTS
}
COMMENTED = """\
// how we work here
{
    "model": "opus", // the good one
    /* nobody knows why */
    "unknown": {"deep": [1, 2.5e3, null, true, "// no comment"]},
    "hooks": {
        // formats what was written
        "PostToolUse": [
            {
                "matcher": "Write",
                "hooks": [{"type": "command", "command": "fmt"},], // ours since 2024
            },
        ],
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]
    }
}
"""
TEXTS = {
    "commented": COMMENTED,
    "windows": COMMENTED.replace("\n", "\r\n"),
    "one line": '{"a": 1, "hooks": {"PostToolUse": [{"hooks": []}], "Stop": []}}',
    "tabs": '{\n\t"a": 1\n}',
    "remark behind the last": '{\n  "a": 1 // one\n}\n',
    "empty object": "{}",
    "empty hooks": '{\n  "hooks": {\n  }\n}\n',
    "empty event": '{"hooks": {"PreToolUse": [ ]}}',
    "only a comment": "{ // nothing yet\n}\n",
    "trailing comma": '{\n  "a": [1,],\n}\n',
    "byte order mark": '\ufeff{"a": 1}',
}
each_text = for_each("text", TEXTS.values(), ids=TEXTS)


def hooks_of(text: str) -> dict[str, Any]:
    found: dict[str, Any] = parsed(text).value["hooks"]
    return found


def is_within(old: str, new: str) -> bool:
    """Whether the old text is the new one with something left out."""
    rest = iter(new)
    return all(character in rest for character in old if not character.isspace())


@each_text
def test_every_event_gets_its_group_and_nothing_else_changes(text: str) -> None:
    """What is there keeps its values, its order, its comments and its hooks."""
    after = json_settings.installed(text, GROUPS)
    was, now = parsed(text).value, parsed(after).value
    for event, group in GROUPS.items():
        assert now["hooks"][event] == [*was.get("hooks", {}).get(event, []), group]
    assert {**now, "hooks": None} == {**was, "hooks": None}
    assert now["hooks"].get("Stop") == was.get("hooks", {}).get("Stop")
    assert is_within(text, after)


@each_text
def test_installing_twice_is_installing_once(text: str) -> None:
    """To the byte."""
    after = json_settings.installed(text, GROUPS)
    assert json_settings.installed(after, GROUPS) == after


@each_text
def test_taking_ours_out_leaves_what_others_wrote(text: str) -> None:
    """Also where nobody remembers what the file was before."""
    bare = json_settings.uninstalled(json_settings.installed(text, GROUPS))
    now, was = parsed(bare).value, parsed(text).value
    for event in EVENTS:
        assert now.get("hooks", {}).get(event, []) == was.get("hooks", {}).get(event, [])
    assert {**now, "hooks": None} == {**was, "hooks": None}
    assert is_within(bare.replace(",", ""), text)
    assert json_settings.uninstalled(bare) == bare


def test_a_text_with_hooks_of_others_comes_back_to_the_byte() -> None:
    """Taking out undoes putting in, where nothing had to be made to hold ours."""
    assert json_settings.uninstalled(json_settings.installed(COMMENTED, GROUPS)) == COMMENTED


def test_a_remark_stays_with_what_it_is_about() -> None:
    """On the line of the member before ours."""
    after = json_settings.installed('{\n  "a": 1 // one\n}\n', GROUPS)
    assert after.startswith('{\n  "a": 1, // one\n  "hooks": {')


def test_what_is_written_is_indented_as_the_file_is() -> None:
    """With tabs where it has tabs, with its line ends where they are those of Windows."""
    after = json_settings.installed('{\r\n\t"a": 1\r\n}', {"Stop": {"hooks": []}})
    assert after == (
        '{\r\n\t"a": 1,\r\n\t"hooks": {\r\n\t\t"Stop": [\r\n\t\t\t{\r\n\t\t\t\t"hooks": []'
        "\r\n\t\t\t}\r\n\t\t]\r\n\t}\r\n}"
    )


def test_an_old_command_of_ours_is_replaced() -> None:
    """One that was written by another installation, or by hand."""
    for command in (
        "/old/python -I -S '/old place/herdbook/entrypoints/hook.py' SessionEnd",
        typed_command("SessionEnd"),
    ):
        old = {"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": command}]}]}}
        after = json_settings.installed(json.dumps(old), GROUPS)
        assert hooks_of(after)["SessionEnd"] == [GROUPS["SessionEnd"]]


def test_a_command_of_ours_among_others_goes_alone() -> None:
    """The group and its other commands stay."""
    ours = {"type": "command", "command": typed_command("Stop")}
    theirs = {"type": "command", "command": "herdbook hook Stopped"}
    for commands in ([ours, theirs], [theirs, ours], [ours, theirs, ours]):
        text = json.dumps({"hooks": {"Stop": [{"hooks": commands}]}}, indent=2)
        assert hooks_of(json_settings.uninstalled(text)) == {"Stop": [{"hooks": [theirs]}]}


@for_each(
    ("text", "reason"),
    [
        ("[]", "is not an object"),
        ("{", "is not JSON at line 1"),
        ('{\n"a": nope}', "is not JSON at line 2"),
        ('{"a" 1}', "is not JSON"),
        ('{"a": 1 "b": 2}', "is not JSON"),
        ("{} {}", "is not JSON"),
        ('{"hooks": []}', "`hooks` that are not an object"),
        ('{"hooks": {"Stop": {}}}', "`hooks.Stop` that is not a list"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, reason: str) -> None:
    """With the line where it is."""
    for change in (
        lambda: json_settings.installed(text, GROUPS),
        lambda: json_settings.uninstalled(text),
    ):
        with pytest.raises(ValueError, match=reason):
            change()


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_file_is_as_none(text: str) -> None:
    """It becomes one with our hooks alone."""
    assert hooks_of(json_settings.installed(text, GROUPS)) == {e: [g] for e, g in GROUPS.items()}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(
    st.dictionaries(st.text().filter(lambda name: name != "hooks"), JSON),
    st.dictionaries(st.sampled_from([*EVENTS, "Stop"]), st.lists(JSON)),
    st.sampled_from([None, 1, 2, "\t"]),
    st.booleans(),
)
def test_any_settings_survive_coming_and_going(
    others: dict[str, Any], hooks: dict[str, Any], indent: int | str | None, ascii_only: bool
) -> None:
    """Whatever they hold and however they are laid out."""
    was = {**others, "hooks": hooks}
    text = json.dumps(was, indent=indent, ensure_ascii=ascii_only)
    assert parsed(text).value == was
    after = json_settings.installed(text, GROUPS)
    assert {**parsed(after).value, "hooks": hooks} == was
    back = parsed(json_settings.uninstalled(after)).value
    left = {event: groups for event, groups in hooks.items() if groups or event == "Stop"}
    found = {e: g for e, g in back.get("hooks", {}).items() if g or e == "Stop"}
    assert found == left
