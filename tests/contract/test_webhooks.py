"""What happens is told to whoever wants to hear it: signed, once, by one worker at a time."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from socket import gethostname
from typing import Any

import pytest
from sqlalchemy import Row, delete, event, insert, update
from standardwebhooks import Webhook

from docmill.db.database import Database
from docmill.db.tables import documents, jobs, webhook_endpoints, workers
from docmill.db.tables.workers import WorkerStatus
from docmill.documents.records import DocumentRecord, row_of
from docmill.engine.batch import Batch
from docmill.engine.events import Failed
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.model.webhooks import DeliveryStatus, WebhookEvent
from docmill.services import webhook_events
from docmill.services.review_chores import review_chores
from docmill.services.webhook_events import OVERLAP, Announcing, gather
from docmill.services.webhook_sending import WebhookChore
from docmill.settings import WebhookSection
from docmill.testing.receiver import Receiver
from docmill.testing.samples import single_step
from docmill.testing.world import OTHER_ORG, World, lease
from tests.contract.desk import ANN, Desk, extraction
from tests.contract.mailroom import letter, mailroom
from tests.contract.post_office import BOSS, HERE, PostOffice

ERROR = '{"code":"broken","message":"It is broken."}'
PLAN = single_step()


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
    assert told[records[0].id]["data"]["error"] is None
    assert told[records[1].id]["data"]["error"] == {
        "code": "damaged_file",
        "message": records[1].error_message,
    }


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
    late, over = desk.put(2, age=[timedelta(hours=23), timedelta(hours=25)])
    review_chores(desk.database, Announcing(desk.recorded))(desk.now())
    office.work()
    told = {message.told["type"]: message.told["data"] for message in receiver.messages}
    assert told["review.decided"]["item_id"] == item
    decided = told["review.decided"]
    # The same as the item says: who it is, and what they are called.
    assert (decided["status"], decided["decided_by"], decided["decided_by_name"]) == ("approved", ANN.id, ANN.name)
    assert desk.review.get(BOSS, item).item.decided_by == ANN.id
    at_risk = [message.told["data"] for message in receiver.messages if "sla" in message.told["type"]]
    assert {each["item_id"]: each["sla_state"] for each in at_risk} == {late: "at_risk", over: "overdue"}
    assert {"review.approve", "review.sla_at_risk"} <= set(desk.recorded.verbs)
    desk.close()


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


class Watched:
    """A worker's chore, and which tables it asks for."""

    def __init__(self, world: World, pid: int) -> None:
        self.database = Database(world.database.url.render_as_string(hide_password=False))
        self.chore = WebhookChore(self.database, HERE, pid=pid)
        self.statements: list[str] = []
        event.listen(self.database.engine, "before_cursor_execute", self._note)

    def _note(self, connection: Any, cursor: Any, statement: str, *more: Any) -> None:
        self.statements.append(statement)

    def looked(self, now: datetime) -> bool:
        """Do the chore, and tell whether it looked through the jobs that have ended."""
        self.statements.clear()
        self.chore(now)
        return any("processing_jobs" in statement for statement in self.statements)

    def close(self) -> None:
        self.chore.close()
        self.database.close()


def _alive(world: World, pid: int, until_: datetime) -> str:
    row = {"id": new_id(), "host": gethostname(), "boot_id": "", "pid": pid, "status": WorkerStatus.ALIVE.value}
    with world.database.as_engine().write() as connection:
        connection.execute(insert(workers).values(**row, started_at=until_, expires_at=until_))
    return str(row["id"])


def test_of_two_workers_one_looks_for_what_is_to_be_told_until_its_lease_has_run_out(
    world: World, office: PostOffice
) -> None:
    now = office.now()
    with world.database.as_engine().write() as connection:
        connection.execute(delete(workers))
    older, _ = _alive(world, 1, now + timedelta(hours=1)), _alive(world, 2, now + timedelta(hours=1))
    first, second = Watched(world, 1), Watched(world, 2)
    try:
        # Nobody to tell: one look at the endpoints, and at what is due.
        assert not first.looked(now)
        tables = {"webhook_endpoints", "webhook_deliveries"}
        asked = [each for each in first.statements if "FROM" in each and "current_timestamp" not in each.lower()]
        assert all(any(f"FROM {table}" in each for table in tables) for each in asked), asked
        office.webhooks.create(BOSS, "https://example.com/")
        world.submit(PLAN)
        assert first.looked(now + timedelta(seconds=3))
        assert not second.looked(now + timedelta(seconds=3))
        with world.database.as_engine().write() as connection:
            connection.execute(update(workers).where(workers.c.id == older).values(expires_at=now))
        assert not first.looked(now + timedelta(seconds=6))
        assert second.looked(now + timedelta(seconds=6))
    finally:
        first.close()
        second.close()


def test_when_the_worker_that_looks_hangs_another_looks_within_a_minute(world: World, office: PostOffice) -> None:
    now = office.now()
    with world.database.as_engine().write() as connection:
        connection.execute(delete(workers))
    # The first never comes to its chore, and its lease holds.
    for pid in (1, 2):
        _alive(world, pid, now + timedelta(hours=1))
    office.webhooks.create(BOSS, "https://example.com/")
    second = Watched(world, 2)
    try:
        looked = [each for each in range(0, 181, 3) if second.looked(now + timedelta(seconds=each))]
    finally:
        second.close()
    assert looked == [60, 120, 180]


def test_more_jobs_that_ended_than_one_page_holds_are_told_of_once(
    world: World, office: PostOffice, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_events, "_PAGE", 2)
    office.webhooks.create(BOSS, receiver.url, events=["job.finished"])
    ended = {world.submit(PLAN) for _ in range(5)}
    world.run_to_end()
    pages = webhook_events._ended(office.database, DEFAULT_ORG, office.now() - timedelta(hours=1), office.now())
    assert [len(page) for page in islice(pages, 9)] == [2, 2, 1]
    office.work()
    assert sorted(message.told["data"]["job_id"] for message in receiver.messages) == sorted(ended)
