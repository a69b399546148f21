"""What agents and people say to one another."""

from herdbook.entrypoints.operations.model import Operation, Parameter, an_id, does, id_option, noun

_ACTING = "acting agent"
_FROM = id_option("from_agent_id", _ACTING, "the agent that asks; default: the acting agent")
_LISTENER = id_option("agent_id", _ACTING, "its name or id; default: the acting agent")
_TEXT = "the text; - reads it from standard input"

ROWS: tuple[Operation, ...] = (
    does(
        "message.add",
        "send a message to an agent or to the person",
        "messaging:send",
        "message add 'may I merge?' --sender brisk-otter --requires-response",
        Parameter("content", _TEXT, positional=True, required=True),
        id_option("sender_id", "agents", "the sending agent; default: the person"),
        id_option("recipient_id", "agents", "the receiving agent; default: the person"),
        id_option("parent_message_id", "messages", "the message that it replies to"),
        Parameter("requires_response", "a reply is required", kind="flag"),
    ),
    *noun("message", "messages", "content", "", add=False),
    does(
        "message.reply",
        "reply to a message",
        "messaging:reply",
        "message reply a1b2 yes",
        an_id("message_id", "messages"),
        Parameter("content", _TEXT, positional=True, required=True),
        Parameter("requires_response", "a reply is required", kind="flag"),
    ),
    does(
        "message.read",
        "show a message and mark it as read",
        "messaging:read",
        "message read a1b2",
        an_id("message_id", "messages"),
    ),
    does(
        "message.inbox",
        "list the unread messages of an agent or of the person",
        "messaging:inbox",
        "message inbox --agent brisk-otter",
        id_option("agent_id", "agents", "the agent; default: the person"),
        Parameter("limit", "the maximum number of rows", kind="number", default=100),
        id_option("after", "messages", "start after this message"),
        reads=True,
    ),
    does(
        "message.thread",
        "print the thread of a message",
        "messaging:thread",
        "message thread a1b2",
        an_id("message_id", "messages"),
        reads=True,
    ),
    Operation(
        "conversation.add",
        "ask another agent a question, and optionally wait for the answer",
        "conversation.handlers:ask",
        "crud.views:anything",
        "herdbook conversation add 'which port?' --to quick-lynx --wait 60s",
        (
            Parameter("question", _TEXT, positional=True, required=True),
            Parameter("to", "the agent to ask: its name or id", required=True),
            Parameter("agent", "the agent that asks; default: the acting agent"),
            Parameter("task", "the task it is about"),
            Parameter("wait", "how long to wait for the answer", kind="duration"),
        ),
    ),
    *noun("conversation", "conversations", "question", "", add=False),
    Operation(
        "conversation.listen",
        "print the oldest unanswered question to an agent, and optionally wait for one",
        "conversation.handlers:listen",
        "crud.views:anything",
        "herdbook conversation listen --wait 60s",
        (
            Parameter("agent", "its name or id; default: the acting agent"),
            Parameter("wait", "how long to wait for one", kind="duration"),
        ),
    ),
    does(
        "conversation.answer",
        "answer a question",
        "messaging:answer",
        "conversation answer a1b2 8080",
        an_id("conversation_id", "conversations"),
        Parameter("text", _TEXT, positional=True, required=True),
    ),
    does(
        "chat.add",
        "open a chat about a phase or a task, or return the open one",
        "messaging:open_chat",
        "chat add task tsk_0123456789",
        Parameter(
            "target_type",
            "what it is about",
            positional=True,
            required=True,
            choices=("phase", "task"),
        ),
        Parameter("target_id", "its full id", positional=True, required=True),
        id_option("agent_id", "agents", "the participating agent"),
    ),
    *noun("chat", "chat_sessions", "", "", add=False),
    does(
        "chat.post",
        "post to an open chat",
        "messaging:say",
        "chat post a1b2 user 'make it shorter'",
        an_id("chat_session_id", "chat_sessions"),
        Parameter(
            "role",
            "the author",
            positional=True,
            required=True,
            choices=("user", "assistant", "system"),
        ),
        Parameter("content", _TEXT, positional=True, required=True),
    ),
    does(
        "chat.history",
        "print the messages of a chat",
        "messaging:said",
        "chat history a1b2",
        an_id("chat_session_id", "chat_sessions"),
        Parameter("limit", "the maximum number of rows", kind="number", default=100),
        reads=True,
    ),
    does(
        "chat.close",
        "close a chat",
        "messaging:close_chat",
        "chat close a1b2",
        an_id("chat_session_id", "chat_sessions"),
    ),
)
