"""Files that are written once: the first writer wins, and all readers see the same text."""

import os

_MAX_BYTES = 4_096


def read_text(path: str) -> str | None:
    """The text of a file without its final newline; None if there is no file.

    Raises StoreUnavailable if it cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            data = os.read(descriptor, _MAX_BYTES)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return None
    except OSError as error:
        from herdbook.domain.errors import StoreUnavailable  # noqa: PLC0415 - brings attrs

        raise StoreUnavailable(path, f"it could not be read ({error.strerror})") from error
    return data.decode("utf-8", "replace").removesuffix("\n")


def write_once(path: str, text: str) -> str:
    """Write a file unless it exists already; returns the text it has now.

    The file appears complete and durable or not at all, also if many processes do this at once.
    Raises StoreUnavailable if it cannot be written.
    """
    standing = read_text(path)
    if standing is not None:
        return standing
    draft = f"{path}.{os.urandom(8).hex()}"
    try:
        _publish(draft, path, text)
    except OSError as error:
        from herdbook.domain.errors import StoreUnavailable  # noqa: PLC0415 - brings attrs

        reason = f"it could not be written ({error.strerror}); nothing was changed"
        raise StoreUnavailable(path, reason) from error
    standing = read_text(path)
    return text if standing is None else standing


def _publish(draft: str, path: str, text: str) -> None:
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        try:
            os.write(descriptor, f"{text}\n".encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        try:
            os.link(draft, path)
        except FileExistsError:
            return
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        os.unlink(draft)
