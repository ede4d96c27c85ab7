"""The queue of review: who is first, who gets what, and what passes by itself, on both databases."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, insert, select

from docmill.db.database import Database
from docmill.db.tables import review_items
from docmill.model.errors import Conflict, Forbidden, InvalidInput, NotFound
from docmill.model.ids import DEFAULT_ORG
from docmill.model.people import Role
from docmill.model.review import (
    REVIEW_TRANSITIONS,
    AlreadyClaimed,
    NotYours,
    ReviewStatus,
    SlaState,
    VersionConflict,
)
from docmill.review.priority import breakdown
from docmill.review.queue import claim_first, first_in_queue, open_by_priority, settle
from docmill.services.review import ItemSummary
from docmill.services.review_chores import review_chores
from docmill.testing.plans import profile
from tests.contract.desk import ANN, BOB, BOSS, Desk, age, extraction, item_row, person

HOUR = timedelta(hours=1)


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
