"""Founding, invitations and members: the same promises on both databases."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier

import pytest
from sqlalchemy import delete, select, text, update

from docmill.db.clock import database_now
from docmill.db.tables import (
    api_keys,
    audit_log,
    invitations,
    memberships,
    reviewers,
    sessions,
    users,
)
from docmill.model.errors import Conflict, Forbidden, InvalidInput, NotFound
from docmill.model.ids import DEFAULT_ORG
from docmill.model.people import Role
from docmill.services.organisations import Organisations
from docmill.services.people import People
from docmill.services.sessions import InvitationInvalid, SignInFailed
from docmill.testing.waiting import until
from tests.contract.desk import Desk
from tests.contract.town import PASSWORD, Town

# Founding.


def test_the_organisation_of_the_installation_keeps_what_was_there_before_it(town: Town) -> None:
    assert town.ours == DEFAULT_ORG
    assert town.ann.role is Role.OWNER


def test_an_installation_is_founded_once(town: Town) -> None:
    with pytest.raises(Conflict, match="belongs to 'Ours' already"):
        Organisations(town.database).found("Again", "eve@example.org", "Eve")


def test_two_organisations_do_not_share_a_name(town: Town) -> None:
    with pytest.raises(InvalidInput, match="choose another name"):
        Organisations(town.database).found("OURS", "eve@example.org", "Eve", another=True)


@pytest.mark.parametrize("email", ["", "ann", "a@b@c", "a b@c", "a\nb@c", "<a@b>"])
def test_what_is_no_address_is_refused(town: Town, email: str) -> None:
    with pytest.raises(InvalidInput, match="no email address"):
        town.people.invite(town.ann, email, Role.VIEWER)


# Invitations.


def test_an_invitation_is_good_once(town: Town) -> None:
    _, token = town.people.invite(town.ann, "mia@ours.example", Role.REVIEWER)
    assert town.sessions.accept(token, PASSWORD, name="Mia").principal.role is Role.REVIEWER
    with pytest.raises(InvitationInvalid):
        town.sessions.accept(token, PASSWORD)


def test_an_invitation_ends(town: Town) -> None:
    _, token = town.people.invite(town.ann, "mia@ours.example", Role.VIEWER)
    with town.database.write() as connection:
        connection.execute(update(invitations).values(expires_at=invitations.c.created_at))
    with pytest.raises(InvitationInvalid):
        town.sessions.accept(token, PASSWORD)


def test_a_withdrawn_invitation_opens_nothing(town: Town) -> None:
    made, token = town.people.invite(town.ann, "mia@ours.example", Role.VIEWER)
    town.people.withdraw(town.ann, made.id)
    with pytest.raises(InvitationInvalid):
        town.sessions.accept(token, PASSWORD)


def test_a_second_invitation_ends_the_first(town: Town) -> None:
    _, first = town.people.invite(town.ann, "mia@ours.example", Role.ADMIN)
    _, second = town.people.invite(town.ann, "mia@ours.example", Role.VIEWER)
    with pytest.raises(InvitationInvalid):
        town.sessions.accept(first, PASSWORD)
    assert town.sessions.accept(second, PASSWORD).principal.role is Role.VIEWER


def test_no_secret_is_stored(town: Town) -> None:
    _, invited = town.people.invite(town.ann, "mia@ours.example", Role.VIEWER)
    _, key = town.keys.create(town.ann, "uploader")
    session = town.sessions.sign_in("ann@ours.example", PASSWORD).token
    with town.database.read() as connection:
        stored = [
            str(row) for table in (invitations, api_keys, sessions, users) for row in connection.execute(select(table))
        ]
    assert not [secret for secret in (invited, key, session) for row in stored if secret in row]


@pytest.mark.parametrize("password", ["short", "x" * 201, "aaaaaaaaaaaa", "mia@ours.example"])
def test_a_password_that_will_not_do_is_refused_and_the_invitation_stays_good(town: Town, password: str) -> None:
    _, token = town.people.invite(town.ann, "mia@ours.example", Role.VIEWER)
    with pytest.raises(InvalidInput):
        town.sessions.accept(token, password)
    assert town.sessions.accept(token, PASSWORD)


def test_somebody_with_a_password_proves_it_to_join_another_organisation(town: Town) -> None:
    _, token = town.people.invite(town.ann, "theo@theirs.example", Role.VIEWER)
    with pytest.raises(SignInFailed):
        town.sessions.accept(token, "another password")
    joined = town.sessions.accept(token, PASSWORD).principal
    assert (joined.org_id, joined.id, joined.role) == (town.ours, town.theo.id, Role.VIEWER)
    there = town.sessions.sign_in("theo@theirs.example", PASSWORD, organisation="Theirs").principal
    assert (there.org_id, there.role) == (town.theirs, Role.OWNER)


def test_no_organisation_chooses_the_password_that_opens_another(town: Town) -> None:
    _, token = town.people.invite(town.ann, "theo@theirs.example", Role.VIEWER)
    town.sessions.accept(token, PASSWORD)
    _, way = town.people.reset(town.ann, "theo@theirs.example")
    with pytest.raises(Forbidden, match="whoever runs this installation"):
        town.sessions.accept(way, "chosen by an intruder")
    assert town.sessions.sign_in("theo@theirs.example", PASSWORD, organisation="Theirs")
    # Whoever runs the installation may, and the refused way in was not used up by the attempt.
    _, way = town.people.reset(town.system(town.ours), "theo@theirs.example")
    town.sessions.accept(way, "chosen by theo himself")
    assert town.sessions.sign_in("theo@theirs.example", "chosen by theo himself", organisation="Theirs")


def test_who_has_not_come_in_yet_is_not_taken_over_by_an_invitation_to_another_organisation(town: Town) -> None:
    founded = Organisations(town.database).found("Third", "eve@third.example", "Eve", another=True)
    _, token = town.people.invite(town.ann, "eve@third.example", Role.VIEWER)
    with pytest.raises(Forbidden):
        town.sessions.accept(token, "chosen by an intruder")
    assert town.sessions.accept(founded.token, PASSWORD).principal.role is Role.OWNER
    assert town.sessions.accept(token, PASSWORD).principal.org_id == town.ours


def test_a_way_to_a_new_password_ends_with_the_role_it_was_made_for(town: Town) -> None:
    admin = town.principal(town.member(Role.ADMIN, "Max"))
    mia = town.member(Role.VIEWER)
    _, way = town.people.reset(admin, mia.id)
    town.people.set_role(town.ann, mia.id, Role.OWNER)
    with pytest.raises(InvitationInvalid):
        town.sessions.accept(way, "chosen by an intruder")


def test_two_that_make_the_same_person_at_once_make_one(town: Town) -> None:
    ways = [town.people.invite(town.ann, "mia@ours.example", Role.VIEWER)[1]]
    theirs = People(town.database, town.theirs)
    ways.append(theirs.invite(town.theo, "mia@ours.example", Role.VIEWER)[1])
    hash_one = town.passwords.hash
    met = Barrier(2, timeout=60)

    def hash_both(password: str) -> str:
        # Both have seen that there is nobody yet.
        met.wait()
        return hash_one(password)

    town.passwords.hash = hash_both  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as threads:
        attempts = [
            threads.submit(town.sessions.accept, way, f"the password {number}") for number, way in enumerate(ways)
        ]
    errors = [type(each.exception()) for each in attempts]
    # The second has proven nothing about the password that the first one chose.
    assert sorted(map(str, errors)) == sorted(map(str, [type(None), SignInFailed]))
    with town.database.read() as connection:
        assert len(connection.execute(select(users).where(users.c.email == "mia@ours.example")).all()) == 1


def test_who_accepts_is_recorded_under_the_name_they_have(town: Town) -> None:
    _, token = town.people.invite(town.ann, "theo@theirs.example", Role.VIEWER)
    assert town.sessions.accept(token, PASSWORD, name="Ann").principal.name == "Theo"
    with town.database.read() as connection:
        named = connection.execute(select(audit_log.c.actor_name).where(audit_log.c.actor_id == town.theo.id)).scalars()
        assert set(named) == {"Theo"}


def test_a_member_is_not_invited_again(town: Town) -> None:
    with pytest.raises(Conflict, match="member already"):
        town.people.invite(town.ann, "ANN@ours.example", Role.VIEWER)


def test_an_administrator_makes_no_owner(town: Town) -> None:
    admin = town.principal(town.member(Role.ADMIN))
    with pytest.raises(Forbidden):
        town.people.invite(admin, "eve@example.org", Role.OWNER)
    with pytest.raises(Forbidden):
        town.people.set_role(admin, admin.id, Role.OWNER)
    with pytest.raises(Forbidden):
        town.people.reset(admin, "ann@ours.example")
    with pytest.raises(Forbidden):
        town.keys.create(admin, "crown", role=Role.OWNER)


@pytest.mark.parametrize("role", [Role.REVIEWER, Role.VIEWER, Role.SERVICE])
def test_others_do_not_manage_members(town: Town, role: Role) -> None:
    somebody = town.principal(town.member(role))
    with pytest.raises(Forbidden):
        town.people.invite(somebody, "eve@example.org", Role.VIEWER)
    with pytest.raises(Forbidden):
        town.people.list(somebody)


# Members.


def test_the_last_owner_stays(town: Town) -> None:
    with pytest.raises(Conflict, match="only owner"):
        town.people.remove(town.ann, town.ann.id)
    with pytest.raises(Conflict, match="only owner"):
        town.people.set_role(town.ann, town.ann.id, Role.ADMIN)
    other = town.member(Role.OWNER)
    town.people.remove(town.principal(other), town.ann.id)
    assert [each.id for each in town.people.list(town.principal(other))] == [other.id]


def test_no_way_in_leads_back_for_a_member_who_was_removed(town: Town) -> None:
    mia = town.member(Role.ADMIN)
    _, way = town.people.reset(town.ann, mia.id)
    town.people.remove(town.ann, mia.id)
    with pytest.raises(InvitationInvalid):
        town.sessions.accept(way, "a new and long one")
    assert [each.email for each in town.people.list(town.ann)] == ["ann@ours.example"]


def test_to_choose_a_password_makes_nobody_a_member(town: Town) -> None:
    mia = town.member(Role.ADMIN)
    _, way = town.people.reset(town.ann, mia.id)
    with town.database.write() as connection:
        connection.execute(delete(sessions).where(sessions.c.user_id == mia.id))
        connection.execute(delete(memberships).where(memberships.c.user_id == mia.id))
    with pytest.raises(InvitationInvalid):
        town.sessions.accept(way, "a new and long one")
    assert [each.email for each in town.people.list(town.ann)] == ["ann@ours.example"]


def test_keys_end_with_the_membership_of_whoever_made_them(town: Town) -> None:
    max_ = town.principal(town.member(Role.ADMIN, "Max"))
    _, his = town.keys.create(max_, "his", role=Role.ADMIN)
    by_key = town.at_door.authenticate(his)
    assert by_key is not None
    _, its = town.keys.create(by_key, "its")
    _, hers = town.keys.create(town.ann, "hers")
    town.people.remove(town.ann, max_.id)
    assert [town.at_door.authenticate(each) is not None for each in (his, its, hers)] == [False, False, True]
    with town.database.read() as connection:
        done = connection.execute(select(audit_log.c.action).order_by(audit_log.c.number)).scalars().all()
    assert done[-3:] == ["member.remove", "key.revoke", "key.revoke"]


def test_keys_that_a_member_could_not_make_any_more_end_with_the_role(town: Town) -> None:
    owner = town.principal(town.member(Role.OWNER))
    _, crown = town.keys.create(owner, "crown", role=Role.OWNER)
    _, plain = town.keys.create(owner, "plain")
    town.people.set_role(town.ann, owner.id, Role.ADMIN)
    assert [town.at_door.authenticate(each) is not None for each in (crown, plain)] == [False, True]
    town.people.set_role(town.ann, owner.id, Role.REVIEWER)
    assert town.at_door.authenticate(plain) is None


def test_a_member_who_becomes_owner_meanwhile_is_not_removed_by_an_administrator(town: Town) -> None:
    admin = town.principal(town.member(Role.ADMIN, "Max"))
    mia = town.member(Role.VIEWER)
    with ThreadPoolExecutor(1) as threads:
        with town.database.write() as connection:
            promoted = update(memberships).where(memberships.c.user_id == mia.id)
            connection.execute(promoted.values(role=Role.OWNER.value))
            removing = threads.submit(town.people.remove, admin, mia.id)
            if town.database.kind == "postgresql":
                until(lambda: waiting(town), 60, what="the removal to wait for the promotion")
        with pytest.raises(Forbidden):
            removing.result(60)
    assert mia.id in {each.id for each in town.people.list(town.ann)}


def waiting(town: Town) -> bool:
    """Whether somebody waits for a row that somebody else holds."""
    held = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    with town.database.read() as connection:
        return connection.execute(text(held)).first() is not None


def test_members_of_others_are_not_found(town: Town) -> None:
    with pytest.raises(NotFound):
        town.people.get(town.ann, town.theo.id)
    with pytest.raises(NotFound):
        town.people.set_role(town.ann, "theo@theirs.example", Role.VIEWER)
    with pytest.raises(NotFound):
        town.people.remove(town.ann, town.theo.id)


def test_nobody_acts_for_an_organisation_they_do_not_belong_to(town: Town) -> None:
    with pytest.raises(Forbidden):
        town.people.list(town.theo)
    with pytest.raises(Forbidden):
        town.keys.list(town.theo)


def test_a_reviewer_is_enrolled_with_the_membership_and_discharged_with_its_end(town: Town) -> None:
    mia = town.member(Role.REVIEWER)
    assert enrolled(town) == {mia.id}
    town.people.set_role(town.ann, mia.id, Role.VIEWER)
    assert enrolled(town) == set()
    town.people.set_role(town.ann, mia.id, Role.REVIEWER)
    town.people.remove(town.ann, mia.id)
    assert enrolled(town) == set()


def enrolled(town: Town) -> set[str]:
    with town.database.read() as connection:
        return set(connection.execute(select(reviewers.c.reviewer)).scalars())


@pytest.mark.parametrize("role", [None, Role.VIEWER])
def test_what_somebody_has_claimed_or_postponed_is_for_anybody_when_they_review_no_more(
    town: Town, tmp_path: Path, role: Role | None
) -> None:
    desk = Desk(town.database, tmp_path)
    mia = town.member(Role.REVIEWER)
    claimed, postponed, elsewhere = desk.put(3)
    for item in (claimed, postponed):
        desk.review.assign(town.ann, item, to=mia.id)
        desk.review.claim(town.principal(mia), item)
    with town.database.read() as connection:
        tomorrow = database_now(connection) + timedelta(days=1)
    desk.review.postpone(town.principal(mia), postponed, tomorrow)
    desk.review.claim(town.ann, elsewhere)
    if role is None:
        town.people.remove(town.ann, mia.id)
    else:
        town.people.set_role(town.ann, mia.id, role)
    desk.review.resume(town.ann, postponed)
    for item in (claimed, postponed):
        assert desk.review.claim(town.ann, item).claimed_by == town.ann.id
    assert desk.review.get(town.ann, elsewhere).item.claimed_by == town.ann.id
    desk.close()


def test_a_reviewer_who_becomes_an_administrator_keeps_what_they_are_looking_at(town: Town, tmp_path: Path) -> None:
    desk = Desk(town.database, tmp_path)
    mia = town.member(Role.REVIEWER)
    (item,) = desk.put(1)
    desk.review.claim(town.principal(mia), item)
    town.people.set_role(town.ann, mia.id, Role.ADMIN)
    assert desk.review.get(town.ann, item).item.claimed_by == mia.id
    desk.close()
