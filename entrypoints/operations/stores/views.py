"""Text for people from `copy`, `merge` and `check`."""

from typing import Any

from herdbook.entrypoints.cli.text import plain


def copy(answer: dict[str, Any]) -> str:
    """One line for each space, and whether the source changed meanwhile."""
    lines = [f"{answer['source']} -> {answer['target']}"]
    for each in answer["spaces"]:
        lines.append(
            f"  {plain(each['space'])}: {each['rows']} rows, {each['written']} written and "
            f"{each['removed']} taken back; both sides have the digest {each['digest'][:16]}"
        )
        if each["moved_on"]:
            lines.append("    it was written to meanwhile; copy again to bring that over too")
    if not answer["spaces"]:
        lines.append("  there was nothing in it")
    return "\n".join(lines)


def use(answer: dict[str, Any]) -> str:
    """What was moved and verified, and what was left as it is."""
    backend = plain(answer["backend"])
    if not answer["changed"]:
        return f"this repository uses {backend} already"
    lines = [copy(each) for each in answer["stores"]]
    lines.append(f"this repository uses {backend} now, by {plain(answer['file'])}")
    lines += [
        f"{plain(each['source'])} was left as it is, and is no longer used"
        for each in answer["stores"]
    ]
    return "\n".join(lines)


def merge(answer: dict[str, Any]) -> str:
    """How many rows were added, kept and failed, with each failure."""
    failed = answer["failed"]
    return "\n".join(
        [
            f"{answer['source']} -> {answer['target']}",
            f"  {answer['added']} added, {answer['kept']} kept as they were, {len(failed)} failed",
            *(
                f"  {plain(each['space'])}: {each['entity']} {plain(each['key'])}: "
                f"{plain(each['reason'])}"
                for each in failed
            ),
        ]
    )


def check(answer: dict[str, Any]) -> str:
    """One line for each store, and one for each flaw."""
    lines = []
    for store in answer["stores"]:
        if not store["exists"]:
            lines.append(f"{store['url']}: not there yet")
            continue
        if store["repaired"] is not None:
            rebuilt = store["repaired"]
            lines.append(
                f"{store['url']}: rebuilt {rebuilt['derived']} derived rows and "
                f"{rebuilt['lookups']} lookup entries"
            )
        count = len(store["flaws"])
        lines.append(f"{store['url']}: {'OK' if not count else f'{count} flaws'}")
        lines += [
            f"  {plain(each['space'])}: {each['entity']} {plain(each['key'] or '')}: "
            f"{plain(each['what'])}"
            for each in store["flaws"]
        ]
    return "\n".join(lines)
