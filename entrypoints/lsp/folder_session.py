"""A worktree in an editor with all that is shown of it: remarks, who is at work, what changes."""

from collections.abc import Callable

from herdbook.entrypoints.lsp.buffers import Buffers
from herdbook.entrypoints.lsp.journal_watcher import Changed, Follower
from herdbook.entrypoints.lsp.lenses import Lenses
from herdbook.entrypoints.lsp.workspace import Look, Workspace


def _nothing() -> None:
    """Leave all open: it is somebody else's."""


class Room:
    """One folder of an editor's window."""

    def __init__(
        self,
        look: Look,
        buffers: Buffers,
        late: Callable[[], None],
        close: Callable[[], None] = _nothing,
    ) -> None:
        self.workspace = Workspace(look, buffers)
        self.lenses = Lenses(look, late)
        self._close = close
        self._follower: Follower | None = None

    def follow(self, changed: Changed, said: Callable[[str], None]) -> None:
        """Follow the journal from now on, in one thread however often this is called."""

        def news(*, remarks: bool, lenses: bool) -> None:
            if remarks:
                self.workspace.forget()
            if lenses:
                self.lenses.forget()
            changed(remarks=remarks, lenses=lenses)

        if self._follower is None:
            self._follower = Follower(self.workspace.look, news, said)

    def forget(self) -> None:
        """Ask the store and git again."""
        self.workspace.forget()
        self.lenses.forget()

    def close(self) -> None:
        """End the threads, and close what was opened for this folder alone."""
        if self._follower is not None:
            self._follower.close()
        self.lenses.close()
        self._close()
