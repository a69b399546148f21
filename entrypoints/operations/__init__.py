"""The table of operations. Each area has its rows, handlers and views in one folder."""
