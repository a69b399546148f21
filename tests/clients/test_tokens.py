"""What models are given, counted by a vocabulary of theirs: the offline bound is never below it."""

import json
import warnings
from pathlib import Path

from herdbook.entrypoints.mcp.schemas import input_schema
from herdbook.entrypoints.mcp.tools import SETS, choose_tools, instructions
from herdbook.entrypoints.setup.instructions import SECTION
from herdbook.entrypoints.setup.skill import SKILL, WORKER
from tests.e2e.conftest import Person
from tests.tokens import estimate_tokens

with warnings.catch_warnings():
    # It reads its vocabulary in a way that Python 3.11 advises against.
    warnings.simplefilter("ignore", DeprecationWarning)
    import bpe_openai


def tools_text(chosen: str) -> str:
    """What a host gives a model of a set of tools."""
    return json.dumps(
        [
            {"name": each.name, "description": each.description, "input": input_schema(each)}
            for each in choose_tools(chosen)
        ],
        separators=(",", ":"),
    )


def test_the_offline_bound_is_above_what_a_vocabulary_counts(person: Person, app: Path) -> None:
    """For every text that agents are given, and by less than a third."""
    for number in range(4):
        person.runs(app, "task", "add", f"write part {number} of the parser for dates")
    session = {"HERDBOOK_SESSION": "s-1"}
    prime = [person.runs(app, "prime")]
    person.runs(app, "agent", "add", **session)
    person.runs(app, "claim", **session)
    prime.append(person.runs(app, "prime", **session))
    vocabulary = bpe_openai.get_encoding("o200k_base")
    sets = [tools_text(each) for each in SETS]
    texts = [*prime, *sets, SKILL, SECTION, WORKER, instructions(choose_tools("core"))]
    for text in texts:
        counted = len(vocabulary.encode(text))
        assert counted <= estimate_tokens(text) <= counted * 4 / 3, text[:60]
