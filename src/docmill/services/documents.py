"""Documents as people use them: look, find, load what was extracted, give out a link, let originals expire."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, bindparam, func, select, text, update

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import documents, job_steps, jobs
from docmill.db.tables.documents import UNFINISHED
from docmill.documents.blobs import BlobDamaged, Blobs
from docmill.documents.records import STATUS, DocumentRecord, record_of, views
from docmill.model.documents import FINISHED_DOCUMENTS, WITH_OUTPUTS, DocumentStatus
from docmill.model.errors import InvalidInput, NotFound
from docmill.model.ids import DEFAULT_ORG, canonical_id
from docmill.model.people import Principal
from docmill.model.statuses import JobStatus, StepStatus
from docmill.people.audit import ORGANISATION
from docmill.services.acting import Acted
from docmill.services.discarding import discard
from docmill.services.document_names import NAMED, document_called
from docmill.services.expiring import expire
from docmill.services.job_ids import SHORTEST, is_too_short, prefix_bounds

if TYPE_CHECKING:
    from docmill.documents.reading import Reading
    from docmill.extraction.result import Extraction

_READINGS = 50
"""Of so many readings it is remembered how their pages are turned."""
_FACTS = ("id", "org_id", "file_name", "sha256", "format", "created_at", "error_code", "error_message")
DOCUMENT = "document"
"""What entries in the audit log are about."""
BATCH = 500
"""Documents looked at in one transaction of a chore."""
_ENDED = (
    select(documents.c.id, STATUS)
    .select_from(documents.outerjoin(jobs, jobs.c.id == documents.c.job_id))
    .where(documents.c.id.in_(bindparam("ids", expanding=True)), documents.c.org_id == bindparam("org"))
    .where(jobs.c.status.is_(None) | jobs.c.status.in_([status.value for status in JobStatus if status.finished]))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentError:
    """Why a document failed."""

    code: str
    message: str


class Documents(Acted):
    """The documents of one organisation."""

    def __init__(self, database: Database, blobs: Callable[[], Blobs], org_id: str = DEFAULT_ORG) -> None:
        self._database = database.scoped(org_id)
        self._blobs = blobs
        self._org_id = org_id
        self._pages: dict[str, Mapping[int, int]] = {}

    def list(
        self,
        *,
        status: DocumentStatus | None = None,
        duplicates: bool = True,
        before: str | None = None,
        limit: int = 50,
    ) -> Sequence[DocumentRecord]:
        """The newest first, with or without duplicates; `before` is the id of the last one seen."""
        query = views().where(documents.c.org_id == self._org_id)
        if status is not None:
            query = query.where(STATUS.element == status.value)
        if not duplicates:
            query = query.where(documents.c.status != DocumentStatus.DUPLICATE.value)
        with self._database.read() as connection:
            if before is not None:
                last = self._row(connection, before)
                later = (documents.c.created_at > last.created_at) | (
                    (documents.c.created_at == last.created_at) & (documents.c.id >= last.id)
                )
                query = query.where(~later)
            rows = connection.execute(query.order_by(documents.c.created_at.desc(), documents.c.id.desc()).limit(limit))
            return _told(connection, rows.all())

    def duplicates(self) -> int:
        """How many documents are copies of others."""
        mine = (documents.c.org_id == self._org_id, documents.c.status == DocumentStatus.DUPLICATE.value)
        with self._database.read() as connection:
            return int(connection.execute(select(func.count()).select_from(documents).where(*mine)).scalar_one())

    def get(self, document_id: str) -> DocumentRecord:
        """One document; NotFound if there is none."""
        with self._database.read() as connection:
            return _told(connection, [self._row(connection, document_id)])[0]

    def many(self, ids: Sequence[str]) -> dict[str, DocumentRecord]:
        """These documents by id; those that do not exist are left out."""
        query = views().where(documents.c.id.in_(ids), documents.c.org_id == self._org_id)
        with self._database.read() as connection:
            return {record.id: record for record in _told(connection, connection.execute(query).all())}

    def known(self, ids: Sequence[str]) -> set[str]:
        """Which of these there are."""
        query = select(documents.c.id).where(documents.c.org_id == self._org_id)
        with self._database.read() as connection:
            return {
                found
                for start in range(0, len(ids), BATCH)
                for found in connection.execute(query.where(documents.c.id.in_(ids[start : start + BATCH]))).scalars()
            }

    def facts(self, *, only_without_outputs: bool = False) -> Iterator[dict[str, object]]:
        """What is known of every document, or of those that have no outputs: they failed, or are not done yet."""
        query = views().where(documents.c.org_id == self._org_id).order_by(documents.c.id).limit(BATCH)
        if only_without_outputs:
            query = query.where(documents.c.status.not_in([status.value for status in WITH_OUTPUTS]))
        last = ""
        while True:
            with self._database.read() as connection:
                page = query.where(documents.c.id > last) if last else query
                found = _told(connection, connection.execute(page).all())
            for each in found:
                yield {name: getattr(each, name) for name in _FACTS} | {"status": each.status.value}
            if len(found) < BATCH:
                return
            last = found[-1].id

    def ended(self, ids: Sequence[str]) -> dict[str, DocumentStatus]:
        """Which of these have come to their end, their jobs too, and how."""
        with self._database.read() as connection:
            found = {
                row.id: DocumentStatus(row.status)
                for row in connection.execute(_ENDED, {"ids": ids, "org": self._org_id})
            }
        return {name: status for name, status in found.items() if status in FINISHED_DOCUMENTS}

    def find_id(self, text: str) -> str:
        """The id that a person means: the beginning of one if no other begins so, or the file that it came from."""
        bounds = prefix_bounds(text)
        if bounds is None:
            with self._database.read() as connection:
                if (
                    canonical_id(text) is None
                    and (named := document_called(connection, self._org_id, text)) is not None
                ):
                    return named
                if is_too_short(text):
                    raise InvalidInput(f"{text} is too little of an id: write {SHORTEST} digits or more of it.")
                return str(self._row(connection, text).id)
        query = select(documents.c.id).where(documents.c.id.between(*bounds), documents.c.org_id == self._org_id)
        with self._database.read() as connection:
            found = list(connection.execute(query.order_by(documents.c.id).limit(NAMED + 1)).scalars())
        if not found:
            with self._database.read() as connection:
                if (named := document_called(connection, self._org_id, text)) is not None:
                    return named
            raise _unknown(text)
        if len(found) > 1:
            named = ", ".join(found[:NAMED]) + (", …" if len(found) > NAMED else "")
            raise InvalidInput(f"Several documents begin with {text}: {named}. Write more of the id.", ids=found)
        return str(found[0])

    def extraction(self, record: DocumentRecord) -> "Extraction | None":
        """What was extracted from the document; None while there is nothing."""
        from docmill.extraction.result import Extraction

        found = self.extraction_json(record)
        return None if found is None else Extraction.from_json(found)

    def extraction_json(self, record: DocumentRecord) -> dict[str, Any] | None:
        """The same as it is stored, for who only hands it on."""
        if record.extraction_key is None:
            return None
        found: dict[str, Any] = self._unpacked(record, record.extraction_key)
        return found

    def values(self, key: str) -> dict[str, Any]:
        """The values of an extraction that is stored under this key, by field and by table."""
        from docmill.extraction.result import Extraction
        from docmill.steps.document_children import unpack

        found = Extraction.from_json(unpack(self._blobs().read(key)))
        rows = {
            table: [{c: cell.value for c, cell in row.items()} for row in rows] for table, rows in found.rows.items()
        }
        return {name: value.value for name, value in found.fields.items()} | rows

    def reading(self, record: DocumentRecord) -> "Reading | None":
        """What stands on the pages of the document; None while nobody has read it."""
        from docmill.documents.reading import Reading

        if record.reading_key is None:
            return None
        return Reading.from_json(self._unpacked(record, record.reading_key))

    def turned(self, record: DocumentRecord) -> Mapping[int, int] | None:
        """By how much each page is turned, by its number; None while nobody has read the document.

        Kept for a while: whoever looks at one page looks at the next, and a reading is as large as its document.
        """
        if record.reading_key is None:
            return None
        found = self._pages.get(record.reading_key)
        if found is None:
            pages = self._unpacked(record, record.reading_key)["pages"]
            found = {page["number"]: page.get("turned", 0) for page in pages}
            if len(self._pages) >= _READINGS:
                # All at once: to find the oldest needs a lock, and they are soon there again.
                self._pages = {}
            self._pages[record.reading_key] = found
        return found

    def _unpacked(self, record: DocumentRecord, key: str) -> Any:
        from docmill.steps.document_children import unpack

        data = self._blobs().read(key)
        if hashlib.sha256(data).hexdigest() != key:
            raise BlobDamaged(
                f"What was stored of document {record.id} is damaged ({key}). Process the file again, or restore it "
                "from a backup.",
                document_id=record.id,
                key=key,
            )
        return unpack(data)

    def link(self, record: DocumentRecord, *, by: Principal, within: timedelta) -> str:
        """A link to the original for so long; NotFound once it has expired."""
        acted = self.by(by)
        if record.original_key is None:
            raise original_gone(record.id)
        # Whoever has the link needs no token: before it is given out, it is written down by whom.
        with self._database.write() as connection:
            now = database_now(connection)
            told = {"file_name": record.file_name, "until": now + within}
            acted._record(connection, "document.link", (DOCUMENT, record.id), None, told)
        return self._blobs().sign(record.original_key, within=within, now=now)

    def settle(self, ids: Sequence[str] | None = None) -> int:
        """Write down that documents failed whose jobs did; how many. Until then it follows from the job."""
        return settle(self._database, ids, org_id=self._org_id)

    def expire(self, *, before: datetime | None = None) -> int:
        """Delete originals whose time is up, with `before` also of documents that were done before then; how many."""

        def note(connection: Connection) -> None:
            self._record(connection, "document.expire", (ORGANISATION, self._org_id), None, {"done_before": before})

        return expire(self._database, self._blobs(), before=before, org_id=self._org_id, also=note)

    def discard(self, ids: Sequence[str]) -> int:
        """Remove documents that failed and never had a result, all or none; how many."""

        def note(connection: Connection, row: Row[Any]) -> None:
            before = {"file_name": row.file_name, "sha256": row.sha256, "error_code": row.error_code}
            self._record(connection, "document.discard", (DOCUMENT, row.id), before)

        return discard(self._database, self._blobs(), ids, org_id=self._org_id, note=note)

    def _row(self, connection: Connection, document_id: str) -> Row[Any]:
        stored = canonical_id(document_id)
        query = views().where(documents.c.id == stored, documents.c.org_id == self._org_id)
        row = None if stored is None else connection.execute(query).first()
        if row is None:
            raise _unknown(document_id)
        return row


def original_gone(document_id: str) -> NotFound:
    """Whoever asks for bytes that have expired is told so."""
    return NotFound(
        f"The original of document {document_id} is not kept any more. Upload the file again if you have it.",
        document_id=document_id,
    )


def _unknown(text: str) -> NotFound:
    return NotFound(f"There is no document {text}. `docmill documents list` shows those there are.", document_id=text)


def _told(connection: Connection, rows: Sequence[Row[Any]]) -> list[DocumentRecord]:
    """The records; of those that failed with their job, with the error of the job."""
    records = [record_of(row) for row in rows]
    untold = [each for each in records if each.status is DocumentStatus.FAILED and each.error_code is None]
    errors = errors_of(connection, [each.job_id for each in untold if each.job_id is not None])
    told = {
        each.id: replace(each, error_code=error.code, error_message=error.message)
        for each in untold
        if (error := errors.get(each.job_id or "")) is not None
    }
    return [told.get(each.id, each) for each in records]


def errors_of(connection: Connection, job_ids: Sequence[str]) -> dict[str, DocumentError]:
    """Why these jobs came to a bad end, in the words of the first step that failed."""
    if not job_ids:
        return {}
    statuses = select(jobs.c.id, jobs.c.status).where(jobs.c.id.in_(job_ids))
    query = select(job_steps.c.job_id, job_steps.c.error).where(
        job_steps.c.job_id.in_(job_ids), job_steps.c.status == StepStatus.FAILED.value
    )
    found: dict[str, DocumentError] = {}
    for row in connection.execute(query.order_by(job_steps.c.position)):
        error = row.error or {}
        found.setdefault(
            row.job_id, DocumentError(code=error.get("code", "failed"), message=error.get("message", "The job failed."))
        )
    for row in connection.execute(statuses):
        if row.status == JobStatus.CANCELLED.value:
            found.setdefault(row.id, DocumentError(code="cancelled", message="The job was cancelled."))
    return found


def settle(database: Database, ids: Sequence[str] | None = None, *, org_id: str | None = None) -> int:
    """Mark documents as failed whose jobs ended badly. A job retried meanwhile needs no care: it is the truth."""
    query = (
        select(documents.c.id, documents.c.job_id, jobs.c.finished_at)
        .join(jobs, jobs.c.id == documents.c.job_id)
        .where(
            # In its own words, so that the partial index is found.
            text(f"documents.status IN ({UNFINISHED})"),
            jobs.c.status.in_([JobStatus.FAILED.value, JobStatus.CANCELLED.value]),
        )
        .limit(BATCH)
    )
    if ids is not None:
        query = query.where(documents.c.id.in_(ids))
    if org_id is not None:
        query = query.where(documents.c.org_id == org_id)
    with database.read() as connection:
        rows = connection.execute(query).all()
        errors = errors_of(connection, [row.job_id for row in rows])
    if not rows:
        return 0
    settled = 0
    with database.write() as connection:
        for row in sorted(rows, key=lambda row: str(row.id)):
            error = errors.get(row.job_id) or DocumentError(code="failed", message="The job failed.")
            write = (
                update(documents)
                .where(documents.c.id == row.id, text(f"status IN ({UNFINISHED})"))
                .values(
                    status=DocumentStatus.FAILED.value,
                    error_code=error.code,
                    error_message=error.message,
                    finished_at=row.finished_at,
                )
            )
            settled += connection.execute(write).rowcount
    return settled
