"""Use cases of checkpoints: threads, and import of checkpoints from other stores."""
