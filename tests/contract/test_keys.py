"""API keys, and the one door for keys and sessions: the same promises on both databases."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier

import pytest
from sqlalchemy import select, update

from docmill.db.clock import database_now
from docmill.db.tables import api_keys, reviewers
from docmill.model.errors import Forbidden, InvalidInput, NotFound
from docmill.model.people import Permission, Principal, Role
from docmill.services.audit import Audit
from docmill.services.keys import ApiKey, Door, Keys
from docmill.services.people import People
from docmill.services.sessions import Sessions
from tests.contract.desk import Desk
from tests.contract.town import PASSWORD, Town


def test_a_key_tells_who_it_is_and_what_it_may(town: Town) -> None:
    key, token = town.keys.create(town.ann, "uploader", scopes=["documents.write"])
    assert town.at_door.authenticate(token) == Principal(
        org_id=town.ours,
        kind="key",
        id=key.id,
        name="uploader",
        role=Role.SERVICE,
        scopes=frozenset({Permission.DOCUMENTS_WRITE}),
    )


def test_a_key_has_no_more_than_its_role(town: Town) -> None:
    with pytest.raises(InvalidInput, match=r"may not have members\.manage"):
        town.keys.create(town.ann, "x", scopes=["members.manage"])
    with pytest.raises(InvalidInput, match="may not have nothing"):
        town.keys.create(town.ann, "x", scopes=[])
    with pytest.raises(InvalidInput, match="may not have everything"):
        town.keys.create(town.ann, "x", scopes=["everything"])


def test_nobody_makes_a_key_that_may_more_than_they(town: Town) -> None:
    few = frozenset({Permission.KEYS_MANAGE, Permission.DOCUMENTS_READ})
    narrow = Principal(org_id=town.ours, kind="key", id="k", name="narrow", role=Role.ADMIN, scopes=few)
    with pytest.raises(Forbidden, match=r"documents\.write"):
        town.keys.create(narrow, "wide")
    assert town.keys.create(narrow, "same", scopes=["documents.read"])


def test_of_two_who_revoke_a_key_at_once_one_does(town: Town) -> None:
    keys = [town.keys.create(town.ann, f"key-{number}")[0].id for number in range(10)]
    for key in keys:
        begin = Barrier(2)

        def revoke(number: int, key: str = key, begin: Barrier = begin) -> ApiKey:
            begin.wait()
            return town.keys.revoke(town.ann, key)

        with ThreadPoolExecutor(2) as pool:
            one, other = pool.map(revoke, range(2))
        assert one.revoked_at == other.revoked_at
    recorded = Audit(town.database, town.ours).list(town.ann, action="key.revoke")
    assert sorted(entry.subject_id for entry in recorded) == sorted(keys)


def test_a_key_ends_by_time_and_by_being_revoked(town: Town) -> None:
    key, token = town.keys.create(town.ann, "a", expires_in=timedelta(days=1))
    assert town.at_door.authenticate(token)
    with town.database.write() as connection:
        connection.execute(update(api_keys).values(expires_at=api_keys.c.created_at))
    assert town.at_door.authenticate(token) is None
    _, other = town.keys.create(town.ann, "b")
    assert town.keys.revoke(town.ann, "b").revoked_at is not None
    assert town.at_door.authenticate(other) is None
    assert {each.name for each in town.keys.list(town.ann)} == {"a", "b"}
    assert town.keys.revoke(town.ann, key.hint).revoked_at is not None


def test_only_whoever_has_the_secret_hears_how_a_key_ended(town: Town) -> None:
    door = Door(town.at_door, town.sessions)
    (_, living), (_, late), (_, gone) = (town.keys.create(town.ann, name) for name in ("living", "late", "gone"))
    with town.database.write() as connection:
        past = api_keys.c.created_at
        connection.execute(update(api_keys).where(api_keys.c.name != "living").values(expires_at=past))
    town.keys.revoke(town.ann, "gone")
    found = [door.ended(token) for token in (living, late, gone, late + "x", late[:-1], "dmk_", "", "dms_x")]
    told = [None if each is None else (each.name, each.how) for each in found]
    assert told == [None, ("late", "expired"), ("gone", "revoked"), None, None, None, None, None]


def test_it_is_written_down_when_a_key_was_used(town: Town) -> None:
    _, token = town.keys.create(town.ann, "a")
    assert town.keys.list(town.ann)[0].used_at is None
    town.at_door.authenticate(token)
    assert town.keys.list(town.ann)[0].used_at is not None


@pytest.mark.parametrize("by_its_maker_leaving", [False, True])
def test_what_a_revoked_key_had_to_review_is_for_anybody(
    town: Town, tmp_path: Path, by_its_maker_leaving: bool
) -> None:
    desk = Desk(town.database, tmp_path)
    maker = town.member(Role.ADMIN, "Max")
    key, token = town.keys.create(town.principal(maker), "robot", role=Role.REVIEWER)
    robot = town.at_door.authenticate(token)
    assert robot is not None
    assigned, claimed, postponed, elsewhere, decided = desk.put(5)
    desk.review.enroll(town.ann, key.id)
    for item in (assigned, claimed, postponed):
        desk.review.assign(town.ann, item, to=key.id)
    for item in (claimed, postponed, decided):
        desk.review.claim(robot, item)
    with town.database.read() as connection:
        tomorrow = database_now(connection) + timedelta(days=1)
    desk.review.postpone(robot, postponed, tomorrow)
    desk.review.reject(robot, decided, "Blank.")
    desk.review.claim(town.ann, elsewhere)
    if by_its_maker_leaving:
        town.people.remove(town.ann, maker.id)
    else:
        town.keys.revoke(town.ann, key.id)
    desk.review.resume(town.ann, postponed)
    for item in (assigned, claimed, postponed):
        freed = desk.review.get(town.ann, item).item
        assert (freed.assigned_to, freed.claimed_by) == (None, None)
        assert desk.review.claim(town.ann, item).claimed_by == town.ann.id
    assert desk.review.get(town.ann, elsewhere).item.claimed_by == town.ann.id
    assert desk.review.get(town.ann, decided).item.decided_by == key.id
    with town.database.read() as connection:
        assert key.id not in connection.execute(select(reviewers.c.reviewer)).scalars().all()
    desk.close()


def test_an_administrator_revokes_no_owners_key(town: Town) -> None:
    admin = town.principal(town.member(Role.ADMIN))
    key, token = town.keys.create(town.ann, "crown", role=Role.OWNER)
    with pytest.raises(Forbidden, match="may not revoke"):
        town.keys.revoke(admin, key.id)
    assert town.at_door.authenticate(token) is not None


def test_keys_of_others_are_neither_seen_nor_revoked(town: Town) -> None:
    theirs = Keys(town.database, town.theirs)
    key, token = theirs.create(town.theo, "theirs")
    assert town.keys.list(town.ann) == []
    for name in (key.id, key.hint, "theirs"):
        with pytest.raises(NotFound):
            town.keys.revoke(town.ann, name)
    assert town.at_door.authenticate(token) is not None


@pytest.mark.parametrize("token", ["", "dmk_", "dmk_x", "Bearer", "dmk_\udcff"])
def test_what_is_no_key_is_nobody(town: Town, token: str) -> None:
    assert town.at_door.authenticate(token) is None


def test_one_door_for_keys_and_sessions(town: Town) -> None:
    door = Door(town.at_door, town.sessions)
    _, key = town.keys.create(town.ann, "a")
    session = town.sessions.sign_in("ann@ours.example", PASSWORD).token
    kinds = [None if found is None else found.kind for found in map(door.authenticate, (key, session, "x"))]
    assert kinds == ["key", "user", None]


def test_people_without_a_view_of_their_own_use_the_same_sessions(town: Town) -> None:
    again = Sessions(town.database, town.passwords)
    token = town.sessions.sign_in("ann@ours.example", PASSWORD).token
    assert again.authenticate(token) == town.ann
    assert People(town.database, town.theirs).list(town.theo)[0].email == "theo@theirs.example"
