"""The laws of settings: what may be set, and which setting counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.errors import InvalidValue
from herdbook.domain.location import settings
from herdbook.domain.location.areas import GIB, KIB, MIB, TIB, Area
from herdbook.domain.location.settings import (
    DEFAULTS,
    KEYS,
    USER_ONLY_KEYS,
    EngineSchemes,
    Origin,
    Setting,
    effective_setting,
    setting_checks,
)
from tests.cases import for_each

FILE = Origin("herdbook.toml", 3)
ENGINES = EngineSchemes(
    files=("lmdb", "duckdb"), servers=("postgresql", "postgres"), memory=("memory",)
)


def check_setting(key: str, value: object, origin: Origin) -> Setting:
    """A checked setting, where there are these engines."""
    return settings.check_setting(key, value, origin, engines=ENGINES)


@for_each(
    ("key", "value", "kept"),
    [
        ("work", "repo", "repo"),
        ("store", "~/state", "~/state"),
        ("record", "postgresql://db.example/team", "postgresql://db.example/team"),
        ("backend", "duckdb", "duckdb"),
        ("backend", "postgresql://db.example/team", "postgresql://db.example/team"),
        ("size_limit", MIB, MIB),
        ("size_limit", TIB, TIB),
        ("work_size_limit", "16 GiB", 16 * GIB),
        ("checkpoints_size_limit", 2 * GIB + 1, 2 * GIB + 1),
        ("record_size_limit", MIB, MIB),
        ("record_size_limit", 2 * GIB, 2 * GIB),
        ("record_size_limit", "2 GiB", 2 * GIB),
        ("size_limit", "16 GiB", 16 * GIB),
        ("size_limit", "16g", 16 * GIB),
        ("flush_size", "3 KiB", 3 * KIB),
        ("flush_size", 4096, 4096),
        ("size_limit", "5MB", 5 * MIB),
        ("size_limit", "1T", TIB),
        ("flush_size", "77", 77),
        ("patience", 5, 5.0),
        ("patience", 0.5, 0.5),
        ("exports", True, True),
        ("enforce_halt", False, False),
        ("flush_after", 60, 60.0),
        ("flush_size", "2 MiB", 2 * MIB),
        ("message_limit", "2 MiB", 2 * MIB),
        ("merge_legacy", False, False),
        ("experience_tool", 0, 0),
        ("experience_commit", 1_000_000, 1_000_000),
        ("experience_per_skill_point", 1, 1),
    ],
)
def test_an_allowed_value_is_kept(key: str, value: object, kept: object) -> None:
    """What is allowed comes out in one form."""
    assert check_setting(key, value, FILE).value == kept


@for_each(
    ("key", "value"),
    [
        ("work", ""),
        ("work", "   "),
        ("work", 5),
        ("work", True),
        ("work", ["repo"]),
        ("work", "sqlite:///x"),
        ("work", "a\0b"),
        ("backend", "sqlite"),
        ("backend", "lmdb:///x"),
        ("backend", 1),
        ("size_limit", 0),
        ("size_limit", -1),
        ("size_limit", True),
        ("size_limit", "a lot"),
        ("size_limit", 1.5),
        *(
            (key, value)
            for key in ("size_limit", *(f"{area}_size_limit" for area in Area))
            for value in (0, 1, MIB - 1, TIB + 1, "0", "1 KiB", "2 TiB", "abc", True)
        ),
        ("record_size_limit", 2 * GIB + 1),
        ("record_size_limit", "16 GiB"),
        ("patience", 0),
        ("patience", -1),
        ("patience", True),
        ("patience", float("nan")),
        ("patience", "soon"),
        ("exports", "yes"),
        ("enforce_halt", 0),
        ("flush_after", 0),
        ("flush_size", "small"),
        ("message_limit", 0),
        ("merge_legacy", "no"),
        ("experience_tool", -1),
        ("experience_command", 1.5),
        ("experience_commit", 1_000_001),
        ("experience_commit", True),
        ("experience_per_skill_point", 0),
    ],
)
def test_a_bad_value_names_the_file_the_key_and_what_is_allowed(key: str, value: object) -> None:
    """Whoever reads the error knows where to look and what to write."""
    with pytest.raises(InvalidValue) as caught:
        check_setting(key, value, FILE)
    assert (
        str(caught.value)
        == f"herdbook.toml, line 3: {key}: must be {setting_checks(ENGINES)[key][1]}"
    )


def test_a_size_limit_says_the_range_of_its_area() -> None:
    """In bytes and in words; that of the record is smaller."""
    for key, most in (("size_limit", "(1024 GiB)"), ("record_size_limit", "2147483648 (2 GiB)")):
        with pytest.raises(InvalidValue) as caught:
            check_setting(key, 1, FILE)
        assert "1048576 (1 MiB) to" in str(caught.value)
        assert most in str(caught.value)


def test_an_unknown_key_names_the_file_and_the_keys_there_are() -> None:
    """A misspelt key is an error, never a setting that silently does nothing."""
    with pytest.raises(InvalidValue) as caught:
        check_setting("backnd", "lmdb", FILE)
    assert "herdbook.toml, line 3" in str(caught.value)
    assert "'backnd'" in str(caught.value)
    assert "did you mean backend?" in str(caught.value)
    with pytest.raises(InvalidValue) as caught:
        check_setting("colour", "red", FILE)
    assert all(key in str(caught.value) for key in KEYS)


def test_a_refused_value_is_not_repeated() -> None:
    """A misspelt URL may hold a password."""
    with pytest.raises(InvalidValue) as caught:
        check_setting("work", "postgre://me:S3CRET@db.example/x", FILE)
    assert "S3CRET" not in str(caught.value)


@given(st.lists(st.dictionaries(st.sampled_from(["work", "store"]), st.just("repo"))))
def test_the_first_layer_that_speaks_of_a_key_decides(keys: list[dict[str, str]]) -> None:
    """A later layer never overrules an earlier one, however special its key is."""
    layers = [
        {key: check_setting(key, value, Origin(str(at))) for key, value in layer.items()}
        for at, layer in enumerate(keys)
    ]
    found = effective_setting(layers, "work", "store")
    speaking = [at for at, layer in enumerate(keys) if layer]
    if not speaking:
        assert found is None
    else:
        assert found is not None
        assert found.origin.rule == str(speaking[0])
        assert found.key == ("work" if "work" in keys[speaking[0]] else "store")


@for_each("key", sorted(USER_ONLY_KEYS))
def test_what_is_personal_is_not_a_repositorys_to_set(key: str) -> None:
    """However trusted its file is; the user's own word behind it counts."""
    theirs = check_setting(key, DEFAULTS[key], FILE)._replace(of_repository=True)
    own = check_setting(key, DEFAULTS[key], Origin("config.toml"))
    assert effective_setting([{key: theirs}], key) is None
    assert effective_setting([{key: theirs}, {key: own}], key) == own


def test_every_default_can_be_set() -> None:
    """Who writes a default into a file gets the default."""
    for key, value in DEFAULTS.items():
        if value is not None:
            assert check_setting(key, value, FILE).value == value
