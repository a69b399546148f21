"""Rules for names and documents: a class name exists once, and links lead somewhere."""

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.cases import for_each
from tests.unit.test_house import REPOSITORY, sources

PARTICIPLES = frozenset(
    [
        "bound",
        "brought",
        "built",
        "chosen",
        "done",
        "drawn",
        "found",
        "given",
        "gone",
        "held",
        "hidden",
        "kept",
        "known",
        "laid",
        "lent",
        "lost",
        "made",
        "meant",
        "said",
        "sent",
        "shown",
        "sought",
        "spent",
        "struck",
        "taken",
        "told",
        "thought",
        "understood",
        "woken",
        "written",
    ]
)
PROTOCOL_NAMES = frozenset({"_initialized"})
"""Handlers that are called as the message of the protocol is."""
DOCUMENTS = sorted(
    [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md"), *REPOSITORY.glob("docs/adr/*.md")]
)
PUBLIC = {
    "herdbook.domain.grading": ("Grade", "score_after", "grow", "is_halted"),
    "herdbook.adapters": ("open_store",),
    "herdbook.adapters.langgraph": ("HerdbookSaver",),
    "herdbook.ports.unit_of_work.run": ("run", "read"),
    "herdbook.entrypoints.client": ("Client",),
}


def nodes() -> Iterator[tuple[Path, ast.AST]]:
    """Every node of the syntax tree of every module."""
    for source in sources():
        for node in ast.walk(ast.parse((REPOSITORY / source).read_text())):
            yield source, node


def test_a_class_name_exists_once() -> None:
    """Also if one of the two has an underscore before it."""
    found = defaultdict(list)
    for source, node in nodes():
        if isinstance(node, ast.ClassDef):
            found[node.name.lstrip("_")].append(str(source))
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_no_function_is_a_bare_participle() -> None:
    """A function is named by a verb, or by the noun of what it returns."""
    found = [
        f"{source}: {node.name}"
        for source, node in nodes()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name not in PROTOCOL_NAMES
        and is_participle(node.name.strip("_"))
    ]
    assert found == []


def is_participle(name: str) -> bool:
    """Whether a name is one word and a participle; `feed` and `seed` are verbs."""
    return name in PARTICIPLES or bool(re.fullmatch(r"[a-z]*[^e]ed", name))


@for_each("module", PUBLIC)
def test_what_programs_import_stays_where_it_is(module: str) -> None:
    """And the page on the architecture lists it."""
    imported = importlib.import_module(module)
    assert all(hasattr(imported, name) for name in PUBLIC[module])
    assert module in (REPOSITORY / "docs" / "architecture.md").read_text()


@for_each("document", DOCUMENTS)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    """Every relative link of a document is a file or a folder."""
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text())
    local = [each for each in targets if "://" not in each]
    assert [each for each in local if not (document.parent / each).exists()] == []


@for_each("document", [each for each in DOCUMENTS if each.parent.name == "adr"])
def test_an_adr_is_titled_by_its_number(document: Path) -> None:
    """`0004-projections.md` begins with `# 4. `, so that a reference to ADR 4 is found."""
    assert document.read_text().startswith(f"# {int(document.name[:4])}. ")


@for_each("document", DOCUMENTS)
def test_documents_name_modules_that_exist(document: Path) -> None:
    """A path of a module in a document is that of a file."""
    folders = "adapters|domain|entrypoints|ports|services|tests|benchmarks"
    paths = re.findall(rf"(?<![\w/])((?:{folders})/[\w/]+\.py)\b", document.read_text())
    assert [each for each in paths if not (REPOSITORY / each).exists()] == []


def test_the_glossary_stays_short() -> None:
    """At most twenty lines of terms, and one for each way to talk."""
    lines = (REPOSITORY / "docs" / "glossary.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("|")][2:]
    assert len(rows) <= 20
    assert all(any(row.startswith(f"| {term} |") for row in rows) for term in TALKING)


TALKING = ("message", "conversation", "chat")
