"""The tools a coding agent gets: chosen from the table, described for a model.

Twenty-one at most. A model chooses better among fewer tools, and every description takes up context
in each conversation.
"""

from collections.abc import Sequence

from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.mcp.tool import Tool, ToolParameter

_TASK = "the task's id; default: the task you hold"
_FENCE = "the fence that claim returned; needed only to finish a review"
_WAIT = "how long to wait, such as 45s; at most 10m, and your client may give up earlier"
_TTL = ToolParameter(
    "ttl", "how long the task stays yours after you are gone, such as 10m or 1h", default="5m"
)
_AT = ToolParameter("at", "as it was after this entry of the journal, or at this time")
_INITIATIVE = ToolParameter("initiative_id", "only of this initiative: its id", alias="initiative")
_PHASE = ToolParameter("phase_id", "only of this phase: its id", alias="phase")

TOOLS: tuple[Tool, ...] = (
    Tool(
        "introduce",
        "agent.add",
        "Introduce yourself",
        "Say who you are, once, before anything that writes. Leave `name` out to get a new name, "
        "or to be the agent this session already is; give the name you had to come back as the "
        "same agent. From then on you act as that agent: your claims, answers and comments carry "
        "its name. Next: ready or claim.",
        (
            ToolParameter("name", "your name, such as brisk-otter; default: a generated one"),
            ToolParameter(
                "provider",
                "your provider: claude, codex, opencode …; default: what your client reports",
            ),
            ToolParameter("model", "which model you are"),
            ToolParameter("mode", "what you are here to do"),
        ),
        repeatable=True,
        takes_folder=True,
    ),
    Tool(
        "ready",
        "task.ready",
        "See what can be done now",
        "List the tasks that nobody holds and nothing blocks, most urgent first. Use it to see "
        "what there is; it gives you nothing to hold. Next: claim, which gives you the first of "
        "them.",
        (ToolParameter("limit", "the maximum number of tasks"), _INITIATIVE, _PHASE),
        answer_key="tasks",
        read_only=True,
        needs_agent=False,
    ),
    Tool(
        "claim",
        "task.claim",
        "Take a task",
        "Take the most urgent ready task, or the one you were told to do, so that no other agent "
        "works on it. If there is none, `reason` says why. Work only on tasks you have claimed. "
        "`summaries` has the results of the tasks this one depends on. A task "
        "whose status is quality_review is somebody else's work: review it, then complete it to "
        "let it pass or fail it to send it back, giving `task` and `fence`. The task stays yours "
        "while you are connected. Next: do the work, then complete.",
        (
            ToolParameter("task", "this task: its id or name; default: the most urgent"),
            ToolParameter("initiative", "only of this initiative: its id"),
            ToolParameter("phase", "only of this phase: its id"),
            _TTL,
        ),
    ),
    Tool(
        "heartbeat",
        "task.heartbeat",
        "Renew your lease",
        "Renew the lease of a task you hold, so that no other agent takes it over. This server "
        "does it by itself while you are connected; call it to see whether the task is still "
        "yours.",
        (ToolParameter("task", _TASK), ToolParameter("fence", _FENCE), _TTL),
        repeatable=True,
    ),
    Tool(
        "complete",
        "task.done",
        "Complete your task",
        "Complete a task you hold, once the work is done and checked. Say in `summary` what the "
        "agents that build on it must know: files, names, decisions. Next: note what you learned, "
        "then claim again.",
        (
            ToolParameter("task", _TASK),
            ToolParameter("fence", _FENCE),
            ToolParameter("summary", "the result, in a few sentences", required=True),
        ),
    ),
    Tool(
        "fail",
        "task.fail",
        "Return a task as failed",
        "Return a task that you tried and could not do, or reject work that you reviewed. It "
        "counts as an attempt; after several the task waits for a person. Call note first, so "
        "that the next agent knows what you tried.",
        (ToolParameter("task", _TASK), ToolParameter("fence", _FENCE)),
    ),
    Tool(
        "release",
        "task.release",
        "Return a task without an attempt",
        "Return a task that you hold and have not begun, so that another agent can take it. It "
        "does not count as an attempt.",
        (ToolParameter("task", _TASK), ToolParameter("fence", _FENCE)),
    ),
    Tool(
        "show_task",
        "task.show",
        "Look at a task",
        "Read one task: its description, its status, who holds it and its summary.",
        (ToolParameter("id", "its id, or a unique prefix of it", alias="task"), _AT),
        read_only=True,
        needs_agent=False,
    ),
    Tool(
        "note",
        "activity.add",
        "Note what you did",
        "Record what you did and learned, for agents that get a similar task later: recall "
        "finds it. Use it when a task is done or given up, and when you decide something.",
        (
            ToolParameter("task", "what it was about, in some words"),
            ToolParameter("actions", "what you did"),
            ToolParameter("outcome", "how it went: what works, what does not"),
            ToolParameter("decisions", "what you decided, and why"),
        ),
        agent_parameter="agent",
    ),
    Tool(
        "recall",
        "recall",
        "Find earlier work",
        "Find earlier work that resembles a task: what went well and what was a mistake. Use it "
        "right after claim, before you begin.",
        (
            ToolParameter("text", "the task, in some words"),
            ToolParameter("limit", "the maximum number of results of each kind"),
        ),
        read_only=True,
        needs_agent=False,
    ),
    Tool(
        "ask",
        "conversation.add",
        "Ask another agent",
        "Ask another agent a question, for instance about code it wrote; status lists the "
        "agents. With `wait` you get the answer if it comes in time. To ask the person, use "
        "message.",
        (
            ToolParameter("question", "the question, with all that is needed to answer it"),
            ToolParameter("to", "the name or the id of the agent you ask"),
            ToolParameter("task", "the id of the task it is about"),
            ToolParameter("phase", "the id of the phase, where it is about no task"),
            ToolParameter("wait", _WAIT),
        ),
        agent_parameter="agent",
    ),
    Tool(
        "listen",
        "conversation.listen",
        "Get the next question to you",
        "Get the oldest question that another agent asked you and that you have not answered; null "
        "if there is none. Call it now and then while you work. Next: answer.",
        (ToolParameter("wait", _WAIT),),
        answer_key="question",
        read_only=True,
        agent_parameter="agent",
    ),
    Tool(
        "answer",
        "conversation.answer",
        "Answer a question",
        "Answer a question that listen gave you. Only the first answer counts.",
        (
            ToolParameter("conversation_id", "the id of the question", alias="question"),
            ToolParameter("text", "your answer"),
        ),
    ),
    Tool(
        "message",
        "message.add",
        "Write to the person or an agent",
        "Write to the person who runs you, or to another agent. Leave `to` out to write to the "
        "person. Set `requires_response` when you cannot go on without an answer; it comes to your "
        "inbox. To answer a message of your inbox give its id as `in_reply_to`, which also takes "
        "it out of your inbox.",
        (
            ToolParameter("content", "what you want to say"),
            ToolParameter("recipient_id", "an agent's name or id; default: the person", alias="to"),
            ToolParameter(
                "parent_message_id", "the id of the message you answer", alias="in_reply_to"
            ),
            ToolParameter("requires_response", "you need an answer"),
        ),
        agent_parameter="sender_id",
    ),
    Tool(
        "inbox",
        "message.inbox",
        "Read your messages",
        "List the messages to you that you have not answered, oldest first. Look here when you "
        "begin, and after you asked the person something. Next: message with `in_reply_to`.",
        (ToolParameter("limit", "the maximum number of messages"),),
        answer_key="messages",
        read_only=True,
        agent_parameter="agent_id",
    ),
    Tool(
        "wait",
        "agent.wait",
        "Wait for the person",
        "Say that you cannot go on until the person who runs you decides something, and end your "
        "turn. The person sees your questions with your task, which stays yours. "
        "When you were answered, call introduce to go on.",
        (ToolParameter("questions", "your questions, each a text that can be answered by itself"),),
        agent_parameter="agent_id",
        repeatable=True,
    ),
    Tool(
        "propose",
        "proposal.add",
        "Propose a change of the plan",
        "Propose to change the plan: a new task or phase, or other words for one that is there. "
        "Use it for work you found that is not part of your task. A person accepts it or turns it "
        "down; go on with your own task meanwhile.",
        (
            ToolParameter("initiative", "the id of the initiative it belongs to"),
            ToolParameter("target_type", "what you want to add or change"),
            ToolParameter("target_id", "the whole id of what to change; default: something new"),
            ToolParameter("title", "what to call it"),
            ToolParameter("summary", "why, in a sentence or two"),
            ToolParameter(
                "content", "the whole text: what is to be done, and how to see that it is"
            ),
        ),
        agent_parameter="agent",
    ),
    Tool(
        "review",
        "review.threads",
        "Read comments on the code",
        "List the comments of reviewers on the changes of a phase, each with its replies, oldest "
        "first. Use it when you work on a phase that was reviewed. Next: change the code, then "
        "resolve.",
        (
            ToolParameter(
                "phase_id", "the id of the phase; a task says which is its own", alias="phase"
            ),
            ToolParameter("resolved", "true: only resolved threads; false: only unresolved ones"),
        ),
        answer_key="threads",
        read_only=True,
        needs_agent=False,
    ),
    Tool(
        "comment",
        "review.add",
        "Comment on a line of code",
        "Leave a comment at a line of a phase's changes, as a reviewer does, or reply to one by "
        "giving it as `in_reply_to` with the same place. Say what is wrong and what would be "
        "right.",
        (
            ToolParameter("phase", "the id of the phase whose changes you look at"),
            ToolParameter("file_path", "the file, from the repository's root on", required=True),
            ToolParameter(
                "line_number", "the line; of a removed line, its number before", required=True
            ),
            ToolParameter(
                "line_type",
                "whether the change added the line, removed it, or left it",
                required=True,
            ),
            ToolParameter("body", "your comment"),
            ToolParameter(
                "parent_comment", "the id of the comment you reply to", alias="in_reply_to"
            ),
        ),
        agent_parameter="author",
    ),
    Tool(
        "resolve",
        "review.resolve",
        "Resolve a comment",
        "Mark the thread of a comment as resolved, once the code is changed or the question is "
        "answered.",
        (ToolParameter("comment_id", "the id of the comment", alias="comment"),),
        repeatable=True,
    ),
    Tool(
        "status",
        "status",
        "See who works on what",
        "Show which agents are at work in which worktrees, on which tasks, since when and what "
        "they wait for, and how many tasks are ready, held and waiting.",
        (ToolParameter("worktree", "only this worktree: its id, path or branch"), _AT),
        read_only=True,
        needs_agent=False,
    ),
)

CORE = (
    "introduce",
    "claim",
    "complete",
    "fail",
    "release",
    "ask",
    "listen",
    "answer",
    "message",
    "inbox",
)
SETS: dict[str, tuple[str, ...]] = {"all": tuple(each.name for each in TOOLS), "core": CORE}
"""The sets of tools that a client may choose, by name."""


def choose_tools(names: str) -> tuple[Tool, ...]:
    """The tools of these sets, separated by commas, in the order of the table.

    Raises InvalidValue for a set that there is not.
    """
    chosen = [each.strip() for each in names.split(",") if each.strip()]
    for each in chosen:
        if each not in SETS:
            raise InvalidValue("tools", f"{each!r} is none of {', '.join(SETS)}")
    wanted = {name for each in chosen for name in SETS[each]}
    return tuple(each for each in TOOLS if each.name in wanted)


INSTRUCTIONS = """\
Herdbook keeps the plan that you share with other coding agents and with the person you work for.
Call introduce once. Then, task by task: claim, recall, do the work (listen and inbox now and then),
complete, note. Work only on tasks you have claimed; they stay yours while you are connected.
When a tool refuses, its text says what to do next. What you cannot do with these tools, a
person has to do: say so with message, and continue with another task.
"""

CORE_INSTRUCTIONS = """\
Herdbook keeps the plan that you share with other coding agents and with the person you work for.
Call introduce once. Then, task by task: claim, do the work (listen and inbox now and then),
complete. Work only on tasks you have claimed. When a tool refuses, its text says what to do next.
What you cannot do with these tools, a person has to do: say so with message.
"""


def instructions(tools: Sequence[Tool]) -> str:
    """The instructions of a server with these tools, which name no tool that it has not."""
    return INSTRUCTIONS if len(tools) == len(TOOLS) else CORE_INSTRUCTIONS
