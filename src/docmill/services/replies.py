"""Answers that were given under an idempotency key, kept for a day: the same request again gets the same answer."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, select, update

from docmill.db.clock import database_now
from docmill.db.conflicts import insert_into
from docmill.db.database import Database
from docmill.db.tables import idempotency_keys
from docmill.model.errors import Conflict, InvalidInput

KEPT = timedelta(days=1)
IN_FLIGHT = timedelta(minutes=2)
"""After how long somebody who began and never ended is taken for dead."""
_K = idempotency_keys.c


class KeyReused(InvalidInput):
    """The key was used before, for something else."""

    code = "idempotency_key_reused"


class InFlight(Conflict):
    """The first request with this key has not been answered yet."""

    code = "idempotency_in_flight"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer as it was sent."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The right to answer under a key. Whoever takes it over from one who seems dead fences that one out."""

    who: str
    key: str
    begun_at: datetime


class Replies:
    """The answers of one organisation."""

    def __init__(self, database: Database, org_id: str) -> None:
        self._database = database.scoped(org_id)
        self._org_id = org_id

    def begin(self, who: str, key: str, digest: str) -> Turn | Reply:
        """The caller's turn to do it, if nobody has asked this before; otherwise the answer there is."""
        with self._database.write() as connection:
            now = database_now(connection)
            turn = Turn(who=who, key=key, begun_at=now)
            values = {"org_id": self._org_id, "who": who, "key": key, "digest": digest}
            mine = insert_into(connection, idempotency_keys).values(**values, begun_at=now, expires_at=now + KEPT)
            # Of two at the same moment the second waits for the first one's commit, and finds its row.
            if connection.execute(mine.on_conflict_do_nothing().returning(_K.key)).first() is not None:
                return turn
            named = (_K.org_id == self._org_id, _K.who == who, _K.key == key)
            row = connection.execute(select(idempotency_keys).where(*named)).one_or_none()
            if row is None:
                raise _in_flight()  # It was abandoned at this moment.
            free = row.expires_at <= now or (row.status is None and row.begun_at <= now - IN_FLIGHT)
            if free:
                write = update(idempotency_keys).where(*named, _K.begun_at == row.begun_at)
                again = {"digest": digest, "status": None, "body": None, "begun_at": now, "expires_at": now + KEPT}
                if connection.execute(write.values(again)).rowcount:
                    return turn
                raise _in_flight()  # Somebody else took it over at this moment.
        if row.digest != digest:
            raise KeyReused(
                "This Idempotency-Key was used for a request with other content. Use a new key for a new request.",
                field="header.idempotency-key",
            )
        if row.status is None:
            raise _in_flight()
        return Reply(status=row.status, body=row.body.encode())

    def finish(self, turn: Turn, reply: Reply) -> None:
        """Keep the answer, unless somebody took the turn over: then theirs counts."""
        with self._database.write() as connection:
            write = update(idempotency_keys).where(*self._held(turn))
            connection.execute(write.values(status=reply.status, body=reply.body.decode()))

    def abandon(self, turn: Turn) -> None:
        """Nothing came of it."""
        with self._database.write() as connection:
            connection.execute(delete(idempotency_keys).where(*self._held(turn)))

    def _held(self, turn: Turn) -> tuple[ColumnElement[bool], ...]:
        named = (_K.org_id == self._org_id, _K.who == turn.who, _K.key == turn.key)
        return *named, _K.begun_at == turn.begun_at, _K.status.is_(None)


def _in_flight() -> InFlight:
    return InFlight("The first request with this Idempotency-Key is still being worked on. Ask again in a moment.")


def forget_replies(database: Database, now: datetime) -> None:
    """Delete answers whose time is up, of all organisations."""
    database = database.as_keeper()
    with database.read() as connection:
        if connection.execute(select(_K.key).where(_K.expires_at <= now).limit(1)).first() is None:
            return
    with database.write() as connection:
        connection.execute(delete(idempotency_keys).where(_K.expires_at <= now))
