"""Originals expire outside of transactions, survive crashes in between, and never take along what another needs."""

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from docmill.db.clock import database_now
from docmill.db.tables import documents, leaving_blobs
from docmill.documents.blobs import Blobs, StorageUnavailable
from docmill.engine.chores import Chores
from docmill.services import expiring
from docmill.services.document_chores import document_chores
from docmill.testing.waiting import until
from tests.contract.mailroom import Mailroom, letter, mailroom

BILL = letter("Invoice 4711\nTotal 12.50")
KEY = hashlib.sha256(BILL).hexdigest()
NOBODYS = "0" * 64


@pytest.fixture
def room(database_url: str, tmp_path: Path) -> Iterator[Mailroom]:
    with mailroom(database_url, tmp_path) as room:
        yield room


class During:
    """Blobs that do something else before each is deleted."""

    def __init__(self, blobs: Blobs, happens: Callable[[], object]) -> None:
        self._blobs = blobs
        self._happens = happens

    def delete(self, key: str) -> None:
        self._happens()
        self._blobs.delete(key)

    def __getattr__(self, name: str) -> object:
        return getattr(self._blobs, name)


def _expired(room: Mailroom) -> str:
    """A document whose original is due; its id."""
    (record,) = room.process(room.put("bill.pdf", BILL))
    with room.app.database.write() as connection:
        connection.execute(update(documents).values(original_expires_at=database_now(connection)))
    return record.id


def _expire(room: Mailroom, happens: Callable[[], object]) -> int:
    return expiring.expire(room.app.database, During(room.app.blobs, happens))  # type: ignore[arg-type]


def _leaving(room: Mailroom) -> list[str]:
    with room.app.database.read() as connection:
        return list(connection.execute(select(leaving_blobs.c.key)).scalars())


def test_while_a_slow_bucket_deletes_everybody_else_may_write(room: Mailroom) -> None:
    document_id = _expired(room)

    def write() -> None:
        with room.app.database.write() as connection:
            connection.execute(update(documents).where(documents.c.id == document_id).values(file_name="renamed"))

    with ThreadPoolExecutor(1) as others:
        assert _expire(room, lambda: others.submit(write).result(20)) == 1
    assert room.app.documents.get(document_id).file_name == "renamed"
    assert not room.app.blobs.has(KEY)
    assert _leaving(room) == []


def test_after_a_crash_the_document_is_expired_and_its_bytes_are_collected_later(room: Mailroom) -> None:
    document_id = _expired(room)

    def crash() -> None:
        raise StorageUnavailable("The bucket is away.")

    with pytest.raises(StorageUnavailable):
        _expire(room, crash)
    assert room.app.documents.get(document_id).original_expired_at is not None
    assert room.app.blobs.has(KEY)
    # The claim of the one that died holds for a while, since it may only be slow.
    assert room.app.documents.expire() == 0
    assert room.app.blobs.has(KEY)
    with room.app.database.write() as connection:
        connection.execute(update(leaving_blobs).values(claimed_at=database_now(connection) - expiring.CLAIM))
    room.app.documents.expire()
    assert not room.app.blobs.has(KEY)
    assert _leaving(room) == []


def test_bytes_that_come_in_while_they_are_deleted_are_there_afterwards(room: Mailroom) -> None:
    _expired(room)
    copy = room.put("copy.pdf", BILL)

    def stored() -> bool:
        with room.app.database.read() as connection:
            return connection.execute(select(documents).where(documents.c.original_key == KEY)).first() is not None

    with ThreadPoolExecutor(1) as others:
        coming: list[object] = []

        def come_in() -> None:
            coming.append(others.submit(room.submit, copy))
            until(stored, 20, what="the row of the copy")

        _expire(room, come_in)
        coming[0].result(20)  # type: ignore[attr-defined]
    assert room.app.blobs.has(KEY)


def test_bytes_that_are_leaving_and_come_in_again_stay(room: Mailroom, monkeypatch: pytest.MonkeyPatch) -> None:
    document_id = _expired(room)
    with monkeypatch.context() as before_a_crash:
        before_a_crash.setattr(expiring, "_collect", lambda database, blobs: 0)
        assert room.app.documents.expire() == 1
    assert _leaving(room) == [KEY]
    room.submit(room.put("copy.pdf", BILL))
    room.app.documents.expire()
    assert room.app.blobs.has(KEY)
    assert room.app.documents.get(document_id).original_key is None


def test_a_document_stored_after_the_mark_is_seen_before_its_bytes_go(
    room: Mailroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    _expired(room)
    copy = room.put("copy.pdf", BILL)
    really = expiring._collect

    def collect(database: object, blobs: object) -> int:
        # Its row is there, and it has not come to look for what is leaving.
        monkeypatch.setattr("docmill.services.processing.stay", lambda *arguments: None)
        if _leaving(room):
            room.submit(copy)
        return really(database, blobs)  # type: ignore[arg-type]

    monkeypatch.setattr(expiring, "_collect", collect)
    room.app.documents.expire()
    assert room.app.blobs.has(KEY)


def test_a_chore_that_fails_keeps_no_other_from_being_done(room: Mailroom) -> None:
    (document_id,) = room.submit(room.put("bill.pdf", BILL))
    room.app.jobs.cancel(str(room.app.documents.get(document_id).job_id))
    done: list[str] = []

    class Broken:
        def tidy(self, now: object) -> None:
            done.append("tidy")

        def delete(self, key: str) -> None:
            raise StorageUnavailable("The bucket is away.")

    with room.app.database.write() as connection:
        now = database_now(connection)
        connection.execute(leaving_blobs.insert().values(key=NOBODYS))
    chores = Chores(document_chores(room.app.database, Broken))  # type: ignore[arg-type]
    chores.start()
    try:
        chores.ask(now + timedelta(hours=1))
        until(lambda: done == ["tidy"], 20, what="the chore after the one that fails")
    finally:
        chores.close()
    with room.app.database.read() as connection:
        query = select(documents.c.status).where(documents.c.id == document_id)
        assert connection.execute(query).scalar() == "failed"
    assert _leaving(room) == [NOBODYS]
