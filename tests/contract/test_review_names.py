"""Whoever reviews sees who has an item by name, although they may not list members: the same on both databases."""

from pathlib import Path

import pytest

from docmill.model.errors import Forbidden
from docmill.model.people import Role
from docmill.model.review import AlreadyClaimed, AlreadyDecided, NotYours, ReviewStatus
from docmill.people.audit import AuditTrail
from tests.contract.desk import BOSS, Desk, extraction
from tests.contract.town import Town


def test_an_item_tells_by_name_who_has_it_and_who_decided(town: Town, tmp_path: Path) -> None:
    desk = Desk(town.database, tmp_path)
    mia, vic = (town.principal(town.member(Role.REVIEWER, name)) for name in ("Mia", "Vic"))
    with pytest.raises(Forbidden):
        town.people.list(vic)
    item = desk.slip(extraction(number="7", total="10.00"))
    given = desk.review.assign(town.ann, item, to=mia.id)
    assert (given.assigned_to, given.assigned_to_name) == (mia.id, "Mia")
    claimed = desk.review.claim(mia, item)
    assert (claimed.claimed_by, claimed.claimed_by_name) == (mia.id, "Mia")
    with pytest.raises(AlreadyClaimed, match="by Mia until"):
        desk.review.claim(vic, item)
    with pytest.raises(NotYours, match="not claimed by Vic: Mia has it"):
        desk.review.correct(vic, item, "total", "12.00")
    desk.review.correct(mia, item, "total", "12.00")
    seen = desk.review.get(vic, item)
    assert (seen.item.claimed_by_name, seen.item.assigned_to_name, seen.item.decided_by_name) == ("Mia", "Mia", None)
    changed = {field.path: (field.changed_by, field.changed_by_name) for field in seen.fields}
    assert changed["total"] == (mia.id, "Mia")
    assert changed["number"] == (None, None)
    assert [each.claimed_by_name for each in desk.review.list(vic)] == ["Mia"]
    assert [each.assigned_to_name for each in desk.review.list(vic, assigned_to=mia.id)] == ["Mia"]
    decided = desk.review.approve(mia, item).item
    assert (decided.decided_by, decided.decided_by_name, decided.claimed_by_name) == (mia.id, "Mia", None)
    assert desk.review.get(vic, item).item.decided_by_name == "Mia"
    with pytest.raises(AlreadyDecided, match="is corrected by Mia"):
        desk.review.claim(vic, item)
    desk.close()


def test_who_has_left_is_still_called_by_their_name(town: Town, tmp_path: Path) -> None:
    desk = Desk(town.database, tmp_path)
    desk.recorder = AuditTrail()
    desk.review = desk.service()
    mia, vic = (town.principal(town.member(Role.REVIEWER, name)) for name in ("Mia", "Vic"))
    item = desk.slip(extraction(number="7", total="10.00"))
    desk.review.claim(mia, item)
    desk.review.correct(mia, item, "total", "12.00")
    town.people.remove(town.ann, mia.id)
    # Somebody else goes on, and every answer names whoever was there before.
    desk.review.claim(vic, item)
    desk.review.confirm(vic, item, ["number"])
    fields = {field.path: field.changed_by_name for field in desk.review.get(vic, item).fields}
    assert fields == {"total": "Mia", "number": "Vic"}
    desk.review.approve(vic, item)
    town.people.remove(town.ann, vic.id)
    view = desk.review.get(town.ann, item)
    assert (view.item.decided_by, view.item.decided_by_name) == (vic.id, "Vic")
    assert {field.path: field.changed_by_name for field in view.fields} == {"total": "Mia", "number": "Vic"}
    assert [each.decided_by_name for each in desk.review.list(town.ann, status=ReviewStatus.CORRECTED)] == ["Vic"]
    desk.close()


def test_a_key_is_named_also_when_it_is_revoked_and_whoever_has_no_id_as_they_are_called(
    town: Town, tmp_path: Path
) -> None:
    desk = Desk(town.database, tmp_path)
    key, token = town.keys.create(town.ann, "robot", role=Role.REVIEWER)
    robot = town.at_door.authenticate(token)
    assert robot is not None
    first, second = desk.put(2)
    desk.review.claim(robot, first)
    assert desk.review.get(town.ann, first).item.claimed_by_name == "robot"
    desk.review.reject(robot, first, "Blank.")
    town.keys.revoke(town.ann, key.id)
    assert desk.review.get(town.ann, first).item.decided_by_name == "robot"
    desk.review.assign(BOSS, second, to="mia")
    assert desk.review.get(town.ann, second).item.assigned_to_name == "mia"
    desk.close()


def test_a_name_of_another_organisation_is_not_told(town: Town, tmp_path: Path) -> None:
    desk = Desk(town.database, tmp_path)
    (item,) = desk.put(1)
    desk.review.assign(town.ann, item, to=town.theo.id)
    assert desk.review.get(town.ann, item).item.assigned_to_name is None
    desk.close()
