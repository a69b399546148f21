"""JSON-RPC 2.0 over standard input and output."""
