"""`where`, `config` and `trust`."""
