"""Whoever takes over a key from one who seems dead is alone with it, and is not disturbed by the one who was not."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import select, text, update

from docmill.db.database import Database
from docmill.db.tables import idempotency_keys
from docmill.model.ids import DEFAULT_ORG
from docmill.services.replies import IN_FLIGHT, InFlight, Replies, Reply, Turn
from docmill.testing.waiting import until

ANSWER = Reply(status=201, body=b"{}")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url).scoped(DEFAULT_ORG)
    yield opened
    opened.close()


def silent(database: Database, replies: Replies) -> Turn:
    """One who began so long ago that it is taken for dead."""
    turn = replies.begin("ann", "key", "digest")
    assert isinstance(turn, Turn)
    began = turn.begun_at - IN_FLIGHT - timedelta(seconds=1)
    with database.write() as connection:
        connection.execute(update(idempotency_keys).values(begun_at=began))
    return Turn(who=turn.who, key=turn.key, begun_at=began)


def test_of_two_who_take_a_key_over_at_the_same_moment_one_has_it(database: Database) -> None:
    replies = Replies(database, DEFAULT_ORG)
    silent(database, replies)

    def begin(_: int) -> str:
        try:
            return type(replies.begin("ann", "key", "digest")).__name__
        except InFlight:
            return "in flight"

    def both_wait() -> bool:
        with database.read() as connection:
            waiting = "select count(*) from pg_locks where not granted"
            return bool(connection.execute(text(waiting)).scalar_one() >= 2)

    with ThreadPoolExecutor(2) as threads:
        with database.write() as connection:
            connection.execute(select(idempotency_keys).with_for_update()).one()
            answers = threads.map(begin, range(2))
            if database.kind == "postgresql":
                until(both_wait)
        assert sorted(answers) == ["Turn", "in flight"]


def test_one_who_was_not_dead_disturbs_nobody(database: Database) -> None:
    replies = Replies(database, DEFAULT_ORG)
    old = silent(database, replies)
    new = replies.begin("ann", "key", "digest")
    assert isinstance(new, Turn)
    replies.abandon(old)
    replies.finish(old, Reply(status=500, body=b"old"))
    with pytest.raises(InFlight):
        replies.begin("ann", "key", "digest")
    replies.finish(new, ANSWER)
    replies.finish(old, Reply(status=500, body=b"old"))
    assert replies.begin("ann", "key", "digest") == ANSWER
