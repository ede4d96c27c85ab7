"""Documents that come in one by one, from whoever sends their bytes: counted as they come, stored whole or not at all.

The document and its job are one commit. What cannot be taken on is refused and leaves nothing behind: no row, no bytes.
"""

import hashlib
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, select
from sqlalchemy.exc import SQLAlchemyError

from docmill.db.clock import database_now
from docmill.db.conflicts import insert_into
from docmill.db.database import Database
from docmill.db.tables import documents, leaving_blobs
from docmill.documents.blobs import Blobs, StorageUnavailable, unusable
from docmill.documents.faults import EmptyFile, FileTooLarge
from docmill.documents.intake import shown_name
from docmill.documents.records import AUTOMATIC, DocumentRecord, insert_new
from docmill.documents.sniffing import sniff_file
from docmill.engine.batch import Batch, NewJob, Outcome
from docmill.engine.bell import Bell
from docmill.engine.store import Store
from docmill.engine.store_pool import StorePool
from docmill.model.errors import Conflict, DocmillError
from docmill.model.ids import derived_id, new_id
from docmill.model.people import Principal
from docmill.people import audit
from docmill.services.acting import OrgService
from docmill.services.documents import DOCUMENT, Documents
from docmill.services.expiring import stay
from docmill.services.following import wait
from docmill.services.processing import Order
from docmill.services.quota import Room
from docmill.services.withdrawing import withdraw

SOURCE = "upload"


class Incoming:
    """Bytes on their way in, in a file of our own. Whoever opens one closes it; what was not accepted is gone then."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._digest = hashlib.sha256()
        self.file = folder / secrets.token_hex(16)
        self.size = 0
        try:
            self._fd: int | None = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise unusable(folder, error) from error

    @property
    def key(self) -> str:
        """The hash of what came so far."""
        return self._digest.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Take some bytes; FileTooLarge beyond the limit."""
        assert self._fd is not None
        self.size += len(chunk)
        if self.size > self._limit:
            raise FileTooLarge(
                f"The file is larger than {self._limit:,} bytes; split it, or raise `documents.max_bytes`.",
                limit=self._limit,
            )
        self._digest.update(chunk)
        view = memoryview(chunk)
        while view:
            try:
                view = view[os.write(self._fd, view) :]
            except OSError as error:
                raise unusable(self._folder, error) from error

    def finish(self) -> None:
        """All of it is there: for good."""
        if self._fd is not None:
            os.fsync(self._fd)
            os.close(self._fd)
            self._fd = None

    def close(self) -> None:
        """Leave nothing behind."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
        self.file.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded:
    """What became of an upload."""

    document: DocumentRecord
    new: bool
    """False: the same bytes came before for the same document."""


class Uploads(OrgService):
    """The uploads of one organisation."""

    def __init__(
        self,
        database: Database,
        bell: Bell,
        blobs: Callable[[], Blobs],
        documents: Documents,
        template: Callable[[], str],
        stores: StorePool,
        *,
        org_id: str,
        limit: int,
        quota: int | None,
    ) -> None:
        self._database = database.scoped(org_id)
        self._bell = bell
        self._blobs = blobs
        self._documents = documents
        self._template = template
        self._stores = stores.standing_as(self._database)
        self._org_id = org_id
        self._limit = limit
        self._room = Room(org_id, quota)

    def open(self) -> Incoming:
        """A place for the bytes of one document."""
        return Incoming(self._blobs().workshop, self._limit)

    def accept(
        self, incoming: Incoming, *, name: str, order: Order, by: Principal, document_id: str | None = None
    ) -> Uploaded:
        """Make a document of what came, and submit its job. A fault of the file is raised, and nothing is kept.

        With a `document_id` it is that document: the same bytes again change nothing, others are a Conflict.
        """
        self._check_organisation(by)
        if not incoming.size:
            raise EmptyFile("The file is empty. Upload it again; perhaps the transfer was cut off.", field="body.file")
        kind = sniff_file(incoming.file)
        key, size = incoming.key, incoming.size
        incoming.finish()
        if document_id is not None and (known := self._known(document_id, key)) is not None:
            return Uploaded(document=known, new=False)
        blob = self._blobs().adopt(incoming.file, key)
        with self._database.read() as connection:
            now = database_now(connection)
        found = document_id or new_id()
        record = DocumentRecord(
            id=found,
            org_id=self._org_id,
            file_name=shown_name(name),
            source=SOURCE,
            sha256=key,
            size=size,
            format=kind.value,
            original_key=key,
            schema_asked=order.schema or AUTOMATIC,
            schema_asked_version=order.schema_version,
            variant=order.variant,
            job_id=derived_id("document-job", found),
            created_at=now,
        )
        try:
            outcome = self._commit(record, order, by)
        except BaseException:
            if blob.new:
                self._let_go(key)
            raise
        # Bytes that were there before may be leaving; from now on our row protects them.
        stay(self._database, [key], wait)
        if not self._blobs().has(key):
            self._forget(record, by)
            raise StorageUnavailable("The bytes expired while they came in again. Upload the file once more.")
        self._bell.ring(outcome.left_ready)
        return Uploaded(document=self._documents.get(record.id), new=True)

    def _commit(self, record: DocumentRecord, order: Order, by: Principal) -> Outcome:
        job = NewJob(
            id=str(record.job_id),
            template_id=self._template(),
            org_id=self._org_id,
            entity_type="document",
            entity_id=record.id,
            title=record.file_name,
            metadata=order.metadata,
            file_type=record.format,
            created_by=by.id,
        )

        def work(store: Store) -> Outcome:
            with store.session.write() as connection:
                insert_new(connection, [record])
                self._room.check(connection)
                # Whoever came with other bytes for this document at the same moment was first: the insert waited.
                stored = select(documents.c.sha256).where(documents.c.id == record.id)
                if connection.execute(stored).scalar() != record.sha256:
                    raise _other_bytes(record.id)
                transaction = store.begin()
                outcome = transaction.run(Batch(submissions=[job]))
                if outcome.submitted:
                    told = {name: getattr(record, name) for name in ("file_name", "sha256", "size", "format", "job_id")}
                    now = database_now(connection)
                    audit.record(
                        connection, by, "document.upload", (DOCUMENT, record.id), None, told | order.metadata, now=now
                    )
            return outcome

        return self._stores.work(work, again=work)

    def _known(self, document_id: str, key: str) -> DocumentRecord | None:
        found = self._documents.many([document_id]).get(document_id)
        if found is not None and found.sha256 != key:
            raise _other_bytes(document_id)
        return found

    def _let_go(self, key: str) -> None:
        """Bytes that came in vain are deleted by whoever sees all organisations: another may have brought them too."""
        with suppress(DocmillError, SQLAlchemyError), self._database.write() as connection:
            connection.execute(insert_into(connection, leaving_blobs).values(key=key).on_conflict_do_nothing())

    def _forget(self, record: DocumentRecord, by: Principal) -> None:
        """Sent once more, under the same id, it is a new document with a new job."""

        def note(connection: Connection) -> None:
            before, now = {"file_name": record.file_name, "sha256": record.sha256}, database_now(connection)
            audit.record(connection, by, "document.withdraw", (DOCUMENT, record.id), before, now=now)

        withdraw(self._stores, self._bell, record, note=note)


def _other_bytes(document_id: str) -> Conflict:
    return Conflict(
        f"Document {document_id} was uploaded before, with other bytes; ask for a new link to upload these.",
        document_id=document_id,
    )
