"""The command line: parser, help, terminal output."""
