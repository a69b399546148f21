"""The format of backups: lines of JSON, the same for every engine and every version.

The first line is a header, the last one a footer; each line between is a row, as the pair of its
kind and its values, or, in a segment, the key of a row that is gone. A `copy` has every row of a
space in one snapshot. A `segment` has what came after the copy or segment that it follows: the
journal's entries, and the rows of which the journal holds no more than the key, or nothing.

The footer has the digest of all lines before it, and for a copy the digest of the content as
`ports.engine.digests` defines it. Bytes are written in base64. Secrets are left out unless they are
asked for; the footer names the rows that lack them.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple

from attrs import asdict, define, field, frozen

from herdbook.domain.clock import Stamp
from herdbook.domain.errors import BackupDamaged, HerdbookError, StoreTooNew
from herdbook.domain.location.areas import area_of
from herdbook.ports.engine.codec import decode_row, encode_row
from herdbook.ports.engine.digests import Digest, Digester, canonical_json
from herdbook.ports.engine.kinds import Dictionary, Kind

FORMAT = 1
COPY, SEGMENT = "copy", "segment"
LONGEST_HEADER = 2**16

MaskedKeys = dict[str, list[str]]
"""The keys of the rows that lack their secrets, by kind."""


def _encode_bytes(data: bytes) -> str:
    return b64encode(data).decode()


_write = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_encode_bytes
).encode


@frozen(kw_only=True)
class BackupHeader:
    """What a file holds: of which space and store, and up to which position.

    `clock` is the clock of the space at that position, and `last_entry` the stamp of the journal's
    last entry there. A segment names the clock of the file that it follows in `after`.
    """

    type: str
    space: str
    store: str
    url: str
    schema_version: int
    taken_at: str
    seq: int
    clock: str
    last_entry: str | None
    after: str | None = None
    secrets: bool = False

    @property
    def time(self) -> datetime:
        """When it was taken."""
        return datetime.fromisoformat(self.taken_at)


@frozen(kw_only=True)
class BackupFooter:
    """What was written: how many rows, their digests, and which of them lack secrets."""

    rows: int
    text: str
    kinds: dict[str, str] | None
    masked: MaskedKeys

    @property
    def digest(self) -> Digest | None:
        """The digest of the content of a copy; None for a segment."""
        return None if self.kinds is None else Digest(self.kinds)


@define
class LineWriter:
    """Turns rows into the lines of one file."""

    header: BackupHeader
    rows: int = 0
    masked: MaskedKeys = field(factory=dict)
    _text: Any = field(factory=lambda: blake2b(digest_size=16))
    _digester: Digester = field(factory=Digester)

    def first_line(self) -> bytes:
        """The header."""
        about = {"herdbook": "backup", "format": FORMAT, **asdict(self.header)}
        return self._count(_write(about).encode())

    def row_text(self, kind: Kind[Any], row: object) -> bytes:
        """The values of a row as they are written; secrets are masked unless they are wanted."""
        values = encode_row(kind, row, reveal=True)
        if kind.secrets and not self.header.secrets:
            hidden = [name for name in kind.secrets if values.pop(name, None) is not None]
            if hidden:
                self.masked.setdefault(kind.name, []).append(str(kind.key_of(row)))
        if self.header.type == COPY and kind.bytes_fields:
            self._digester.add(kind, canonical_json(values))
        text = _write(values).encode()
        if self.header.type == COPY and not kind.bytes_fields:
            self._digester.add(kind, text)  # without bytes this is the canonical text
        return text

    def row_line(self, kind: Kind[Any], text: bytes) -> bytes:
        """The line of a row, from its text."""
        self.rows += 1
        return self._count(b'["%s",%s]' % (kind.name.encode(), text))

    def gone_line(self, kind: Kind[Any], key: str) -> bytes:
        """The line that says that a row is gone."""
        return self.row_line(kind, _write(key).encode())

    @property
    def digest(self) -> Digest | None:
        """The digest of the content of a copy; None for a segment."""
        return self._digester.result() if self.header.type == COPY else None

    def last_line(self) -> bytes:
        """The footer."""
        footer = BackupFooter(
            rows=self.rows,
            text=self._text.hexdigest(),
            kinds=None if self.digest is None else self.digest.kinds,
            masked=self.masked,
        )
        return _write({"end": asdict(footer)}).encode()

    def _count(self, line: bytes) -> bytes:
        self._text.update(line + b"\n")
        return line


class RowLine(NamedTuple):
    """A row of a backup; where it is None, the row with this key is gone."""

    kind: Kind[Any]
    key: Any
    row: Any


class BackupReader:
    """Reads one file: the header at once, the rows as they are consumed, the footer at the end.

    Every method raises BackupDamaged where the file is not what Herdbook writes, and StoreTooNew
    where a newer program wrote it.
    """

    def __init__(self, place: str, lines: Iterable[bytes]) -> None:
        self.place = place
        self._lines = iter(lines)
        first = next(self._lines, b"")
        self.header = _parse_header(place, first)
        self._text = blake2b(first + b"\n", digest_size=16)
        self.footer: BackupFooter | None = None

    def raw_rows(self) -> Iterator[tuple[str, bytes]]:
        """The name of the kind and the text of each row; the file's own digest is verified."""
        number = 0
        for line in self._lines:
            if self.footer is not None:
                raise self._damage("something follows its end")
            if line.startswith(b'{"end":'):
                self.footer = _parse_footer(self.place, line)
                continue
            name, comma, text = line[2:-1].partition(b'",')
            if not line.startswith(b'["') or not comma or not line.endswith(b"]"):
                raise self._damage(f"line {number + 2} is no row")
            number += 1
            self._text.update(line + b"\n")
            yield name.decode("utf-8", "replace"), text
        if self.footer is None:
            raise self._damage("its end is missing")
        if self.footer.rows != number or self.footer.text != self._text.hexdigest():
            raise self._damage("its digest is not that of its lines")

    def rows(self, dictionary: Dictionary) -> Iterator[RowLine]:
        """The rows, decoded and validated; the digest of a copy's content is verified."""
        if self.header.schema_version > dictionary.version:
            raise StoreTooNew(self.place, self.header.schema_version, dictionary.version)
        digester = Digester()
        for name, text in self.raw_rows():
            kind = dictionary.kinds.get(name)
            if kind is None:
                raise self._damage(f"it has rows of {name!r}, which nobody knows")
            try:
                yield self._decode(kind, text, digester)
            except (HerdbookError, ValueError, TypeError, LookupError, RecursionError) as error:
                raise self._damage(f"a row of {name} cannot be read: {error}") from error
        wanted = self.footer.digest if self.footer else None
        if wanted is not None and digester.result() != wanted:
            raise self._damage("the digest of its content is not the one that it names")

    def remember(self, kind: Kind[Any], text: bytes, known: dict[str, bytes]) -> None:
        """Note the digest of a row under its key, or that the row is gone."""
        try:
            values = json.loads(text)
            if isinstance(values, str):
                known.pop(values, None)
            else:
                known[str(values[kind.key])] = row_digest(text)
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise self._damage(f"a row of {kind.name} cannot be read: {error}") from error

    def verify(self, dictionary: Dictionary) -> None:
        """Read everything."""
        for _ in self.rows(dictionary):
            pass

    def _decode(self, kind: Kind[Any], text: bytes, digester: Digester) -> RowLine:
        values = json.loads(text)
        if isinstance(values, str) and self.header.type == SEGMENT:
            return RowLine(kind, kind.columns[kind.key].check(values), None)
        if not isinstance(values, dict) or not values.keys() <= kind.columns.keys():
            raise ValueError("it has fields that nobody knows")
        for name in kind.bytes_fields:
            if values.get(name) is not None:
                values[name] = b64decode(values[name], validate=True)
        digester.add(kind, canonical_json(values) if kind.bytes_fields else text)
        row = kind.entity(**vars(decode_row(kind, values)))
        return RowLine(kind, kind.key_of(row), row)

    def _damage(self, reason: str) -> BackupDamaged:
        return BackupDamaged(self.place, reason)


def row_digest(text: bytes) -> bytes:
    """A short digest of the text of a row."""
    return blake2b(text, digest_size=16).digest()


def _parse_header(place: str, line: bytes) -> BackupHeader:
    reason = "it does not begin as a backup does"
    values = _parse_object(line) if len(line) <= LONGEST_HEADER else {}
    if values.pop("herdbook", None) != "backup":
        raise BackupDamaged(place, reason)
    if values.pop("format", None) != FORMAT:
        raise BackupDamaged(place, "it is of another format; a newer Herdbook may read it")
    try:
        header = BackupHeader(**values)
        area_of(header.space)
        for stamp in filter(None, (header.clock, header.last_entry, header.after)):
            Stamp.parse(stamp)
        is_sound = (
            header.type in (COPY, SEGMENT)
            and (header.after is not None) == (header.type == SEGMENT)
            and {type(header.seq), type(header.schema_version)} == {int}
            and {type(header.store), type(header.url)} == {str}
            and header.time.utcoffset() is not None
        )
    except (HerdbookError, TypeError, ValueError, AttributeError) as error:
        raise BackupDamaged(place, f"{reason}: {error}") from error
    if not is_sound:
        raise BackupDamaged(place, reason)
    return header


def _parse_footer(place: str, line: bytes) -> BackupFooter:
    try:
        footer = BackupFooter(**_parse_object(line)["end"])
        for keys in footer.masked.values():
            ", ".join(keys)
        Digest(dict(footer.kinds or {})).whole  # noqa: B018 - raises for what is no digest
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise BackupDamaged(place, f"its end cannot be read: {error}") from error
    return footer


def _parse_object(line: bytes) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return dict(values) if isinstance(values, Mapping) else {}
