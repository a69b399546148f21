"""Plans as text: Markdown and JSON Lines, read and written."""
