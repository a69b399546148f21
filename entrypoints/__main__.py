"""`python -m herdbook.entrypoints` is the command line."""

import sys

from herdbook.entrypoints.cli import main

sys.exit(main())
