"""Notes the merge base of a phase when it is handed in or completed."""

from herdbook.adapters.git import folder_for_git
from herdbook.adapters.git.changes import TRUNKS, commit_of, merge_base
from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.services.plan import phases


def note_merge_base(app: AppContext, finished: phases.FinishedPhase) -> None:
    """Keep where this worktree's commits left the initiative's branch, or else the trunk.

    Nothing is kept outside git and where nothing was committed beside that branch. Git that does
    not answer is told as a warning: what was handed in stays so.
    """
    try:
        base = _find_merge_base(app, finished.branch)
    except HerdbookError as error:
        app.warn(f"the merge base of phase {finished.phase.id} was not noted: {error}")
        return
    if base is not None:
        app.run(Area.WORK, phases.note_merge_base, finished.phase.id, base)


def _find_merge_base(app: AppContext, branch: str | None) -> str | None:
    facts, variables = app.workspace.facts, app.workspace.variables
    if facts is None:
        return None
    folder = folder_for_git(facts)
    head = commit_of(folder, "HEAD", variables)
    own = () if branch in (None, facts.branch) else (f"refs/heads/{branch}",)
    targets = (commit_of(folder, name, variables) for name in (*own, *TRUNKS, "main-worktree/HEAD"))
    target = next((each for each in targets if each is not None), None)
    if head is None or target is None:
        return None
    base = merge_base(folder, target, head, variables)
    return None if base == head else base
