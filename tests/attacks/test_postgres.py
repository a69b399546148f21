"""A role that may make schemas lies in wait on a Postgres server for one that may do more.

Whatever mallory prepares would run with the rights of whoever touches it, and would make mallory a
superuser. The victim is a superuser, because nobody has more to lose.
"""

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.attacks.conftest import Person
from tests.postgres_server import PostgresServer, private_postgres

REFUSED = 5
SCHEMA = "herdbook"
STORE = "(id boolean PRIMARY KEY, uuid text, schema_version bigint, catalogue text)"

_databases = itertools.count(1)

Run = Callable[[str], Any]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server with a superuser, a stranger, and a team of two."""
    with private_postgres() as private:
        with psycopg.connect(private.url, autocommit=True) as admin:
            for role in ("mallory", "ann", "bob", "carol"):
                admin.execute(f"CREATE ROLE {role} LOGIN")
            admin.execute("CREATE ROLE team")
            admin.execute("GRANT team TO bob, carol")
        yield private


class Scene:
    """A database of its own, in which mallory comes first."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.name = f"scene_{next(_databases)}"
        with psycopg.connect(server.url, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {self.name}")
            admin.execute(f"GRANT CREATE ON DATABASE {self.name} TO mallory, ann, bob, carol")
        self.as_role("postgres", "GRANT CREATE ON SCHEMA public TO PUBLIC")
        self.as_role(
            "mallory",
            "CREATE FUNCTION public.evil() RETURNS text LANGUAGE plpgsql AS $$ BEGIN "
            "EXECUTE 'ALTER ROLE mallory SUPERUSER'; RETURN ''; EXCEPTION "
            "WHEN insufficient_privilege THEN RETURN ''; END $$",
            "CREATE FUNCTION public.evil_trigger() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM public.evil(); RETURN NEW; END $$",
        )

    def url(self, role: str = "postgres") -> str:
        """The database as a role sees it."""
        return re.sub("postgres@/postgres", f"{role}@/{self.name}", self._server.url)

    def as_role(self, role: str, *statements: str) -> list[Any]:
        """Run statements as a role; the rows of the last."""
        rows = []
        with psycopg.connect(self.url(role), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
                rows = cursor.fetchall() if cursor.description else []
        return rows

    def is_lost(self) -> bool:
        """Whether mallory has got what mallory wants."""
        ((lost,),) = self.as_role(
            "postgres", "SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'"
        )
        self.as_role("postgres", "ALTER ROLE mallory NOSUPERUSER")
        return bool(lost)

    def everything(self) -> list[Any]:
        """All relations and functions outside of the server's own, and the rows of `store`."""
        found = self.as_role(
            "postgres",
            "SELECT n.nspname, c.relname, c.relkind, c.relowner, c.relfilenode FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname !~ '^(pg_|information)' "
            "ORDER BY 1, 2",
        )
        return found + self.as_role(
            "postgres", "SELECT nspname, nspowner FROM pg_namespace ORDER BY 1"
        )


@pytest.fixture
def scene(server: PostgresServer) -> Scene:
    return Scene(server)


TRAPS = {
    "an empty schema": [],
    "a trigger": [
        f"CREATE TABLE {SCHEMA}.store {STORE}",
        (
            f"CREATE TRIGGER t BEFORE INSERT ON {SCHEMA}.store FOR EACH ROW "
            "EXECUTE FUNCTION public.evil_trigger()"
        ),
    ],
    "a rule": [
        f"CREATE TABLE {SCHEMA}.store {STORE}",
        f"CREATE RULE r AS ON INSERT TO {SCHEMA}.store DO ALSO SELECT public.evil()",
    ],
    "a view": [
        (
            f"CREATE VIEW {SCHEMA}.store AS SELECT true AS id, public.evil() AS uuid, "
            "1::bigint AS schema_version, '{}'::text AS catalogue"
        ),
    ],
    "a default": [
        (
            f"CREATE TABLE {SCHEMA}.store (id boolean PRIMARY KEY, uuid text, "
            "schema_version bigint, catalogue text, more text DEFAULT public.evil())"
        ),
    ],
    "a check": [
        (
            f"CREATE TABLE {SCHEMA}.store (id boolean PRIMARY KEY, uuid text, "
            "schema_version bigint, catalogue text CHECK (public.evil() = ''))"
        ),
    ],
    "a policy": [
        f"CREATE TABLE {SCHEMA}.store {STORE}",
        f"CREATE POLICY p ON {SCHEMA}.store USING (public.evil() = '')",
        f"ALTER TABLE {SCHEMA}.store ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {SCHEMA}.store FORCE ROW LEVEL SECURITY",
    ],
    "a generated column": [
        (
            "CREATE FUNCTION public.sly(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS "
            "$$ BEGIN RETURN public.evil(); END $$"
        ),
        (
            f"CREATE TABLE {SCHEMA}.store (id boolean PRIMARY KEY, uuid text, "
            "schema_version bigint, catalogue text, "
            "more text GENERATED ALWAYS AS (public.sly(uuid)) STORED)"
        ),
    ],
    "an index": [
        (
            "CREATE FUNCTION public.sly(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS "
            "$$ BEGIN RETURN public.evil(); END $$"
        ),
        f"CREATE TABLE {SCHEMA}.store {STORE}",
        f"CREATE INDEX ON {SCHEMA}.store (public.sly(uuid))",
    ],
    "a domain": [
        "CREATE DOMAIN public.word AS text CHECK (public.evil() = '')",
        (
            f"CREATE TABLE {SCHEMA}.store (id boolean PRIMARY KEY, uuid public.word, "
            "schema_version bigint, catalogue text)"
        ),
    ],
    "a partition": [
        (
            f"CREATE TABLE {SCHEMA}.store (id boolean, uuid text, schema_version bigint, "
            "catalogue text) PARTITION BY LIST (id)"
        ),
        f"CREATE TABLE {SCHEMA}.part PARTITION OF {SCHEMA}.store DEFAULT",
        (
            f"CREATE TRIGGER t BEFORE INSERT ON {SCHEMA}.part FOR EACH ROW "
            "EXECUTE FUNCTION public.evil_trigger()"
        ),
    ],
    "a function": [
        f"CREATE FUNCTION {SCHEMA}.md5(text) RETURNS text LANGUAGE sql AS 'SELECT public.evil()'",
    ],
}

COMMANDS = (
    ("task", "add", "x"),
    ("status",),
    ("task", "list"),
    ("where",),
    ("doctor",),
    ("check",),
    ("sql", "SELECT * FROM tasks"),
)


@pytest.mark.parametrize("trap", TRAPS)
def test_a_schema_that_a_stranger_made_is_refused(
    person: Person, app: Path, scene: Scene, trap: str
) -> None:
    """Nothing in it is run, whatever it is, and nothing is written there."""
    scene.as_role("mallory", f"CREATE SCHEMA {SCHEMA}", *TRAPS[trap])
    scene.as_role("mallory", f"GRANT ALL ON SCHEMA {SCHEMA} TO PUBLIC")
    before = scene.everything()
    person.chooses(scene.url())
    told = person.tries(app, "task", "add", "x")
    assert told.returncode == REFUSED, told.stderr
    assert "belongs to the role 'mallory'" in told.stderr
    assert "?schema=NAME" in told.stderr
    if trap in ("a view", "a trigger"):
        for command in COMMANDS:
            person.tries(app, *command)
    assert not scene.is_lost()
    assert scene.everything() == before


HANDED_OVER = [name for name in TRAPS if name != "an empty schema"]


@pytest.mark.parametrize("trap", HANDED_OVER)
def test_a_schema_that_was_handed_over_is_looked_at(
    person: Person, app: Path, scene: Scene, trap: str
) -> None:
    """Whose it is now does not tell what was left in it."""
    scene.as_role("mallory", f"CREATE SCHEMA {SCHEMA}", *TRAPS[trap])
    tables = scene.as_role(
        "postgres",
        f"SELECT relname FROM pg_class WHERE relnamespace = '{SCHEMA}'::regnamespace "
        "AND relkind IN ('r', 'v', 'p')",
    )
    scene.as_role(
        "postgres",
        f"ALTER SCHEMA {SCHEMA} OWNER TO postgres",
        *(f"ALTER TABLE {SCHEMA}.{name} OWNER TO postgres" for (name,) in tables),
    )
    before = scene.everything()
    person.chooses(scene.url())
    told = person.tries(app, "task", "add", "x")
    assert told.returncode == REFUSED, told.stderr
    assert SCHEMA in told.stderr
    assert "cannot be used" in told.stderr
    assert not scene.is_lost()
    assert scene.everything() == before


@pytest.mark.parametrize(
    "trap",
    [
        (
            "CREATE TRIGGER t BEFORE INSERT ON {}.tasks FOR EACH ROW "
            "EXECUTE FUNCTION public.evil_trigger()"
        ),
        "ALTER TABLE {}.journal ADD COLUMN more text, ALTER COLUMN more SET DEFAULT public.evil()",
        "CREATE RULE r AS ON UPDATE TO {}.heads DO ALSO SELECT public.evil()",
        "CREATE INDEX ON {}.tasks (public.sly(name))",
    ],
)
def test_what_was_put_into_a_store_later_is_noticed(
    person: Person, app: Path, scene: Scene, trap: str
) -> None:
    """The owner's own store is refused as soon as there is something on a table that is not ours.

    The trap is set by the owner, who was talked into it.
    """
    person.chooses(scene.url())
    person.runs(app, "task", "add", "first")
    scene.as_role(
        "mallory",
        "CREATE FUNCTION public.sly(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS "
        "$$ BEGIN RETURN ''; END $$",
    )
    scene.as_role("postgres", trap.format(SCHEMA))
    told = person.tries(app, "task", "add", "second")
    assert told.returncode == REFUSED, told.stderr
    assert "is not Herdbook's doing" in told.stderr
    assert not scene.is_lost()


SHADOWS = (
    "CREATE FUNCTION public.md5(text) RETURNS text LANGUAGE sql AS 'SELECT public.evil()'",
    (
        "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS "
        "'SELECT public.evil(); SELECT now()'"
    ),
    (
        "CREATE FUNCTION public.to_regclass(text) RETURNS regclass LANGUAGE sql AS "
        "'SELECT public.evil(); SELECT NULL::regclass'"
    ),
    (
        "CREATE FUNCTION public.unnest(text[]) RETURNS SETOF text LANGUAGE sql AS "
        "'SELECT public.evil(); SELECT ''x'''"
    ),
    (
        "CREATE FUNCTION public.same(text, text) RETURNS boolean LANGUAGE sql AS "
        "'SELECT public.evil(); SELECT $1 OPERATOR(pg_catalog.=) $2'"
    ),
    "CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.same)",
    "CREATE TABLE public.pg_namespace (oid oid, nspname name)",
    "CREATE VIEW public.pg_class AS SELECT public.evil() AS relname",
    "CREATE DOMAIN public.text AS pg_catalog.text CHECK (public.evil() = '')",
)


def test_names_that_shadow_the_servers_own_are_not_used(
    person: Person, app: Path, scene: Scene
) -> None:
    """Functions, operators, tables and types are the server's, whatever the search path says."""
    scene.as_role("mallory", *SHADOWS)
    scene.as_role("postgres", f"ALTER DATABASE {scene.name} SET search_path = public, pg_catalog")
    person.chooses(scene.url())
    person.runs(app, "task", "add", "x")
    for command in COMMANDS:
        person.runs(app, *command)
    assert not scene.is_lost()


def test_a_team_shares_a_store_that_belongs_to_it(person: Person, app: Path, scene: Scene) -> None:
    """Members of the owning role work in one store; others, superusers too, are kept out."""
    scene.as_role("postgres", f"CREATE SCHEMA {SCHEMA} AUTHORIZATION team")
    person.config.parent.mkdir(parents=True)

    def works_as(role: str) -> None:
        person.config.write_text(f'backend = "{scene.url(role)}"\n')

    works_as("bob")
    person.runs(app, "task", "add", "of bob")
    works_as("carol")
    person.runs(app, "task", "add", "of carol")
    assert {task["name"] for task in person.asks(app, "task", "list")} == {"of bob", "of carol"}
    owners = scene.as_role(
        "postgres", f"SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = '{SCHEMA}'"
    )
    assert owners == [("team",)]
    for stranger in ("ann", "mallory", "postgres"):
        works_as(stranger)
        told = person.tries(app, "task", "add", "of a stranger")
        assert told.returncode == REFUSED, told.stderr
        assert f"belongs to the role 'team', which the role '{stranger}' is no member of" in (
            told.stderr
        )
    works_as("bob")
    assert len(person.asks(app, "task", "list")) == 2


def test_a_role_name_is_quoted(person: Person, app: Path, scene: Scene) -> None:
    """A name made to look like something else does not reach the terminal as it is."""
    name = 'x\x1b[2J"\nall is well'
    quoted = '"' + name.replace('"', '""') + '"'
    scene.as_role(
        "postgres", f"CREATE ROLE {quoted}", f"CREATE SCHEMA {SCHEMA} AUTHORIZATION {quoted}"
    )
    person.chooses(scene.url())
    told = person.tries(app, "task", "add", "x")
    assert told.returncode == REFUSED
    assert "\x1b" not in told.stderr
    assert "\nall is well" not in told.stderr
