"""What people see of checkpoints: short lines in which nothing is obeyed by a terminal."""

from typing import Any

from herdbook.domain.checkpoints.preview import ObjectPreview, preview_bytes
from herdbook.entrypoints.operations.checkpoints import views as checkpoints_views
from herdbook.entrypoints.operations.checkpoints.preview import as_json, line, lines
from tests.cases import for_each

EVIL = "\x1b]0;owned\x07\u202e\nnext"
SIZES = {"checkpoints": 1, "writes": 2, "pieces": 1, "bytes": 4_096}
ROW = {
    "checkpoint_id": EVIL,
    "namespace": EVIL,
    "parent_id": EVIL,
    "at": EVIL,
    "step": EVIL,
    "source": EVIL,
    "channels": 1,
    "bytes": 3,
    "writes": 1,
}
VALUE = {"tag": EVIL, "bytes": 3, "value": {EVIL: [EVIL, {"$class": EVIL, "$made_of": EVIL}]}}
FREED = {"preview": True, "threads": [{"thread_id": EVIL, "freed": SIZES, "left": SIZES}]}
DIFFERENCE = {"path": EVIL, "change": "changed", "before": EVIL, "after": EVIL * 90}
SHOWN = {
    **ROW,
    "thread_id": EVIL,
    "config": {"configurable": {"thread_id": EVIL}},
    "metadata": {EVIL: EVIL},
    "values": {EVIL: VALUE},
    "writes": [{"channel": EVIL, "task_id": EVIL, **VALUE}],
    "channel": None,
}
ANSWERS: list[tuple[Any, Any]] = [
    (checkpoints_views.threads, [{"thread_id": EVIL, "namespaces": [EVIL], "at": EVIL, **SIZES}]),
    (checkpoints_views.list_, [ROW]),
    (checkpoints_views.show, SHOWN),
    (checkpoints_views.show, {**SHOWN, "channel": EVIL}),
    (
        checkpoints_views.diff,
        {
            "before": ROW,
            "after": ROW,
            "metadata": {"differences": [DIFFERENCE], "more": 1},
            "channels": [
                {
                    "channel": EVIL,
                    "change": "changed",
                    "bytes_before": None,
                    "bytes_after": 3,
                    "differences": [DIFFERENCE],
                    "more": 0,
                }
            ],
            "unchanged": [EVIL],
        },
    ),
    (checkpoints_views.copy, {"source": EVIL, "target": EVIL, "copied": 1, "kept": 2}),
    (checkpoints_views.prune, {**FREED, "freed": SIZES}),
    (checkpoints_views.rm, {**FREED, "freed": SIZES}),
    (
        checkpoints_views.import_report,
        {
            **dict.fromkeys(("threads", "added", "kept", "writes_added", "writes_kept"), 1),
            **dict.fromkeys(("writes_left_out", "bytes_before", "bytes_after"), 1),
            "source": EVIL,
            "target": "lmdb:///src/app",
            "failed": [{"key": EVIL, "reason": EVIL}],
        },
    ),
]


@for_each(("screen", "answer"), ANSWERS)
def test_nothing_that_is_kept_is_obeyed_by_a_terminal(screen: Any, answer: Any) -> None:
    """Neither ids nor names, values, paths or reasons; what is between lines is ours."""
    text = screen(answer)
    assert "owned" in text
    assert not set("\x1b\x07\u202e") & set(text)
    assert "\nnext" not in text


def test_objects_and_bytes_are_told_in_a_line() -> None:
    """By the last part of their class, and by their size."""
    shown = as_json([ObjectPreview("langchain_core.messages.HumanMessage", {"content": "ü"}), 1])
    assert line(shown, 80) == '[HumanMessage({"content": "ü"}), 1]'
    told = preview_bytes("pickle", b"x" * 2_048)
    assert line(as_json(told), 80) == f"<pickle, 2.0 KiB, {told.digest}>"
    assert line("x" * 10**6, 10) == '"xxxxxxxx…'


def test_keys_of_any_kind_have_names_in_json() -> None:
    """None hides another, and what is no number of JSON is a text."""
    shown = as_json({1: "number", "1": "text", None: float("nan"), (1, 2): float("-inf")})
    assert shown == {"1": "text", "1 (int)": "number", "None": "nan", "(1, 2)": "-inf"}


def test_of_two_long_texts_the_place_where_they_differ_is_shown() -> None:
    """With a little of what stands before it."""
    before, after = lines("a" * 500 + "BEFORE", "a" * 500 + "AFTER", 60)
    assert before == f'…"{"a" * 12}BEFORE"'
    assert after == f'…"{"a" * 12}AFTER"'
    assert lines("x", "y", 60) == ('"x"', '"y"')
