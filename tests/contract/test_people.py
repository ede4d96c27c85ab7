"""Members, invitations, sessions and keys: the same promises on both databases."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Barrier

import pytest
from sqlalchemy import delete, func, select, text, update

from docmill.db.database import Database
from docmill.db.tables import (
    api_keys,
    audit_log,
    invitations,
    memberships,
    review_items,
    reviewers,
    sessions,
    sign_in_limits,
    users,
)
from docmill.model.errors import Conflict, Forbidden, InvalidInput, NotFound
from docmill.model.ids import DEFAULT_ORG
from docmill.model.people import PERMISSIONS, Permission, Principal, Role
from docmill.people.limits import BY_ADDRESS, BY_EMAIL, WINDOW, SignInLimited
from docmill.services.keys import Door, Keys
from docmill.services.organisations import Organisations
from docmill.services.people import People
from docmill.services.people_chores import tidy
from docmill.services.sessions import InvitationInvalid, Sessions, SignInFailed
from docmill.testing.waiting import until
from tests.contract.desk import Desk
from tests.contract.town import PASSWORD, Town


@pytest.fixture
def town(database_url: str) -> Iterator[Town]:
    database = Database(database_url)
    yield Town(database)
    database.close()


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


def test_what_waits_for_a_member_who_leaves_waits_for_anybody(town: Town, tmp_path: Path) -> None:
    desk = Desk(town.database, tmp_path)
    mia = town.member(Role.REVIEWER)
    (item,) = desk.put(1)
    desk.review.assign(town.ann, item, to=mia.id)
    town.people.remove(town.ann, mia.id)
    with town.database.read() as connection:
        assert connection.execute(select(review_items.c.assigned_to)).scalar_one() == ""
    desk.close()


# Sessions.


def test_a_session_tells_who_it_is(town: Town) -> None:
    signed_in = town.sessions.sign_in(" ANN@ours.example", PASSWORD)
    assert town.sessions.authenticate(signed_in.token) == signed_in.principal == town.ann
    assert signed_in.principal.scopes == PERMISSIONS[Role.OWNER]


def test_whom_an_identity_provider_vouches_for_comes_in_as_the_member_they_are(town: Town) -> None:
    before = town.sessions.sign_in("ann@ours.example", PASSWORD).token
    entered = town.sessions.enter(" ANN@ours.example", previous=before)
    assert town.sessions.authenticate(entered.token) == town.ann
    assert town.sessions.authenticate(before) is None
    for stranger in ("eve@example.org", ""):
        with pytest.raises(SignInFailed, match="Ask to be invited"):
            town.sessions.enter(stranger)
    with pytest.raises(SignInFailed):
        town.sessions.enter("ann@ours.example", organisation="Theirs")


def test_signing_in_changes_the_session_and_signing_out_ends_it(town: Town) -> None:
    first = town.sessions.sign_in("ann@ours.example", PASSWORD).token
    second = town.sessions.sign_in("ann@ours.example", PASSWORD, previous=first).token
    assert first != second
    assert town.sessions.authenticate(first) is None
    assert town.sessions.authenticate(second) is not None
    town.sessions.sign_out(second)
    assert town.sessions.authenticate(second) is None
    town.sessions.sign_out(second)


@pytest.mark.parametrize("token", ["", "dms_", "dms_x", "dmk_x", "\udcff", "dms_\udcff"])
def test_what_is_no_session_is_nobody(town: Town, token: str) -> None:
    assert town.sessions.authenticate(token) is None


def test_a_role_taken_away_is_gone_with_the_next_request(town: Town) -> None:
    mia = town.member(Role.ADMIN)
    token = town.sessions.sign_in(mia.email, PASSWORD).token
    town.people.set_role(town.ann, mia.id, Role.VIEWER)
    principal = town.sessions.authenticate(token)
    assert principal is not None
    assert not principal.may(Permission.MEMBERS_MANAGE)
    town.people.remove(town.ann, mia.id)
    assert town.sessions.authenticate(token) is None


@pytest.mark.parametrize("ends", ["seen_at", "expires_at"])
def test_a_session_ends_when_idle_and_when_its_time_is_up(town: Town, ends: str) -> None:
    token = town.sessions.sign_in("ann@ours.example", PASSWORD).token
    past = timedelta(hours=13) if ends == "seen_at" else timedelta(days=15)
    with town.database.write() as connection:
        created = connection.execute(select(func.min(sessions.c[ends]))).scalar_one()
        connection.execute(update(sessions).values({ends: created - past}))
    assert town.sessions.authenticate(token) is None
    assert tidy(town.database, idle=timedelta(hours=12)) >= 1
    with town.database.read() as connection:
        assert connection.execute(select(func.count()).select_from(sessions)).scalar_one() == 0


def test_a_new_password_ends_all_sessions(town: Town) -> None:
    mia = town.member(Role.VIEWER)
    token = town.sessions.sign_in(mia.email, PASSWORD).token
    _, way = town.people.reset(town.ann, mia.email)
    assert town.sessions.authenticate(token) is not None
    town.sessions.accept(way, "a new and long one")
    assert town.sessions.authenticate(token) is None
    with pytest.raises(SignInFailed):
        town.sessions.sign_in(mia.email, PASSWORD)
    assert town.sessions.sign_in(mia.email, "a new and long one")


# Brute force.


def test_wrong_password_unknown_person_and_foreign_organisation_get_the_same_answer_for_the_same_work(
    town: Town,
) -> None:
    told = set()
    attempts = (
        {"email": "ann@ours.example", "password": "wrong"},
        {"email": "nobody@ours.example", "password": "wrong"},
        {"email": "ann@ours.example", "password": PASSWORD, "organisation": "Theirs"},
        {"email": "ann@ours.example", "password": PASSWORD, "organisation": "Nowhere"},
    )
    for attempt in attempts:
        before = town.passwords.checked
        with pytest.raises(SignInFailed) as refused:
            town.sessions.sign_in(**attempt)
        told.add((refused.value.message, refused.value.code, str(refused.value.details)))
        assert town.passwords.checked == before + 1
    assert len(told) == 1


@pytest.mark.parametrize("email", ["ann@ours.example", "nobody@ours.example"])
def test_after_some_failures_not_even_the_right_password_is_looked_at(town: Town, email: str) -> None:
    for _ in range(BY_EMAIL):
        with pytest.raises(SignInFailed):
            town.sessions.sign_in(email, "wrong")
    before = town.passwords.checked
    with pytest.raises(SignInLimited) as refused:
        town.sessions.sign_in(email, PASSWORD)
    assert town.passwords.checked == before
    assert 0 < refused.value.retry_after <= WINDOW.total_seconds()


def test_a_limit_ends_with_its_window(town: Town) -> None:
    for _ in range(BY_EMAIL):
        with pytest.raises(SignInFailed):
            town.sessions.sign_in("ann@ours.example", "wrong")
    with town.database.write() as connection:
        until = connection.execute(select(sign_in_limits.c.until)).scalar_one()
        connection.execute(update(sign_in_limits).values(until=until - 2 * WINDOW))
    assert town.sessions.sign_in("ann@ours.example", PASSWORD)
    with town.database.read() as connection:
        assert connection.execute(select(func.count()).select_from(sign_in_limits)).scalar_one() == 0


def test_many_addresses_tried_from_one_place_are_limited_too(town: Town) -> None:
    for number in range(BY_ADDRESS):
        with pytest.raises(SignInFailed):
            town.sessions.sign_in(f"{number}@ours.example", "wrong", address="192.0.2.1")
    with pytest.raises(SignInLimited):
        town.sessions.sign_in("ann@ours.example", PASSWORD, address="192.0.2.1")
    assert town.sessions.sign_in("ann@ours.example", PASSWORD, address="192.0.2.2")


def test_who_signs_in_does_not_lock_the_office(town: Town) -> None:
    for _ in range(BY_ADDRESS + 1):
        assert town.sessions.sign_in("ann@ours.example", PASSWORD, address="192.0.2.1")
    # And proving a password to join counts no more than signing in.
    _, token = town.people.invite(town.ann, "theo@theirs.example", Role.VIEWER)
    town.sessions.accept(token, PASSWORD, address="192.0.2.1")
    with town.database.read() as connection:
        assert connection.execute(select(func.sum(sign_in_limits.c.failures))).scalar_one() == 0


def test_signing_in_forgives_no_guesses_at_others(town: Town) -> None:
    for number in range(BY_ADDRESS):
        with pytest.raises(SignInFailed):
            town.sessions.sign_in(f"{number}@ours.example", "wrong", address="192.0.2.1")
        if number == BY_ADDRESS // 2:
            assert town.sessions.sign_in("ann@ours.example", PASSWORD, address="192.0.2.1")
    with pytest.raises(SignInLimited):
        town.sessions.sign_in("ann@ours.example", PASSWORD, address="192.0.2.1")


def test_an_attempt_that_nobody_looked_at_was_no_guess(town: Town) -> None:
    def busy(password: str, stored: str | None) -> bool:
        raise SignInLimited("Too many at once.", retry_after=1.0)

    matches = town.passwords.matches
    town.passwords.matches = busy  # type: ignore[method-assign]
    for _ in range(BY_EMAIL + 1):
        with pytest.raises(SignInLimited, match="at once"):
            town.sessions.sign_in("ann@ours.example", PASSWORD)
    town.passwords.matches = matches  # type: ignore[method-assign]
    assert town.sessions.sign_in("ann@ours.example", PASSWORD)


# Keys.


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


def test_it_is_written_down_when_a_key_was_used(town: Town) -> None:
    _, token = town.keys.create(town.ann, "a")
    assert town.keys.list(town.ann)[0].used_at is None
    town.at_door.authenticate(token)
    assert town.keys.list(town.ann)[0].used_at is not None


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
