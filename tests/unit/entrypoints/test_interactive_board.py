"""The keys of the interactive board: what is chosen, shown, run and typed."""

import json
from collections.abc import Sequence
from typing import Any

from herdbook.entrypoints.cli.terminal import Line
from herdbook.entrypoints.operations.board.interactive import InteractiveBoard
from herdbook.entrypoints.operations.board.views import CardLine


class Program:
    """What the board runs, with what it answers."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.answers: dict[str, tuple[bool, str]] = {}

    def __call__(self, words: Sequence[str]) -> tuple[bool, str]:
        self.calls.append(list(words))
        return self.answers.get(words[0], (True, "done"))


def made(count: int) -> tuple[InteractiveBoard, Program]:
    """A board with a head and some tasks, and the program behind it."""
    program = Program()

    def draw(_: object) -> list[Line]:
        cards: list[Line] = [CardLine([(f"task {n}", "")], f"tsk_{n}") for n in range(count)]
        return [[("head", "")], *cards]

    board = InteractiveBoard(draw, program)
    board.answer = {}
    return board, program


def text(lines: Sequence[Line]) -> list[str]:
    """The words of lines."""
    return ["".join(words for words, _ in line) for line in lines]


def test_moving_scrolls_and_stays_on_the_board() -> None:
    """The chosen task is always in sight, and the last line says what is left."""
    board, _ = made(30)
    shown = text(board.lines(5))
    assert shown[:2] == ["head", "task 0"]
    assert shown[-1].startswith("… and 27 more lines")
    for _ in range(8):
        assert board.press("j")
    assert "> task 7" in text(board.lines(5))
    board.press("k")
    assert board.chosen == "tsk_6"
    for key in ("\x1b[6~", " ", " ", "\x1b[B"):
        board.press(key)
    assert board.chosen == "tsk_29"
    assert text(board.lines(5))[-2] == "> task 29"
    assert board.lines(1)


def test_a_task_is_shown_and_claimed() -> None:
    """By the program itself; the first two lines of what it says are the message."""
    board, program = made(2)
    board.press("c")
    assert program.calls == []
    assert "choose a task" in text(board.lines(9))[-1]
    board.press("j")
    program.answers["task"] = (True, "what\nit \x1b[31mis")
    board.press("\r")
    assert text(board.lines(9))[:2] == ["what", "it \\x1b[31mis"]
    board.press("j")  # any key leads back
    assert board.page is None
    program.answers["task"] = (False, "herdbook: otter holds it")
    board.press("c")
    assert program.calls == [["task", "show", "tsk_0"], ["task", "claim", "tsk_0"]]
    assert text(board.lines(9))[-1] == "herdbook: otter holds it"
    assert board.press("q") is False


def test_what_waits_is_answered() -> None:
    """The oldest question; letters are text while one is typed, also q; escape gives it up."""
    board, program = made(1)
    approval = {"kind": "approval", "text": "It waits.", "actions": [{"label": "Approve"}]}
    program.answers["waiting"] = (True, json.dumps([approval]))
    board.press("a")
    assert "nobody waits" in text(board.lines(9))[-1]
    reply = {"method": "agent.answer", "params": {"agent": "agt_1"}, "text": "content"}
    question: dict[str, Any] = {
        "kind": "question",
        "text": "which port?\nor none?",
        "actions": [{}, reply],
    }
    program.answers["waiting"] = (True, json.dumps([approval, question]))
    board.press("a")
    for key in "q80x":
        assert board.press(key)
    board.press("\x7f")
    assert text(board.lines(9))[-1] == "answer to 'which port? or none?': q80_"
    board.press("\r")
    assert program.calls[-1] == ["agent", "answer", "--", "agt_1", "q80"]
    question["actions"][1] = {**reply, "params": {"agent": "agt_1", "asked": 12}}
    program.answers["waiting"] = (True, json.dumps([question]))
    program.answers["agent"] = (False, "what it asks now is not what was asked with #12")
    board.press("a")
    board.press("-")
    board.press("\r")
    assert program.calls[-1] == ["agent", "answer", "--asked", "12", "--", "agt_1", "-"]
    assert text(board.lines(9))[-1] == "what it asks now is not what was asked with #12"
    board.press("a")
    board.press("\x1b")
    assert board.typed is None
    assert program.calls[-1] == ["waiting", "--json"]
    program.answers["waiting"] = (False, "the store is busy")
    board.press("a")
    assert text(board.lines(9))[-1] == "the store is busy"
