"""Which files belong together: a copy, and the segments that follow it one after the other."""

from collections.abc import Sequence

from attrs import frozen

from herdbook.domain.errors import BackupDamaged
from herdbook.ports.world.backup_files import BackupFiles
from herdbook.services.backups.line_format import COPY, BackupHeader, BackupReader


@frozen
class BackupChain:
    """A copy and its segments, in order."""

    names: tuple[str, ...]
    headers: tuple[BackupHeader, ...]

    def through(self, name: str) -> "BackupChain":
        """The same chain up to a file of it."""
        end = self.names.index(name) + 1
        return BackupChain(self.names[:end], self.headers[:end])


def read_header(files: BackupFiles, name: str) -> BackupHeader:
    """The header of a file; raises BackupDamaged if it has none."""
    return BackupReader(files.place(name), files.read(name)).header


def find_chains(files: BackupFiles) -> list[BackupChain]:
    """The chains of a space, oldest copy first.

    A segment belongs to the newest copy before it, and only if it follows the file before it. A
    file without a readable header belongs to none: it is neither used nor removed.
    """
    found: list[BackupChain] = []
    for name in files.names():
        try:
            header = read_header(files, name)
        except BackupDamaged:
            continue
        if header.type == COPY:
            found.append(BackupChain((name,), (header,)))
        elif found and found[-1].headers[-1].clock == header.after:
            last = found[-1]
            found[-1] = BackupChain((*last.names, name), (*last.headers, header))
    return found


def newest_chain(files: BackupFiles) -> BackupChain | None:
    """The newest copy and its segments; None where there is no copy."""
    return next(reversed(find_chains(files)), None)


def choose_chain(chains: Sequence[BackupChain], at: object) -> BackupChain:
    """The chain from which a position (a number or a time) is restored with the least change.

    It is the newest whose copy is not after the position, up to the segment that holds it; where
    every copy is after it, the oldest, from which the journal leads back.
    """
    usable = [each for each in chains if position_of(each.headers[0], at) <= at]  # type: ignore[operator]
    if not usable:
        return chains[0].through(chains[0].names[0])
    chain = usable[-1]
    for name, header in zip(chain.names, chain.headers, strict=True):
        if position_of(header, at) >= at:  # type: ignore[operator]
            return chain.through(name)
    return chain


def position_of(header: BackupHeader, at: object) -> object:
    """The position of a file in the terms of another one: a number, or a time."""
    return header.seq if isinstance(at, int) else header.time


def remove_old(files: BackupFiles, *, keep: int, most_bytes: int | None) -> tuple[str, ...]:
    """Remove the oldest copies with their segments: those beyond `keep`, or beyond `most_bytes`.

    The newest one is never removed.
    """
    chains = find_chains(files)
    before = len(chains)
    sizes = [sum(files.size(name) for name in each.names) for each in chains]
    while len(chains) > 1 and (
        len(chains) > keep or (most_bytes is not None and sum(sizes) > most_bytes)
    ):
        chains, sizes = chains[1:], sizes[1:]
    # With them goes what cannot be read and is older than everything that is kept.
    is_over = len(chains) < before
    removed = [name for name in files.names() if is_over and name < chains[0].names[0]]
    for name in removed:
        files.remove(name)
    return tuple(removed)
