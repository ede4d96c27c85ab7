"""The audit log: append-only, hash-chained per organisation, complete."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, text, update
from sqlalchemy.exc import DBAPIError

from docmill.db.clock import database_now
from docmill.db.tables import sessions
from docmill.model.errors import Forbidden
from docmill.model.people import Role, system_principal
from docmill.people.audit import record
from docmill.people.secrets import hashed
from docmill.services.audit import Audit
from tests.contract.town import PASSWORD, Town


@pytest.fixture
def audit(town: Town) -> Audit:
    return Audit(town.database, town.ours)


def write(town: Town, count: int = 1, org_id: str | None = None, **after: Any) -> None:
    org = org_id or town.ours
    for number in range(count):
        with town.database.scoped(org).write() as connection:
            now = database_now(connection)
            told = {"number": number, **after}
            record(connection, system_principal(org), "thing.do", ("thing", str(number)), {}, told, now=now)


def test_who_did_what_to_what_from_what_to_what(town: Town, audit: Audit) -> None:
    mia = town.member(Role.VIEWER)
    town.people.set_role(town.ann, mia.id, Role.REVIEWER)
    (entry,) = audit.list(town.ann, limit=1)
    assert (entry.actor_kind, entry.actor_id, entry.actor_name) == ("user", town.ann.id, "Ann")
    assert (entry.action, entry.subject_type, entry.subject_id) == ("member.role", "member", mia.id)
    assert (entry.before, entry.after) == ({"role": "viewer"}, {"role": "reviewer"})


def test_everything_people_do_about_people_is_recorded(town: Town, audit: Audit) -> None:
    mia = town.member(Role.VIEWER)
    town.people.set_role(town.ann, mia.id, Role.REVIEWER)
    town.people.reset(town.ann, mia.id)
    made, _ = town.people.invite(town.ann, "eve@example.org", Role.VIEWER)
    town.people.withdraw(town.ann, made.id)
    town.keys.create(town.ann, "key")
    town.keys.revoke(town.ann, "key")
    town.people.remove(town.ann, mia.id)
    first = town.sessions.sign_in("ann@ours.example", PASSWORD)
    second = town.sessions.sign_in("ann@ours.example", PASSWORD, previous=first.token)
    for _ in range(2):
        town.sessions.sign_out(second.token)
    told = [entry.action for entry in audit.export(town.ann)]
    assert told == [
        *("organisation.found", "member.password", "session.sign_in"),
        *("member.invite", "member.join", "session.sign_in"),
        *("member.role", "member.reset", "member.invite", "member.withdraw", "key.create", "key.revoke"),
        *("member.remove", "session.sign_in", "session.sign_in", "session.sign_out", "session.sign_out"),
    ]
    assert audit.verify(town.ann).faults == ()


@pytest.mark.parametrize(("ended", "past"), [("seen_at", timedelta(hours=13)), ("expires_at", timedelta(days=15))])
def test_to_sign_out_of_a_session_that_has_ended_is_no_deed(
    town: Town, audit: Audit, ended: str, past: timedelta
) -> None:
    token = town.sessions.sign_in("ann@ours.example", PASSWORD).token
    with town.database.write() as connection:
        connection.execute(update(sessions).values({ended: database_now(connection) - past}))
    town.sessions.sign_out(token)
    assert audit.list(town.ann, limit=1)[0].action == "session.sign_in"
    mine = select(sessions.c.token_hash).where(sessions.c.token_hash == hashed(token))
    with town.database.read() as connection:
        assert connection.execute(mine).first() is None


def test_no_secret_reaches_the_log(town: Town, audit: Audit) -> None:
    _, invited = town.people.invite(town.ann, "eve@example.org", Role.VIEWER)
    _, key = town.keys.create(town.ann, "key")
    told = str(list(audit.export(town.ann)))
    assert not [secret for secret in (invited, key, PASSWORD) if secret in told]


@pytest.mark.parametrize("change", ["update audit_log set action = 'nothing'", "delete from audit_log"])
def test_entries_are_never_changed_or_deleted(town: Town, audit: Audit, change: str) -> None:
    views = [town.database.scoped(town.ours), town.database]
    if town.database.kind == "postgresql":
        views += [town.database.as_entry(town.ours), town.database.as_engine(), town.database.as_keeper()]
    for view in views:
        with pytest.raises(DBAPIError, match=r"only ever added to|permission denied"), view.write() as connection:
            connection.execute(text(change))
    assert audit.verify(town.ann).faults == ()


def test_not_even_the_owner_of_the_tables_empties_the_log(town: Town) -> None:
    if town.database.kind == "sqlite":
        return  # There is no TRUNCATE.
    with pytest.raises(DBAPIError, match="only ever added to"), town.database.write() as connection:
        connection.execute(text("truncate audit_log"))


def tamper(town: Town, *statements: str) -> None:
    """What only somebody can do who has the database in their hands."""
    with town.database.write() as connection:
        if town.database.kind == "postgresql":
            connection.execute(text("alter table audit_log disable trigger user"))
        else:
            connection.execute(text("drop trigger audit_log_no_update"))
            connection.execute(text("drop trigger audit_log_no_delete"))
        for statement in statements:
            connection.execute(text(statement), {"org": town.ours} if ":org" in statement else {})


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("update audit_log set action = 'thing.undo' where number = 5 and org_id = :org", {5: "not what was written"}),
        ("update audit_log set actor_name = 'eve' where number = 5 and org_id = :org", {5: "not what was written"}),
        ("""update audit_log set after = '{"number": 9}' where number = 6 and org_id = :org""", {6: "not what was"}),
        ("delete from audit_log where number = 5 and org_id = :org", {5: "entry 5 missing"}),
        ("delete from audit_log where number > 8 and org_id = :org", {9: "should end at 10"}),
        ("delete from audit_log where org_id = :org", {1: "should end at 10"}),
    ],
)
def test_tampering_is_found(town: Town, audit: Audit, statement: str, found: dict[int, str]) -> None:
    write(town, 7)
    assert audit.verify(town.ann).faults == ()
    tamper(town, statement)
    faults = {fault.number: fault.message for fault in audit.verify(town.ann).faults}
    assert faults.keys() == found.keys()
    assert all(words in faults[number] for number, words in found.items())


def test_two_entries_that_changed_places_are_found(town: Town, audit: Audit) -> None:
    write(town, 7)
    tamper(
        town,
        "update audit_log set number = 100 where number = 5 and org_id = :org",
        "update audit_log set number = 5 where number = 6 and org_id = :org",
        "update audit_log set number = 6 where number = 100 and org_id = :org",
    )
    assert audit.verify(town.ann).faults


def test_what_many_record_at_once_is_one_chain(town: Town, audit: Audit) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: write(town, 5), range(8)))
    found = audit.verify(town.ann)
    assert (found.entries, found.faults) == (3 + 40, ())


def test_what_is_rolled_back_leaves_no_gap(town: Town, audit: Audit) -> None:
    with (
        town.database.scoped(town.ours).borrow() as session,
        suppress(ZeroDivisionError),
        session.write() as connection,
    ):
        now = database_now(connection)
        record(connection, system_principal(town.ours), "thing.do", ("thing", "1"), now=now)
        raise ZeroDivisionError
    write(town)
    assert audit.verify(town.ann).entries == 4
    assert audit.verify(town.ann).faults == ()


@pytest.mark.parametrize("after", [{"text": 'é "\\ \u0000 😀', "n": 1.10, "deep": {"b": [None, True], "a": {}}}, {}])
def test_any_value_is_hashed_as_it_is_read(town: Town, audit: Audit, after: dict[str, Any]) -> None:
    write(town, 1, **after)
    assert audit.verify(town.ann).faults == ()
    assert audit.list(town.ann, limit=1)[0].after == {"number": 0, **after}


def test_each_organisation_sees_its_own_chain(town: Town, audit: Audit) -> None:
    write(town, 3, org_id=town.theirs, secret="theirs")
    assert "theirs" not in {(entry.after or {}).get("secret") for entry in audit.export(town.ann)}
    assert audit.verify(town.ann).entries == 3
    assert Audit(town.database, town.theirs).verify(town.theo).entries == 6
    with pytest.raises(Forbidden):
        audit.list(town.theo)


def test_only_who_may_reads_it(town: Town, audit: Audit) -> None:
    reviewer = town.principal(town.member(Role.REVIEWER))
    for ask in (audit.list, audit.verify, audit.export):
        with pytest.raises(Forbidden, match=r"audit\.read"):
            ask(reviewer)


def test_pages_are_in_order_and_whole(town: Town, audit: Audit) -> None:
    write(town, 7)
    first = audit.list(town.ann, limit=4)
    second = audit.list(town.ann, limit=40, before=first[-1].number)
    assert [entry.number for entry in (*first, *second)] == list(range(10, 0, -1))
    assert [entry.number for entry in audit.list(town.ann, subject=("thing", "3"))] == [7]
