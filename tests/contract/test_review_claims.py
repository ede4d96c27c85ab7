"""Who has an item: one person at a time, whoever else wants it, at no more cost than it takes."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from threading import Barrier, get_ident
from typing import Any

import pytest
from sqlalchemy import Connection, event, func, select

from docmill.db.database import Database
from docmill.db.tables import jobs, review_items
from docmill.model.errors import DocmillError
from docmill.model.ids import DEFAULT_ORG
from docmill.model.review import (
    AlreadyClaimed,
    AlreadyDecided,
    NotYours,
    ReviewStatus,
)
from docmill.people.audit import AuditTrail, faults
from docmill.services.review import ItemSummary
from tests.contract.desk import ANN, BOB, BOSS, Desk, Recorded, age, extraction, person

HOUR = timedelta(hours=1)


def test_twenty_reviewers_at_once_claim_every_item_once_and_lose_none(desk: Desk) -> None:
    items = desk.put(500, confidence=[number / 500 for number in range(500)], sla=[HOUR, 24 * HOUR] * 250)
    begin = Barrier(20)

    def work(number: int) -> list[str]:
        me, mine = person(f"reviewer-{number}"), []
        begin.wait()
        while (claimed := desk.review.claim_next(me)) is not None:
            assert claimed.claimed_by == me.id
            mine.append(claimed.id)
        return mine

    with ThreadPoolExecutor(20) as pool:
        taken = [item for mine in pool.map(work, range(20)) for item in mine]
    assert sorted(taken) == sorted(items)


@contextmanager
def overheard(database: Database) -> Iterator[list[str]]:
    """The statements of services that this thread calls, in lower case; workers have threads of their own."""
    heard: list[str] = []
    here = get_ident()

    def hear(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if get_ident() == here:
            heard.append(statement.lower())

    event.listen(database.engine, "before_cursor_execute", hear)
    try:
        yield heard
    finally:
        event.remove(database.engine, "before_cursor_execute", hear)


def test_items_that_others_hold_are_passed_over_by_one_statement(desk: Desk) -> None:
    desk.put(8)
    order = [item.id for item in desk.review.next(ANN, limit=8)]
    held = select(review_items.c.id).where(review_items.c.id.in_(order[:5])).with_for_update()
    # SQLite has one writer: nobody else can hold anything at that moment.
    free = order[5] if desk.database.kind == "postgresql" else order[0]
    with ExitStack() as others:
        if desk.database.kind == "postgresql":
            others.enter_context(desk.database.write()).execute(held)
        heard = others.enter_context(overheard(desk.database))
        claimed = desk.review.claim_next(ANN)
    assert claimed is not None
    assert claimed.id == free
    assert sum(statement.startswith("update review_items") for statement in heard) == 1


def test_the_end_of_the_audit_chain_is_held_for_the_entry_alone(desk: Desk) -> None:
    """Everybody of the organisation who does something waits for it."""
    desk.recorder = AuditTrail()
    review = desk.service()
    item_id = desk.slip(extraction(number="7", total="10.00"))
    deeds: list[Callable[[], object]] = [
        lambda: review.claim_next(ANN),
        lambda: review.confirm(ANN, item_id, ["number", "total"]),
        lambda: review.undo(ANN, item_id),
        lambda: review.release(ANN, item_id),
        lambda: review.postpone(ANN, item_id, desk.now() + HOUR),
        lambda: review.resume(ANN, item_id),
        lambda: review.assign(BOSS, item_id, "ann"),
        lambda: review.claim(ANN, item_id),
    ]
    for deed in deeds:
        with overheard(desk.database) as heard:
            deed()
        first = next(place for place, statement in enumerate(heard) if "audit_heads" in statement)
        assert all("audit_" in statement for statement in heard[first:]), heard[first:]
    most = 2 if desk.database.kind == "postgresql" else 3
    assert sum("audit_" in statement for statement in heard) == most
    with desk.database.read() as connection:
        assert not list(faults(connection, DEFAULT_ORG))


def test_a_decision_is_recorded_after_its_jobs_are_submitted(desk: Desk) -> None:
    seen: list[int] = []

    class Looking(Recorded):
        def record(self, connection: Connection, *told: Any) -> None:
            seen.append(connection.execute(select(func.count()).select_from(jobs)).scalar_one())
            super().record(connection, *told)

    desk.recorder = Looking()
    review = desk.service()
    item_id = desk.slip(extraction(number="7", total="10.00"))
    review.claim(ANN, item_id)
    review.confirm(ANN, item_id, ["number"])
    review.approve(ANN, item_id)
    review.close()
    assert seen == [0, 0, 1]


def test_looking_at_the_queue_is_one_transaction(desk: Desk) -> None:
    desk.put(2)
    begun: list[object] = []
    event.listen(desk.database.engine, "begin", begun.append)
    for look in (lambda: desk.review.next(ANN), lambda: desk.review.list(ANN), lambda: desk.review.claim_next(ANN)):
        begun.clear()
        assert look()
        assert len(begun) == 1


def test_of_two_who_want_one_item_one_has_it_and_one_is_told_who(desk: Desk) -> None:
    for item in desk.put(10):
        begin = Barrier(2)

        def want(who: str, item: str = item, begin: Barrier = begin) -> ItemSummary | DocmillError:
            begin.wait()
            try:
                return desk.review.claim(person(who), item)
            except AlreadyClaimed as error:
                return error

        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(want, ["ann", "bob"]))
        (won,) = [each for each in answers if isinstance(each, ItemSummary)]
        (lost,) = [each for each in answers if isinstance(each, AlreadyClaimed)]
        assert won.claimed_by in ("ann", "bob")
        assert str(won.claimed_by) in lost.message


def test_two_who_arrange_the_same_at_once_do_not_get_in_each_others_way(desk: Desk) -> None:
    for round_number in range(10):
        begin, name, schema = Barrier(2, timeout=60), f"reviewer-{round_number}", f"schema-{round_number}"

        def arrange(hours: int, begin: Barrier = begin, name: str = name, schema: str = schema) -> None:
            begin.wait()
            desk.review.enroll(BOSS, name)
            begin.wait()
            desk.review.set_sla(BOSS, hours * HOUR, schema=schema)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(arrange, [1, 2]))
        assert desk.review.slas(BOSS)[schema] in (HOUR, 2 * HOUR)
    assert list(desk.review.enrolled(BOSS)) == [f"reviewer-{number}" for number in range(10)]
    assert desk.recorded.verbs.count("review.enroll") == 10
    assert desk.recorded.verbs.count("review.set_sla") == 20


def test_a_claim_that_ended_can_be_taken_and_its_first_holder_writes_no_more(desk: Desk) -> None:
    (item,) = desk.put()
    desk.review.claim(ANN, item)
    with pytest.raises(AlreadyClaimed):
        desk.review.claim(BOB, item)
    age(desk, item, claim_expires_at=desk.now() - timedelta(seconds=1))
    with pytest.raises(NotYours, match="ended"):
        desk.review.correct(ANN, item, "total", "1.00")
    taken = desk.review.claim_next(BOB)
    assert taken is not None
    assert (taken.id, taken.claimed_by) == (item, "bob")
    for late in (
        lambda: desk.review.correct(ANN, item, "total", "1.00"),
        lambda: desk.review.approve(ANN, item),
        lambda: desk.review.release(ANN, item),
    ):
        with pytest.raises(NotYours, match="bob has it"):
            late()
    assert "review.claim_expired" in desk.recorded.verbs


def test_whoever_works_on_an_item_keeps_it(desk: Desk) -> None:
    (item,) = desk.put()
    first = desk.review.claim(ANN, item)
    again = desk.review.claim(ANN, item)
    assert first.claim_expires_at is not None
    assert again.claim_expires_at is not None
    assert again.claim_expires_at > first.claim_expires_at


def test_what_is_released_is_there_for_others(desk: Desk) -> None:
    (item,) = desk.put()
    desk.review.claim(ANN, item)
    assert desk.review.claim_next(BOB) is None
    assert desk.review.release(ANN, item).status is ReviewStatus.PENDING
    taken = desk.review.claim_next(BOB)
    assert taken is not None
    assert taken.id == item


def test_decided_items_are_not_claimed(desk: Desk) -> None:
    (item,) = desk.put(status="rejected")
    with pytest.raises(AlreadyDecided, match="rejected"):
        desk.review.claim(ANN, item)
    with pytest.raises(AlreadyDecided):
        desk.review.postpone(ANN, item, desk.now() + HOUR)
