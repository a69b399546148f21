"""The scripts of the dashboard are typed: TypeScript finds nothing wrong in them."""

import os
import subprocess
from pathlib import Path

from herdbook.entrypoints.http.app import static_files

MODULES = Path(os.environ.get("HERDBOOK_CLIENTS_NODE_MODULES", "node_modules"))
SETTINGS = Path(__file__).with_name("tsconfig.json")


def run_compiler(*words: str) -> subprocess.CompletedProcess[str]:
    """Check the scripts without writing anything."""
    command = [MODULES / ".bin" / "tsc", "--project", SETTINGS, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_the_scripts_of_the_dashboard_have_right_types() -> None:
    """All of them, by the comments that declare their types."""
    told = run_compiler()
    assert (told.returncode, told.stdout) == (0, "")
    checked = run_compiler("--listFilesOnly").stdout
    for path in static_files():
        if path.endswith(".js"):
            assert path in checked
