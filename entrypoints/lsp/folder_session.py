"""A folder of an editor's window: its comments, its code lenses and its journal watcher."""

from collections.abc import Callable

from herdbook.entrypoints.lsp.buffers import Buffers
from herdbook.entrypoints.lsp.editor_worktree import ContextFactory, EditorWorktree
from herdbook.entrypoints.lsp.journal_watcher import JournalWatcher, OnChange
from herdbook.entrypoints.lsp.lenses import Lenses


class FolderSession:
    """One folder of an editor's window."""

    def __init__(
        self,
        get_context: ContextFactory,
        buffers: Buffers,
        on_late: Callable[[], None],
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self.worktree = EditorWorktree(get_context, buffers)
        self.lenses = Lenses(get_context, on_late)
        self._close = close
        self._watcher: JournalWatcher | None = None

    def watch_journal(self, on_change: OnChange, warn: Callable[[str], None]) -> None:
        """Watch the journal from now on; further calls do nothing."""

        def forget_and_report(*, comments: bool, lenses: bool) -> None:
            if comments:
                self.worktree.forget()
            if lenses:
                self.lenses.forget()
            on_change(comments=comments, lenses=lenses)

        if self._watcher is None:
            self._watcher = JournalWatcher(self.worktree.get_context, forget_and_report, warn)

    def forget(self) -> None:
        """Ask the store and git again the next time."""
        self.worktree.forget()
        self.lenses.forget()

    def close(self) -> None:
        """End the threads, and close the stores that were opened for this folder alone."""
        if self._watcher is not None:
            self._watcher.close()
        self.lenses.close()
        self._close()
