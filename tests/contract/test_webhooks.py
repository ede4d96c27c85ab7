"""What happens is told to whoever wants to hear it: signed, once, tried for days, and never into our own network."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event as Signal
from typing import Any

import pytest
from sqlalchemy import Row, insert, select, update
from standardwebhooks import Webhook

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import documents, jobs, webhook_deliveries, webhook_endpoints
from docmill.documents.records import DocumentRecord, row_of
from docmill.engine.batch import Batch
from docmill.engine.events import Failed
from docmill.model.errors import Conflict, Forbidden, InvalidInput, NotFound
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.model.people import Role, system_principal
from docmill.model.review import VersionConflict
from docmill.model.webhooks import SUBSCRIBABLE, DeliveryStatus, WebhookEvent
from docmill.services import webhook_events
from docmill.services.review_chores import ReviewChores
from docmill.services.webhook_events import OVERLAP, Announcing, gather
from docmill.services.webhook_sending import AT_ONCE, JITTER, PER_ENDPOINT, WAITS, Sending, WebhookChore, forget
from docmill.services.webhooks import DeliveryView, Webhooks
from docmill.settings import WebhookSection
from docmill.testing.receiver import Answer, Message, Receiver
from docmill.testing.samples import single_step
from docmill.testing.waiting import until
from docmill.testing.world import OTHER_ORG, World, lease
from tests.contract.desk import ANN, Desk, extraction, person
from tests.contract.mailroom import letter, mailroom

BOSS = system_principal(DEFAULT_ORG, "boss")
ERROR = '{"code":"broken","message":"It is broken."}'
PLAN = single_step()
HERE = Sending(private=True, timeout=5.0)


class PostOffice:
    """Endpoints, and a chore that is called by hand."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.webhooks = Webhooks(database)
        self.chore = WebhookChore(database, HERE, chance=lambda: 1.0)

    def now(self) -> datetime:
        with self.database.read() as connection:
            return database_now(connection)

    def work(self) -> None:
        """Find what is to be told, and send what is due, to the end."""
        gather(self.database, self.now())
        while self.due():
            self.chore.send_due()
            self.chore.close()
            self.chore = WebhookChore(self.database, HERE, chance=lambda: 1.0)

    def due(self) -> bool:
        with self.database.read() as connection:
            query = select(webhook_deliveries.c.id).where(webhook_deliveries.c.due_at <= database_now(connection))
            return connection.execute(query.limit(1)).first() is not None

    def hurry(self) -> None:
        """What waits for its next try is due now."""
        waiting = update(webhook_deliveries).where(webhook_deliveries.c.due_at.is_not(None))
        with self.database.write() as connection:
            connection.execute(waiting.values(due_at=database_now(connection)))

    def only(self) -> DeliveryView:
        (delivery,) = self.webhooks.deliveries(BOSS)
        return delivery

    def ping(self, url: str, count: int = 1) -> tuple[str, str]:
        """An endpoint with so many messages for it; its id and secret."""
        endpoint, secret = self.webhooks.create(BOSS, url)
        for _ in range(count):
            self.webhooks.ping(BOSS, endpoint.id)
        return endpoint.id, secret


@pytest.fixture
def office(world: World) -> PostOffice:
    return PostOffice(world.database)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def test_a_job_that_ends_is_told_signed_as_the_scheme_asks(
    world: World, office: PostOffice, receiver: Receiver
) -> None:
    _, secret = office.webhooks.create(BOSS, receiver.url, events=["job.finished", "job.failed"])
    bad = world.submit(PLAN)
    assert world.report(bad, Failed(**lease(world.claim_one()), error=ERROR, permanent=True)) == (True,)
    good = world.submit(PLAN)
    world.run_to_end()
    office.work()
    told = {}
    for message in receiver.messages:
        # The scheme's own library is the judge.
        read = Webhook(secret).verify(message.body, dict(message.headers))
        told[read["data"]["job_id"]] = read
    assert {job: read["type"] for job, read in told.items()} == {good: "job.finished", bad: "job.failed"}
    assert told[bad]["data"]["status"] == "FAILED"
    assert {each.status for each in office.webhooks.deliveries(BOSS)} == {DeliveryStatus.DELIVERED}


def test_however_often_one_looks_a_thing_is_told_once(world: World, office: PostOffice, receiver: Receiver) -> None:
    office.webhooks.create(BOSS, receiver.url)
    world.submit(PLAN)
    world.run_to_end()
    with ThreadPoolExecutor(4) as lookers:
        list(lookers.map(lambda _: gather(office.database, office.now()), range(8)))
    office.work()
    office.work()
    assert [message.told["type"] for message in receiver.messages] == ["job.finished"]


def test_a_job_whose_commit_is_seen_late_is_told_all_the_same(
    world: World, office: PostOffice, receiver: Receiver
) -> None:
    endpoint, _ = office.webhooks.create(BOSS, receiver.url)
    world.submit(PLAN)
    world.run_to_end()
    now = office.now()
    with office.database.write() as connection:
        past = now - timedelta(hours=1)
        connection.execute(update(webhook_endpoints).values(told_from=past, told_until=now))
        connection.execute(update(jobs).values(finished_at=now - OVERLAP / 2))
    office.work()
    assert len(receiver.messages) == 1
    # Beyond the overlap nobody looks again.
    with office.database.write() as connection:
        connection.execute(update(jobs).values(finished_at=now - 2 * OVERLAP, run=2))
    office.work()
    assert len(receiver.messages) == 1
    assert endpoint.enabled


def test_what_happened_before_an_endpoint_was_there_is_not_told(
    world: World, office: PostOffice, receiver: Receiver
) -> None:
    world.submit(PLAN)
    world.run_to_end()
    office.webhooks.create(BOSS, receiver.url)
    office.work()
    assert receiver.messages == []


def test_a_processed_document_is_told_with_its_job(database_url: str, tmp_path: Path, receiver: Receiver) -> None:
    # The worker of this installation sends.
    with mailroom(database_url, tmp_path, webhooks=WebhookSection(private_addresses=True)) as room:
        room.app.webhooks.create(BOSS, receiver.url, events=["document.finished", "document.failed"])
        good = room.put("bill.pdf", letter("Invoice 4711\nTotal 12.50"))
        bad = room.put("broken.pdf", b"%PDF-1.4\nnothing")
        records = room.process(good, bad)
        receiver.wait_for(2, 60.0)
    told = {message.told["data"]["document_id"]: message.told for message in receiver.messages}
    assert {told[record.id]["type"] for record in records[:1]} == {"document.finished"}
    assert told[records[0].id]["data"]["file_name"] == "bill.pdf"
    assert told[records[1].id]["type"] == "document.failed"


def test_what_is_not_taken_is_tried_again_under_the_same_id_signed_anew(office: PostOffice, receiver: Receiver) -> None:
    answers = iter([500, 503, 204])
    receiver.answer = lambda message: next(answers)
    _, secret = office.ping(receiver.url)
    for tries in (1, 2):
        before = office.now()
        office.work()
        delivery = office.only()
        assert delivery.status is DeliveryStatus.PENDING
        assert delivery.due_at is not None
        # Chance is at its upper end in this test.
        assert delivery.due_at >= before + WAITS[tries - 1] * (1 + JITTER)
        office.hurry()
    office.work()
    assert len({message.id for message in receiver.messages}) == 1
    for message in receiver.messages:
        Webhook(secret).verify(message.body, dict(message.headers))
    found, attempts = office.webhooks.delivery(BOSS, receiver.messages[0].id)
    assert found.status is DeliveryStatus.DELIVERED
    assert [(each.number, each.answered, each.error) for each in attempts] == [
        (1, 500, "answered 500"),
        (2, 503, "answered 503"),
        (3, 204, None),
    ]


def test_a_receiver_that_asks_for_time_is_given_it(office: PostOffice, receiver: Receiver) -> None:
    def busy(message: Message) -> Answer:
        return 429, {"retry-after": "7200"}

    receiver.answer = busy
    office.ping(receiver.url)
    before = office.now()
    office.work()
    due = office.only().due_at
    assert due is not None
    assert due >= before + timedelta(hours=2)


def test_after_days_it_is_given_up_and_can_be_sent_by_hand(office: PostOffice, receiver: Receiver) -> None:
    assert sum(WAITS, timedelta()) > timedelta(days=3)
    receiver.answer = lambda message: 500
    office.ping(receiver.url)
    for _ in range(len(WAITS) + 1):
        assert office.only().status is DeliveryStatus.PENDING
        office.hurry()
        office.work()
    given_up = office.only()
    assert (given_up.status, given_up.attempts, given_up.due_at) == (DeliveryStatus.FAILED, len(WAITS) + 1, None)
    receiver.answer = lambda message: 200
    assert office.webhooks.resend(BOSS, given_up.id).status is DeliveryStatus.PENDING
    office.work()
    assert office.only().status is DeliveryStatus.DELIVERED
    assert {message.id for message in receiver.messages} == {given_up.id}


def test_a_receiver_that_is_gone_is_switched_off(office: PostOffice, receiver: Receiver) -> None:
    receiver.answer = lambda message: 410
    endpoint_id, _ = office.ping(receiver.url, 3)
    while office.due():
        office.work()
    endpoint = office.webhooks.get(BOSS, endpoint_id)
    assert (endpoint.enabled, endpoint.disabled_reason) == (False, "the receiver answered 410 Gone")
    assert {each.status for each in office.webhooks.deliveries(BOSS)} == {DeliveryStatus.FAILED}
    with pytest.raises(Conflict, match="410 Gone"):
        office.webhooks.resend(BOSS, office.webhooks.deliveries(BOSS)[0].id)


def test_what_a_dead_sender_had_claimed_is_sent_by_another(office: PostOffice, receiver: Receiver) -> None:
    office.ping(receiver.url)
    dead = WebhookChore(office.database, HERE)
    assert len(dead._claim()) == 1
    assert not office.due()
    office.hurry()
    office.work()
    assert office.only().status is DeliveryStatus.DELIVERED


def test_of_two_that_send_the_same_the_second_one_changes_nothing(office: PostOffice, receiver: Receiver) -> None:
    office.ping(receiver.url)
    slow = WebhookChore(office.database, HERE)
    (claimed,) = slow._claim()
    office.hurry()
    office.work()
    receiver.answer = lambda message: 500
    slow._send(claimed)
    delivery, attempts = office.webhooks.delivery(BOSS, claimed.id)
    assert (delivery.status, delivery.attempts, len(attempts)) == (DeliveryStatus.DELIVERED, 1, 1)


def test_several_senders_send_each_message_once(office: PostOffice, receiver: Receiver) -> None:
    office.ping(receiver.url, 20)
    chores = [WebhookChore(office.database, HERE) for _ in range(4)]

    def send(chore: WebhookChore) -> None:
        while office.due():
            chore.send_due()
        chore.close()

    with ThreadPoolExecutor(4) as senders:
        list(senders.map(send, chores))
    assert len(receiver.messages) == 20
    assert len({message.id for message in receiver.messages}) == 20


def test_a_place_that_hangs_does_not_keep_the_others_waiting(office: PostOffice, receiver: Receiver) -> None:
    patient = Signal()
    with Receiver(lambda message: 204 if patient.wait(30.0) else 500) as hanging:
        office.ping(hanging.url, AT_ONCE)
        office.ping(receiver.url, 3)
        chore = WebhookChore(office.database, Sending(private=True, timeout=60.0))

        def all_came() -> bool:
            chore.send_due()
            return len(receiver.messages) == 3 and len(hanging.messages) == PER_ENDPOINT

        until(all_came, 30.0)
        assert chore._claim() == []
        patient.set()
        chore.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"])
def test_nothing_is_sent_into_a_private_network_however_it_is_written(
    office: PostOffice, receiver: Receiver, host: str
) -> None:
    port = receiver.url.rsplit(":", 1)[1].partition("/")[0]
    office.webhooks.create(BOSS, f"http://{host}:{port}/hook")
    office.webhooks.ping(BOSS, office.webhooks.list(BOSS)[0].id)
    outward = WebhookChore(office.database, Sending())
    outward.send_due()
    outward.close()
    _, attempts = office.webhooks.delivery(BOSS, office.only().id)
    assert "private network" in (attempts[0].error or "")
    assert receiver.messages == []


def test_after_a_change_of_secret_both_sign_for_a_day(office: PostOffice, receiver: Receiver) -> None:
    endpoint_id, old = office.ping(receiver.url)
    new = office.webhooks.rotate(BOSS, endpoint_id)
    office.work()
    (message,) = receiver.messages
    for secret in (old, new):
        Webhook(secret).verify(message.body, dict(message.headers))
    with office.database.write() as connection:
        connection.execute(update(webhook_endpoints).values(old_key_until=database_now(connection)))
    office.webhooks.ping(BOSS, endpoint_id)
    office.work()
    assert len(receiver.messages[1].headers["webhook-signature"].split()) == 1
    Webhook(new).verify(receiver.messages[1].body, dict(receiver.messages[1].headers))


def test_what_is_switched_off_is_told_nothing_and_gets_what_was_pending_when_on_again(
    world: World, office: PostOffice, receiver: Receiver
) -> None:
    endpoint_id, _ = office.ping(receiver.url)
    office.webhooks.change(BOSS, endpoint_id, enabled=False)
    world.submit(PLAN)
    world.run_to_end()
    office.work()
    assert receiver.messages == []
    office.webhooks.change(BOSS, endpoint_id, enabled=True)
    office.work()
    assert [message.told["type"] for message in receiver.messages] == ["ping"]


def test_review_tells_decisions_and_time_at_risk_in_its_own_transactions(
    database_url: str, tmp_path: Path, receiver: Receiver
) -> None:
    desk = Desk(Database(database_url), tmp_path)
    office = PostOffice(desk.database)
    office.webhooks.create(BOSS, receiver.url, events=["review.decided", "review.sla_at_risk"])
    desk.review._recorder = Announcing(desk.recorded)
    item = desk.slip(extraction(number="1", total="5.00"))
    desk.review.claim(ANN, item)
    desk.review.approve(ANN, item)
    (late,) = desk.put(age=timedelta(hours=23))
    ReviewChores(desk.database, Announcing(desk.recorded))(desk.now())
    office.work()
    told = {message.told["type"]: message.told["data"] for message in receiver.messages}
    assert told["review.decided"]["item_id"] == item
    assert (told["review.decided"]["status"], told["review.decided"]["decided_by"]) == ("approved", "Ann")
    assert told["review.sla_at_risk"]["item_id"] == late
    assert {"review.approve", "review.sla_at_risk"} <= set(desk.recorded.verbs)
    desk.close()


def test_the_secret_is_told_once_and_nothing_shows_it_again(office: PostOffice) -> None:
    endpoint, secret = office.webhooks.create(BOSS, "https://example.com/hook", description="Books")
    shown = repr(office.webhooks.list(BOSS)) + repr(endpoint)
    assert secret not in shown
    assert secret.removeprefix("whsec_") not in shown


@pytest.mark.parametrize(
    ("url", "events", "field"),
    [
        ("ftp://example.com", SUBSCRIBABLE, "address"),
        ("https://user:word@example.com/", SUBSCRIBABLE, "user name"),
        ("https://example.com/" + "x" * 2000, SUBSCRIBABLE, "characters"),
        ("https://example.com/", ["job.exploded"], "job.exploded"),
        ("https://example.com/", ["ping"], "ping"),
        ("https://example.com/", [], "hears nothing"),
    ],
)
def test_a_wrong_endpoint_is_refused(office: PostOffice, url: str, events: list[str], field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        office.webhooks.create(BOSS, url, events=events)
    assert office.webhooks.list(BOSS) == []


def test_only_who_may_manages_webhooks_and_nobody_those_of_others(office: PostOffice) -> None:
    endpoint, _ = office.webhooks.create(BOSS, "https://example.com/")
    for role in (Role.REVIEWER, Role.VIEWER, Role.SERVICE):
        with pytest.raises(Forbidden):
            office.webhooks.list(person("ann", role))
    theirs = Webhooks(office.database, OTHER_ORG)
    stranger = system_principal(OTHER_ORG)
    with pytest.raises(Forbidden):
        theirs.list(BOSS)
    office.webhooks.ping(BOSS, endpoint.id)
    for asked in (
        lambda: theirs.get(stranger, endpoint.id),
        lambda: theirs.change(stranger, endpoint.id, enabled=False),
        lambda: theirs.rotate(stranger, endpoint.id),
        lambda: theirs.remove(stranger, endpoint.id),
        lambda: theirs.ping(stranger, endpoint.id),
        lambda: theirs.deliveries(stranger, endpoint_id=endpoint.id),
        lambda: theirs.delivery(stranger, office.only().id),
        lambda: theirs.resend(stranger, office.only().id),
        lambda: theirs.get(stranger, "nonsense"),
    ):
        with pytest.raises(NotFound):
            asked()
    assert theirs.deliveries(stranger) == []


def test_of_two_who_change_an_endpoint_the_second_is_told(office: PostOffice) -> None:
    endpoint, _ = office.webhooks.create(BOSS, "https://example.com/")
    changed = office.webhooks.change(BOSS, endpoint.id, description="mine", version=endpoint.version)
    with pytest.raises(VersionConflict, match=f"version {changed.version}"):
        office.webhooks.change(BOSS, endpoint.id, description="no, mine", version=endpoint.version)


def test_the_log_goes_when_its_time_is_over(office: PostOffice, receiver: Receiver) -> None:
    office.ping(receiver.url)
    office.work()
    forget(office.database, office.now() - timedelta(minutes=5))
    assert office.only().event is WebhookEvent.PING
    forget(office.database, office.now() + timedelta(minutes=5))
    assert office.webhooks.deliveries(BOSS) == []


def test_a_foreign_document_that_a_job_names_is_not_told_of(
    world: World, office: PostOffice, receiver: Receiver, tmp_path: Path
) -> None:
    theirs = DocumentRecord(id=new_id(), org_id=OTHER_ORG, file_name="secret.pdf", created_at=office.now())
    with office.database.write() as connection:
        connection.execute(insert(documents), [row_of(theirs)])
    office.webhooks.create(BOSS, receiver.url)
    job = replace(world.new_job(PLAN), entity_id=theirs.id)
    world.commit(Batch(submissions=[job]))
    world.run_to_end()
    office.work()
    assert [message.told["type"] for message in receiver.messages] == ["job.finished"]
    assert b"secret.pdf" not in receiver.messages[0].body


def test_a_resend_is_not_undone_by_the_attempt_under_way(office: PostOffice, receiver: Receiver) -> None:
    office.ping(receiver.url)
    slow = WebhookChore(office.database, HERE)
    (claimed,) = slow._claim()
    office.webhooks.resend(BOSS, claimed.id)
    receiver.answer = lambda message: 500
    slow._send(claimed)
    assert office.due()
    receiver.answer = lambda message: 204
    office.work()
    assert office.only().status is DeliveryStatus.DELIVERED


def test_an_endpoint_that_cannot_be_looked_at_keeps_nobody_from_the_rest(
    world: World, office: PostOffice, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = office.webhooks.create(BOSS, "https://example.com/")
    office.webhooks.create(BOSS, receiver.url)
    world.submit(PLAN)
    world.run_to_end()
    real = webhook_events._gather_for

    def sick(database: Database, endpoint: Row[Any], wanted: set[WebhookEvent], now: datetime) -> None:
        if endpoint.id == first.id:
            raise ValueError("sick")
        real(database, endpoint, wanted, now)

    monkeypatch.setattr(webhook_events, "_gather_for", sick)
    office.work()
    assert len(receiver.messages) == 1
