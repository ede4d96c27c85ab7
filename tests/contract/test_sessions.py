"""Signing in and out, and what guessing gets: the same promises on both databases."""

from datetime import timedelta

import pytest
from sqlalchemy import func, select, update

from docmill.db.tables import (
    sessions,
    sign_in_limits,
)
from docmill.model.people import PERMISSIONS, Permission, Role
from docmill.people.limits import BY_ADDRESS, BY_EMAIL, WINDOW, SignInLimited
from docmill.services.people_chores import tidy
from docmill.services.sessions import SignInFailed
from tests.contract.town import PASSWORD, Town


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
