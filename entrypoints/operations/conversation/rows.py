"""What agents and people say to one another."""

from herdbook.entrypoints.operations.model import Operation, Parameter, an_id, does, id_option, noun

_ACTING = "acting agent"
_FROM = id_option("from_agent_id", _ACTING, "who asks; by default the agent that acts here")
_LISTENER = id_option("agent_id", _ACTING, "its name or id; by default the agent that acts here")
_TEXT = "what to say; - reads it from standard input"

ROWS: tuple[Operation, ...] = (
    does(
        "message.add",
        "write to an agent, or to the person",
        "messaging:send",
        "message add 'may I merge?' --sender brisk-otter --requires-response",
        Parameter("content", _TEXT, positional=True, required=True),
        id_option("sender_id", "agents", "the agent that writes; left out, the person"),
        id_option("recipient_id", "agents", "the agent it is for; left out, the person"),
        id_option("parent_message_id", "messages", "the message it answers"),
        Parameter("requires_response", "an answer is needed", kind="flag"),
    ),
    *noun("message", "messages", "content", "", add=False),
    does(
        "message.reply",
        "answer a message",
        "messaging:reply",
        "message reply a1b2 yes",
        an_id("message_id", "messages"),
        Parameter("content", _TEXT, positional=True, required=True),
        Parameter("requires_response", "an answer is needed", kind="flag"),
    ),
    does(
        "message.read",
        "show a message, which counts as read from then on",
        "messaging:read",
        "message read a1b2",
        an_id("message_id", "messages"),
    ),
    does(
        "message.inbox",
        "list what an agent, or the person, has not read yet",
        "messaging:inbox",
        "message inbox --agent brisk-otter",
        id_option("agent_id", "agents", "whose; left out, the person's"),
        Parameter("limit", "at most so many", kind="number", default=100),
        id_option("after", "messages", "from behind this message on"),
        reads=True,
    ),
    does(
        "message.thread",
        "print the whole thread a message is in",
        "messaging:thread",
        "message thread a1b2",
        an_id("message_id", "messages"),
        reads=True,
    ),
    Operation(
        "conversation.add",
        "ask another agent something, and wait for the answer if told to",
        "conversation.handlers:ask",
        "crud.views:anything",
        "herdbook conversation add 'which port?' --to quick-lynx --wait 60s",
        (
            Parameter("question", _TEXT, positional=True, required=True),
            Parameter("to", "the agent that is asked: its name or id", required=True),
            Parameter("agent", "who asks; by default the agent that acts here"),
            Parameter("task", "the task it is about"),
            Parameter("wait", "for how long to wait for the answer", kind="duration"),
        ),
    ),
    *noun("conversation", "conversations", "question", "", add=False),
    Operation(
        "conversation.listen",
        "print the oldest question an agent has not answered, waiting for one if told to",
        "conversation.handlers:listen",
        "crud.views:anything",
        "herdbook conversation listen --wait 60s",
        (
            Parameter("agent", "its name or id; by default the agent that acts here"),
            Parameter("wait", "for how long to wait for one", kind="duration"),
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
        "open the chat about a phase or a task, or find the open one",
        "messaging:open_chat",
        "chat add task tsk_0123456789",
        Parameter(
            "target_type",
            "what it is about",
            positional=True,
            required=True,
            choices=("phase", "task"),
        ),
        Parameter("target_id", "its whole id", positional=True, required=True),
        id_option("agent_id", "agents", "the agent that takes part"),
    ),
    *noun("chat", "chat_sessions", "", "", add=False),
    does(
        "chat.say",
        "say something in an open chat",
        "messaging:post_to_chat",
        "chat say a1b2 user 'make it shorter'",
        an_id("chat_session_id", "chat_sessions"),
        Parameter(
            "role",
            "who says it",
            positional=True,
            required=True,
            choices=("user", "assistant", "system"),
        ),
        Parameter("content", _TEXT, positional=True, required=True),
    ),
    does(
        "chat.said",
        "print what was said in a chat",
        "messaging:chat_history",
        "chat said a1b2",
        an_id("chat_session_id", "chat_sessions"),
        Parameter("limit", "at most so many", kind="number", default=100),
        reads=True,
    ),
    does(
        "chat.close",
        "end a chat",
        "messaging:close_chat",
        "chat close a1b2",
        an_id("chat_session_id", "chat_sessions"),
    ),
)
