"""One transaction with all rules of a space, and `run` and `read` for use cases."""
