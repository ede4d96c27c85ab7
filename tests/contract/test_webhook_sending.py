"""A message is tried for days, by one sender at a time, and never sent into our own network."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event as Signal

import pytest
from sqlalchemy import update
from standardwebhooks import Webhook

from docmill.db.clock import database_now
from docmill.db.tables import webhook_endpoints
from docmill.model.errors import Conflict
from docmill.model.webhooks import DeliveryStatus, WebhookEvent
from docmill.services.webhook_sending import AT_ONCE, PER_ENDPOINT, Sending, WebhookChore, forget
from docmill.testing.receiver import Answer, Message, Receiver
from docmill.testing.waiting import until
from docmill.webhooks.trying import JITTER, WAITS
from tests.contract.post_office import BOSS, HERE, PostOffice


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


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


def test_the_log_goes_when_its_time_is_over(office: PostOffice, receiver: Receiver) -> None:
    office.ping(receiver.url)
    office.work()
    forget(office.database, office.now() - timedelta(minutes=5))
    assert office.only().event is WebhookEvent.PING
    forget(office.database, office.now() + timedelta(minutes=5))
    assert office.webhooks.deliveries(BOSS) == []


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
