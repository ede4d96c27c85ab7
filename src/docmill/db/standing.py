"""As whom a connection speaks: on PostgreSQL a role and an organisation, which row-level security goes by.

Pooled connections take a standing for one transaction, so none can leak into the next; sessions of the engine take one
for good. On SQLite there are no roles: there the services ask for their own organisation in every query.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from docmill.model.errors import DocmillError
from docmill.model.ids import is_id

APP = "docmill_app"
"""Acts for one organisation: services, processors and entity loaders."""
ENGINE = "docmill_engine"
"""Moves the jobs of all organisations, and sees nothing but the engine's tables."""
ENTRY = "docmill_entry"
"""Finds out who is at the door, before it is known which organisation they belong to."""
KEEPER = "docmill_keeper"
"""Does the chores that concern all organisations."""
ROLES = (APP, ENGINE, ENTRY, KEEPER)

ORG_SETTING = "docmill.org"

_TAKE = "select set_config('role', '{role}', {local}), set_config('docmill.org', '{org_id}', {local})"


class RoleRefused(DocmillError):
    """The login of the database URL cannot take a role that row-level security goes by."""

    code = "role_refused"


@dataclass(frozen=True, slots=True)
class Standing:
    """A role, and the organisation it acts for; none: it sees no rows of any."""

    role: str
    org_id: str = ""

    def __post_init__(self) -> None:
        # Written into a statement as they are, see `take`.
        if self.role not in ROLES or not (self.org_id == "" or is_id(self.org_id)):
            raise ValueError(f"there is no standing {self.role!r} for {self.org_id!r}")

    def take(self, raw: Any) -> None:
        """For the transaction under way on a driver's connection, or one that begins with it.

        BEGIN and this go out as one message, and one answer comes back: by itself the driver would wait for the answer
        to BEGIN, in a pipeline too.
        """
        driver = _driver()
        command = self._text(local=True)
        if raw.pgconn.transaction_status == driver.pq.TransactionStatus.IDLE:
            level = raw.isolation_level
            command = f"begin{'' if level is None else ' isolation level ' + level.name.replace('_', ' ')}; {command}"
        raw.pgconn.send_query(command.encode())
        for result in raw.wait(driver.generators.execute(raw.pgconn)):
            if result.status == driver.pq.ExecStatus.FATAL_ERROR:
                error = driver.errors.error_from_result(result)
                raise self._refused(error) or error

    def keep(self, raw: Any) -> None:
        """For as long as the connection lives: it must be nobody else's."""
        try:
            raw.execute(self._text(local=False))
        except _driver().Error as error:
            raise self._refused(error) or error from error
        raw.commit()

    def _refused(self, error: Any) -> "RoleRefused | None":
        """The error as a person can act on it: there is no such role, or the login may not take it."""
        if error.sqlstate not in ("22023", "42501"):
            return None
        return RoleRefused(
            f"The database login may not act as {self.role}: {error}. Let an administrator run: "
            + " ".join(f"CREATE ROLE {role} NOLOGIN NOINHERIT;" for role in ROLES)
            + f" GRANT {', '.join(ROLES)} TO the login. If the database was restored from elsewhere, restore it again "
            "once the roles are there.",
            role=self.role,
        )

    def _text(self, *, local: bool) -> str:
        return _TAKE.format(role=self.role, org_id=self.org_id, local="true" if local else "false")


@cache
def _driver() -> Any:
    """PostgreSQL's driver, which only those have who need it."""
    import psycopg.errors
    import psycopg.generators

    return psycopg
