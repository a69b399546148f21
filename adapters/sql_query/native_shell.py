"""The engines' own SQL shells: which program to run, with which arguments and environment."""

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import field, frozen

from herdbook.adapters.stores.engine_spec import load
from herdbook.adapters.stores.open_store import PATIENCE
from herdbook.adapters.stores.registry import find_spec


@frozen
class Program:
    """A command to run with the terminal handed over; its environment may hold a password."""

    command: tuple[str, ...]
    environment: dict[str, str] = field(factory=dict, repr=False)
    inherits: tuple[int, ...] = ()


@contextmanager
def open_native_shell(
    url: str, *, write: bool, patience: float = PATIENCE
) -> Iterator[Program | None]:
    """Give the program that is a store's own SQL shell, to be run inside the block.

    Gives None where the engine has none or it is not installed. The program shows all that its
    engine shows, secrets too. Without `write` it opens the store to read.
    """
    spec = find_spec(url)
    if spec is None or not spec.native_shell:
        yield None
        return
    with load(spec.native_shell)(url, write=write, patience=patience) as program:
        yield program


def why_no_native_shell(url: str) -> str:
    """Say why `open_native_shell` gave no program for a store, as the end of a sentence."""
    spec = find_spec(url)
    if spec is not None and spec.native_shell_needs:
        return spec.native_shell_needs
    scheme = url.partition("://")[0]
    return f"cannot be had: a store at {scheme}:// has no SQL of its own"
