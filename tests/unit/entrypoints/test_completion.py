"""What a shell is told, and what the reference says: both follow from the table."""

import shutil
import subprocess
import sys
from pathlib import Path

from herdbook.entrypoints.cli.complete import candidates
from herdbook.entrypoints.cli.reference import command_reference
from herdbook.entrypoints.operations.completion.handlers import SCRIPTS
from tests.cases import for_each

REPOSITORY = Path(__file__).parents[3]


@for_each(
    ("words", "found"),
    [
        (["wh"], ["where"]),
        (["cl"], ["claim"]),
        (["worktree", ""], ["add", "list", "prune", "remove"]),
        (["task", "cr"], ["critical-path"]),
        (["task", "add", "--pri"], ["--priority"]),
        (["task", "add", "--priority", ""], ["high", "low", "medium"]),
        (["initiative", "set", "x", "--quality-review", ""], ["no", "yes"]),
        (["completion", "z"], ["zsh"]),
        (["nothing", ""], []),
    ],
)
def test_what_could_come_next(words: list[str], found: list[str]) -> None:
    """Commands, their verbs, their options and the choices of these."""
    assert candidates(words) == found


def test_bash_completes_with_it() -> None:
    """A real shell, with the script it is given."""
    bash = shutil.which("bash")
    assert bash is not None
    script = f"""
PATH={Path(sys.executable).parent}:$PATH
{SCRIPTS["bash"]}
COMP_WORDS=(herdbook worktree "") COMP_CWORD=2
_herdbook
echo "${{COMPREPLY[@]}}"
"""
    ended = subprocess.run([bash, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "add list prune remove\n"


def test_the_reference_is_up_to_date() -> None:
    """`make docs` writes it anew."""
    assert (REPOSITORY / "docs" / "commands.md").read_text() == command_reference()
