"""Checks whose a schema is: a store uses its role's own, and refuses what others could act through.

A trigger, a rule, a policy, a default or a view runs with the rights of the role that touches the
table, not of the role that made it. So somebody who may create schemas could create the one that a
store is going to look for, and wait. Trusted are the role itself, the roles that it is a member of,
and superusers, who need no such detour. `pg_has_role` is of no use here: it says that a superuser,
the best victim, is a member of every role.
"""

from collections.abc import Iterable
from typing import Any

from attrs import field, frozen
from psycopg import sql

from herdbook.adapters.postgres.bounded_connection import BoundedConnection
from herdbook.domain.errors import StoreUnavailable

STORE = "store"
"""The table in which a store describes itself."""
LAST_FACT = 2
_WHAT_TO_DO = (
    "Nothing was written; choose another schema by ?schema=NAME in the URL, "
    "or let an administrator look at this one"
)

# One result: facts first (0 the role, 1 the schema, 2 what has a name in it), then what is wrong.
# Membership that only lets somebody administer a role (since 16) gives it no power over the member.
_LOOK = """
WITH RECURSIVE place AS (
    SELECT oid, nspowner FROM pg_namespace WHERE nspname = {schema}
), person AS MATERIALIZED (
    SELECT oid, rolname, rolsuper FROM pg_roles
), base AS MATERIALIZED (
    SELECT oid, datdba FROM pg_database WHERE datname = current_database()
), member(role) AS (
    SELECT oid FROM person WHERE rolname = {role}
    UNION
    SELECT granted.roleid FROM member JOIN pg_auth_members granted ON granted.member = member.role
    WHERE coalesce((to_jsonb(granted) ->> 'inherit_option')::boolean, true)
    OR coalesce((to_jsonb(granted) ->> 'set_option')::boolean, true)
), trusted(role) AS MATERIALIZED (
    SELECT person.oid FROM person JOIN base
    ON rolsuper OR person.oid IN (SELECT role FROM member) OR (rolname = 'pg_database_owner'
    AND (datdba IN (SELECT role FROM member) OR datdba IN (SELECT oid FROM person WHERE rolsuper)))
), relation AS (
    SELECT pg_class.oid, relname, relkind, relowner,
    relrowsecurity OR relforcerowsecurity AS secured
    FROM pg_class JOIN place ON relnamespace = place.oid WHERE relkind NOT IN ('i', 'I', 't')
), own AS (
    SELECT * FROM relation WHERE relname = ANY ({names}::name[])
), part(classid, objid, relname) AS (
    SELECT 'pg_class'::regclass, oid, relname FROM own
    UNION ALL
    SELECT 'pg_class'::regclass, indexrelid, relname FROM pg_index JOIN own ON indrelid = own.oid
    UNION ALL
    SELECT 'pg_attrdef'::regclass, defined.oid, relname
    FROM pg_attrdef defined JOIN own ON adrelid = own.oid
), found(rank, thing, name, role) AS (
    SELECT 0, NULL, rolname, oid FROM person WHERE rolname = {role}
    UNION ALL
    SELECT 1, NULL, NULL, nspowner FROM place
    UNION ALL
    SELECT 2, relkind::text, relname, relowner FROM relation
    UNION ALL
    SELECT 10, NULL, NULL, nspowner FROM place WHERE nspowner NOT IN (SELECT role FROM trusted)
    UNION ALL
    SELECT 20, pg_describe_object(held.classid, held.objid, 0), NULL, owner.refobjid
    FROM place JOIN pg_depend held
    ON held.refclassid = 'pg_namespace'::regclass AND held.refobjid = place.oid
    JOIN pg_shdepend owner ON owner.classid = held.classid AND owner.objid = held.objid
    AND owner.dbid = (SELECT oid FROM base)
    AND owner.refclassid = 'pg_authid'::regclass AND owner.deptype = 'o'
    WHERE owner.refobjid NOT IN (SELECT role FROM trusted)
    UNION ALL
    SELECT 30, NULL, relname, NULL FROM own WHERE relkind <> 'r'
    UNION ALL
    SELECT 40, 'trigger ' || tgname, relname, NULL
    FROM pg_trigger JOIN own ON tgrelid = own.oid WHERE NOT tgisinternal
    UNION ALL
    SELECT 40, 'rule ' || rulename, relname, NULL
    FROM pg_rewrite JOIN own ON ev_class = own.oid WHERE relkind = 'r'
    UNION ALL
    SELECT 40, 'policy ' || polname, relname, NULL FROM pg_policy JOIN own ON polrelid = own.oid
    UNION ALL
    SELECT 40, 'constraint ' || conname, relname, NULL
    FROM pg_constraint JOIN own ON own.oid IN (conrelid, confrelid)
    WHERE contype NOT IN ('p', 'u', 'n')
    UNION ALL
    SELECT 41, NULL, relname, NULL FROM own WHERE secured
    UNION ALL
    SELECT 42, NULL, relname, NULL FROM pg_inherits JOIN own ON own.oid IN (inhparent, inhrelid)
    UNION ALL
    SELECT 43, pg_describe_object(used.refclassid, used.refobjid, 0), relname, NULL
    FROM part JOIN pg_depend used ON used.classid = part.classid AND used.objid = part.objid
    WHERE used.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass,
    'pg_opclass'::regclass, 'pg_opfamily'::regclass, 'pg_collation'::regclass, 'pg_am'::regclass)
)
SELECT rank, thing, name, rolname, coalesce(rolsuper, false)
FROM found LEFT JOIN person ON person.oid = found.role ORDER BY rank, name, thing
"""


@frozen
class Schema:
    """What was found out about a schema that may be used or created."""

    role: str
    """The role that inspected it."""
    exists: bool = False
    maker: str | None = None
    """The role that new tables are to belong to, if that is another: all its members use it."""
    tables: frozenset[str] = field(factory=frozenset)
    """The names of the relations in it that hold rows."""


def inspection_sql(
    connection: BoundedConnection, schema: str, names: Iterable[str], role: str | None = None
) -> str:
    """The query that inspects a schema, for a role or for the current one.

    `names` are the tables that a store has in it.
    """

    def literal(value: object) -> str:
        return sql.Literal(value).as_string(connection)

    return _LOOK.format(
        schema=literal(schema),
        names=literal(list(names)),
        role="current_user" if role is None else literal(role),
    )


def read_inspection(rows: Iterable[tuple[Any, ...]], place: str, schema: str) -> Schema:
    """The result of that query. Raises StoreUnavailable if the schema is not safe to use."""
    role, exists, maker, tables = "", False, None, set()
    for rank, thing, name, owner, is_superuser in rows:
        if rank > LAST_FACT:
            stranger = f"the role {owner!r}, which the role {role!r} is no member of"
            flaw = _flaw(rank, f"the schema {schema!r}", stranger, thing, name)
            raise StoreUnavailable(place, f"{flaw}. {_WHAT_TO_DO}")
        if rank == 0:
            role = name
            continue
        exists = True
        if name is None or name == STORE:
            ordinary = not is_superuser and not str(owner).startswith("pg_")
            maker = owner if ordinary and owner != role else None
        if name is not None and thing not in ("S", "c"):
            tables.add(name)
    return Schema(role, exists, maker, frozenset(tables))


def _flaw(rank: int, schema: str, stranger: str, thing: str, name: str) -> str:
    """What is wrong, in one sentence; names are others', so they are quoted."""
    match rank:
        case 10:
            return f"{schema} belongs to {stranger}"
        case 20:
            return f"{schema} holds {thing!r}, which belongs to {stranger}"
        case 30:
            return f"{name!r} in {schema} is no plain table"
        case 40:
            said = f"has the {thing!r}"
        case 41:
            said = "has row security switched on"
        case 42:
            said = "inherits, or is inherited from"
        case _:
            said = f"uses {thing!r}"
    return f"the table {name!r} in {schema} {said}, which is not Herdbook's doing"
