"""What agents and people say to one another."""

from herdbook.entrypoints.operations.model import (
    AT,
    Operation,
    Parameter,
    argument,
    crud_operations,
    id_argument,
    id_option,
    use_case_operation,
)

_ACTING = "acting agent"
_ACTING_OR_PERSON = "acting agent or person"
_SENDER = id_option(
    "sender_id", _ACTING_OR_PERSON, "the sending agent; default: the acting agent, or the person"
)._replace(option="agent")
_TO = "recipient_id", "agents"
_TEXT = "the text; - reads it from standard input"

ROWS: tuple[Operation, ...] = (
    use_case_operation(
        "message.add",
        "send a message to an agent or to the person",
        "messaging:send",
        "message add 'may I merge?' --to brisk-otter --requires-response",
        Parameter("content", _TEXT, positional=True, required=True),
        _SENDER,
        id_option(*_TO, "the receiving agent; default: the person")._replace(option="to"),
        id_option("parent_message_id", "messages", "the message that it replies to"),
        Parameter("requires_response", "a reply is required", kind="flag"),
    ),
    *crud_operations("message", "messages", "content", "", add=False),
    use_case_operation(
        "message.reply",
        "reply to a message",
        "messaging:reply",
        "message reply a1b2 yes",
        id_argument("message_id", "messages"),
        Parameter("content", _TEXT, positional=True, required=True),
        _SENDER,
        Parameter("requires_response", "a reply is required", kind="flag"),
    ),
    use_case_operation(
        "message.read",
        "show a message and mark it as read",
        "messaging:read",
        "message read a1b2",
        id_argument("message_id", "messages"),
    ),
    use_case_operation(
        "message.inbox",
        "list the unread messages of an agent or of the person",
        "messaging:inbox",
        "message inbox --agent brisk-otter",
        id_option(
            "agent_id", _ACTING_OR_PERSON, "the agent; default: the acting agent, or the person"
        ),
        Parameter("limit", "the maximum number of rows", kind="number", default=100),
        id_option("after", "messages", "start after this message"),
        reads=True,
    ),
    use_case_operation(
        "message.unanswered",
        "list the messages that still need a response, read or not",
        "messaging:unanswered_messages",
        "message unanswered --to brisk-otter",
        id_option(*_TO, "only those to this agent")._replace(option="to"),
        Parameter("limit", "the maximum number of rows", kind="number", default=100),
        id_option("after", "messages", "start after this message"),
        reads=True,
    ),
    use_case_operation(
        "message.thread",
        "print the thread of a message",
        "messaging:thread",
        "message thread a1b2",
        id_argument("message_id", "messages"),
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
            Parameter("phase", "the phase it is about; default: the task's"),
            Parameter("initiative", "the initiative it is about; default: the phase's or task's"),
            Parameter("wait", "how long to wait for the answer", kind="duration"),
        ),
    ),
    *crud_operations("conversation", "conversations", "question", "", add=False),
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
    use_case_operation(
        "conversation.answer",
        "answer a question",
        "messaging:answer",
        "conversation answer a1b2 8080",
        id_argument("conversation_id", "conversations"),
        Parameter("text", _TEXT, positional=True, required=True),
    ),
    use_case_operation(
        "conversation.count",
        "count the questions that agents have asked",
        "messaging:count_questions",
        "conversation count brisk-otter quick-lynx",
        id_argument("agent_ids", "agents", "their names or ids", many=True),
        reads=True,
    ),
    use_case_operation(
        "chat.add",
        "open a chat about a phase or a task, or return the open one",
        "messaging:open_chat",
        "chat add phase a1b2",
        Parameter(
            "target_type",
            "what it is about",
            positional=True,
            required=True,
            choices=("phase", "task"),
        ),
        Parameter("target_id", "its id or a unique prefix of it", positional=True, required=True),
        id_option("agent_id", "agents", "the participating agent"),
    ),
    *crud_operations("chat", "chat_sessions", "", "", add=False),
    use_case_operation(
        "chat.post",
        "post to an open chat",
        "messaging:post_to_chat",
        "chat post a1b2 user 'make it shorter'",
        id_argument("chat_session_id", "chat_sessions"),
        Parameter(
            "role",
            "the author",
            positional=True,
            required=True,
            choices=("user", "assistant", "system"),
        ),
        Parameter("content", _TEXT, positional=True, required=True),
        id_option("change_set_id", "change_sets", "the change set that it led to"),
    ),
    use_case_operation(
        "chat.history",
        "print the messages of a chat",
        "messaging:chat_history",
        "chat history a1b2",
        id_argument("chat_session_id", "chat_sessions"),
        Parameter("limit", "the maximum number of rows", kind="number", default=100),
        id_option("after", "chat_messages", "start after this message"),
        reads=True,
    ),
    use_case_operation(
        "chat.close",
        "close a chat",
        "messaging:close_chat",
        "chat close a1b2",
        id_argument("chat_session_id", "chat_sessions"),
    ),
    use_case_operation(
        "message.broadcast",
        "send a message to every agent that has not ended",
        "messaging:send_to_all",
        "message broadcast 'main is frozen until noon'",
        Parameter("content", _TEXT, positional=True, required=True),
        _SENDER,
        Parameter("requires_response", "a reply is required", kind="flag"),
    ),
    Operation(
        "talk.list",
        "list threads, questions and chats: what needs the person's answer first",
        "conversation.talk:list_",
        "conversation.talk_views:entries",
        "herdbook talk --limit 20",
        (
            Parameter("limit", "the maximum number of rows", kind="number", default=100),
            AT,
        ),
        alias="talk",
    ),
    Operation(
        "talk.show",
        "show a thread, a question or a chat with its lines and the command that answers it",
        "conversation.talk:show",
        "conversation.talk_views:lines",
        "herdbook talk show a1b2",
        (argument("id", "its id or a unique prefix of it"), AT),
    ),
    use_case_operation(
        "talk.read",
        "mark the unread messages of a thread as read",
        "talk:read_thread",
        "talk read a1b2",
        id_argument("message_id", "messages"),
        id_option(
            "reader_id",
            _ACTING_OR_PERSON,
            "the agent that reads; default: the acting agent, or the person",
        )._replace(option="agent"),
    ),
)

ROWS = tuple(
    each._replace(code="conversation.inbox:inbox", view="conversation.inbox:view")
    if each.name == "message.inbox"
    else each
    for each in ROWS
)
