"""`python -m herdbook.entrypoints` is the command line."""

import sys

from herdbook.entrypoints.cli.run_command import main

sys.exit(main())
