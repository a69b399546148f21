"""The board, the drawn plan and tables, as people, documents and pipes get them."""

import io
import re
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from herdbook.entrypoints.cli import terminal
from herdbook.entrypoints.cli.text import pad, plain, shorten, width
from herdbook.entrypoints.operations.board import graph_documents, graph_picture, plan_tree
from herdbook.entrypoints.operations.board import views as board_views
from tests.cases import for_each

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
NASTY = (
    'say "hi"',
    "[red]no markup[/red] :smile:",
    "two\nlines\x1b[31m",
    "end",
    "a --> b; %%{init: {}}%% #quot; &lt; <b>x</b> `y` {z}",
    "1. list",
    "- item *bold* _it_ snake_case",
    "back\\slash \\N \\",
    "日本語 labels 🎉",
    "תוויות בעברית",
    "\u202eturned",
    "'; DROP TABLE tasks",
)


class Tty(io.StringIO):
    """Standard output as a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets a person look, at a terminal so wide."""

    def look(columns: int = 500, **variables: str) -> None:
        monkeypatch.setattr(sys, "stdout", Tty())
        given = {"TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "50", **variables}
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.delenv("COLORTERM", raising=False)
        for name, value in given.items():
            monkeypatch.setenv(name, value)

    return look


def card(name: str = "x", **given: Any) -> dict[str, Any]:
    """A task on a board."""
    return {
        "id": "tsk_a1b2c3d4e5f6",
        "name": name,
        "critical": False,
        "agent": None,
        "waits_for_you": False,
        "for_review": False,
        "lease_until": None,
        "waits_for": [],
        "waits_for_more": 0,
        **given,
    }


def a_board(tasks: dict[str, list[dict[str, Any]]], **given: Any) -> dict[str, Any]:
    """A board with one phase that has these tasks."""
    counted = {state: {"total": len(cards), "shown": cards} for state, cards in tasks.items()}
    phase = {"id": "pha_1", "name": "schema", "status": "in_progress", "waits_for": []}
    initiative = {
        "id": "ini_1",
        "name": "login",
        "status": "active",
        "execution_mode": "yolo",
        "phases": [{**phase, "tasks": counted}],
        "more_phases": 0,
        "critical_path": [],
        **given,
    }
    totals = {state: len(tasks.get(state, [])) for state in plan_tree.STYLES}
    return {
        "seq": 7,
        "now": NOW.isoformat(),
        "tasks": totals,
        "initiatives": [initiative],
        "more_initiatives": 0,
        "closed_initiatives": 0,
        "unseen_tasks": 0,
    }


def a_plan(names: list[str], edges: dict[int, list[int]], **given: Any) -> dict[str, Any]:
    """A plan of tasks without phases; `edges` says by number what each waits for."""
    waves: dict[int, int] = {}
    for at in range(len(names)):
        waves[at] = 1 + max((waves[other] for other in edges.get(at, [])), default=0)
    tasks = [
        {
            "id": f"tsk_{at}",
            "name": name,
            "phase_id": None,
            "wave": waves[at],
            "state": "waiting" if edges.get(at) else "ready",
            "critical": False,
            "after": [f"tsk_{other}" for other in edges.get(at, [])],
        }
        for at, name in enumerate(names)
    ]
    tasks.sort(key=lambda task: task["wave"])
    plan = {"waves": max(waves.values(), default=0), "critical_path": [], "phases": []}
    return {**plan, "tasks": tasks, **given}


def in_phases() -> dict[str, Any]:
    """Two phases with two tasks each, one after the other, and a critical path through both."""
    answer = a_plan(["a", "b", "c", "d"], {1: [0], 3: [2]})
    answer["phases"] = [
        {"id": "pha_0", "name": "schema", "after": []},
        {"id": "pha_1", "name": 'the "page"', "after": ["pha_0"]},
    ]
    for task in answer["tasks"]:
        at = int(task["id"][-1])
        task.update(phase_id=f"pha_{at // 2}", wave=at + 1, critical=True)
    answer["tasks"].sort(key=lambda task: task["wave"])
    return {**answer, "critical_path": [f"tsk_{at}" for at in range(4)], "waves": 4}


def test_a_board_names_states_holders_leases_and_what_is_waited_for() -> None:
    """In plain words where nobody looks."""
    until = (NOW + timedelta(minutes=4, seconds=5)).isoformat()
    over = (NOW - timedelta(seconds=3)).isoformat()
    awaited = [{"kind": "task", "id": str(n), "name": f"w{n}", "status": "x"} for n in range(4)]
    own = {"kind": "phase", "id": "pha_1", "name": "schema", "status": "pending"}
    answer = a_board(
        {
            "ready": [card("one")],
            "held": [
                card("two", agent="otter", lease_until=until),
                card("three", agent="lynx", lease_until=over, for_review=True),
            ],
            "waiting": [card("four", waits_for=[*awaited, own], waits_for_more=2), card("five")],
            "completed": [card("six")],
        },
        critical_path=[{"id": str(n), "name": f"s{n}"} for n in range(8)],
    )
    answer["initiatives"][0]["phases"][0]["tasks"]["ready"]["total"] = 5
    answer["initiatives"][0]["phases"][0]["tasks"]["waiting"]["shown"][1]["waits_for"] = [own]
    assert board_views.board(answer).split("\n") == [
        "tasks: 1 ready, 2 held, 2 waiting, 0 blocked, 0 in review, 1 completed   (change #7)",
        "",
        "login  active, yolo",
        "  schema  in_progress, 1 of 10 done",
        "    held         a1b2c3  two    otter, 4m 5s left",
        "                 a1b2c3  three  lynx reviews it, lease over for 3s",
        "    ready        a1b2c3  one",
        "                 and 4 more",
        "    waiting      a1b2c3  four   for w0, w1, w2, +3",
        "                 a1b2c3  five   for its phase (pending)",
        "    completed    1; last: six",
        "  * critical path: s0 → s1 → s2 → s3 → s4 → s5 → +2",
    ]


def test_an_empty_plan_says_so() -> None:
    """On the board, as a tree, and in documents."""
    nothing = {**a_board({}), "initiatives": []}
    assert "the plan is empty" in board_views.board(nothing)
    empty = a_plan([], {})
    for text in (plan_tree.plan(empty), graph_documents.mermaid(empty), graph_documents.dot(empty)):
        assert "nothing is left to do" in text


def test_a_board_tells_what_it_does_not_show() -> None:
    """More initiatives, closed ones, tasks not looked at, phases, and a path not looked for."""
    answer = a_board({}, critical_path=None, more_phases=4)
    answer.update(more_initiatives=2, closed_initiatives=3, unseen_tasks=9)
    text = board_views.board(answer)
    for words in ("2 more init", "3 initiatives comp", "9 more tasks", "4 more phases", "too many"):
        assert words in text


def test_the_critical_path_is_marked_with_a_sign(person: Callable[..., None]) -> None:
    """And with a colour where there are colours."""
    answer = a_board({"ready": [card("on it", critical=True), card("off it")]})
    lines = board_views.board(answer).splitlines()
    assert [line[15:17] for line in lines[-2:]] == ["* ", "  "]
    person()
    lines = board_views.board(answer).splitlines()
    assert "\x1b[1;35mon it" in lines[-2]
    assert "\x1b[1;35moff it" not in lines[-1]
    assert "* " in ESCAPE.sub("", lines[-2])


def test_people_and_pipes_read_the_same_words(person: Callable[..., None]) -> None:
    """Only the colours differ, and NO_COLOR takes them away."""
    answer = a_board({state: [card(name) for name in NASTY] for state in plan_tree.STYLES})
    tree = a_plan(list(NASTY), {1: [0], 3: [1], 4: [1, 2]})
    for shown in (lambda: board_views.board(answer), lambda: plan_tree.plan(tree)):
        piped = shown()
        assert "\x1b" not in piped
        person()
        coloured = shown()
        assert "\x1b[" in coloured
        words = [line.rstrip() for line in ESCAPE.sub("", coloured).splitlines()]
        assert words == piped.splitlines()
        person(NO_COLOR="1")
        assert shown() == piped
        person(TERM="dumb")
        assert shown() == piped
        sys.stdout = io.StringIO()


def test_on_a_narrow_terminal_every_line_stays_one_line(person: Callable[..., None]) -> None:
    """What does not fit is cut off visibly."""
    answer = a_board({"ready": [card(name) for name in NASTY]})
    whole = board_views.board(answer).splitlines()
    person(columns=30)
    lines = ESCAPE.sub("", board_views.board(answer)).splitlines()
    assert len(lines) == len(whole)
    assert all(cell_len(line) <= 30 for line in lines)
    assert lines[0].endswith("…")


def test_wide_and_turned_writing_keeps_the_columns() -> None:
    """What stands behind a name stands in the same column on every line."""
    awaited = [{"kind": "task", "id": "1", "name": "ZZ", "status": "x"}]
    answer = a_board({"waiting": [card(name, waits_for=awaited) for name in NASTY]})
    lines = [line for line in board_views.board(answer).splitlines() if "for ZZ" in line]
    assert len(lines) == len(NASTY)
    assert len({cell_len(line[: line.index("for ZZ")]) for line in lines}) == 1
    tree = plan_tree.plan(a_plan(list(NASTY), {})).splitlines()[2:]
    assert len({cell_len(line.removesuffix("ready")) for line in tree}) == 1


@for_each(
    "text",
    [
        "日本",
        "שלום",
        "e\u0301",
        "👩‍👩‍👧",
        "👍🏽",
        "❤️",
        "☕",
        "⌚️",
        "🇩🇪",
        "ن\u200cن",
        "1️⃣",
        "\u200b",
        "각",
    ],
)
def test_a_text_is_as_wide_as_a_terminal_makes_it(text: str) -> None:
    """Marks and joined signs take no place of their own, pictures and ideographs take two."""
    assert width(text) == cell_len(text)
    assert width(f"a{text}b") == 2 + cell_len(text)


@given(st.text(max_size=30), st.integers(1, 20))
def test_a_shortened_text_fits_and_a_padded_one_fills(text: str, places: int) -> None:
    """Whatever it is written in."""
    short = shorten(plain(text), places)
    assert width(short) <= places
    assert width(pad(short, places)) == places
    assert short == plain(text) or short.endswith("…")


def test_a_text_cannot_turn_the_rest_of_its_line_around() -> None:
    """What overrides the direction of writing is shown as what it is."""
    assert plain("a\u202eb\u2066c") == "a\\u202eb\\u2066c"


def test_a_table_is_the_same_for_people_and_pipes(person: Callable[..., None]) -> None:
    """No cell is taken for markup or obeyed by a terminal."""
    rows = [[name, "x"] for name in NASTY]
    piped = terminal.table(("NAME", "WHAT"), rows)
    assert "\x1b" not in piped
    person()
    coloured = terminal.table(("NAME", "WHAT"), rows)
    assert "\x1b[1m" in coloured
    words = [line.rstrip() for line in ESCAPE.sub("", coloured).splitlines()]
    assert words == piped.splitlines()


def test_a_task_stands_once_in_the_tree_under_one_it_waits_for() -> None:
    """Of the wave before it, that of the critical path first; the others are named."""
    answer = a_plan(["root", "early", "mid", "other", "last"], {2: [0], 3: [1], 4: [1, 2, 3]})
    for task in answer["tasks"]:
        task["critical"] = task["name"] in ("early", "other", "last")
    answer["critical_path"] = ["tsk_1", "tsk_3", "tsk_4"]
    assert plan_tree.plan(answer).splitlines() == [
        "5 tasks in 3 waves; the critical path, marked *, has 3",
        "",
        "1   root        ready",
        "2   └─ mid      waiting",
        "1 * early       ready",
        "2 * └─ other    waiting",
        "3 *    └─ last  waiting  also after early, mid",
    ]


def test_what_a_phase_waits_for_is_told_where_the_phase_begins() -> None:
    """Its first tasks stand under the last ones of the phase before it."""
    assert plan_tree.plan(in_phases()).splitlines()[2:] == [
        "1 * a           ready",
        "2 * └─ b        waiting",
        "3 *    └─ c     ready    after phase schema",
        "4 *       └─ d  waiting",
    ]


def test_a_long_chain_does_not_run_off_the_screen() -> None:
    """A thousand tasks in a row are indented no more than a dozen."""
    answer = a_plan([f"t{at}" for at in range(1_000)], {at: [at - 1] for at in range(1, 1_000)})
    lines = plan_tree.plan(answer).splitlines()
    assert len(lines) == 1_002
    assert max(map(len, lines)) < 80
    assert [int(line.split()[0]) for line in lines[2:]] == list(range(1, 1_001))


def decoded(text: str) -> str:
    """A Mermaid label as it is shown."""
    return re.sub(r"#(\d+);", lambda found: chr(int(found[1])), text)


@given(st.text() | st.sampled_from(NASTY))
def test_any_name_is_one_mermaid_label(text: str) -> None:
    """Nothing in it ends the label or means anything, and it reads as it was."""
    label = graph_documents.mermaid_text(text)
    assert not set(label) & set('"<>&`%*\n')
    assert not re.match(r"\s*(?:[-+]|\d+[.)])\s", label)
    assert decoded(label) == plain(text)


MERMAID = (
    r"flowchart LR",
    r'  subgraph p\d+\["[^"<>]*"\]',
    r'(?:  ){1,2}t\d+\["[^"<>]*<br/>\w+"\]:::\w+',
    r"  end",
    r"  [tp]\d+ (?:-->|==>) [tp]\d+",
    r"  classDef \w+ fill:#\w{6},stroke:#\w{3},color:#\w{3}",
    r"  style t\d+ stroke-width:4px",
)


def test_a_mermaid_chart_is_made_of_lines_that_mermaid_knows() -> None:
    """Every task in its phase, one arrow between phases, thick along the critical path."""
    for answer in (in_phases(), a_plan(list(NASTY), {1: [0], 3: [1], 4: [1, 2]})):
        lines = graph_documents.mermaid(answer).splitlines()
        assert all(any(re.fullmatch(each, line) for each in MERMAID) for line in lines), lines
        inside = [line for line in lines if line.startswith("  subgraph")]
        assert len(inside) == lines.count("  end") == len(answer["phases"])
        assert sum(":::" in line for line in lines) == len(answer["tasks"])
    text = graph_documents.mermaid(in_phases())
    assert "p1 ==> p2" in text
    assert "t1 ==> t2" in text
    assert 'p2["the #34;page#34;"]' in text


def test_a_chart_that_mermaid_would_refuse_is_known() -> None:
    """By its arrows or by its length."""
    for size, edges in ((501, {}), (501, {at: [0] for at in range(1, 500)})):
        text = graph_documents.mermaid(a_plan(["x"] * size, edges))
        assert graph_documents.fits_mermaid(text)
    many = a_plan(["x"] * 501, {at: [0] for at in range(1, 501)})
    assert not graph_documents.fits_mermaid(graph_documents.mermaid(many))
    assert not graph_documents.fits_mermaid(graph_documents.mermaid(a_plan(["x" * 500] * 100, {})))


def test_on_a_terminal_that_cannot_draw_boards_come_one_after_the_other(
    person: Callable[..., None],
) -> None:
    """As plain text, with an empty line between them."""
    person(TERM="dumb")
    answers = [a_board({"ready": [card(name)]}) for name in ("one", "two")]
    board_views.live(iter(answers))
    assert isinstance(sys.stdout, Tty)
    shown = sys.stdout.getvalue()
    assert shown == "".join(f"{board_views.board(answer)}\n\n" for answer in answers)


def test_a_live_board_is_drawn_in_place_and_cut_to_the_terminal(
    person: Callable[..., None],
) -> None:
    """On a screen of its own, which is left in the end."""
    person(LINES="7")
    answers = [a_board({"ready": [card(name)] * 9}) for name in ("here", "there")]
    board_views.live(iter(answers))
    assert isinstance(sys.stdout, Tty)
    shown = sys.stdout.getvalue()
    assert "\x1b[?1049h" in shown
    assert shown.rstrip().endswith("\x1b[?1049l")
    assert "a1b2c3  \x1b[0mhere" in shown
    assert "a1b2c3  \x1b[0mthere" in shown
    assert "… and 7 more lines" in shown


TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|(->|[{}\[\];,=])|(\w+))', re.DOTALL)


def tokens(text: str) -> Iterator[str]:
    """The words of a DOT text; what is none fails."""
    at = 0
    while at < len(text.rstrip()):
        found = TOKEN.match(text, at)
        assert found, text[at : at + 40]
        yield found[0].strip()
        at = found.end()


def read_dot(text: str) -> tuple[dict[str, str], list[tuple[str, str]], list[str]]:
    """Nodes with their labels, arrows, and the labels of clusters."""
    words = list(tokens(text))
    assert words[:3] == ["digraph", "plan", "{"]
    assert words[-1] == "}"
    assert words.count("{") == words.count("}")
    nodes, arrows, clusters = {}, [], []
    for at, word in enumerate(words):
        if word == "->":
            arrows.append((words[at - 1], words[at + 1]))
        elif words[at + 1 : at + 4] == ["[", "label", "="]:
            nodes[word] = words[at + 4]
        elif word == "label" and words[at - 1] in "{;":
            clusters.append(words[at + 2])
    return nodes, arrows, clusters


def undone(quoted: str) -> str:
    """What a quoted DOT label shows."""
    return re.sub(r"\\(.)", r"\1", quoted[1:-1]).replace("&amp;", "&")


def test_a_dot_graph_can_be_read_back() -> None:
    """Nodes, arrows and phases are those of the plan, whatever their names are."""
    answer = a_plan(list(NASTY), {1: [0], 3: [1], 4: [1, 2]})
    nodes, arrows, clusters = read_dot(graph_documents.dot(answer))
    assert [label.rsplit("\\n", 1)[0][1:] for label in nodes.values()] == [
        graph_documents.dot_text(task["name"])[1:-1] for task in answer["tasks"]
    ]
    assert (len(arrows), clusters) == (4, [])
    nodes, arrows, clusters = read_dot(graph_documents.dot(in_phases()))
    assert arrows == [("t1", "t3"), ("t1", "t2"), ("t3", "t4")]
    assert [undone(label) for label in clusters] == ["schema", 'the "page"']


@given(st.text() | st.sampled_from(NASTY))
def test_any_name_is_one_dot_string(text: str) -> None:
    """It ends where it should, and reads as it was."""
    quoted = graph_documents.dot_text(text)
    assert list(tokens(quoted)) == [quoted]
    assert undone(quoted) == plain(text)


@given(st.lists(st.text() | st.sampled_from(NASTY), min_size=1, max_size=4))
def test_a_picture_shows_any_name_as_text(names: list[str]) -> None:
    """It is XML with the names as they are, and nothing that is loaded, run or linked."""
    answer = a_plan(names, {at: [at - 1] for at in range(1, len(names))})
    root = ET.fromstring(graph_picture.svg(answer))  # noqa: S314 - our own
    used = {each.tag.removeprefix(f"{{{graph_picture.NAMESPACE}}}") for each in root.iter()}
    assert used <= {"svg", "title", "style", "rect", "text", "g", "line", "path"}
    titles = [each.text or "" for each in root.iter(f"{{{graph_picture.NAMESPACE}}}title")]
    assert titles[1:] == [plain(task["name"]) for task in answer["tasks"]]
    attributes = {name for each in root.iter() for name in each.attrib}
    assert not {name for name in attributes if "href" in name or name.startswith("on")}


def test_a_picture_has_a_band_for_each_phase_and_thick_lines_for_the_critical_path() -> None:
    answer = in_phases()
    for phase in answer["phases"]:
        phase["status"] = "approved"
    text = graph_picture.svg(answer)
    assert "schema (approved)" in text
    assert "the &quot;page&quot; (approved, after schema)".replace("&quot;", '"') in text
    assert text.count('class="arrow critical"') == 2
    assert "nothing is left to do" in graph_picture.svg(a_plan([], {}))
