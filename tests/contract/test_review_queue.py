"""The queue of review: who is first, who has it, and what passes by itself, on both databases."""

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, delete, event, func, insert, select, update

from docmill.db.database import Database
from docmill.db.tables import jobs, review_items
from docmill.model.errors import Conflict, DocmillError, Forbidden, InvalidInput, NotFound
from docmill.model.ids import DEFAULT_ORG
from docmill.model.people import Role
from docmill.model.review import (
    REVIEW_TRANSITIONS,
    AlreadyClaimed,
    AlreadyDecided,
    NotYours,
    ReviewStatus,
    SlaState,
    VersionConflict,
)
from docmill.people.audit import AuditTrail, faults
from docmill.review.priority import breakdown
from docmill.review.queue import claim_first, first_in_queue, open_by_priority, settle
from docmill.services.review import ItemSummary
from docmill.services.review_chores import review_chores
from docmill.testing.plans import profile
from tests.contract.desk import ANN, BOB, BOSS, Desk, Recorded, extraction, item_row, person

HOUR = timedelta(hours=1)


@pytest.fixture
def desk(database_url: str, tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(Database(database_url), tmp_path)
    yield desk
    desk.close()


def age(desk: Desk, item: str, **columns: object) -> None:
    """Let something have happened to an item in the past."""
    with desk.database.write() as connection:
        connection.execute(update(review_items).where(review_items.c.id == item).values(**columns))


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
    """The statements of services, in lower case."""
    heard: list[str] = []

    def hear(_connection: object, _cursor: object, statement: str, *_: object) -> None:
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


def test_what_is_assigned_comes_to_that_person_alone(desk: Desk) -> None:
    mine, free = desk.put(2, assigned_to=["ann", ""], confidence=[0.9, 0.1])
    assert [each.id for each in desk.review.next(BOB, limit=5)] == [free]
    assert [each.id for each in desk.review.next(ANN, limit=5)] == [free, mine]
    with pytest.raises(AlreadyClaimed, match="assigned to ann"):
        desk.review.claim(BOB, mine)


def test_reassigning_ends_the_claim_of_whoever_had_it(desk: Desk) -> None:
    (item,) = desk.put()
    desk.review.claim(ANN, item)
    with pytest.raises(Forbidden, match=r"review\.manage"):
        desk.review.assign(BOB, item, "bob")
    moved = desk.review.assign(BOSS, item, "bob")
    assert (moved.status, moved.assigned_to, moved.claimed_by) == (ReviewStatus.PENDING, "bob", None)
    with pytest.raises(NotYours):
        desk.review.correct(ANN, item, "total", "1.00")
    assert desk.review.claim(BOB, item).claimed_by == "bob"
    assert desk.review.unassign(BOSS, item).assigned_to is None


def test_what_is_resumed_or_assigned_as_it_is_changes_nothing_and_is_not_recorded(desk: Desk) -> None:
    (item,) = desk.put()
    desk.review.assign(BOSS, item, "ann")
    claimed = desk.review.claim(ANN, item)
    done = len(desk.recorded.actions)
    assert desk.review.resume(ANN, item).version == claimed.version
    assert desk.review.assign(BOSS, item, "ann").version == claimed.version
    assert len(desk.recorded.actions) == done


def test_items_go_to_whoever_has_the_fewest_and_of_equals_in_turn(desk: Desk) -> None:
    with pytest.raises(NotFound, match="enrolled"):
        desk.review.assign(BOSS, desk.put()[0])
    for name in ("ann", "bob", "cleo"):
        desk.review.enroll(BOSS, name)
    assert list(desk.review.enrolled(BOSS)) == ["ann", "bob", "cleo"]
    desk.put(2, assigned_to="ann")
    given = [desk.review.assign(BOSS, item).assigned_to for item in desk.put(9)]
    assert given[:4] == ["bob", "cleo", "bob", "cleo"], "until they have as many as ann"
    assert sorted(map(str, given[4:7])) == ["ann", "bob", "cleo"]
    assert given[4:6] == given[7:9], "in the same turn again"
    desk.review.withdraw(BOSS, "ann")
    assert "ann" not in {desk.review.assign(BOSS, item).assigned_to for item in desk.put(4)}


def test_what_is_postponed_waits_for_its_time_and_can_be_fetched_before(desk: Desk) -> None:
    (item,) = desk.put()
    desk.review.claim(ANN, item)
    with pytest.raises(InvalidInput, match="to come"):
        desk.review.postpone(ANN, item, desk.now() - HOUR)
    later = desk.review.postpone(ANN, item, desk.now() + HOUR)
    assert (later.status, later.claimed_by) == (ReviewStatus.PENDING, None)
    assert desk.review.claim_next(BOB) is None
    age(desk, item, postponed_until=desk.now() - timedelta(seconds=1))
    assert [each.id for each in desk.review.next(BOB)] == [item]
    desk.review.postpone(ANN, item, desk.now() + HOUR)
    assert desk.review.resume(ANN, item).postponed_until is None
    desk.review.postpone(ANN, item, desk.now() + HOUR)
    assert desk.review.claim(BOB, item).postponed_until is None


def test_time_at_risk_and_overdue_is_marked_without_anybody_looking(desk: Desk) -> None:
    fresh, risky, late, done = desk.put(4, age=[0 * HOUR, 20 * HOUR, 25 * HOUR, 25 * HOUR], status="pending")
    age(desk, done, status="approved", sla_at=None)
    review_chores(desk.database, desk.recorded)(desk.now())
    states = {each: desk.review.get(BOSS, each).item.sla_state for each in (fresh, risky, late, done)}
    assert states[fresh] is SlaState.ON_TRACK
    assert states[risky] is SlaState.AT_RISK
    assert states[late] is SlaState.OVERDUE
    assert states[done] is SlaState.ON_TRACK, "it was decided in time"
    told = sorted((item, verb, after["sla_state"]) for _, verb, item, _, after in desk.recorded.actions)
    warned = [(risky, "review.sla_at_risk", "at_risk")]
    # Of what nobody saw at risk it is told now, with its end.
    assert told == sorted([*warned, (late, "review.sla_at_risk", "overdue"), (late, "review.sla_overdue", "overdue")])
    # Nothing is told twice.
    review_chores(desk.database, desk.recorded)(desk.now())
    assert len(desk.recorded.verbs) == 3
    age(desk, risky, due_at=desk.now() - HOUR, sla_at=desk.now() - HOUR)
    review_chores(desk.database, desk.recorded)(desk.now())
    assert desk.recorded.verbs[3:] == ["review.sla_overdue"]


def test_a_stale_version_is_refused(desk: Desk) -> None:
    (item,) = desk.put()
    seen = desk.review.claim(ANN, item)
    desk.review.claim(ANN, item, version=seen.version)
    for stale in (
        lambda: desk.review.release(ANN, item, version=seen.version),
        lambda: desk.review.reject(ANN, item, "no", version=seen.version),
        lambda: desk.review.assign(BOSS, item, "bob", version=seen.version),
    ):
        with pytest.raises(VersionConflict, match="Look at it again"):
            stale()


def test_viewers_look_and_nothing_more(desk: Desk) -> None:
    (item,) = desk.put()
    viewer = person("vic", Role.VIEWER)
    assert desk.review.get(viewer, item).item.id == item
    assert len(desk.review.list(viewer)) == 1
    for deed in (
        lambda: desk.review.claim(viewer, item),
        lambda: desk.review.claim_next(viewer),
        lambda: desk.review.comment(viewer, item, "hm"),
        lambda: desk.review.set_sla(viewer, HOUR),
        lambda: desk.review.enroll(viewer, "vic"),
    ):
        with pytest.raises(Forbidden):
            deed()


def test_decided_items_are_not_claimed(desk: Desk) -> None:
    (item,) = desk.put(status="rejected")
    with pytest.raises(AlreadyDecided, match="rejected"):
        desk.review.claim(ANN, item)
    with pytest.raises(AlreadyDecided):
        desk.review.postpone(ANN, item, desk.now() + HOUR)


def test_whatever_is_done_an_item_goes_only_where_the_table_leads(desk: Desk) -> None:
    review, later = desk.review, desk.now() + HOUR

    def let_claims_end(item: str) -> None:
        age(desk, item, claim_expires_at=desk.now() - HOUR)
        review_chores(desk.database)(desk.now())

    deeds: list[Callable[[str], object]] = [
        lambda item: review.claim(ANN, item),
        lambda item: review.claim_next(ANN),
        lambda item: review.release(ANN, item),
        lambda item: review.postpone(ANN, item, later),
        lambda item: review.resume(ANN, item),
        lambda item: review.assign(BOSS, item, "bob"),
        lambda item: review.correct(ANN, item, "total", "2.00"),
        lambda item: review.approve(ANN, item),
        lambda item: (review.correct(ANN, item, "total", "2.00"), review.approve(ANN, item)),
        lambda item: review.reject(ANN, item, "no slip"),
        let_claims_end,
    ]
    held = {"claimed_by": "ann", "claimed_at": desk.now(), "claim_expires_at": later}
    gone: set[tuple[ReviewStatus, ReviewStatus]] = set()
    for before, deed in itertools.product(ReviewStatus, deeds):
        item = desk.slip(extraction(number="A-1", total="1.00"))
        age(desk, item, status=before.value, **(held if before is ReviewStatus.IN_REVIEW else {}))
        with suppress(Conflict):
            deed(item)
        gone.add((before, desk.review.get(BOSS, item).item.status))
        with desk.database.write() as connection:
            connection.execute(delete(review_items).where(review_items.c.id == item))
    legal = {(before, after) for before, afters in REVIEW_TRANSITIONS.items() for after in afters}
    assert {(before, after) for before, after in gone if before is not after} == legal


def test_lists_page_through_what_is_open_by_priority_and_what_is_not_by_time(desk: Desk) -> None:
    open_items = desk.put(7, confidence=[0.1 * number for number in range(7)], sla=[None, HOUR, 24 * HOUR, *[HOUR] * 4])
    desk.put(3, status="approved")
    seen: list[ItemSummary] = []
    while page := desk.review.list(BOSS, limit=2, after=seen[-1].id if seen else None):
        seen += page
    assert sorted(each.id for each in seen) == sorted(open_items)
    priorities = [each.priority.priority for each in seen]
    assert all(later <= before + 1e-4 for before, later in itertools.pairwise(priorities))
    decided = [each.id for each in desk.review.list(BOSS, status=ReviewStatus.APPROVED, limit=2)]
    rest = desk.review.list(BOSS, status=ReviewStatus.APPROVED, limit=2, after=decided[-1])
    assert len({*decided, *(each.id for each in rest)}) == 3


moments = st.integers(0, 200_000)
drawn: st.SearchStrategy[dict[str, object]] = st.builds(
    dict,
    age=st.integers(0, 100_000).map(lambda seconds: timedelta(seconds=seconds)),
    sla=st.sampled_from([None, timedelta(seconds=60), HOUR, 24 * HOUR, 30 * 24 * HOUR]),
    confidence=st.integers(0, 100).map(lambda share: share / 100),
    complexity=st.integers(0, 100).map(lambda share: share / 100),
    value=st.integers(0, 100).map(lambda share: share / 100),
)
START = datetime(2026, 11, 16, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgresql"], scope="module")
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """One database for all examples of a property."""
    from docmill.testing.world import migrate

    if request.param == "sqlite":
        path = tmp_path_factory.mktemp("shared") / "docmill.db"
        migrate(f"sqlite:///{path}")
        database = Database(f"sqlite:///{path}")
        yield database
        database.close()
        return
    server = request.getfixturevalue("postgres_server")
    url = server.create_database("review_order", template=server.template("template_migrated", migrate))
    database = Database(url)
    yield database
    database.close()
    server.drop_database("review_order")


@pytest.mark.parametrize("looks", [1, 3])
def test_the_next_item_is_the_naive_maximum_of_the_formula(shared: Database, looks: int) -> None:
    @given(items=st.lists(drawn, min_size=1, max_size=12), after=st.lists(moments, min_size=looks, max_size=looks))
    @profile(60)
    def holds(items: list[dict[str, object]], after: list[int]) -> None:
        rows = {row["id"]: row for row in (item_row(START, **about) for about in items)}  # type: ignore[arg-type]

        def naive(item: str, now: datetime) -> float:
            row = rows[item]
            parts = {name: row[name] for name in ("confidence", "complexity", "value", "created_at", "due_at")}
            return breakdown(**parts, now=now).priority

        with shared.write() as connection:
            connection.execute(delete(review_items))
            connection.execute(insert(review_items), list(rows.values()))
        for seconds in sorted(after):
            now = START + timedelta(seconds=seconds)
            with shared.write() as connection:
                settle(connection, DEFAULT_ORG, now)
                best = max(naive(item, now) for item in rows)
                first = first_in_queue(connection, DEFAULT_ORG, "ann", now)[0]
                page = open_by_priority(connection, DEFAULT_ORG, now, 50)
            assert naive(first.id, now) == pytest.approx(best, abs=1e-9)
            assert first.priority == pytest.approx(best, abs=1e-7)
            values = [naive(each.id, now) for each in page]
            assert len(values) == len(rows)
            assert all(later <= before + 1e-9 for before, later in itertools.pairwise(values))
        with shared.write() as connection:
            claimed = claim_first(connection, DEFAULT_ORG, "ann", now, now + HOUR)
        assert claimed is not None
        assert naive(claimed.id, now) == pytest.approx(best, abs=1e-9)
        with shared.read() as connection:
            status = select(review_items.c.status).where(review_items.c.id == claimed.id)
            assert connection.execute(status).scalar() == "in_review"

    holds()
