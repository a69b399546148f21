"""Commands of messages, conversations and chats."""
