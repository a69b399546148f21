"""What the README shows is what happens."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import PROGRAM, Person

README = Path(__file__).parents[2] / "README.md"


def blocks(language: str) -> list[str]:
    """The pieces of code in a language."""
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_examples_print_what_they_say(person: Person, app: Path) -> None:
    """Run one after the other in a fresh process, every `print` prints its comment."""
    code = "\n".join(blocks("python"))
    promised = re.findall(r"^\s*print\(.*\)  # (.*)$", code, re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=app,
        env=person.variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    journal = [line for line in printed if re.match(r"\d+ (add|save|remove) ", line)]
    assert len(promised) == 5
    assert [line for line in printed if line not in journal] == promised
    assert len(journal) >= 4


@pytest.mark.parametrize("engine", ["lmdb", "duckdb", "postgres"])
def test_the_five_minutes_go_as_they_are_written(
    person: Person, app: Path, postgres_url: str, engine: str
) -> None:
    """Typed into a shell in a repository, every command ends well, whichever backend is chosen."""
    person.chooses(postgres_url if engine == "postgres" else engine)
    section = README.read_text().partition("\n## Five minutes\n")[2]
    section = section.partition("\n## Choose a backend\n")[0]
    script = "\n".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL))
    assert "herdbook import plan" in script
    sh = shutil.which("sh")
    assert sh is not None
    done = subprocess.run(
        [sh, "-eu", "-c", script],
        cwd=app,
        env={**person.variables, "PATH": f"{PROGRAM.parent}:{person.variables['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Write the migration" in done.stdout
    tasks = {row["name"]: row["status"] for row in person.asks(app, "task", "list")}
    assert person.asks(app, "where")["areas"]["work"]["exists"]
    assert tasks.pop("Write the migration") == "completed"
    assert tasks == dict.fromkeys(
        (
            "Fix the typo in the README",
            "Test it on a copy",
            "Draw the form",
            "Check passwords",
        ),
        "pending",
    )


def test_the_settings_of_the_record_are_shown_and_mean_what_is_said(
    person: Person, app: Path
) -> None:
    """Its place and its size, in the user's own file; the default size is the one it names."""
    (settings,) = [each for each in blocks("toml") if "record_size_limit" in each]
    default = person.asks(app, "config")["record_size_limit"]
    assert (default["value"], default["origin"]) == (512 * 2**20, "default")
    assert "default 512 MiB" in settings
    person.config.parent.mkdir(parents=True)
    person.config.write_text(settings)
    answer = person.asks(app, "config")
    assert answer["record_size_limit"]["value"] == 2**30
    assert "config.toml" in answer["record_size_limit"]["origin"]
    place = person.asks(app, "where")["areas"]["record"]["url"]
    assert place == f"lmdb://{person.home}/{answer['record']['value']}"
