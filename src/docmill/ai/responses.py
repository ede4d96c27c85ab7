"""Answers kept by content: who asks the very same again gets the answer that was paid for once.

The key is everything that the answer depends on. Only good answers are kept, each for one organisation, for a while.
The row is made before the model is asked, without a text: so that of several who ask the same at the same moment, in
whatever processes, one asks and the others wait for it. Its row goes if it fails, and is nobody's if it dies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto
from hashlib import sha256
from typing import Any

import orjson
from sqlalchemy import Connection, Row, delete, select

from docmill.ai.rules import Target
from docmill.db.conflicts import insert_into
from docmill.db.tables import ai_calls, ai_responses
from docmill.model.ai import Caller, ModelCall

_SWEPT = 100
"""Old answers that are removed whenever a new one is kept."""


class Claim(Enum):
    """How it stands with an answer that is not there."""

    OURS = auto()
    """It is for us to ask."""
    ANOTHERS = auto()
    """Somebody is asking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An answer from before."""

    text: str


def fingerprint(org_id: str, target: Target, call: ModelCall) -> str:
    """The same for the same question, and for no other."""
    parts = {
        "org": org_id,
        "target": str(target),
        "prompt": call.prompt,
        "instructions": call.instructions,
        "attachments": [[part.media_type, sha256(part.data).hexdigest()] for part in call.attachments],
        "schema": call.output_schema,
        "max_tokens": call.max_tokens,
        "temperature": call.temperature,
        "options": call.options,
    }
    return sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()


def claim(
    connection: Connection, key: str, *, caller: Caller, call_id: str, target: Target, now: datetime, until: datetime
) -> Kept | Claim:
    """The answer, or who is to ask. `until`: when a claim of ours is given up, should we not be heard of again."""
    columns = (ai_responses.c.text, ai_responses.c.call_id, ai_responses.c.expires_at)
    row = connection.execute(select(*columns).where(ai_responses.c.key == key)).one_or_none()
    if row is not None and row.expires_at > now:
        if row.text is not None:
            return Kept(text=row.text)
        if not _own(connection, row.call_id, caller):
            return Claim.ANOTHERS
    values = {
        "org_id": caller.org_id,
        "call_id": call_id,
        "provider": target.provider,
        "model": target.model,
        "text": None,
        "created_at": now,
        "expires_at": until,
    }
    statement = insert_into(connection, ai_responses).values(key=key, **values)
    if row is None:
        # Of two that find no row, the second waits here for the first to commit, and then makes none.
        made = connection.execute(statement.on_conflict_do_nothing()).rowcount
    else:
        # The row is taken over only as it was seen.
        same = ai_responses.c.call_id == row.call_id
        made = connection.execute(
            statement.on_conflict_do_update(index_elements=["key"], set_=values, where=same)
        ).rowcount
    return Claim.OURS if made else Claim.ANOTHERS


def _own(connection: Connection, call_id: str, caller: Caller) -> bool:
    """Whether an earlier attempt of the same step asks: it is dead, or the step would not be ours now."""
    columns = (ai_calls.c.job_id, ai_calls.c.position)
    row = connection.execute(select(*columns).where(ai_calls.c.id == call_id)).one_or_none()
    mine = (caller.job_id, caller.position)
    return row is not None and row.job_id is not None and (row.job_id, row.position) == mine


def keep(connection: Connection, key: str, text: str, *, call_id: str, now: datetime, ttl: timedelta) -> None:
    """Keep a good answer, unless its claim was given up and is another's now, whose answer will do as well."""
    values = {"text": text, "created_at": now, "expires_at": now + ttl}
    ours = (ai_responses.c.key == key) & (ai_responses.c.call_id == call_id)
    connection.execute(ai_responses.update().where(ours).values(values))
    _sweep(connection, now)


def release(connection: Connection, key: str, *, call_id: str) -> None:
    """There will be no answer of ours: whoever waits for it may ask."""
    ours = (ai_responses.c.key == key) & (ai_responses.c.call_id == call_id) & ai_responses.c.text.is_(None)
    connection.execute(delete(ai_responses).where(ours))


def _sweep(connection: Connection, now: datetime) -> None:
    """Remove answers that are over; those that another transaction has its hands on are passed over."""
    query = select(ai_responses.c.key).where(ai_responses.c.expires_at < now).limit(_SWEPT)
    rows: Sequence[Row[Any]] = connection.execute(query.with_for_update(skip_locked=True)).all()
    if rows:
        connection.execute(delete(ai_responses).where(ai_responses.c.key.in_([row.key for row in rows])))
