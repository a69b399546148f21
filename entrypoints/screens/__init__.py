"""What a person reads: the answers of `commands` as lines of text, module by module."""
