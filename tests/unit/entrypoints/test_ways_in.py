"""Every public method of every repository has a way in: an operation that people and programs have.

A new method fails here until the operation that leads to it stands in `WAYS_IN`, or the reason why
nobody asks for it by itself in `BUILDING_BLOCKS`.
"""

import importlib
import inspect
import pkgutil

from herdbook.entrypoints.operations.registry import OPERATIONS
from herdbook.entrypoints.rpc.methods import methods
from herdbook.ports import repositories
from herdbook.ports.repositories.plan import DependentRows, Phases, Tasks

WAYS_IN = {
    "Repository.get": "task.show",
    "Repository.find": "task.show",
    "Repository.add": "task.add",
    "Repository.save": "task.set",
    "Repository.remove": "task.rm",
    "Repository.remove_all": "task.rm",
    "Repository.page": "task.list",
    "Initiatives.by_status": "initiative.list",
    "Phases.of_initiative": "phase.list",
    "Phases.add_dependency": "phase.after",
    "Phases.add_dependencies": "phase.after",
    "Phases.remove_dependency": "phase.not-after",
    "Phases.dependencies": "phase.waits-for",
    "Phases.dependents": "phase.dependents",
    "Tasks.of_initiative": "task.list",
    "Tasks.of_phase": "task.list",
    "Tasks.children": "task.list",
    "Tasks.by_status": "task.list",
    "Tasks.of_assignee": "task.list",
    "Tasks.add_dependency": "task.after",
    "Tasks.add_dependencies": "task.after",
    "Tasks.remove_dependency": "task.not-after",
    "Tasks.dependencies": "task.waits-for",
    "Tasks.dependents": "task.dependents",
    "Tasks.ready": "task.ready",
    "Openings.claimable": "task.claim",
    "Openings.expired_leases": "task.claim",
    "Projects.by_name": "project.show",
    "Projects.of_initiative": "initiative.projects",
    "Projects.set_for_initiative": "initiative.set-projects",
    "Pages.root": "page.root",
    "Pages.get_or_create_root": "page.root",
    "Pages.children": "page.list",
    "Proposals.of_agent": "proposal.accept-all",
    "Proposals.count_of_agent": "proposal.count",
    "Proposals.set_status_of_agent": "proposal.dismiss-all",
    "ChangeSets.of_initiative": "change-set.list",
    "ReviewComments.of_phase": "review.threads",
    "ReviewComments.resolve": "review.resolve",
    "ReviewComments.unresolve": "review.unresolve",
    "Errands.of_project": "errand.list",
    "Errands.by_status": "errand.list",
    "Agents.by_name": "agent.show",
    "Agents.of_task": "agent.list",
    "Agents.of_initiative": "agent.list",
    "Agents.by_session": "agent.list",
    "Agents.by_status": "agent.list",
    "Agents.waiting_with_context": "agent.waiting",
    "Messages.pending_for_user": "message.inbox",
    "Messages.pending_for_agent": "message.inbox",
    "Messages.count_requiring_response": "message.unanswered",
    "Messages.requiring_response": "message.unanswered",
    "Messages.replies": "message.thread",
    "Conversations.pending_for": "conversation.listen",
    "Conversations.answer": "conversation.answer",
    "Conversations.by_sender": "conversation.list",
    "Conversations.count_by_senders": "conversation.count",
    "ChatSessions.active_for_target": "chat.add",
    "ChatSessions.active_for_agent": "chat.list",
    "ChatSessions.post": "chat.post",
    "ChatSessions.messages": "chat.history",
    "LogChunks.append": "log.add",
    "LogChunks.of_agent": "log.list",
    "LogChunks.of_agents": "log.list",
    "LogChunks.agent_ids": "log.sessions",
    "LogChunks.last": "log.sessions",
    "LogChunks.session_count": "log.sessions",
    "LogChunks.remove_of_agent": "log.rm",
    "Accounts.of_provider": "account.list",
    "Accounts.next_available": "account.take",
    "Accounts.mark_exhausted": "account.exhaust",
    "Accounts.clear_expired": "account.free-expired",
    "DatedRepository.of_agent": "activity.list",
    "DatedRepository.by_time": "activity.list",
    "Ledger.has_entry": "flush",
    "Commits.of_hash": "grade",
    "Commits.of_project": "grade",
    "Retrospectives.of_commit": "grade",
    "Retrospectives.of_project": "grade",
    "Retrospectives.by_agent": "standing",
    "Standings.of_agent": "standing",
    "Standings.names": "standing",
    "Journal.since": "journal.since",
    "Journal.last": "journal.list",
    "Cursors.hold": "journal.hold",
    "Cursors.drop": "journal.release",
    "Cursors.live": "journal.cursors",
    "Journal.of_row": "journal.row",
    "Checkpoints.find": "checkpoint.show",
    "Checkpoints.page": "checkpoint.list",
    "Checkpoints.lanes": "checkpoint.threads",
    "Checkpoints.writes": "checkpoint.show",
    "Checkpoints.values": "checkpoint.show",
    "Checkpoints.load_bundles": "checkpoint.show",
}
"""The operation that leads to a method."""
BUILDING_BLOCKS = {
    "Repository.get_many": "use cases read the rows that others name",
    "Repository.add_all": "use cases that add several rows at once",
    "Repository.save_all": "use cases that change several rows at once",
    "Repository.select": "the named queries are made of it",
    "Repository.first": "the named queries are made of it",
    "Repository.select_all": "the named queries are made of it",
    "Tasks.any_unfinished_in": "phases follow their tasks by it",
    "Tasks.in_progress_of": "agents follow what they hold by it",
    "Tasks.initiative_id_of": "use cases ask which initiative a task is in",
    "Agents.find_holder": "claims and the details of a task name who holds it",
    "Agents.at_work": "messages to all and the search for crashed agents begin with it",
    "Openings.reviews_of": "agents follow what they hold by it",
    "Openings.put": "claims and heartbeats keep leases by it",
    "ChangeSets.of_tx": "accepting proposals asks whether its transaction has a change set",
    "Commits.with_hash": "a rewritten commit is found by it when events are counted",
    "SetupNotes.of_session": "entries get the setup of their session by it",
    "SetupNotes.of_registration": "entries get the setup their agent is registered with by it",
    "Journal.of_tx": "taking a change set back reads what its transaction did",
    "Journal.all_entries": "checks read the whole journal",
    "Journal.before": "`recent` is a page of it",
    "Journal.recent": "status and board read the newest entries",
    "Journal.newest_since": "progress and lanes read the entries of a window of time",
    "Journal.require": "readers that begin at a position ask whether entries after it are there",
    "Journal.pruned_to": "lists and folding begin there",
    "Journal.pruned_error": "what a question about folded entries is refused with",
    "Cursors.advance": "readers in the same program move their own; `journal.hold` moves any",
    "Operations.prune": "every operation with an id drops results nobody asks for again",
    "Checkpoints.fetch_pieces": "values of checkpoints are put together from pieces",
}
"""Why nobody asks for a method by itself."""


def _public_methods() -> set[str]:
    """Those of each repository; what phases and tasks have in common counts for each of them."""
    found = set()
    for module in pkgutil.iter_modules(repositories.__path__):
        code = importlib.import_module(f"{repositories.__name__}.{module.name}")
        for name, kind in inspect.getmembers(code, inspect.isclass):
            # What repositories return is a value; its properties are no questions to a store.
            if kind.__module__ == code.__name__ and not issubclass(kind, (tuple, DependentRows)):
                own = vars(kind)
            elif kind.__module__ == code.__name__ and kind in (Phases, Tasks):
                own = vars(DependentRows) | vars(kind)
            else:
                continue
            found |= {
                f"{name}.{method}"
                for method, value in own.items()
                if inspect.isfunction(value) and not method.startswith("_")
            }
    return found


def test_every_repository_method_has_a_way_in_or_a_reason() -> None:
    """And the two tables name no method that is gone."""
    assert WAYS_IN.keys() & BUILDING_BLOCKS.keys() == set()
    assert _public_methods() == WAYS_IN.keys() | BUILDING_BLOCKS.keys()
    assert all(BUILDING_BLOCKS.values())


def test_every_way_in_is_a_command_and_a_method() -> None:
    """So people and programs have it alike."""
    commands = {operation.name for operation in OPERATIONS}
    for method, operation in WAYS_IN.items():
        assert operation in commands, method
        assert operation in methods(), method
