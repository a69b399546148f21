"""The documents and their blocks of code, and what is to be done with each.

A comment above a block decides what its language does not: `<!-- prints -->` marks what the block
before it prints, `<!-- not run: REASON -->` a block that cannot be run here, and
`<!-- not ours: REASON -->` settings of another program, which are only parsed.
"""

import re
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

REPOSITORY = Path(__file__).parents[2]
DOCUMENTS = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
GENERATED = "docs/commands.md"
"""Its blocks are the examples of the table of operations: each is parsed as a command."""

_MARK = re.compile(r"<!-- (prints|not run|not ours)(?:: (.+?))? -->\s*$", re.DOTALL)
_INSTALLERS = ("pip install ", "uv tool install ", "pipx install ")


class Block(NamedTuple):
    """A block of code: where it is, what it is, and what the comment above it says."""

    document: str
    line: int
    language: str
    text: str
    mark: str
    reason: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"

    @property
    def commands(self) -> list[str]:
        """The commands of a block of shell, without what is said about them."""
        lines = (line.split(" #")[0].strip() for line in self.text.splitlines())
        return [line for line in lines if line and not line.startswith("#")]

    @property
    def kind(self) -> str:
        """What is done with it; "" where nobody has said it."""
        if self.mark == "not run":
            return "not run"
        if self.mark == "prints":
            return "output"
        if self.document == GENERATED:
            return "example"
        if self.language == "sh":
            return self._kind_of_shell()
        return {"markdown": "plan", "jsonl": "plan", "text": "picture"}.get(
            self.language,
            self.language if self.language in ("python", "toml", "json", "sql") else "",
        )

    def _kind_of_shell(self) -> str:
        if all(each.startswith("make ") for each in self.commands):
            return "make"
        if all(each.startswith(_INSTALLERS) for each in self.commands):
            return "install"
        return "sh"


def read_blocks(path: Path) -> list[Block]:
    """The blocks of a document, in their order; those inside a block are part of its text."""
    name = path.relative_to(REPOSITORY).as_posix()
    found = []
    before = ""
    for token in MarkdownIt().parse(path.read_text(encoding="utf-8")):
        if token.type == "fence":
            said = _MARK.search(before)
            mark, reason = said.groups("") if said else ("", "")
            assert token.map is not None
            line = token.map[0] + 1
            found.append(Block(name, line, token.info.strip(), token.content, mark, reason))
        before = token.content if token.type == "html_block" else ""
    return found


def all_blocks() -> dict[str, list[Block]]:
    """The blocks of every document that has any."""
    found = {path.relative_to(REPOSITORY).as_posix(): read_blocks(path) for path in DOCUMENTS}
    return {name: blocks for name, blocks in found.items() if blocks}
