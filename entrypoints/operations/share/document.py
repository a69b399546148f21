"""The frame of a shared page: a document that loads nothing and runs nothing."""

from importlib import resources

from herdbook.entrypoints.operations.share.html import Html, element, join
from herdbook.entrypoints.operations.share.parts import Shared

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""Whatever might get into the page after all: nothing is loaded, and no script is run."""
STYLES = ("page.css", "share.css")


def write_document(title: str, body: Html, repository: str, seq: int, shown: Shared) -> str:
    """A page as a whole document: its title, its content, and what it is about."""
    about = f"{title}, {repository}"
    when = "as it was" if shown.is_past else "as of"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content="Herdbook"),
        element("title", f"{about} · Herdbook"),
        element("style", Html("\n".join(_read_style(each) for each in STYLES))),
    )
    frame = element(
        "body",
        element(
            "header",
            element("strong", repository),
            element(
                "span",
                f"{when} ",
                shown.time(shown.now.isoformat()),
                f", after change #{seq:,}",
                class_="mute",
            ),
        ),
        element("main", element("h1", title), body),
        element(
            "footer",
            f"Written by Herdbook. A copy of {repository} at one moment: it does not change.",
            class_="mute",
        ),
        class_="shared",
    )
    return join([Html("<!doctype html>\n"), element("html", head, frame, lang="en"), "\n"])


def _read_style(name: str) -> str:
    return (resources.files("herdbook.entrypoints.http") / "static" / name).read_text("utf-8")
