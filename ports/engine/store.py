"""The outside edge: what an engine must do to be a store of Herdbook.

Laws every store keeps, proven by `tests/contract/`:

- **Spaces are apart.** Nothing asked or written in one space sees or touches another.
- **Writers of a space are serial.** A write transaction sees every transaction of its space that
  was committed before it began, and no other begins until it has ended.
- **Readers see one moment.** A read transaction sees what was committed when it began, whole, and
  nothing that came later. Readers wait for nobody, and nobody for them, with two exceptions. Where
  an engine lets a file be read or written but not both (DuckDB), readers and writers wait for one
  another, in turn. And on LMDB the first write of a process waits for those of its threads that
  read.
- **All or nothing, and lasting.** What `commit` returned from is on disk and survives the death of
  any process; what was not committed leaves no trace.
- **Waiting ends with the store's patience.** A call that waits for others (a lock, a connection,
  a server that says nothing) raises StoreBusy or StoreUnavailable when it has waited that long,
  give or take a few seconds. Patience bounds each wait, not the work: an upgrade, and what runs
  within `long_work`, takes as long as its engine is at work on it. `run`, `read` and `insist` try
  again after TryAgain until the patience has passed, so a use case waits for twice that at most.
- **An error leaves the session usable**, unless it says that the store is damaged, full, busy or
  unavailable.
- Rows come back equal to what was written, field by field and type by type.
- Engines' own errors never get out: each adapter translates them in one place.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.journal import Head
from herdbook.ports.engine.kinds import Dictionary, Kind
from herdbook.ports.engine.query import Query
from herdbook.ports.world.ids import Ids

E = TypeVar("E")


class TryAgain(StoreUnavailable):
    """The transaction failed through no fault of its own: a lost connection, a lost race.

    Whether it was committed may be unknown; with an operation id it is safe to ask again.
    """


class Session(Protocol):
    """One transaction on one space: a handful of primitives that take sequences.

    A session knows nothing of references, versions, the journal or derived rows; the unit of work
    keeps those, once for all engines.
    """

    @property
    def now(self) -> datetime:
        """The time of this transaction, the same from its begin to its end, in UTC."""

    @property
    def head(self) -> Head | None:
        """Where the space stood when the transaction began.

        In a space nobody has written in it is None, or, where a row has to be there to be locked,
        a fresh one that lasts if the transaction does.
        """

    def get(self, kind: Kind[E], keys: Sequence[Any]) -> list[E | None]:
        """The rows with these keys, in the order asked, None where there is none."""

    def select(self, query: Query[E]) -> list[E]:
        """The answer to a query, as `admits` and `arrange` define it."""

    def count(self, query: Query[Any]) -> int:
        """How many rows a query admits, its limit and its place in the pages aside."""

    def insert(self, kind: Kind[E], rows: Sequence[E]) -> None:
        """Put in new rows, all or none: AlreadyExists if a key or a unique is taken."""

    def replace(self, kind: Kind[E], rows: Sequence[E]) -> None:
        """Put rows in the place of those with the same keys, all or none: NotFound."""

    def delete(self, kind: Kind[Any], keys: Sequence[Any]) -> None:
        """Take out the rows with these keys; what is not there is no error."""

    def commit(self) -> None:
        """Make it last; without this the transaction leaves no trace."""


class Store(Protocol):
    """A place that keeps spaces of rows; a context manager that closes itself."""

    @property
    def url(self) -> str:
        """Where it is, without any password."""

    @property
    def uuid(self) -> str:
        """Which store it is, for ever and wherever it is copied to."""

    @property
    def dictionary(self) -> Dictionary:
        """What it keeps."""

    @property
    def ids(self) -> Ids:
        """Where new rows get their ids from."""

    @property
    def schema_version(self) -> int:
        """The version of the dictionary it is laid out by."""

    @property
    def patience(self) -> float:
        """How many seconds to wait for others."""

    def transaction(self, space: str, *, write: bool) -> AbstractContextManager[Session]:
        """Begin a transaction on a space; leaving it without a commit undoes it.

        Raises StoreBusy, which names the holder, when another writer of the space outlasts the
        store's patience, be it a thread of this process or another process, also one that was
        stopped. Writers are let in in turn, and an interrupt ends the wait.

        Raises StoreUnavailable when the store was removed or replaced while it was open; then
        nothing is acknowledged, neither by this nor by `commit`.
        """

    def spaces(self) -> list[str]:
        """The spaces somebody has written in, in order."""

    def close(self) -> None:
        """Let go of files and connections; closing twice is no error."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Step(NamedTuple):
    """An edge of a graph kept in rows: from the node in one field to the node in the other.

    Nodes are ids in a role, because one id may stand for two nodes: where a phase begins and where
    it is done.
    """

    kind: Kind[Any]
    source: str
    source_role: str
    target: str
    target_role: str


Node = tuple[str, str]
"""A role and an id."""


@runtime_checkable
class Walks(Protocol):
    """A session that can follow edges any number of steps in one go; an optional capability."""

    def walk(self, steps: Sequence[Step], starts: Sequence[Node]) -> list[tuple[Node, Node]]:
        """All edges that can be reached from the starts."""


@runtime_checkable
class Appends(Protocol):
    """A session that need not wait for the answer to an insert; an optional capability.

    For engines that are reached over a network.
    """

    def append(self, kind: Kind[E], rows: Sequence[E]) -> None:
        """Put in new rows whose keys are known to be free.

        Were one taken after all, the commit would raise AlreadyExists and undo everything.
        """


@runtime_checkable
class Asks(Protocol):
    """A store that can be asked something at once; an optional capability.

    For engines that are reached over a network.
    """

    def asking(self, space: str) -> AbstractContextManager[Session]:
        """Begin a read transaction that sees what was committed when it is first asked something.

        It saves the way to the server and back that it takes to see an earlier moment.
        """


Finding = tuple[str, str | None, str]
"""What an engine found wrong: the name of a kind, a key where it is about one row, and what."""


@runtime_checkable
class Verifies(Protocol):
    """A store whose engine trusts its own files; an optional capability.

    Reading a damaged file through such an engine may end the process.
    """

    def verify(self) -> None:
        """Raise StoreDamaged if the engine's own structures are not whole; read nothing with it.

        Others may read and write meanwhile, and nobody is waited for. What has not changed since
        it was last verified here is not verified again.
        """


@runtime_checkable
class Examines(Protocol):
    """A session that can tell what is damaged and read around it; an optional capability.

    For engines that keep their own lookups or whose files nobody else checks.
    """

    def sound(self, kind: Kind[E]) -> Iterator[E]:
        """All rows of a kind that can be read, in the order of their keys."""

    def flaws(self, kinds: Iterable[Kind[Any]]) -> Iterator[Finding]:
        """What the engine finds wrong in the space: rows that are damaged, lookups that lie."""

    def mend(self, kinds: Iterable[Kind[Any]]) -> int:
        """Make the lookups say what the rows say; how many entries that took."""
