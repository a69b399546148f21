"""The laws of places: one answer for each area, and the rule that gave it."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.adapters.stores.registry import engine_schemes
from herdbook.adapters.stores.urls import path_of
from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.domain.location.resolve import RepositoryPaths, StoreLocation, file_url, locate_store
from herdbook.domain.location.settings import Layer, Origin, Scope, Setting
from tests.cases import for_each

LINKED = RepositoryPaths(
    "/src/app.worktrees/login",
    "/src/app",
    "/people/me/.local/share/herdbook",
    "/src/app/.git",
    "aaaabbbbcccc",
)
NOWHERE = RepositoryPaths(None, None, "/people/me/.local/share/herdbook")
BARE = RepositoryPaths(None, "/srv/app.git", "/people/me/.local/share/herdbook", "/srv/app.git")


def real(base: str, path: str) -> str:
    """Resolve a path in a world without links."""
    home = "/people/me"
    return os.path.normpath(Path(base.replace("~", home, 1), path.replace("~", home, 1)))


def layer(rule: str = "test", *, base: str = "/src/app", **values: str) -> Layer:
    """Settings of one source."""
    return {key: Setting(key, value, Origin(rule), base) for key, value in values.items()}


def of_repository(*, trusted: bool, **values: str) -> Layer:
    """Settings that came with a repository."""
    return {
        key: each._replace(of_repository=True, trusted=trusted)
        for key, each in layer("herdbook.toml", **values).items()
    }


def found(area: Area, *layers: Layer, ground: RepositoryPaths = LINKED) -> StoreLocation:
    """The place of an area."""
    return locate_store(area, layers, ground, real, engine_schemes())


@for_each(
    ("area", "scope", "url"),
    [
        (Area.WORK, Scope.REPO, "lmdb:///src/app/.git/herdbook/work.lmdb"),
        (
            Area.CHECKPOINTS,
            Scope.WORKTREE,
            "lmdb:///src/app/.git/herdbook/worktrees/aaaabbbbcccc/checkpoints.lmdb",
        ),
        (Area.RECORD, Scope.GLOBAL, "lmdb:///people/me/.local/share/herdbook/record.lmdb"),
    ],
)
def test_without_settings_the_defaults_decide(area: Area, scope: Scope, url: str) -> None:
    """Work is the repository's, checkpoints the worktree's, the record the user's."""
    assert found(area) == StoreLocation(area, url, scope, Origin("default"))


@for_each("area", Area)
@for_each("scope", Scope)
def test_any_area_can_have_any_scope(area: Area, scope: Scope) -> None:
    """A scope chooses the folder and nothing else."""
    folders = {
        Scope.WORKTREE: "/src/app/.git/herdbook/worktrees/aaaabbbbcccc",
        Scope.REPO: "/src/app/.git/herdbook",
        Scope.GLOBAL: LINKED.data,
    }
    folder = folders[scope]
    place = found(area, layer(**{area: scope}))
    assert (place.url, place.scope) == (f"lmdb://{folder}/{area}.lmdb", scope)


@pytest.mark.parametrize("scope", [Scope.WORKTREE, Scope.REPO])
def test_outside_a_repository_everything_is_global_and_says_so(scope: Scope) -> None:
    """There is no worktree to keep it in, so one line tells where it is kept."""
    place = found(Area.WORK, layer(work=scope), ground=NOWHERE)
    assert place.scope is Scope.GLOBAL
    assert place.url == f"lmdb://{NOWHERE.data}/work.lmdb"
    assert len(place.notes) == 1
    assert found(Area.RECORD, ground=NOWHERE).notes == ()


def test_a_bare_repository_keeps_its_stores_in_its_git_directory() -> None:
    """It has no main worktree, and inside it there is no worktree at all."""
    assert found(Area.WORK, ground=BARE).url == "lmdb:///srv/app.git/herdbook/work.lmdb"
    place = found(Area.CHECKPOINTS, ground=BARE)
    assert place.url == "lmdb:///srv/app.git/herdbook/checkpoints.lmdb"
    assert len(place.notes) == 1


def test_an_areas_own_key_counts_more_than_store() -> None:
    """`store` speaks for all areas that have no word of their own in the same layer."""
    both = layer(store="/one", work="/two")
    assert found(Area.WORK, both).url == "lmdb:///two"
    assert found(Area.RECORD, both).url == "lmdb:///one"


def test_an_earlier_layer_counts_more() -> None:
    """What was typed counts more than a file, even where the file is more special."""
    place = found(Area.WORK, layer("typed", store="/one"), layer("file", work="/two"))
    assert (place.url, place.decided_by) == ("lmdb:///one", Origin("typed"))


@for_each(
    ("value", "url"),
    [
        ("state", "lmdb:///src/app/state"),
        ("../elsewhere", "lmdb:///src/elsewhere"),
        ("~/state", "lmdb:///people/me/state"),
        ("/var/state.duckdb", "duckdb:///var/state.duckdb"),
        ("/var/state.lmdb", "lmdb:///var/state.lmdb"),
        ("duckdb:///var/state", "duckdb:///var/state"),
        ("postgresql://db.example/team", "postgresql://db.example/team"),
        ("memory://", "memory://"),
    ],
)
def test_a_value_is_a_url_or_a_path_from_its_base(value: str, url: str) -> None:
    """Neither has a scope, and a path's name may say its engine."""
    place = found(Area.WORK, layer(work=value))
    assert (place.url, place.scope) == (url, None)


def test_one_line_changes_the_engine() -> None:
    """The backend counts for scopes and for paths that do not name theirs."""
    chosen = layer(backend="duckdb")
    assert found(Area.WORK, chosen).url == "duckdb:///src/app/.git/herdbook/work.duckdb"
    assert found(Area.RECORD, chosen).url == f"duckdb://{LINKED.data}/record.duckdb"
    assert found(Area.WORK, layer(work="x"), chosen).url == "duckdb:///src/app/x"
    assert found(Area.WORK, layer(work="x.lmdb"), chosen).url == "lmdb:///src/app/x.lmdb"


def test_a_server_takes_every_scope_but_no_path() -> None:
    """A server is shared by all; who names a path means the path."""
    chosen = layer("mine", backend="postgresql://db.example/team")
    for area in Area:
        assert found(area, chosen)[:3] == (area, "postgresql://db.example/team", None)
        assert found(area, chosen).decided_by == Origin("mine")
    assert found(Area.WORK, layer(work="x"), chosen).url == "lmdb:///src/app/x"


def test_a_repositorys_backend_does_not_move_the_users_own_record() -> None:
    """An agent's history would be split by project."""
    chosen = of_repository(trusted=True, backend="duckdb")
    assert found(Area.WORK, chosen).scheme == "duckdb"
    assert found(Area.CHECKPOINTS, chosen).scheme == "duckdb"
    assert found(Area.RECORD, chosen).scheme == "lmdb"


@for_each("trusted", [True, False])
@for_each(
    ("key", "value"),
    [
        ("record", "leak.lmdb"),
        ("record", "repo"),
        ("record", "worktree"),
        ("store", "leak.lmdb"),
        ("store", "repo"),
        ("store", "postgresql://thief.example/all"),
        ("backend", "postgresql://thief.example/all"),
    ],
)
def test_no_setting_of_a_repository_moves_the_users_own_record(
    key: str, value: str, *, trusted: bool
) -> None:
    """Whatever it says and whoever trusts it: it would take the events of all other projects."""
    place = found(Area.RECORD, of_repository(trusted=trusted, **{key: value}))
    assert place == found(Area.RECORD)
    own = layer("~/.config/herdbook/config.toml", record="/mine")
    assert found(Area.RECORD, of_repository(trusted=trusted, **{key: value}), own).url == (
        "lmdb:///mine"
    )


@for_each(
    ("key", "value"),
    [
        ("work", "postgresql://thief.example/all"),
        ("work", "lmdb:///elsewhere/x"),
        ("work", "/elsewhere/x"),
        ("work", "../other"),
        ("work", "~/x"),
        ("store", "/elsewhere/x"),
        ("backend", "postgresql://thief.example/all"),
    ],
)
def test_what_reaches_out_of_a_repository_counts_only_when_trusted(key: str, value: str) -> None:
    """Until then the next rule decides, and a note says why."""
    place = found(Area.WORK, of_repository(trusted=False, **{key: value}))
    assert place.url == "lmdb:///src/app/.git/herdbook/work.lmdb"
    assert place.decided_by == Origin("default")
    (note,) = place.notes
    assert "herdbook trust" in note
    assert "thief" not in note
    trusted = found(Area.WORK, of_repository(trusted=True, **{key: value}))
    assert trusted.url != place.url
    assert trusted.notes == ()


@for_each(("key", "value"), [("work", "global"), ("work", "state"), ("backend", "duckdb")])
def test_a_repository_may_choose_scopes_backends_and_its_own_paths(key: str, value: str) -> None:
    """None of that sends anything anywhere, so nobody has to be asked."""
    place = found(Area.WORK, of_repository(trusted=False, **{key: value}))
    assert place.notes == ()
    assert place == found(Area.WORK, of_repository(trusted=True, **{key: value}))


def test_a_link_out_of_the_repository_is_refused() -> None:
    """An archive with a git directory in it may hold a link where our folder is."""

    def linked(base: str, path: str) -> str:
        return real(base, path).replace("/src/app/.git/herdbook", "/elsewhere/elsewhere")

    with pytest.raises(InvalidValue, match="/elsewhere/elsewhere/work.lmdb"):
        locate_store(Area.WORK, [], LINKED, linked, engine_schemes())


@given(st.binary(min_size=1).filter(lambda name: b"\0" not in name).map(os.fsdecode))
def test_a_path_survives_its_url(name: str) -> None:
    """Spaces, newlines, question marks and bytes that are no text come back as they were."""
    path = f"/src/{name}/x"
    assert path_of(file_url("lmdb", path)) == Path(path)


@for_each("value", [".git/hooks/x.lmdb", ".git/config", ".git/herdbook-x"])
def test_a_repository_may_not_keep_stores_among_gits_own_files(value: str) -> None:
    """Only our own folder in the git directory is ours."""
    place = found(Area.WORK, of_repository(trusted=False, work=value))
    assert place.decided_by == Origin("default")
    assert "herdbook trust" in place.notes[0]
    assert LINKED.contains("/src/app/.git/herdbook/x.lmdb")


@for_each("key", ["record", "store"])
def test_a_relative_path_of_the_record_is_from_home_wherever_it_is_set(key: str) -> None:
    """One record for all repositories; the others' paths are from the repository on."""
    settings = layer("HERDBOOK_X", base="/src/app", **{key: "rec/r.lmdb"})
    assert found(Area.RECORD, settings).url == "lmdb:///people/me/rec/r.lmdb"
    if key == "store":
        assert found(Area.WORK, settings).url == "lmdb:///src/app/rec/r.lmdb"
