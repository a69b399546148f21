"""Use cases of the record: grading, ingest of events, advice, prior art."""
