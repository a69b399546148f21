"""`rpc` and `mcp`."""
