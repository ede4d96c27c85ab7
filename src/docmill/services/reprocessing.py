"""A document that was taken in before, asked another question: by another schema, or by another model.

Another question about the same bytes is another document, as it is when the file itself comes again (ADR 0064): what
was read before stays, with its copies and with what people said of it, and values that they decided under the same
schema go along. Document and job are one commit.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, select

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import jobs
from docmill.documents.blobs import Blobs
from docmill.documents.records import AUTOMATIC, LOCAL, DocumentRecord, insert_new
from docmill.engine.batch import Batch, NewJob, Outcome
from docmill.engine.bell import Bell
from docmill.engine.store import Store
from docmill.engine.store_pool import StorePool
from docmill.model.errors import Conflict, NotFound
from docmill.model.ids import derived_id, new_id
from docmill.services.acting import Acted
from docmill.services.documents import DOCUMENT, original_gone
from docmill.services.expiring import stay
from docmill.services.following import wait
from docmill.services.jobs import Jobs, Retry
from docmill.services.processing import Order
from docmill.services.quota import Room
from docmill.services.withdrawing import withdraw

_KEPT = ("file_name", "source", "sha256", "size", "format", "original_key")
"""What two documents of the same file have in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The document that answers, and its job."""

    document_id: str
    job_id: str


class Reprocessing(Acted):
    """Documents of one organisation that are read once more, for another question."""

    def __init__(
        self,
        database: Database,
        bell: Bell,
        blobs: Callable[[], Blobs],
        template: Callable[[], str],
        stores: StorePool,
        *,
        org_id: str,
        quota: int | None,
    ) -> None:
        self._database = database.scoped(org_id)
        self._bell = bell
        self._blobs = blobs
        self._template = template
        self._stores = stores.standing_as(self._database)
        self._org_id = org_id
        self._room = Room(org_id, quota)

    def order_of(self, record: DocumentRecord) -> Order:
        """What the document was taken in for: the schema as it was then, the model, the folder for outputs."""
        query = select(jobs.c.metadata).where(jobs.c.id == record.job_id, jobs.c.org_id == self._org_id)
        with self._database.read() as connection:
            told: Mapping[str, Any] = connection.execute(query).scalar() or {}
        return Order(
            schema=None if record.schema_asked == AUTOMATIC else record.schema_asked,
            schema_file=told.get("schema_file"),
            schema_set=told.get("schema_set"),
            schema_version=record.schema_asked_version,
            model=None if record.variant == LOCAL else record.variant,
            out=told.get("out"),
        )

    def check(self, record: DocumentRecord, order: Order) -> None:
        """Whether `start` can be asked for: NotFound if nothing is kept of it that could answer, Conflict if it is to
        run again and is not done yet.
        """
        if not is_answered_by(record, order):
            self._check_kept(record, order)
            return
        _own_job(record)
        if not record.status.finished:
            raise Conflict(f"{record.file_name} ({record.id}) is not done yet: it is {record.status}.")

    def start(
        self, record: DocumentRecord, order: Order, runs: Jobs, wish: Retry, *, document_id: str | None = None
    ) -> Asked:
        """Have it processed for this order. What it was taken in for it answers by itself: of its `runs` there is one
        more, as `wish` says. Anything else is asked, and another document answers, which `document_id` may name.
        """
        if not is_answered_by(record, order):
            return self.ask(record, order, document_id=document_id)
        job_id = _own_job(record)
        runs.retry(job_id, wish, document_id=record.id)
        return Asked(document_id=record.id, job_id=job_id)

    def _check_kept(self, record: DocumentRecord, order: Order) -> None:
        if record.sha256 is None or record.format is None:
            raise NotFound(f"Of document {record.id} nothing was kept; bring the file in again.", document_id=record.id)
        there = record.original_key is not None and self._blobs().has(record.original_key)
        # What stands on the pages is known: only a model looks at the bytes again.
        if not there and (record.reading_key is None or order.model is not None):
            raise original_gone(record.id)

    def ask(self, record: DocumentRecord, order: Order, *, document_id: str | None = None) -> Asked:
        """Have its bytes read for this order, as a document of its own; NotFound if they are not kept any more.

        Its original counts as one that comes in: QuotaExceeded if the organisation has no room for it. With a
        `document_id` it is that document, however often it is asked for.
        """
        self._check_kept(record, order)
        found = document_id or new_id()
        with self._database.read() as connection:
            now = database_now(connection)
        another = DocumentRecord(
            id=found,
            org_id=self._org_id,
            **{name: getattr(record, name) for name in _KEPT},
            schema_asked=order.schema or AUTOMATIC,
            schema_asked_version=order.schema_version,
            variant=order.variant,
            job_id=derived_id("document-job", found),
            created_at=now,
        )
        outcome = self._commit(record, another, order)
        if record.original_key is not None:
            # They may be about to expire with the document that had them until now.
            stay(self._database, [record.original_key], wait)
            try:
                self._check_kept(record, order)
            except NotFound:
                # What stood there before, under an id that is asked for again, is left as it is.
                if outcome.submitted:
                    self._forget(another)
                raise
        self._bell.ring(outcome.left_ready)
        return Asked(document_id=found, job_id=str(another.job_id))

    def _commit(self, record: DocumentRecord, another: DocumentRecord, order: Order) -> Outcome:
        job = NewJob(
            id=str(another.job_id),
            template_id=self._template(),
            org_id=self._org_id,
            entity_type=DOCUMENT,
            entity_id=another.id,
            title=another.file_name,
            metadata=order.metadata,
            file_type=another.format,
            created_by=None if self._actor is None else self._actor.id,
        )
        before = {"schema": record.schema_asked, "model": record.variant}
        after = {"schema": another.schema_asked, "model": another.variant}
        more = {"document_id": another.id, "job_id": another.job_id}

        def work(store: Store) -> Outcome:
            with store.session.write() as connection:
                insert_new(connection, [another])
                if another.original_key is not None:
                    self._room.check(connection)
                outcome = store.begin().run(Batch(submissions=[job]))
                if outcome.submitted:
                    self._record(connection, "document.reprocess", (DOCUMENT, record.id), before, after | more)
            return outcome

        return self._stores.work(work, again=work)

    def _forget(self, record: DocumentRecord) -> None:
        def note(connection: Connection) -> None:
            before = {"file_name": record.file_name, "sha256": record.sha256}
            self._record(connection, "document.withdraw", (DOCUMENT, record.id), before)

        withdraw(self._stores, self._bell, record, note=note)


def another(kept: Order, *, named: Order | None, model: str | None) -> Order:
    """An order as it was, with another schema, as `named` has it, or another model, as far as they were asked for."""
    order = kept if named is None else replace(named, model=kept.model, out=kept.out)
    return order if model is None else replace(order, model=model)


def _own_job(record: DocumentRecord) -> str:
    if record.job_id is None:
        raise NotFound(
            f"Of {record.file_name} ({record.id}) no bytes were kept; bring the file in again.", document_id=record.id
        )
    return record.job_id


def is_answered_by(record: DocumentRecord, order: Order) -> bool:
    """Whether the document was taken in for the same question: then it is that one which runs again."""
    asked = (order.schema or AUTOMATIC, order.schema_version, order.variant)
    return asked == (record.schema_asked, record.schema_asked_version, record.variant)
