"""The laws of errors: what they say, what they are, and that they travel."""

import inspect
import pickle
import re
from datetime import UTC, datetime

import pytest

from herdbook.domain import errors
from herdbook.domain.errors import HerdbookError
from tests.cases import for_each

EXAMPLES: list[HerdbookError] = [
    errors.ConfirmationNeeded("task", ("tsk_1", "tsk_2"), "3 tasks, 1 task held by otter"),
    errors.TaskNotClaimable("tsk_1", "parse", "otter holds it until 2026-05-01 12:00 UTC"),
    errors.NotFound("task", "tsk_1"),
    errors.NotFound("thread", "issue-1", "issue-17 begins like it"),
    errors.NotFound("task", "", "brave-otter holds no task; `herdbook claim` takes one"),
    errors.AlreadyExists("task", "tsk_1"),
    errors.AlreadyExists("project", "prj_1", ("name", "url")),
    errors.UnknownReference("task", "tsk_1", "phase_id", "phase", "phs_1"),
    errors.StaleWrite("task", "tsk_1", 1, 2, ("name",)),
    errors.StaleFence("tsk_1", 1, 2),
    errors.StaleFence("tsk_2", 1, 3, "brave-otter"),
    errors.CycleRefused(("tsk_1", "tsk_2", "tsk_1")),
    errors.AgentHalted("brave-otter", 0),
    errors.WorktreeInUse("/a/b", "agents are at work in it: brave-otter"),
    errors.InvalidValue("name", "may not be empty"),
    errors.DecodingRefused("pickle", ()),
    errors.DecodingRefused("msgpack", ("os.system",)),
    errors.StoreDamaged("/a/b", "its header is cut off"),
    errors.BackupDamaged("/a/b", "its end is missing"),
    errors.StoreBusy("/a/b", 2.5),
    errors.StoreBusy("/a/b", 2.5, "process 7", datetime(2026, 1, 1, tzinfo=UTC)),
    errors.StoreUnavailable("/a/b", "no such folder"),
    errors.StoreUntrusted("/a/b", "git tracks its files"),
    errors.SettingUntrusted("herdbook.toml, line 1", "sets backend to the URL of a server"),
    errors.StoreGone("/a/b", "2026-01-01"),
    errors.StoreFull("/a/b", "the disk has no room"),
    errors.StoreTooNew("/a/b", 3, 2),
    errors.SpaceRefused("/a/b", "work/app", "has a history of its own"),
    errors.CopyDiffers("/a/b", "work/app", ("tasks", "journal")),
    errors.JournalPruned("work/app", 7, 101),
    errors.JournalPruned("work/app", 0, 101, datetime(2026, 1, 1, tzinfo=UTC), "it was folded"),
    errors.CursorHolds("work/app", "memory", "the memory index", 7, 100),
]
BUILTINS: list[tuple[type[HerdbookError], type[Exception]]] = [
    (errors.NotFound, LookupError),
    (errors.UnknownReference, LookupError),
    (errors.InvalidValue, ValueError),
    (errors.DecodingRefused, ValueError),
    (errors.StoreBusy, TimeoutError),
    (errors.StoreUnavailable, OSError),
]
HARMFUL = re.compile(
    r"delet|reset|remov|re-?creat|\bdrop|wip(e|ing)|eras|purg|truncat|overwrit|unlink|discard"
    r"|\brm\b|re-?install|re-?initiali|start over|from scratch|force",
    re.IGNORECASE,
)
each_error = for_each("error", EXAMPLES, ids=lambda error: str(error)[:40])


def test_every_error_is_looked_at() -> None:
    """No error of the domain is missing from these laws."""
    known = {
        each
        for _, each in inspect.getmembers(errors, inspect.isclass)
        if issubclass(each, HerdbookError) and each is not HerdbookError
    }
    assert {type(error) for error in EXAMPLES} == known


@each_error
def test_no_error_advises_harm(error: HerdbookError) -> None:
    """No sentence tells an agent to destroy anything."""
    assert not HARMFUL.search(str(error))


@each_error
def test_an_error_names_what_it_speaks_of(error: HerdbookError) -> None:
    """Every text, number and time that an error carries can be read in its sentence."""
    for value in vars(error).values():
        parts = value if isinstance(value, tuple) else (value,)
        for part in parts:
            if isinstance(part, datetime):
                assert part.isoformat(timespec="seconds") in str(error)
            elif part is not None:
                assert str(part) in str(error)


@each_error
def test_an_error_can_be_pickled(error: HerdbookError) -> None:
    """An error that crosses to another process is the same there."""
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - what we have just written ourselves
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert str(again) == str(error)


@for_each(("error", "builtin"), BUILTINS, ids=lambda each: getattr(each, "__name__", ""))
def test_an_error_is_the_builtin_one_expects(
    error: type[HerdbookError], builtin: type[Exception]
) -> None:
    """Who catches the builtin error for a situation catches ours too."""
    assert issubclass(error, builtin)
    assert issubclass(error, HerdbookError)


@each_error
def test_an_error_is_raised_and_caught_by_its_root(error: HerdbookError) -> None:
    """Everything raised on purpose is caught as HerdbookError, with its fields."""
    with pytest.raises(HerdbookError) as caught:
        raise error
    assert caught.value is error
