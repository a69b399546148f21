"""The fields that only use cases write: one table for `add` and `set`, whatever the way in.

A field stands here if a use case keeps a rule about it, so that nobody walks round the rule by
setting the field. Taking a change set back and copying a store restore such fields as they were.
"""

from collections.abc import Mapping
from typing import NamedTuple

from herdbook.domain.errors import InvalidValue


class FieldGuard(NamedTuple):
    """Who writes a field: the operations that do, by name.

    With `when_added` a new row may be given a value, which then stays. Values `by_hand` are those
    that a person may choose.
    """

    operations: tuple[str, ...]
    when_added: bool = False
    by_hand: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Why `set` does not change it, and what does."""
        commands = " or ".join(f"`herdbook {each.replace('.', ' ')}`" for each in self.operations)
        if self.by_hand:
            return f"can be set to {', '.join(self.by_hand)}; the rest is done by {commands}"
        if self.when_added:
            return f"stays as it was when {commands} wrote it"
        return f"is not set by hand; use {commands}"


_CLAIM = FieldGuard(("task.claim", "task.release"))
_EXHAUSTION = FieldGuard(("account.exhaust", "account.free"))
_ADDRESS = FieldGuard(("message.add",), when_added=True)
_CHAT = FieldGuard(("chat.add",), when_added=True)
_ANSWER = FieldGuard(("conversation.answer",))
_CHANGE_SET = FieldGuard(("change-set.revert",))

GUARDED_FIELDS: Mapping[str, Mapping[str, FieldGuard]] = {
    "tasks": {
        "status": FieldGuard(
            ("task.claim", "task.done"), by_hand=("pending", "blocked", "completed")
        ),
        "assignee_id": _CLAIM,
        "fence": _CLAIM,
        "claim_stamp": _CLAIM,
        "lease_until": _CLAIM,
        "retry_count": FieldGuard(("task.fail", "task.retry")),
    },
    "projects": {"last_fetched_at": FieldGuard(("project.fetched",))},
    "errands": {"status": FieldGuard(("errand.move",))},
    "proposals": {"status": FieldGuard(("proposal.accept", "proposal.dismiss"))},
    "change_sets": {
        "tx": FieldGuard(("proposal.accept",), when_added=True),
        "status": _CHANGE_SET,
    },
    "review_comments": {
        "resolved": FieldGuard(("review.resolve", "review.unresolve")),
        "message_id": FieldGuard(("review.submit",)),
    },
    "messages": {
        "status": FieldGuard(("message.read", "message.reply")),
        "sender_type": _ADDRESS,
        "sender_id": _ADDRESS,
        "recipient_type": _ADDRESS,
        "recipient_id": _ADDRESS,
        "parent_message_id": _ADDRESS,
    },
    "conversations": {"answer": _ANSWER, "status": _ANSWER},
    "chat_sessions": {
        "status": FieldGuard(("chat.close",)),
        "target_type": _CHAT,
        "target_id": _CHAT,
        "initiative_id": _CHAT,
    },
    "agents": {
        "log_session": FieldGuard(("agent.resume",)),
        "worktree_id": FieldGuard(("agent.add",), when_added=True),
    },
    "accounts": {
        "is_exhausted": _EXHAUSTION,
        "exhausted_until": _EXHAUSTION,
        "last_used_at": FieldGuard(("account.take",)),
    },
}
"""The guards by kind of rows and field."""


def guards_of(kind: str, *, adding: bool = False) -> Mapping[str, FieldGuard]:
    """The guards of a kind's fields, for a change of a row or for adding one."""
    guards = GUARDED_FIELDS.get(kind, {})
    if not adding:
        return guards
    return {name: guard for name, guard in guards.items() if not guard.when_added}


def refuse_guarded(kind: str, before: Mapping[str, object], after: Mapping[str, object]) -> None:
    """Raise InvalidValue, with the command to use, if a guarded field of a row would change.

    For a new row, `before` has the values it has by default.
    """
    for name, guard in guards_of(kind).items():
        if name in before and before[name] != after[name] and after[name] not in guard.by_hand:
            raise InvalidValue(name, guard.reason)
