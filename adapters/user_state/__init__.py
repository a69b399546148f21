"""This user's own files: settings, trust, known stores, the spool, halt markers."""
