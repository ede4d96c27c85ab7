"""Row-level security on PostgreSQL: the roles, and who may do what with the rows of a table. Used by migrations.

Every table is under FORCE ROW LEVEL SECURITY, so that not even its owner sees rows by accident. The login may take the
roles and does not inherit from them, or it would see what each of them sees; before PostgreSQL 16 that is up to whoever
makes the login (NOINHERIT).
"""

from collections.abc import Iterator, Mapping

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from docmill.db.standing import APP, ORG_SETTING, ROLES
from docmill.model.errors import DocmillError

ALL = "select, insert, update, delete"
ORG = f"(select nullif(current_setting('{ORG_SETTING}', true), '')::uuid)"
"""The organisation of the transaction, looked up once per statement; null, which equals nothing, if there is none."""
OWN = f"(org_id = {ORG}) is true"
"""`is true` says nothing new and is no condition for an index: every query names its organisation itself, and one that
names its rows by id must not be led through all of an organisation's because nobody has counted them yet."""


class RolesMissing(DocmillError):
    """The roles that row-level security goes by can be neither made nor taken by this login."""

    code = "roles_missing"


def make_roles(connection: Connection) -> None:
    """The roles, which all databases of a server share, and this login's right to take them.

    Two databases may be migrated at once: the lock that keeps them apart is taken in the one catalogue both see, by the
    unique index of role names, so whoever is second finds the role made.
    """
    for role in ROLES:
        _attempt(
            connection,
            f"do $$ begin "
            f"if not exists (select from pg_roles where rolname = '{role}') then "
            f"create role {role} nologin nosuperuser nobypassrls noinherit; end if; "
            f"exception when duplicate_object or unique_violation then null; end $$",
        )
        allowed = connection.execute(text("select pg_has_role(current_user, :role, 'member')"), {"role": role})
        superuser = connection.execute(text("select rolsuper from pg_roles where rolname = current_user"))
        if not allowed.scalar() and not superuser.scalar():
            inherits = " with inherit false" if _version(connection) >= 160_000 else ""
            _attempt(connection, f"grant {role} to current_user{inherits}")
    schema = connection.execute(text("select quote_ident(current_schema())")).scalar_one()
    everybody = ", ".join(ROLES)
    connection.execute(text(f"grant usage on schema {schema} to {everybody}"))
    # What plug-ins make, as the same login, is for the application to use.
    connection.execute(text(f"alter default privileges in schema {schema} grant {ALL} on tables to {APP}"))
    connection.execute(text(f"alter default privileges in schema {schema} grant usage on sequences to {APP}"))
    _grant_what_is_there(connection)


def _version(connection: Connection) -> int:
    return int(connection.execute(text("select current_setting('server_version_num')")).scalar_one())


def _attempt(connection: Connection, statement: str) -> None:
    try:
        connection.execute(text(statement))
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) not in ("42501", "0LP01"):
            raise
        login = connection.engine.url.username or "LOGIN"
        raise RolesMissing(
            "Row-level security needs the roles "
            + ", ".join(ROLES)
            + ", which this login may not make or take. As a superuser: "
            + " ".join(f"CREATE ROLE {role} NOLOGIN NOINHERIT;" for role in ROLES)
            + f' GRANT {", ".join(ROLES)} TO "{login}"; then run `docmill db upgrade` again.'
        ) from error


def _grant_what_is_there(connection: Connection) -> None:
    """Tables of plug-ins that were made before there were roles; ours are granted one by one."""
    owned = text(
        "select quote_ident(c.relname) as name, c.relkind = 'S' as counts from pg_class c"
        " where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p', 'S')"
        " and pg_has_role(current_user, c.relowner, 'usage')"
    )
    for row in connection.execute(owned).all():
        rights = f"usage on sequence {row.name}" if row.counts else f"{ALL} on {row.name}"
        connection.execute(text(f"grant {rights} to {APP}"))


def protect(
    connection: Connection,
    table: str,
    *,
    app: str = ALL,
    across: Mapping[str, str] | None = None,
    scoped: Mapping[str, str] | None = None,
    mine: str = OWN,
    under: Mapping[str, str] | None = None,
) -> None:
    """Put a table under row-level security.

    The application does what `app` says with rows that are `mine`. `across` names roles that do what they may with the
    rows of all organisations, `scoped` others that are held to `mine`. `under` names columns that point at other
    tables, whose row must be visible to whoever inserts: a foreign parent is as good as none.
    """
    if connection.dialect.name != "postgresql":
        return
    for statement in _protecting(table, app, across or {}, scoped or {}, mine, under or {}):
        connection.execute(text(statement))


def _protecting(
    table: str, app: str, across: Mapping[str, str], scoped: Mapping[str, str], mine: str, under: Mapping[str, str]
) -> Iterator[str]:
    yield f"alter table {table} enable row level security"
    yield f"alter table {table} force row level security"
    # Of what the default privileges gave, only what is named here stays.
    yield f"revoke all on {table} from {', '.join(ROLES)}"
    held = {APP: app, **scoped} if app else dict(scoped)
    for role, verbs in held.items():
        yield f"create policy {role}_own on {table} to {role} using ({mine}) with check ({mine})"
        if role not in across:
            yield f"grant {verbs} on {table} to {role}"
    for role, verbs in across.items():
        # Nothing but `true`: any other condition would be evaluated first, and keep the planner from its indexes.
        if role in held:
            # Sees all, and writes what is its own.
            yield f"create policy {role}_sees on {table} for select to {role} using (true)"
        else:
            yield f"create policy {role}_all on {table} to {role} using (true) with check (true)"
        yield f"grant {', '.join(dict.fromkeys([verbs, held.get(role, verbs)]))} on {table} to {role}"
    for column, parent in under.items():
        exists = f"exists (select 1 from {parent} parent where parent.id = {table}.{column})"
        yield (
            f"create policy {APP}_under_{column} on {table} as restrictive for insert to {APP} "
            f"with check ({column} is null or {exists})"
        )


def also_seen(connection: Connection, table: str, condition: str) -> None:
    """Rows that the application may look at although they are not its organisation's."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"create policy {APP}_also on {table} for select to {APP} using ({condition})"))
