"""Text for people from `import plan` and `export plan`."""

from typing import Any

from herdbook.entrypoints.cli.text import plain


def read(answer: dict[str, Any]) -> str:
    """What was added, what was changed, and what was left alone with the reason."""
    lines = [
        f"added    {each['kind']} {each['id']}  {plain(each['name'])}" for each in answer["added"]
    ]
    lines += [
        f"changed  {each['kind']} {each['id']}  {plain(each['name'])}: {', '.join(each['fields'])}"
        for each in answer["changed"]
    ]
    lines += [
        f"left     {each['kind']} {each['id']}  {plain(each['name'])}: {plain(each['reason'])}"
        for each in answer["left_alone"]
    ]
    counts = f"{len(answer['added'])} added, {len(answer['changed'])} changed"
    return "\n".join([*lines, f"{counts}, {answer['unchanged']} as they were"])


def write(answer: dict[str, Any]) -> str:
    """The text itself."""
    return str(answer["text"]).removesuffix("\n")
