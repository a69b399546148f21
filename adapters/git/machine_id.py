"""The id of this machine: where possible the same for all its users and across restarts."""

import os
import re
import sys
from typing import Final

from herdbook.adapters.git.write_once import read_text, write_once

_FILES: Final = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_ID: Final = re.compile(r"[0-9a-f]{32}")
_PLATFORM_UUID: Final = re.compile(r'"IOPlatformUUID" = "([0-9A-Fa-f-]{36})"')


def machine_id(files: tuple[str, ...] = _FILES, platform: str = sys.platform) -> str:
    """The machine's id. It may identify a person, so it goes into the facts and nowhere else."""
    for file in files:
        text = (read_text(file) or "").strip()
        if _ID.fullmatch(text):
            return text
    if platform == "darwin":
        uuid = platform_uuid(_read_registry())
        if uuid is not None:
            return uuid
    return _own_id()


def platform_uuid(registry: str) -> str | None:
    """The hardware's UUID in the output of macOS' `ioreg`; None if it has none."""
    match = _PLATFORM_UUID.search(registry)
    return match[1].replace("-", "").lower() if match else None


def _read_registry() -> str:
    import subprocess  # noqa: PLC0415 - only where no file tells

    command = ["/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice"]
    try:
        ended = subprocess.run(  # noqa: S603 - nothing in it comes from outside
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except OSError:
        return ""  # a random id is used then, as on any machine without one
    return ended.stdout.decode("utf-8", "replace")


def _own_id() -> str:
    """A random id, made once and stored with the user's state."""
    from platformdirs import user_state_dir  # noqa: PLC0415 - only where nothing else tells

    folder = user_state_dir("herdbook")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        from herdbook.domain.errors import StoreUnavailable  # noqa: PLC0415 - brings attrs

        raise StoreUnavailable(folder, f"it could not be made ({error.strerror})") from error
    return write_once(os.path.join(folder, "machine-id"), os.urandom(16).hex())
