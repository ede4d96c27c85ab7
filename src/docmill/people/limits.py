"""Limits of sign-in: attempts are counted before the password is looked at, so that many at once are counted too."""

import hashlib
from datetime import datetime, timedelta

from sqlalchemy import Connection, case, delete, select, update

from docmill.db.conflicts import insert_into
from docmill.db.tables import sign_in_limits
from docmill.model.errors import DocmillError

WINDOW = timedelta(minutes=15)
BY_EMAIL, BY_ADDRESS = 5, 50
"""Failures within the window: of one email address, and from one network address (which may be an office's)."""


class SignInLimited(DocmillError):
    """Too many failed attempts; the same answer whether there is such a person or not."""

    code = "sign_in_limited"

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message, retry_after=retry_after)
        self.retry_after = retry_after


def count(connection: Connection, email: str, address: str | None, now: datetime) -> None:
    """Count an attempt; raises SignInLimited, with the attempt counted, when there were too many."""
    limits = {_name("email", email): BY_EMAIL}
    if address is not None:
        limits[_name("address", address)] = BY_ADDRESS
    for name, most in sorted(limits.items()):
        fresh = sign_in_limits.c.until <= now
        counted = (
            insert_into(connection, sign_in_limits)
            .values(name=name, failures=1, until=now + WINDOW)
            .on_conflict_do_update(
                index_elements=["name"],
                set_={
                    "failures": case((fresh, 1), else_=sign_in_limits.c.failures + 1),
                    "until": case((fresh, now + WINDOW), else_=sign_in_limits.c.until),
                },
            )
        )
        connection.execute(counted)
        row = connection.execute(select(sign_in_limits).where(sign_in_limits.c.name == name)).one()
        if row.failures > most:
            wait = max(1.0, (row.until - now).total_seconds())
            raise SignInLimited(
                f"Too many attempts to sign in. Try again in {max(1, round(wait / 60))} minutes.", retry_after=wait
            )


def forgive(connection: Connection, email: str, address: str | None = None) -> None:
    """The password was right: what was mistyped before does not count.

    Of what came from the network address only this attempt does not: an office that signs in all morning is no
    attacker, and an attacker does not get more guesses by signing in as themselves.
    """
    uncount(connection, email, address)
    connection.execute(delete(sign_in_limits).where(sign_in_limits.c.name == _name("email", email)))


def uncount(connection: Connection, email: str, address: str | None) -> None:
    """The attempt came to nothing through no fault of whoever made it."""
    names = [_name("email", email), *([] if address is None else [_name("address", address)])]
    # In the order in which they are counted, so that nobody who counts waits for one who waits for them.
    for name in sorted(names):
        counted = (sign_in_limits.c.name == name, sign_in_limits.c.failures > 0)
        connection.execute(update(sign_in_limits).where(*counted).values(failures=sign_in_limits.c.failures - 1))


def _name(kind: str, value: str) -> str:
    return hashlib.sha256(f"{kind}:{value}".encode("utf-8", "surrogatepass")).hexdigest()
