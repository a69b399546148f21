"""Spaces of rows in an LMDB folder, and the store's description of itself."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from herdbook.adapters.lmdb.environment import LmdbEnvironment
from herdbook.adapters.lmdb.files import DATA, is_marked, write_sentinel
from herdbook.adapters.lmdb.open_environments import acquire_environment, release_environment
from herdbook.adapters.lmdb.session import LOOKUPS, ROWS, LmdbSession, write_json
from herdbook.adapters.lmdb.spaces import META, SPACES, add_space, checksum, read_spaces
from herdbook.adapters.stores.base_store import BaseStore, refuse_newer
from herdbook.domain.entity import NEVER, evolve
from herdbook.domain.errors import StoreDamaged, StoreFull, StoreUnavailable
from herdbook.domain.location.areas import area_of
from herdbook.domain.location.resolve import file_url
from herdbook.ports.engine.dictionary import HEADS
from herdbook.ports.engine.kinds import Dictionary
from herdbook.ports.world.system import Clock, Ids

if TYPE_CHECKING:
    from herdbook.ports.engine.wakeups import Wakeups

DATABASES = (META, SPACES, ROWS, LOOKUPS)
STORE, STORE_CHECKSUM = b"store", b"store checksum"


class LmdbStore(BaseStore):
    """Spaces of rows in an LMDB folder."""

    def __init__(
        self,
        folder: Path,
        *,
        dictionary: Dictionary,
        clock: Clock,
        ids: Ids,
        size_limit: int,
        patience: float,
        create: bool,
        verify: bool = False,
    ) -> None:
        self.dictionary = dictionary
        self.ids = ids
        self._clock = clock
        self._numbers: dict[str, bytes] = {}
        self._env: LmdbEnvironment | None = acquire_environment(
            folder, size_limit=size_limit, patience=patience, create=create, verify=verify
        )
        self.patience = patience
        self.url = file_url("lmdb", str(self._env.folder))
        self._place = str(self._env.folder / DATA)
        try:
            is_new = self._env.is_new
            description = _open_description(self._env, self._place, dictionary)
            self.uuid: str = description["uuid"]
            self.schema_version: int = description["schema_version"]
            try:
                write_sentinel(self._env.folder, self.uuid)
            except StoreFull:
                # The rows can be read all the same; the mark is written when there is space.
                if is_new:
                    raise
        except BaseException:
            self.close()
            raise

    @cached_property
    def node(self) -> str:
        from herdbook.adapters.stores.file_node import file_node  # noqa: PLC0415 - readers need none

        return file_node(self.uuid, self._environment().guard.inode)

    @cached_property
    def wakeups(self) -> "Wakeups":
        from herdbook.adapters.wakeups.wakeups import SocketWakeups  # noqa: PLC0415 - as above

        return SocketWakeups(self.uuid, self.node)

    def _environment(self) -> LmdbEnvironment:
        if self._env is None:
            raise StoreUnavailable(self.url, "it has been closed here")
        return self._env

    @contextmanager
    def transaction(self, space: str, *, write: bool) -> Iterator[LmdbSession]:
        area_of(space)
        env = self._environment()
        with env.transaction(write=write, patience=self.patience) as txn:
            number = self._numbers.get(space) or self._find_number(txn, env, space)
            if number is None and write:
                # There is no head yet that says which versions may write here.
                description = _read_description(txn, env.databases, self._place)
                if description is not None:
                    refuse_newer(self._place, description["schema_version"], self.dictionary)
                number = add_space(txn, env.databases, space)
            session = LmdbSession(
                txn,
                env.databases,
                number,
                self._clock(),
                self._place,
                before_commit=env.guard.require_same_file,
            )
            del txn  # the frame may live on in the traceback of an error
            try:
                yield session
            finally:
                session.end()

    def _find_number(self, txn: Any, env: LmdbEnvironment, space: str) -> bytes | None:
        """The number of a space, if it has one; all of them are checked the first time."""
        if not self._numbers:
            self._numbers.update(read_spaces(txn, env.databases, self._place))
        number: bytes | None = self._numbers.get(space)
        if number is None:
            number = txn.get(space.encode(), db=env.databases[SPACES])
            if number is not None:
                self._numbers[space] = number
        return number

    def verify(self) -> None:
        self._environment().verify()

    def spaces(self) -> list[str]:
        env = self._environment()
        with env.transaction(write=False) as txn:
            return sorted(read_spaces(txn, env.databases, self._place))

    def close(self) -> None:
        super().close()
        if self._env is not None:
            release_environment(self._env)
            self._env = None


def _catalogue(dictionary: Dictionary) -> dict[str, list[list[str]]]:
    return {kind.name: [list(each) for each in kind.all_lookups] for kind in dictionary}


def _open_description(env: LmdbEnvironment, place: str, dictionary: Dictionary) -> dict[str, Any]:
    """Read the store's description; lay out a new store, upgrade an older one."""
    with env.naming:
        description = _find_description(env, place)
        if description is None and not env.is_new and (reason := _foreign_reason(env)):
            # Another process may just have laid it out.
            description = _find_description(env, place)
            if description is None:
                raise StoreDamaged(place, reason)
        if description is None or description["schema_version"] < dictionary.version:
            with env.create_databases() as (txn, databases):
                description = _lay_out_store(txn, databases, place, dictionary)
                env.guard.require_same_file()
                txn.commit()
    refuse_newer(place, description["schema_version"], dictionary)
    return description


def _find_description(env: LmdbEnvironment, place: str) -> dict[str, Any] | None:
    if not env.find_databases(DATABASES):
        return None
    with env.transaction(write=False) as txn:
        return _read_description(txn, env.databases, place)


def _foreign_reason(env: LmdbEnvironment) -> str:
    """Why nothing may be created in a folder, if so: it was a store, or it is another program's.

    A process that dies while creating a store leaves some of our databases with nothing in them.
    """
    if is_marked(env.folder):
        return "it is empty where a store was"
    with env.transaction(write=False) as txn:
        others = txn.stat()["entries"] > len(env.databases)
        if others or any(txn.stat(each)["entries"] for each in env.databases.values()):
            return "it holds another program's data"
    return ""


def _read_description(txn: Any, databases: dict[str, Any], place: str) -> dict[str, Any] | None:
    text = txn.get(STORE, db=databases[META])
    if text is None:
        if ROWS in databases and txn.stat(databases[ROWS])["entries"]:
            raise StoreDamaged(place, "it has rows but does not say which store it is")
        return None
    stored = txn.get(STORE_CHECKSUM, db=databases[META])
    if stored not in (None, checksum(text)):
        raise StoreDamaged(place, "what it says of itself does not match its checksum")
    try:
        description: dict[str, Any] = json.loads(text)
        description["uuid"], description["schema_version"], description["lookups"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreDamaged(place, "what it says of itself cannot be read") from error
    if not isinstance(description["schema_version"], int):
        raise StoreDamaged(place, "what it says of itself cannot be read")
    return description


def _lay_out_store(
    txn: Any, databases: dict[str, Any], place: str, dictionary: Dictionary
) -> dict[str, Any]:
    """Write the description, and the lookups that an older dictionary did not have."""
    before = _read_description(txn, databases, place) or {
        "herdbook": "lmdb",
        "uuid": os.urandom(16).hex(),
        "schema_version": 0,
        "lookups": {},
    }
    if before["schema_version"] >= dictionary.version:
        return before
    spaces = [bytes(number) for _, number in txn.cursor(db=databases[SPACES])]
    for space in spaces:
        session = LmdbSession(txn, databases, space, NEVER, place)
        for kind in dictionary:
            known = {tuple(each) for each in before["lookups"].get(kind.name, [])}
            session.update_lookups(kind, known)
        head = session.head
        if head is not None:
            raised = {
                "schema_version": dictionary.version,
                "oldest_writer": dictionary.oldest_writer,
            }
            session.replace(HEADS, [evolve(head, **raised)])
    after = {
        **before,
        "schema_version": dictionary.version,
        "lookups": _catalogue(dictionary),
    }
    text = write_json(after).encode()
    txn.put(STORE, text, db=databases[META])
    txn.put(STORE_CHECKSUM, checksum(text), db=databases[META])
    return after
