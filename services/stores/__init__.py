"""Use cases on whole stores: copy, merge, check."""
