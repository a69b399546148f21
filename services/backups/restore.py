"""Restore a space from backups into an empty store of any engine.

Everything is put together in a scratch store first, where it is checked; only then does `copy`
bring it into the target and compare the digests of both. So a damaged backup writes nothing into
the target, and a restore that was killed goes on when it is called again.
"""

from typing import Any, cast

from attrs import define, evolve, field, frozen

from herdbook.domain.clock import Stamp
from herdbook.domain.entity import evolve as evolve_row
from herdbook.domain.errors import (
    AlreadyExists,
    BackupDamaged,
    InvalidValue,
    NotFound,
    SpaceRefused,
    StoreDamaged,
)
from herdbook.domain.grading import Experience
from herdbook.domain.journal import Head, Position
from herdbook.ports.engine.dictionary import HEADS, JOURNAL
from herdbook.ports.engine.digests import digest_space
from herdbook.ports.engine.long_work import long_work
from herdbook.ports.engine.paging import Progress, no_progress
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Session, Store
from herdbook.ports.unit_of_work.projections import rebuild
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.backup_files import BackupFiles
from herdbook.services.backups.chains import BackupChain
from herdbook.services.backups.line_format import COPY, BackupReader, MaskedKeys, RowLine
from herdbook.services.backups.replay import Replay, apply_entries, rewind
from herdbook.services.backups.salvage import salvage_changes
from herdbook.services.stores.copy_spaces import copy
from herdbook.services.stores.store_check import check
from herdbook.services.stores.transfer import read_copy_note

SOURCE = "backup:"
"""How the note begins that a restore leaves in its target, before the digest of its content."""
BATCH_ROWS = 5_000
BATCH_BYTES = 2**25
"""How many rows, and bytes in them, one transaction of the scratch store writes at most."""
_UNFIT = (AlreadyExists, NotFound, InvalidValue, StoreDamaged, LookupError, ValueError)


@frozen
class AssembledSpace:
    """A space that was put together in the scratch store and found to be sound.

    `recorded` is the digest that the copy had when it was taken, `digest` is that of the space now:
    they are equal where nothing came after the copy. `masked` has the rows that lack their secrets,
    and `salvaged` is how many entries came from a damaged store.
    """

    space: str
    seq: int
    digest: str
    recorded: str
    files: tuple[str, ...]
    masked: MaskedKeys
    salvaged: int = 0
    flaws: int = 0


@long_work()
def assemble(
    chain: BackupChain,
    files: BackupFiles,
    scratch: Store,
    *,
    at: Position | None = None,
    damaged: Store | None = None,
    with_flaws: bool = False,
    experience: Experience | None = None,
) -> AssembledSpace:
    """Put a space together from a copy and its segments, up to a position.

    With a `damaged` store, what its journal still tells after the last segment is added. Raises
    BackupDamaged if a file is damaged or something in it does not fit, InvalidValue if the position
    cannot be reached, and StoreTooNew for files of a newer program.
    """
    space = chain.headers[0].space
    loading = _Loading(scratch, space)
    for name in chain.names:
        loading.load(BackupReader(files.place(name), files.read(name)))
    salvaged = 0
    with scratch.transaction(space, write=True) as session:
        replay = Replay(session, scratch.dictionary, loading.masked)
        if damaged is not None:
            salvaged = salvage_changes(replay, damaged, space)
        if at is not None:
            rewind(replay, at)
        session.commit()
    with scratch.transaction(space, write=True) as session:
        rebuild(UnitOfWork(session, scratch, space, experience=experience))
        session.commit()  # the unit of work would tick the clock of the space
    flaws = check(scratch, [space], experience=experience)
    if flaws and not with_flaws:
        first = flaws[0]
        reason = (
            f"what is in it has {len(flaws)} flaws, the first is {first.entity} "
            f"{first.key or ''}: {first.what} (--with-flaws restores it nevertheless)"
        )
        raise BackupDamaged(files.place(chain.names[-1]), reason)
    with scratch.transaction(space, write=False) as session:
        digest = digest_space(session, scratch.dictionary)
        masked = _still_masked(session, scratch, loading.masked)
        seq = session.head.seq if session.head else 0
    places = tuple(map(files.place, chain.names))
    return AssembledSpace(
        space, seq, digest.whole, loading.recorded, places, masked, salvaged, len(flaws)
    )


def deliver(
    assembled: AssembledSpace,
    scratch: Store,
    target: Store,
    *,
    experience: Experience | None = None,
    progress: Progress = no_progress,
) -> AssembledSpace:
    """Copy an assembled space into the target, compare the digests, and check the result.

    Raises what `copy` raises.
    """
    source = cast("Store", _NamedSource(scratch, f"{SOURCE}{assembled.digest}"))
    copy(source, target, [assembled.space], progress=progress)
    flaws = check(target, [assembled.space], experience=experience, progress=progress)
    return evolve(assembled, flaws=len(flaws))


def refuse_used(target: Store) -> None:
    """Raise SpaceRefused if a store has something in it, and name what that is.

    What a restore has left unfinished does not count: it goes on there.
    """
    for space in target.spaces():
        with target.transaction(space, write=False) as session:
            note = read_copy_note(session)
            if note is not None and note.unfinished and note.source.startswith(SOURCE):
                continue
            rows = {kind.name: session.count(find(kind)) for kind in target.dictionary if kind.area}
        found = ", ".join(f"{number} {name}" for name, number in rows.items() if number)
        reason = (
            f"is there already ({found or 'with a journal'}), and a backup is restored into an "
            "empty store only; name another place. Nothing was changed"
        )
        raise SpaceRefused(target.url, space, reason)


class _NamedSource:
    """A scratch store under the name of its content, by which an unfinished copy is continued."""

    def __init__(self, store: Store, uuid: str) -> None:
        self._store = store
        self.uuid = uuid

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - everything else of the store
        return getattr(self._store, name)


@define
class _Loading:
    """Loads files into a space of the scratch store, one after the other."""

    scratch: Store
    space: str
    masked: MaskedKeys = field(factory=dict)
    recorded: str = ""
    _head: Head | None = None
    _pruned: tuple[int, Stamp | None] = (0, None)

    def load(self, reader: BackupReader) -> None:
        """Load one file; raises BackupDamaged."""
        batch: list[RowLine] = []
        size = 0
        try:
            for line in reader.rows(self.scratch.dictionary):
                batch.append(line)
                if line.row is not None:
                    size += sum(len(vars(line.row)[n] or b"") for n in line.kind.bytes_fields)
                if len(batch) >= BATCH_ROWS or size >= BATCH_BYTES:
                    self._apply(batch, is_copy=reader.header.type == COPY)
                    batch, size = [], 0
            self._apply(batch, is_copy=reader.header.type == COPY)
            self._finish(reader)
        except BackupDamaged:
            raise
        except _UNFIT as error:
            raise BackupDamaged(reader.place, f"its rows do not fit together: {error}") from error

    def _apply(self, batch: list[RowLine], *, is_copy: bool) -> None:
        with self.scratch.transaction(self.space, write=True) as session:
            replay = Replay(session, self.scratch.dictionary, self.masked)
            for kind in {line.kind: None for line in batch}:
                own = [line for line in batch if line.kind is kind]
                rows = [line.row for line in own if line.row is not None]
                if kind is HEADS:
                    (self._head,) = rows
                elif is_copy:
                    session.insert(kind, rows)
                elif kind is JOURNAL:
                    apply_entries(replay, rows)
                else:
                    session.delete(kind, [line.key for line in own])
                    session.insert(kind, rows)
            session.commit()

    def _finish(self, reader: BackupReader) -> None:
        """Write the head, and compare the digest of a copy with the one that was recorded."""
        header, footer, dictionary = reader.header, reader.footer, self.scratch.dictionary
        head = self._head
        if (
            head is None
            or footer is None
            or (head.seq, str(head.clock))
            != (
                header.seq,
                header.clock,
            )
        ):
            raise BackupDamaged(reader.place, "its head is not where its header says")
        for name, keys in footer.masked.items():
            self.masked.setdefault(name, []).extend(keys)
        if header.type == COPY:
            self._pruned = head.pruned_to, head.pruned_at
        # What was folded after the copy is still in it: the journal begins where the copy's does.
        head = evolve_row(head, pruned_to=self._pruned[0], pruned_at=self._pruned[1])
        self._write_head(head)
        if footer.digest is None:
            return
        self.recorded = footer.digest.whole
        if header.schema_version == dictionary.version:
            with self.scratch.transaction(self.space, write=False) as session:
                differing = footer.digest.differing_kinds(digest_space(session, dictionary))
            if differing:
                raise BackupDamaged(reader.place, f"the digest of {differing[0]} is another one")
            return
        version = dictionary.version
        upgraded = evolve_row(head, schema_version=version, oldest_writer=dictionary.oldest_writer)
        self._write_head(upgraded)

    def _write_head(self, head: Head) -> None:
        with self.scratch.transaction(self.space, write=True) as session:
            put = session.insert if session.head is None else session.replace
            put(HEADS, [head])
            session.commit()


def _still_masked(session: Session, store: Store, masked: MaskedKeys) -> MaskedKeys:
    """The rows that are there and lack a secret that they had."""
    found: MaskedKeys = {}
    for name, keys in masked.items():
        kind = store.dictionary.kinds.get(name)
        if kind is None or not kind.secrets:
            continue
        for key, row in zip(keys, session.get(kind, keys), strict=True):
            if row is not None and any(vars(row)[each] is None for each in kind.secrets):
                found.setdefault(name, []).append(key)
    return {name: sorted(set(keys)) for name, keys in found.items()}
