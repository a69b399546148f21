"""The outside port: what an engine must implement to be a store of Herdbook.

Laws every store keeps, proven by `tests/contract/`:

- **Spaces are isolated.** Nothing queried or written in one space sees or touches another.
- **Writers of a space are serial.** A write transaction sees every transaction of its space that
  was committed before it began, and no other begins until it has ended.
- **Readers see a snapshot.** A read transaction sees everything that was committed when it began,
  and nothing later. Readers do not wait and are not waited for, with two exceptions. Where an
  engine allows a file to be read or written but not both (DuckDB), readers and writers wait for one
  another, in turn. And on LMDB the first write of a process waits for the reading threads of that
  process.
- **Atomic and durable.** When `commit` returns, the changes are on disk and survive the death of
  any process; what was not committed leaves no trace.
- **Waiting ends with the store's patience.** A call that waits for others (a lock, a connection, a
  server that does not respond) raises StoreBusy or StoreUnavailable when it has waited that long,
  give or take a few seconds. Patience bounds each wait, not the work: an upgrade, and what runs
  within `long_work`, takes as long as its engine works on it. `run`, `read` and `retry` try again
  after TryAgain until the patience has passed, so a use case waits for twice that at most.
- **An error leaves the session usable**, unless it says that the store is damaged, full, busy or
  unavailable.
- Rows come back equal to what was written, field by field and type by type.
- Engines' own errors never escape: each adapter translates them in one place.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.journal import Head
from herdbook.ports.engine.kinds import Dictionary, Kind
from herdbook.ports.engine.query import Query
from herdbook.ports.world.system import Ids

if TYPE_CHECKING:
    from herdbook.ports.engine.wakeups import Wakeups  # most processes wait for nothing

E = TypeVar("E")


class TryAgain(StoreUnavailable):
    """The transaction failed transiently: a lost connection, a lost race.

    Whether it was committed may be unknown; with an operation id it is safe to repeat it.
    """


class Session(Protocol):
    """One transaction on one space: a few primitives that take sequences.

    A session knows nothing of references, versions, the journal or projections; the unit of work
    handles those, once for all engines.
    """

    @property
    def now(self) -> datetime:
        """The time of this transaction, the same from its begin to its end, in UTC."""

    @property
    def head(self) -> Head | None:
        """The head of the space when the transaction began.

        In a space that was never written to it is None, or, where a row has to exist to be locked,
        a fresh head that is stored if the transaction commits.
        """

    def get(self, kind: Kind[E], keys: Sequence[Any]) -> list[E | None]:
        """The rows with these keys, in the order of the keys, None where there is none."""

    def select(self, query: Query[E]) -> list[E]:
        """The rows of a query, as `matches` and `sort_and_page` define them."""

    def count(self, query: Query[Any]) -> int:
        """How many rows match a query, ignoring its limit and its page."""

    def insert(self, kind: Kind[E], rows: Sequence[E]) -> None:
        """Insert new rows, all or none; raises AlreadyExists if a key or a unique is taken."""

    def replace(self, kind: Kind[E], rows: Sequence[E]) -> None:
        """Replace the rows with the same keys, all or none; raises NotFound if one is missing."""

    def delete(self, kind: Kind[Any], keys: Sequence[Any]) -> None:
        """Delete the rows with these keys; missing ones are no error."""

    def commit(self) -> None:
        """Make the changes durable; without this the transaction leaves no trace."""


class Store(Protocol):
    """A database of spaces of rows; a context manager that closes itself."""

    @property
    def url(self) -> str:
        """The URL, without any password."""

    @property
    def uuid(self) -> str:
        """The permanent identity of the store, also of its copies."""

    @property
    def node(self) -> str:
        """The identity of this incarnation of the store, which no copy of its files has."""

    @property
    def dictionary(self) -> Dictionary:
        """The dictionary of what it stores."""

    @property
    def ids(self) -> Ids:
        """Generates the ids of new rows."""

    @property
    def schema_version(self) -> int:
        """The version of the dictionary that its layout follows."""

    @property
    def patience(self) -> float:
        """How many seconds to wait for others."""

    @property
    def wakeups(self) -> "Wakeups":
        """Wakes those who wait for changes; a unit of work rings after its commit."""

    def transaction(self, space: str, *, write: bool) -> AbstractContextManager[Session]:
        """Begin a transaction on a space; leaving it without a commit undoes it.

        Raises StoreBusy, which names the holder, when another writer of the space holds it for
        longer than the store's patience, be it a thread of this process or another process, also
        one that was stopped. Writers are admitted in order of arrival, and an interrupt ends the
        wait.

        Raises StoreUnavailable when the store was removed or replaced while it was open; then
        nothing is acknowledged, neither by this nor by `commit`.
        """

    def spaces(self) -> list[str]:
        """The names of the spaces that were written to, sorted."""

    def close(self) -> None:
        """Release files and connections; closing twice is no error."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class EdgeMapping(NamedTuple):
    """How rows of a kind are edges of a graph: from the node in one field to the node in another.

    Nodes are ids in a role, because one id may stand for two nodes: the beginning of a phase and
    its end.
    """

    kind: Kind[Any]
    source: str
    source_role: str
    target: str
    target_role: str


Node = tuple[str, str]
"""A role and an id."""


@runtime_checkable
class SupportsWalk(Protocol):
    """A session that can follow edges any number of steps in one call; an optional capability."""

    def walk(self, steps: Sequence[EdgeMapping], starts: Sequence[Node]) -> list[tuple[Node, Node]]:
        """All edges that can be reached from the starts."""


@runtime_checkable
class SupportsAppend(Protocol):
    """A session that need not wait for the reply to an insert; an optional capability.

    For engines that are reached over a network.
    """

    def append(self, kind: Kind[E], rows: Sequence[E]) -> None:
        """Insert new rows whose keys are known to be free.

        If one is taken after all, the commit raises AlreadyExists and undoes everything.
        """


@runtime_checkable
class SupportsImmediateRead(Protocol):
    """A store whose read transactions can begin with their first query; an optional capability.

    For engines that are reached over a network.
    """

    def immediate_read(self, space: str) -> AbstractContextManager[Session]:
        """Begin a read transaction whose snapshot is taken by its first query.

        It saves the round trip to the server that taking an earlier snapshot needs.
        """


IntegrityFinding = tuple[str, str | None, str]
"""What an engine found wrong: the name of a kind, a key where it is about one row, and what."""


@runtime_checkable
class SupportsVerify(Protocol):
    """A store whose engine trusts its own files; an optional capability.

    Reading a damaged file through such an engine may end the process.
    """

    def verify(self) -> None:
        """Raise StoreDamaged if the engine's own structures are damaged; reads nothing with it.

        Others may read and write meanwhile, and it waits for nobody. What has not changed since it
        was last verified here is not verified again.
        """


@runtime_checkable
class SupportsExamine(Protocol):
    """A session that can report damage and read around it; an optional capability.

    For engines that maintain their own lookups or whose files nothing else checks.
    """

    def readable_rows(self, kind: Kind[E]) -> Iterator[E]:
        """All rows of a kind that can be read, in the order of their keys."""

    def find_flaws(self, kinds: Iterable[Kind[Any]]) -> Iterator[IntegrityFinding]:
        """What the engine finds wrong in the space: damaged rows, wrong lookups."""

    def repair_lookups(self, kinds: Iterable[Kind[Any]]) -> int:
        """Make the lookups agree with the rows; return how many entries were changed."""
