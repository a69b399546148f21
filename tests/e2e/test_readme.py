"""What the README shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_examples_print_what_they_say() -> None:
    """Run one after the other in a fresh process, every `print` prints its comment."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL))
    promised = re.findall(r"^\s*print\(.*\)  # (.*)$", code, re.MULTILINE)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()
    journal = [line for line in printed if re.match(r"\d+ (add|save|remove) ", line)]
    assert len(promised) == 3
    assert [line for line in printed if line not in journal] == promised
    assert len(journal) >= 4
