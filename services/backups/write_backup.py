"""Write backups of a space: a copy of all of it, or a segment of what came since.

Both read the space in one snapshot, whatever others write meanwhile. Where an engine lets a file be
read or written but not both (DuckDB), writers wait while it is read.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from typing import Any

from attrs import frozen

from herdbook.domain.errors import BackupDamaged
from herdbook.domain.journal import Head, Op
from herdbook.ports.engine.dictionary import HEADS, JOURNAL
from herdbook.ports.engine.digests import is_content
from herdbook.ports.engine.kinds import Dictionary, Kind
from herdbook.ports.engine.long_work import long_work
from herdbook.ports.engine.paging import (
    PAGE,
    Progress,
    chunks,
    no_progress,
    select_all,
    select_pages,
)
from herdbook.ports.engine.query import above, find
from herdbook.ports.engine.store import Session, Store
from herdbook.ports.unit_of_work.positions import entry_stamp
from herdbook.ports.world.backup_files import BackupFiles
from herdbook.services.backups.chains import BackupChain, newest_chain, remove_old
from herdbook.services.backups.line_format import (
    COPY,
    SEGMENT,
    BackupHeader,
    BackupReader,
    LineWriter,
    row_digest,
)
from herdbook.services.stores.transfer import refuse_unfinished

KEEP = 7
"""How many copies of a space are kept unless another number is asked for."""
_MOMENT = "%Y%m%dT%H%M%S.%fZ"
KnownRows = dict[str, dict[str, bytes]]
"""The digests of the rows of each kind by their keys."""


@frozen
class WrittenBackup:
    """A file that was written, and which older ones were removed after it had been verified."""

    name: str
    header: BackupHeader
    rows: int
    digest: str | None
    bytes: int
    removed: tuple[str, ...] = ()


class _NothingNew(Exception):
    """The space was not written to since the last file."""


@long_work()
def write_copy(
    store: Store,
    space: str,
    files: BackupFiles,
    *,
    secrets: bool = False,
    keep: int = KEEP,
    most_bytes: int | None = None,
    progress: Progress = no_progress,
) -> WrittenBackup | None:
    """Copy a space into a new file, then remove copies beyond `keep` or `most_bytes`.

    Gives None for a space that was never written to. Raises SpaceRefused for an unfinished copy,
    and what `BackupFiles.write` raises; then the older backups are as they were.
    """
    with ExitStack() as snapshot:
        session = snapshot.enter_context(store.transaction(space, write=False))
        refuse_unfinished(session, store, space)
        head = session.head
        if head is None or head.clock is None:
            return None
        header = _header(COPY, session, store, space, head, secrets=secrets)
        writer = LineWriter(header)
        lines = _copy_lines(session, store.dictionary, writer, progress)
        name = _write(files, writer, _then_close(lines, snapshot), store.dictionary)
    removed = remove_old(files, keep=keep, most_bytes=most_bytes)
    return _report(files, name, writer, removed)


@long_work()
def write_segment(store: Store, space: str, files: BackupFiles) -> WrittenBackup | None:
    """Write what came since the newest file; None if nothing did.

    Raises BackupDamaged if the files cannot be continued: they are damaged, there is no copy, or
    the store has another history than the one that they hold.
    """
    chain = newest_chain(files)
    if chain is None:
        raise BackupDamaged(files.place(""), "there is no copy to continue")
    known = _read_known(chain, files, store.dictionary)
    last = chain.headers[-1]
    with ExitStack() as snapshot:
        session = snapshot.enter_context(store.transaction(space, write=False))
        head = session.head
        if head is None or head.clock is None or store.node != last.store:
            raise BackupDamaged(files.place(chain.names[-1]), "it is of another store")
        if str(head.clock) == last.clock:
            return None
        header = _header(SEGMENT, session, store, space, head, after=last.clock)
        writer = LineWriter(header)
        lines = _segment_lines(session, store.dictionary, writer, (last, known))
        try:
            name = _write(files, writer, _then_close(lines, snapshot), store.dictionary)
        except _NothingNew:
            return None
    return _report(files, name, writer, ())


def write_automatic(
    store: Store, space: str, files: BackupFiles, *, keep: int, most_bytes: int, now: datetime
) -> WrittenBackup | None:
    """Write the copy of the day if there is none yet, else a segment.

    Where the newest files cannot be continued, they are kept as they are and a new copy is made; so
    is one where they have grown beyond `most_bytes`.
    """
    chain = newest_chain(files)
    is_of_today = chain is not None and _day(chain.headers[0].time) == _day(now)
    if chain is not None and is_of_today and sum(map(files.size, chain.names)) <= most_bytes:
        try:
            return write_segment(store, space, files)
        except BackupDamaged:
            pass  # the copy below does not need them
    return write_copy(store, space, files, keep=keep, most_bytes=most_bytes)


def _day(moment: datetime) -> date:
    return moment.astimezone().date()


def _header(
    what: str,
    session: Session,
    store: Store,
    space: str,
    head: Head,
    *,
    after: str | None = None,
    secrets: bool = False,
) -> BackupHeader:
    last = entry_stamp(session, head.seq)
    return BackupHeader(
        type=what,
        space=space,
        store=store.node,
        url=store.url,
        schema_version=store.dictionary.version,
        taken_at=session.now.astimezone(UTC).isoformat(timespec="microseconds"),
        seq=head.seq,
        clock=str(head.clock),
        last_entry=None if last is None else str(last),
        after=after,
        secrets=secrets,
    )


def _write(
    files: BackupFiles, writer: LineWriter, lines: Iterator[bytes], dictionary: Dictionary
) -> str:
    moment = writer.header.time
    for newest in files.names()[-1:]:  # names tell the order, also where a clock was set back
        last = datetime.strptime(newest.partition("-")[0], _MOMENT).replace(tzinfo=UTC)
        moment = max(moment, last + timedelta(microseconds=1))
    name = f"{moment.strftime(_MOMENT)}-{writer.header.seq}.{writer.header.type}"

    def verify(written: Iterator[bytes]) -> None:
        BackupReader(files.place(name), written).verify(dictionary)

    files.write(name, lines, verify)
    return name


def _then_close(lines: Iterator[bytes], snapshot: ExitStack) -> Iterator[bytes]:
    """The lines; the snapshot ends with the last one, so that nobody waits for what follows."""
    yield from lines
    snapshot.close()


def _report(
    files: BackupFiles, name: str, writer: LineWriter, removed: tuple[str, ...]
) -> WrittenBackup:
    digest = writer.digest
    return WrittenBackup(
        name,
        writer.header,
        writer.rows,
        None if digest is None else digest.whole,
        files.size(name),
        removed,
    )


def _copy_lines(
    session: Session, dictionary: Dictionary, writer: LineWriter, progress: Progress
) -> Iterator[bytes]:
    total = sum(session.count(find(kind)) for kind in dictionary)
    yield writer.first_line()
    for kind in dictionary:
        for page in select_pages(session, kind):
            for row in page:
                if is_content(kind, row):
                    yield writer.row_line(kind, writer.row_text(kind, row))
            progress(writer.header.space, writer.rows, total)
    yield writer.last_line()


def _segment_lines(
    session: Session,
    dictionary: Dictionary,
    writer: LineWriter,
    since: tuple[BackupHeader, KnownRows],
) -> Iterator[bytes]:
    last, known = since
    yield writer.first_line()
    for kind, row in new_rows(session, dictionary, last):
        yield writer.row_line(kind, writer.row_text(kind, row))
    for kind in unjournalled_kinds(dictionary):
        before = known.get(kind.name, {})
        for page in select_pages(session, kind):
            for row in page:
                text = writer.row_text(kind, row)
                if is_content(kind, row) and before.pop(str(kind.key_of(row)), None) != row_digest(
                    text
                ):
                    yield writer.row_line(kind, text)
        for key in before:
            yield writer.gone_line(kind, key)
    if not writer.rows:
        raise _NothingNew
    yield writer.row_line(HEADS, writer.row_text(HEADS, session.head))
    yield writer.last_line()


def new_rows(
    session: Session, dictionary: Dictionary, last: BackupHeader
) -> Iterator[tuple[Kind[Any], Any]]:
    """The journal's entries after a position, then the rows that they have no more than the key of.

    Raises BackupDamaged if the journal does not continue that position.
    """
    stamp = entry_stamp(session, last.seq)
    if last.seq and (stamp is None or str(stamp) != last.last_entry):
        raise BackupDamaged(last.url, f"its journal does not continue the backup at {last.seq}")
    added: dict[str, dict[str, None]] = {}
    seq = last.seq
    for each in select_all(session, find(JOURNAL, {"seq": above(last.seq)}, limit=PAGE)):
        seq += 1
        if each.seq != seq:
            raise BackupDamaged(last.url, f"entry {seq} of its journal is missing")
        if dictionary.kinds[each.entity].append_only:
            keys = added.setdefault(each.entity, {})
            if each.op is Op.ADD:
                keys[each.key] = None
            else:
                keys.pop(each.key, None)
        yield JOURNAL, each
    for name, keys in added.items():
        kind = dictionary.kinds[name]
        for some in chunks(keys, PAGE):
            for row in session.get(kind, some):
                if row is not None:
                    yield kind, row


def unjournalled_kinds(dictionary: Dictionary) -> Sequence[Kind[Any]]:
    """The kinds of rows that neither the journal knows nor other rows make."""
    return [
        kind
        for kind in dictionary
        if not kind.journalled and not kind.derived and kind not in (JOURNAL, HEADS)
    ]


def _read_known(chain: BackupChain, files: BackupFiles, dictionary: Dictionary) -> KnownRows:
    """What the files hold of the kinds that the journal does not know; raises BackupDamaged."""
    known: KnownRows = {kind.name: {} for kind in unjournalled_kinds(dictionary)}
    for name in chain.names:
        reader = BackupReader(files.place(name), files.read(name))
        for kind_name, text in reader.raw_rows():
            if kind_name in known:
                reader.remember(dictionary.kinds[kind_name], text, known[kind_name])
    return known
