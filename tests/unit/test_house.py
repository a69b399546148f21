"""The house stands: what is published, what the domain needs, and that no test is skipped."""

import ast
import importlib.util
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Container, Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from zipfile import ZipFile

import pytest

REPOSITORY = Path(__file__).parents[2]
FOLDERS = ("adapters", "domain", "entrypoints", "ports", "services")
DISTRIBUTION = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def sources() -> list[Path]:
    """Every module of ours, named from the top of the repository."""
    return sorted(
        path.relative_to(REPOSITORY)
        for folder in FOLDERS
        for path in (REPOSITORY / folder).rglob("*.py")
    )


def imported(source: Path) -> Iterator[str]:
    """The names of what a module imports, wherever in it."""
    for node in ast.walk(ast.parse((REPOSITORY / source).read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def imported_at_import(source: Path, ours: Container[str]) -> Iterator[str]:
    """The modules that a module imports while it is imported itself."""
    steps: list[ast.AST] = [ast.parse((REPOSITORY / source).read_text())]
    while steps:
        match steps.pop():
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=str(module), names=names):
                parts = [f"{module}.{each.name}" for each in names]
                yield from (part if part in ours else module for part in parts)
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=otherwise):
                steps += otherwise
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                pass
            case node:
                steps += ast.iter_child_nodes(node)


def module_name(source: Path) -> str:
    """The name under which a module of ours is imported."""
    parts = ("herdbook", *source.with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of what it is made of, without a network."""
    copy = tmp_path_factory.mktemp("sources")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, copy)
    for folder in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPOSITORY / folder, copy / folder, ignore=ignored)
    build = "from setuptools import build_meta; build_meta.build_wheel('.')"
    subprocess.run([sys.executable, "-c", build], cwd=copy, check=True, capture_output=True)
    (built,) = copy.glob("*.whl")
    return built


def test_every_folder_of_ours_is_listed() -> None:
    """A package that pyproject.toml does not list would be missing from the wheel."""
    listed = set(DISTRIBUTION["tool"]["setuptools"]["packages"])
    found = {".".join(("herdbook", *source.parent.parts)) for source in sources()}
    assert listed == found, "see [tool.setuptools] in pyproject.toml"


def test_every_folder_of_ours_says_what_lives_there() -> None:
    """Each package has an `__init__.py`, and that has a docstring."""
    for folder in {source.parent for source in sources()}:
        assert ast.get_docstring(ast.parse((REPOSITORY / folder / "__init__.py").read_text()))


def test_every_module_can_be_the_first_that_is_imported() -> None:
    """No module needs, while it is imported, one that needs it: the order never matters.

    So a command that finds its modules imported finds the same as one that imports them.
    """
    ours = {module_name(source): source for source in sources()}
    needs = {
        name: {each for each in imported_at_import(source, ours) if each in ours}
        for name, source in ours.items()
    }
    order = list(TopologicalSorter(needs).static_order())  # raises CycleError
    assert set(order) == set(ours)


def test_the_wheel_holds_only_herdbook(wheel: Path) -> None:
    """Nothing called `domain` or `ports` lands in anybody's site-packages."""
    version = DISTRIBUTION["project"]["version"]
    tops = {name.split("/")[0] for name in ZipFile(wheel).namelist()}
    assert tops == {"herdbook", f"herdbook-{version}.dist-info"}


def test_the_wheel_holds_all_of_herdbook(wheel: Path) -> None:
    """Every module is in it, the files of the page, and in every folder the mark: typed."""
    names = {name for name in ZipFile(wheel).namelist() if name.startswith("herdbook/")}
    marks = {f"herdbook/{folder}/py.typed" for folder in FOLDERS}
    page = REPOSITORY / "entrypoints" / "http" / "static"
    files = {path.relative_to(REPOSITORY) for path in page.rglob("*") if path.is_file()}
    assert files
    wanted = {f"herdbook/{source.as_posix()}" for source in (*sources(), *files)}
    assert names == wanted | marks


def test_the_domain_names_only_attrs_and_the_standard_library() -> None:
    """No module of it imports anything else, not even inside a function."""
    allowed = sys.stdlib_module_names | {"attr", "attrs"}
    for source in sources():
        if source.parts[0] == "domain":
            for name in imported(source):
                inside = name.startswith((".", "herdbook.domain"))
                assert inside or name.split(".")[0] in allowed, f"{source} imports {name}"


def test_the_domain_needs_attrs_alone(wheel: Path, tmp_path: Path) -> None:
    """Where Herdbook and attrs are installed and nothing else, all of the domain can be imported.

    `-I -S` leaves the standard library; beside it stands one folder with the wheel and attrs.
    """
    ZipFile(wheel).extractall(tmp_path)
    for name in ("attr", "attrs"):
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        (tmp_path / name).symlink_to(Path(spec.origin).parent)
    script = """
import sys
from importlib import import_module
from importlib.util import find_spec

sys.path.append(sys.argv[1])
assert not any(find_spec(name) for name in ("cattrs", "duckdb", "lmdb", "psycopg", "pip", "pytest"))

import herdbook.domain.grading
for module in sys.argv[2:]:
    import_module(module)

modules = sys.modules.keys() - {"__main__"}
foreign = {name for name in modules if name.split(".")[0] not in sys.stdlib_module_names}
print(*sorted({name.split(".")[0] for name in foreign}))
print(*sorted({".".join(name.split(".")[:2]) for name in foreign if name.startswith("herdbook.")}))
"""
    modules = [
        ".".join(("herdbook", *source.with_suffix("").parts))
        for source in sources()
        if source.parts[0] == "domain" and source.name != "__init__.py"
    ]
    told = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, str(tmp_path), *modules],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert set(told[0].split()) <= {"attr", "attrs", "herdbook"}
    assert told[1] == "herdbook.domain"


@pytest.mark.parametrize("workers", [0, 1])
def test_a_run_with_a_skipped_test_fails(tmp_path: Path, workers: int) -> None:
    """A skipped test and a skipped module are named, and the run has failed."""
    ended = run_tests(
        tmp_path,
        workers,
        "def test_engine(): pytest.skip('no engine')",
        "pytest.skip('no driver', allow_module_level=True)",
    )
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED
    assert "test_0.py::test_engine: Skipped: no engine" in ended.stdout
    assert "test_1.py: Skipped: no driver" in ended.stdout


def test_a_run_with_an_expected_failure_passes(tmp_path: Path) -> None:
    """What is known to fail is no skipped test."""
    ended = run_tests(tmp_path, 0, "@pytest.mark.xfail\ndef test_it(): assert False")
    assert ended.returncode == pytest.ExitCode.OK


LAW = """
from tests.cases import for_each

@for_each(("number", "name"), [(1, "one"), (2, "two"), (3, "three")], ids=["a", "b", "c"])
def test_law(number, name):
    assert number == 2, name
"""


def test_a_loop_names_every_case_that_fails(tmp_path: Path) -> None:
    """It does not end with the first one, and each is shown with its own values."""
    ended = run_tests(tmp_path, 0, LAW)
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED
    assert "2 of 3 cases fail: a, c" in ended.stdout
    for name, values in (("a", "AssertionError: one"), ("c", "AssertionError: three")):
        assert f"in the case {name}" in ended.stdout
        assert values in ended.stdout
    assert "1 failed" in ended.stdout


def test_the_cases_of_a_loop_share_no_fixture_of_a_test(tmp_path: Path) -> None:
    """A law that wants a folder of its own for each case is parametrised."""
    law = LAW.replace("(number, name)", "(number, name, tmp_path)")
    ended = run_tests(tmp_path, 0, law)
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    assert "the cases of a loop would share 'tmp_path'" in ended.stderr


ENGINES = """
@pytest.mark.parametrize("engine", ["memory", "lmdb", "duckdb", "postgres"])
@pytest.mark.parametrize("number", [1, 2])
def test_{name}(engine, number): pass

def test_{name}_of_no_engine(): pass
"""


def test_a_quick_run_has_memory_and_one_more_engine(tmp_path: Path) -> None:
    """Every case of a test runs on the same two, and all engines have their share of the tests."""
    modules = [ENGINES.format(name=f"law_{number}") for number in range(12)]
    ended = run_tests(tmp_path, 0, *modules, options=("--quick", "--collect-only", "--quiet"))
    found = [line for line in ended.stdout.splitlines() if "::" in line]
    assert sum("of_no_engine" in line for line in found) == 12
    assert sum("[1-memory]" in line for line in found) == 12
    assert len(found) == 12 * (1 + 2 * 2)
    for engine in ("lmdb", "duckdb", "postgres"):
        ones, twos = (sum(f"[{n}-{engine}]" in line for line in found) for n in (1, 2))
        assert ones == twos > 0


def run_tests(
    folder: Path, workers: int, *modules: str, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run these modules under the conftest.py of ours."""
    shutil.copy(REPOSITORY / "tests" / "conftest.py", folder)
    (folder / "pytest.toml").write_text(f"[pytest]\npythonpath = ['{REPOSITORY}']\n")
    for number, module in enumerate(modules):
        (folder / f"test_{number}.py").write_text(f"import pytest\n\n{module}\n")
    command = [sys.executable, "-m", "pytest", "--numprocesses", str(workers), *options]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
