"""Translates the server's errors; the only module that knows its codes."""

import psycopg

from herdbook.domain.errors import (
    HerdbookError,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreUnavailable,
)
from herdbook.ports.engine.store import TryAgain

TOO_MANY_CLIENTS = (
    "53300",
    "too many clients",
    "remaining connection slots",
    "no more connections",
)
OUT_OF_REACH = (
    *("Connection refused", "No such file or directory", "Network is unreachable"),
    *("No route to host", "Temporary failure in name resolution"),
)
SHARED_SESSION = ("26000", "42P05")

# Serialization and deadlocks; a server that shuts down, has shut down or does not accept yet; a
# session that it ended; a prepared statement of another session, with an undetected pooler.
_RETRYABLE = (
    *("40001", "40P01", "57P01", "57P02", "57P03", "53300"),
    *("57P05", "25P03", "25P04", *SHARED_SESSION),
)
# With these the server reports that the transaction was rolled back.
_ROLLED_BACK = ("40001", "40P01", *SHARED_SESSION)
_BUSY = ("55P03",)
_FULL = ("53100", "54000")
_DAMAGED = ("XX001", "XX002", "42P01", "42703", "3F000")
# Errors of connecting have no code, and retrying these would only delay the report.
_PERMANENT = (
    *("authentication failed", "does not exist", "no password supplied", "no pg_hba.conf entry"),
    *("not permitted to log in", "does not support SSL", "certificate", "no such database"),
    *("no such user", "unsupported startup parameter", "Name or service not known"),
)


class NoAnswer(psycopg.OperationalError):
    """The server has been silent for too long."""


def text_of(error: psycopg.Error) -> str:
    """The server's or the driver's message, without its guesses at reasons."""
    if error.diag.message_primary:
        return error.diag.message_primary
    # Indented lines are guesses at reasons.
    lines = [line for line in str(error).splitlines() if not line.startswith("\t")]
    return "; ".join(dict.fromkeys(filter(None, lines)))


def translate_error(error: psycopg.Error, place: str, patience: float) -> HerdbookError:
    """The Herdbook error for an error of a statement."""
    code, text = error.sqlstate or "", text_of(error)
    if code in _BUSY:
        return StoreBusy(place, patience)
    if code in _FULL:
        return StoreFull(place, text)
    if code in _DAMAGED:
        return StoreDamaged(place, text)
    broke = not code and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    if code in _RETRYABLE or code.startswith("08") or (broke and not isinstance(error, NoAnswer)):
        return TryAgain(place, text or "the connection broke")
    return StoreUnavailable(place, text)


def translate_connect_error(error: psycopg.Error, place: str, patience: float) -> HerdbookError:
    """The Herdbook error for an error of connecting: TryAgain only if a retry may succeed."""
    if isinstance(error, psycopg.errors.ConnectionTimeout):
        return StoreUnavailable(place, f"no answer within {patience:g} s")
    found = translate_error(error, place, patience)
    if isinstance(found, TryAgain) and has_code_or_text(error, _PERMANENT):
        return StoreUnavailable(place, text_of(error))
    return found


def translate_commit_error(error: psycopg.Error, place: str, patience: float) -> HerdbookError:
    """The Herdbook error for an error of a commit: if its answer is lost, the result is unknown."""
    found = translate_error(error, place, patience)
    is_rolled_back = error.sqlstate in _ROLLED_BACK
    if isinstance(error, NoAnswer) or (isinstance(found, TryAgain) and not is_rolled_back):
        reason = f"the answer to a commit was lost ({text_of(error)})"
        return TryAgain(place, f"{reason}; whether it was written is not known, so look first")
    return found


def has_code_or_text(error: psycopg.Error, texts: tuple[str, ...]) -> bool:
    """Whether an error has one of these codes or texts."""
    return error.sqlstate in texts or any(text in str(error) for text in texts)
