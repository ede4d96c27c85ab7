"""What reviewers do to fields, and what becomes of it: locks, undo, required fields, decisions; on both databases."""

from dataclasses import replace

import pytest
from sqlalchemy import select

from docmill.db.tables import documents, jobs, review_items
from docmill.model.errors import Conflict, Forbidden, InvalidInput, NotFound
from docmill.model.ids import new_id
from docmill.model.people import Role
from docmill.model.review import AlreadyDecided, ChecksFail, FieldState, RequiredMissing, ReviewStatus, VersionConflict
from docmill.services.review import FieldView
from tests.contract.desk import ANN, BOSS, Desk, extraction, person

LINES = ({"description": "Paper", "amount": "5.00"}, {"description": "Ink", "amount": "7.50"})


def claimed(desk: Desk, **fields: str) -> str:
    """An item in Ann's hands."""
    item = desk.slip(extraction(LINES, **{"number": "4711", "total": "12.50", **fields}))
    desk.review.claim(ANN, item)
    return item


def field(desk: Desk, item: str, path: str) -> FieldView:
    return next(each for each in desk.review.get(ANN, item).fields if each.path == path)


def test_a_correction_is_locked_in_the_document_and_told_with_what_the_machine_read(desk: Desk) -> None:
    item = claimed(desk)
    seen = desk.review.correct(ANN, item, "total", "1.300,5")
    total = field(desk, item, "total")
    assert (total.value, total.state, total.locked) == ("1300.50", FieldState.CORRECTED, True)
    assert (total.extracted, total.confidence, total.evidence) == ("12.50", 0.95, ())
    assert total.changed_by == "ann"
    assert desk.locked(item) == {"total": "1300.50"}
    assert seen.version == 3
    assert field(desk, item, "number").evidence[0]["page"] == 1


def test_rules_are_held_against_what_is_corrected(desk: Desk) -> None:
    item = claimed(desk)
    desk.review.correct(ANN, item, "total", "13.00")
    view = desk.review.get(ANN, item)
    assert [each["name"] for each in view.checks if not each["passed"]] == ["adds_up"]
    assert "adds_up" in field(desk, item, "total").failed
    desk.review.correct(ANN, item, "line_items[1].amount", "8.00")
    assert "adds_up" in field(desk, item, "total").passed
    # All of a table is the person's once a cell of it is.
    assert desk.locked(item)["line_items"] == [
        {"description": "Paper", "amount": "5.00"},
        {"description": "Ink", "amount": "8.00"},
    ]
    assert field(desk, item, "line_items[0].amount").locked


def test_fields_and_rows_are_added_and_cleared(desk: Desk) -> None:
    item = claimed(desk)
    assert "due_date" in desk.review.get(ANN, item).addable
    desk.review.add(ANN, item, "due_date", "31 December 2026")
    with pytest.raises(Conflict, match="correct it instead"):
        desk.review.add(ANN, item, "due_date", "2027-01-01")
    desk.review.add(ANN, item, "line_items[2].description", "Post")
    desk.review.add(ANN, item, "line_items[2].amount", "1")
    desk.review.clear(ANN, item, "line_items[0]")
    assert field(desk, item, "due_date").state is FieldState.ADDED
    assert desk.locked(item) == {
        "due_date": "2026-12-31",
        "line_items": [{"description": "Ink", "amount": "7.50"}, {"description": "Post", "amount": "1.00"}],
    }
    desk.review.clear(ANN, item, "due_date")
    assert desk.locked(item)["due_date"] is None


def test_a_value_that_is_none_is_refused_with_an_example(desk: Desk) -> None:
    item = claimed(desk)
    for path, value, told in (
        ("total", "a lot", "1234.50"),
        ("due_date", "soon", "2026-11-16"),
        ("total", "  ", "clear it"),
        ("total", "1\0", "NUL"),
        ("line_items[0]", "x", "one of its cells"),
        ("line_items[9].amount", "1", r"line_items\[2\]"),
        ("a b c[", "x", "names no field"),
    ):
        with pytest.raises(InvalidInput, match=told):
            desk.review.correct(ANN, item, path, value)
    with pytest.raises(NotFound, match="Known: number, total"):
        desk.review.correct(ANN, item, "totl", "1")
    with pytest.raises(NotFound, match="nothing at"):
        desk.review.clear(ANN, item, "due_date")
    assert desk.locked(item) == {}


def test_confirming_locks_what_the_machine_read(desk: Desk) -> None:
    found = extraction(number="4711", total="12.50")
    unsure = replace(found.fields["total"], confidence=0.3)
    found = replace(found, fields={**found.fields, "total": unsure})
    item = desk.slip(found)
    desk.review.claim(ANN, item)
    assert [each.path for each in desk.review.get(ANN, item).fields if each.needs_review] == ["total"]
    assert desk.review.confirm(ANN, item).fields_to_review == 0
    total = field(desk, item, "total")
    assert (total.state, total.locked, total.needs_review) == (FieldState.CONFIRMED, True, False)
    assert total.evidence
    assert desk.locked(item) == {"total": "12.50"}
    assert desk.review.approve(ANN, item).item.status is ReviewStatus.APPROVED


def test_everything_can_be_undone_until_approval_and_nothing_after(desk: Desk) -> None:
    item = claimed(desk)
    desk.review.correct(ANN, item, "total", "13.00")
    desk.review.correct(ANN, item, "total", "14.00")
    desk.review.add(ANN, item, "due_date", "2026-12-31")
    desk.review.clear(ANN, item, "line_items[0]")
    desk.review.undo(ANN, item)
    assert field(desk, item, "line_items[0].amount").value == "5.00"
    assert "line_items" not in desk.locked(item)
    desk.review.undo(ANN, item, "total")
    assert desk.locked(item) == {"total": "13.00", "due_date": "2026-12-31"}
    desk.review.undo(ANN, item)
    assert not [each for each in desk.review.get(ANN, item).fields if each.path == "due_date"]
    desk.review.undo(ANN, item)
    total = field(desk, item, "total")
    assert (total.value, total.state, total.locked) == ("12.50", FieldState.EXTRACTED, False)
    assert desk.locked(item) == {}
    with pytest.raises(Conflict, match="nothing to undo"):
        desk.review.undo(ANN, item)
    desk.review.correct(ANN, item, "total", "15.00")
    desk.review.approve(ANN, item)
    with pytest.raises(AlreadyDecided):
        desk.review.undo(ANN, item)


def test_the_history_of_a_field_tells_who_did_what(desk: Desk) -> None:
    item = claimed(desk)
    desk.review.correct(ANN, item, "total", "13.00")
    desk.review.confirm(ANN, item, ["number"])
    desk.review.undo(ANN, item, "total")
    told = desk.review.history(BOSS, item, "total")
    assert [(each.action, each.by) for each in told] == [("correct", "ann"), ("undo", "ann")]
    assert told[0].before is not None
    assert told[0].after is not None
    assert (told[0].before["value"], told[0].after["value"]) == ("12.50", "13.00")
    assert told[0].undone_at is not None
    assert len(desk.review.history(BOSS, item)) == 3


def test_approval_demands_the_required_fields(desk: Desk) -> None:
    item = desk.slip(extraction(total="12.50"))
    desk.review.claim(ANN, item)
    assert desk.review.get(ANN, item).missing == ["number"]
    with pytest.raises(RequiredMissing, match="number"):
        desk.review.approve(ANN, item)
    desk.review.add(ANN, item, "number", "4711")
    desk.review.clear(ANN, item, "total")
    with pytest.raises(RequiredMissing, match="total"):
        desk.review.approve(ANN, item)
    desk.review.undo(ANN, item)
    assert desk.review.approve(ANN, item).item.status is ReviewStatus.CORRECTED


def test_an_approval_tells_which_checks_fail_and_is_refused_if_that_is_asked_for(desk: Desk) -> None:
    item = claimed(desk)
    desk.review.correct(ANN, item, "total", "13.00")
    with pytest.raises(ChecksFail, match=r"adds_up: .*13\.00") as refused:
        desk.review.approve(ANN, item, anyway=False)
    assert refused.value.details["failing"] == ["adds_up"]
    assert desk.review.get(ANN, item).item.status is ReviewStatus.IN_REVIEW
    decided = desk.review.approve(ANN, item)
    assert decided.item.status is ReviewStatus.CORRECTED
    assert [each["name"] for each in decided.failing] == ["adds_up"]
    sound = claimed(desk)
    assert desk.review.approve(ANN, sound, anyway=False).failing == []


def test_an_approval_is_a_correction_if_anything_was_changed_and_its_job_is_submitted_with_it(desk: Desk) -> None:
    plain, changed = claimed(desk), claimed(desk)
    untouched = desk.review.approve(ANN, plain)
    assert (untouched.item.status, untouched.job_ids) == (ReviewStatus.APPROVED, [])
    desk.review.correct(ANN, changed, "total", "13.00")
    decided = desk.review.approve(ANN, changed)
    assert (decided.item.status, decided.item.decided_by) == (ReviewStatus.CORRECTED, "ann")
    assert decided.item.claimed_by is None
    with desk.database.read() as connection:
        query = select(jobs.c.entity_id).where(jobs.c.id.in_(decided.job_ids))
        assert list(connection.execute(query).scalars()) == [decided.item.document_id]
    with pytest.raises(AlreadyDecided):
        desk.review.approve(ANN, changed)


def test_a_rejection_needs_a_reason(desk: Desk) -> None:
    item = claimed(desk)
    with pytest.raises(InvalidInput, match="reason"):
        desk.review.reject(ANN, item, "  ")
    decided = desk.review.reject(ANN, item, "not ours")
    assert (decided.item.status, decided.item.reason) == (ReviewStatus.REJECTED, "not ours")
    assert desk.recorded.actions[-1] == (
        "ann",
        "review.reject",
        item,
        {"status": "in_review"},
        {"status": "rejected", "reason": "not ours"},
    )


def test_a_refused_deed_leaves_nothing_behind(desk: Desk) -> None:
    item = claimed(desk)
    before = (desk.review.get(ANN, item), list(desk.recorded.actions))
    for deed in (
        lambda: desk.review.correct(ANN, item, "total", "13.00", version=1),
        lambda: desk.review.approve(ANN, item, version=99),
    ):
        with pytest.raises(VersionConflict):
            deed()
    after = desk.review.get(ANN, item)
    assert (after.fields, after.item.version, desk.recorded.actions) == (
        before[0].fields,
        before[0].item.version,
        before[1],
    )
    assert desk.review.history(ANN, item) == []


def test_duplicates_without_an_item_share_the_values_and_get_outputs_of_their_own(desk: Desk) -> None:
    item = claimed(desk)
    copy = new_id()
    with desk.database.write() as connection:
        original = desk.review.get(ANN, item).item.document_id
        row = connection.execute(select(documents).where(documents.c.id == original)).one()._asdict()
        connection.execute(documents.insert().values({**row, "id": copy, "duplicate_of": original}))
    assert desk.review.get(ANN, copy).item.id == item, "the original's item stands for it"
    desk.review.correct(ANN, item, "total", "13.00")
    decided = desk.review.approve(ANN, item)
    with desk.database.read() as connection:
        assert connection.execute(select(documents.c.locked).where(documents.c.id == copy)).scalar() == {
            "total": "13.00"
        }
        found = connection.execute(select(jobs.c.entity_id).where(jobs.c.id.in_(decided.job_ids))).scalars()
        assert sorted(found) == sorted([original, copy])


def test_comments_stay_in_order_and_name_their_field(desk: Desk) -> None:
    item = claimed(desk)
    desk.review.comment(ANN, item, "hard to read", path="total")
    desk.review.comment(BOSS, item, "as on the phone")
    with pytest.raises(NotFound, match="nowhere"):
        desk.review.comment(ANN, item, "hm", path="nowhere")
    told = desk.review.comments(ANN, item)
    assert [(each.by, each.path) for each in told] == [("ann", "total"), ("boss", None)]
    assert desk.review.get(ANN, item).comments == 2


def test_every_action_is_recorded_with_before_and_after(desk: Desk) -> None:
    item = claimed(desk)
    desk.review.correct(ANN, item, "total", "13.00")
    desk.review.release(ANN, item)
    assert desk.recorded.verbs == ["review.claim", "review.correct", "review.release"]
    assert desk.recorded.actions[1] == (
        "ann",
        "review.correct",
        item,
        {"path": "total", "value": "12.50", "state": "extracted"},
        {"path": "total", "value": "13.00", "state": "corrected"},
    )


def test_items_of_another_organisation_do_not_exist(desk: Desk) -> None:
    item = claimed(desk)
    other = new_id()
    with desk.database.write() as connection:
        connection.execute(review_items.update().values(org_id=other))
    with pytest.raises(NotFound):
        desk.review.get(ANN, item)
    with pytest.raises(NotFound):
        desk.review.correct(ANN, item, "total", "1.00")
    assert desk.review.list(ANN) == []
    stranger = replace(person("eve", Role.OWNER), org_id=other)
    with pytest.raises(Forbidden):
        desk.review.get(stranger, item)
