"""Every block of code in README and documents is run or checked, as a reader would try it."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from typing import Any

import psycopg
import pytest
from packaging.requirements import Requirement

from herdbook.entrypoints.cli import parser
from herdbook.entrypoints.operations.error_table import DEFECT, ERRORS
from tests.e2e.conftest import PROGRAM, Person
from tests.e2e.documents import DOCUMENTS, GENERATED, REPOSITORY, Block, all_blocks

BLOCKS = all_blocks()
SETUPS = Path(__file__).parent / "document_setups"
SESSION = Path(__file__).with_name("document_session.py")
RUN = ("sh", "python")

NOT_RUN = {
    "docs/editors.md": ["needs Neovim", "needs Node.js and VS Code", "needs Emacs"],
}
"""What cannot be run here, with the reason that the document gives for each."""
PICTURES = {"docs/architecture.md": 4}
"""How many blocks are text to look at, neither code nor the output of any."""
CHANGING = re.compile(
    r"\b[0-9a-f]{6,40}\b|\b[a-z]{3}_[0-9a-f]+|#\d+"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*|\b\d+[dhms]( \d+[dhms])?\b"
)
"""What differs each time: ids, hashes, numbers of changes, times and durations."""


def of_kind(*kinds: str) -> list[Block]:
    """The blocks of some kinds in all documents."""
    return [each for blocks in BLOCKS.values() for each in blocks if each.kind in kinds]


def test_every_block_is_run_checked_or_marked_with_its_reason() -> None:
    """What is not run is counted here, so that its number cannot grow unseen."""
    unknown = [str(each) for each in of_kind("")]
    assert unknown == [], "say how it is run, or mark it: <!-- not run: REASON -->"
    marked: dict[str, list[str]] = {}
    for each in of_kind("not run"):
        marked.setdefault(each.document, []).append(each.reason)
    assert marked == NOT_RUN
    pictures: dict[str, int] = {}
    for each in of_kind("picture"):
        pictures[each.document] = pictures.get(each.document, 0) + 1
    assert pictures == PICTURES


def session(person: Person, folder: Path, blocks: list[Block], document: str) -> list[str]:
    """Type blocks in a repository, after what the document takes for granted; what they print."""
    stem = SETUPS / Path(document).stem
    setups = [("sh", stem.with_suffix(".sh")), ("python", stem.with_suffix(".py"))]
    before = [(kind, path.read_text()) for kind, path in setups if path.exists()]
    steps = folder.parent / "steps.json"
    steps.write_text(json.dumps([*before, *((each.kind, each.text) for each in blocks)]))
    done = subprocess.run(
        [sys.executable, str(SESSION), str(steps)],
        cwd=folder,
        env={
            **person.variables,
            "PATH": f"{PROGRAM.parent}:{person.variables['PATH']}",
            "CHECKOUT": str(REPOSITORY),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    printed: list[str] = answer["printed"][len(before) :]
    where = blocks[len(printed)] if len(printed) < len(blocks) else "its setup"
    assert answer["failure"] is None, f"{where}: {answer['failure']}"
    return printed


def promises(block: Block) -> list[str]:
    """What the comments of a block of Python say that its calls of print show."""
    return re.findall(r"^\s*print\(.*\)  # (.*)$", block.text, re.MULTILINE)


def stable(text: str) -> list[str]:
    """The lines of a text without what differs each time."""
    lines = [" ".join(CHANGING.sub("…", line).split()) for line in text.splitlines()]
    return [line for line in lines if line]


@pytest.mark.parametrize(
    "document", [name for name, found in BLOCKS.items() if any(each.kind in RUN for each in found)]
)
def test_what_a_document_says_to_type_works_in_its_order(
    person: Person, app: Path, document: str
) -> None:
    """In a fresh repository and home, by the installed program, and it prints what is shown."""
    blocks = [each for each in BLOCKS[document] if each.kind in RUN]
    printed = dict(zip(blocks, session(person, app, blocks, document), strict=True))
    before = None
    for each in BLOCKS[document]:
        if each.kind == "output":
            assert before is not None, f"{each}: no block before it prints anything"
            assert stable(each.text) == stable(printed[before]), each
        before = each if each.kind in RUN else before
    for each in blocks:
        lines = iter(printed[each].splitlines())
        assert [line for line in promises(each) if line not in lines] == [], each


def test_every_example_of_the_reference_is_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program reads it without an error; what it does is tested where its operation is."""
    monkeypatch.setattr(parser, "read_input_bytes", lambda: b"a text")
    examples = of_kind("example")
    assert {each.document for each in examples} == {GENERATED}
    for each in examples:
        for command in each.commands:
            program, *words = shlex.split(command)
            operation, rest = parser.find_operation(words)
            assert program == "herdbook", each
            assert operation is not None, each
            parser.parse(operation, rest)


def test_plans_in_documents_can_be_imported(person: Person, app: Path) -> None:
    """As Markdown and as JSON Lines; each makes a plan of its own."""
    plans = of_kind("plan")
    assert {each.language for each in plans} == {"markdown", "jsonl"}
    for number, each in enumerate(plans):
        file = app / f"plan-{number}.{each.language.replace('markdown', 'md')}"
        file.write_text(each.text)
        answer = person.asks(app, "import", "plan", file.name)
        assert answer["added"], each


def test_settings_in_documents_are_read_by_the_program(person: Person, app: Path) -> None:
    """Each in the file that it is for; settings of other programs are only parsed."""
    for each in of_kind("toml"):
        settings = tomllib.loads(each.text)
        if each.mark == "not ours":
            continue
        person.config.parent.mkdir(parents=True, exist_ok=True)
        person.config.write_text(each.text)
        shown = person.asks(app, "config")
        for name in settings:
            assert "config.toml" in shown[name]["origin"], f"{each}: {name}"


def test_json_in_documents_is_json() -> None:
    """One document, or one in each line."""
    for each in of_kind("json"):
        json.loads(each.text)


def test_statements_in_documents_run_on_a_server(postgres_server_url: str) -> None:
    """In a transaction that is rolled back; the people whom they name exist there."""
    for each in of_kind("sql"):
        people = {
            name for names in re.findall(r" TO ([\w, ]+);", each.text) for name in names.split(", ")
        }
        with psycopg.connect(postgres_server_url) as server:
            for name in sorted(people):
                server.execute(f'CREATE ROLE "{name}"')
            server.execute(each.text)
            server.rollback()


def test_the_targets_in_documents_are_there() -> None:
    """Make knows what to do for each; that it does it is tested where it is used."""
    make = shutil.which("make")
    assert make is not None
    targets = {command for each in of_kind("make") for command in each.commands}
    assert targets
    for command in sorted(targets):
        words = shlex.split(command)[1:]
        told = subprocess.run(
            [make, "--dry-run", *words], cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
        assert told.returncode == 0, told.stderr


def brought_by(requirement: Requirement, seen: set[str]) -> set[str]:
    """The distributions that a requirement brings along, as they are installed here."""
    if str(requirement) in seen:
        return set()
    seen.add(str(requirement))
    found = {requirement.name.lower()}
    for text in distribution(requirement.name).requires or []:
        inner = Requirement(text)
        extras = requirement.extras or {""}
        if inner.marker is None or any(inner.marker.evaluate({"extra": each}) for each in extras):
            found |= brought_by(inner, seen)
    return found


def installed_by(block: Block) -> set[str]:
    """The distributions that the last command of a block installs; `.` is Herdbook itself."""
    words = shlex.split(block.commands[-1])
    named = [re.sub(r"^\.", "herdbook", word) for word in words[words.index("install") + 1 :]]
    seen: set[str] = set()
    return set().union(*(brought_by(Requirement(each), seen) for each in named))


def owners_of(module: str) -> set[str]:
    """The distributions that have the files of a module."""
    path = module.replace(".", "/")
    return {
        owner.lower()
        for owner in packages_distributions()[module.partition(".")[0]]
        for file in distribution(owner).files or []
        if str(file).startswith((f"{path}/", f"{path}.py"))
    }


def test_an_example_runs_after_the_line_that_installs_for_it() -> None:
    """What a block of Python imports is brought along by the installation before it."""
    checked = set()
    for blocks in BLOCKS.values():
        installed: set[str] | None = None
        for each in blocks:
            if each.kind == "install":
                installed = installed_by(each)
            modules = re.findall(r"^(?:from|import) ([\w.]+)", each.text, re.MULTILINE)
            for module in modules if each.kind == "python" and installed is not None else []:
                if module.partition(".")[0] not in {*sys.stdlib_module_names, "herdbook"}:
                    assert owners_of(module) & installed, f"{each}: {module} is not installed"
                    checked.add(module)
    assert "langgraph.graph" in checked


def test_no_document_installs_from_a_package_index() -> None:
    """Herdbook is installed from a clone: `.` names it, with its extras."""
    for path in (*DOCUMENTS, REPOSITORY / "editors" / "vscode" / "README.md"):
        assert re.findall(r"(?:pip|pipx|tool) install '?herdbook", path.read_text()) == [], path


def test_links_between_documents_lead_somewhere() -> None:
    """To a file, and to a heading of it where one is named."""
    for path in DOCUMENTS:
        text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = (path.parent / name).resolve() if name else path
            assert file.exists(), f"{path.name} links to {target}"
            if anchor:
                headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
                anchors = {
                    re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings
                }
                assert anchor in anchors, f"{path.name} links to {target}"


def test_the_site_and_the_readme_lead_to_every_document() -> None:
    """None is built that nobody finds; decisions have a page that lists them."""
    documents = {path.name for path in (REPOSITORY / "docs").glob("*.md")}
    sections = tomllib.loads((REPOSITORY / "zensical.toml").read_text())["project"]["nav"]
    entries = [page for each in sections for pages in each.values() for page in _pages(pages)]
    assert documents <= set(entries)
    readme = (REPOSITORY / "README.md").read_text()
    assert [name for name in sorted(documents) if f"](docs/{name}" not in readme] == []


def _pages(pages: str | list[dict[str, str]]) -> list[str]:
    return [pages] if isinstance(pages, str) else [one for each in pages for one in each.values()]


def test_decisions_have_numbers_of_their_own() -> None:
    """In the name of the file and in the title, the same and nobody else's."""
    files = sorted((REPOSITORY / "docs" / "adr").glob("0*.md"))
    numbers = [int(path.name.partition("-")[0]) for path in files]
    assert len(numbers) == len(set(numbers))
    titles = [path.read_text().partition("\n")[0] for path in files]
    assert [int(re.findall(r"\d+", title)[0]) for title in titles] == numbers


def test_the_glossary_fits_on_one_screen_and_tells_the_three_ways_to_talk_apart() -> None:
    """Twenty lines; no term twice; one sentence each on when to use which."""
    lines = (REPOSITORY / "docs" / "glossary.md").read_text().splitlines()
    assert len(lines) <= 20
    rows = dict(re.findall(r"^\| (.+?) \| (.+) \|$", "\n".join(lines), re.MULTILINE))
    terms = [term for name in rows for term in name.split(", ")]
    assert len(terms) == len(set(terms))
    for way in ("message", "conversation", "chat"):
        assert rows[way].startswith("use it to ")
        assert "." not in rows[way]


def test_the_reference_names_every_exit_code() -> None:
    """Those of the table of errors, and the ends that no rule decides."""
    text = (REPOSITORY / GENERATED).read_text().partition("Exit codes: ")[2].partition("\n\n")[0]
    named = {int(code) for code in re.findall(r"(?:^|, )(\d+) ", text.replace("\n", " "))}
    known = {row.exit_code for row in ERRORS.values()}
    interrupted = 128 + signal.SIGINT
    assert named == known | {0, DEFECT, interrupted}


def test_the_reference_is_grammatical_where_it_is_generated() -> None:
    """An article fits the noun that follows it, and no help only repeats the option's name."""
    text = (REPOSITORY / GENERATED).read_text()
    assert (
        re.findall(r"\ba (?:initiative|agent|errand|account|answer|entry|area|event)\b", text) == []
    )
    options = re.findall(r"^- `--([\w-]+)`: ([^(\n]+)", text, re.MULTILINE)
    assert options
    said = [name for name, help_ in options if help_.strip() == name.replace("-", " ")]
    assert said == []
