"""`docmill process` as a service: take documents in, submit their jobs, wait for their ends.

Documents come in a few at a time: however many files there are, only so many are in flight, and only their ids are
remembered. Started again before its end, the same command is the same run: what it took in is not taken in again, and
what failed for a reason outside of the file (a model that was away, a full disk) is tried again. A model that stays
away stops the run before its end (ADR 0067).
"""

import hashlib
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import orjson
from sqlalchemy import Connection, select, tuple_, update

from docmill.db.clock import database_now
from docmill.db.conflicts import insert_into
from docmill.db.database import Database
from docmill.db.tables import document_runs, documents, jobs
from docmill.documents.blobs import Blobs
from docmill.documents.faults import CODES_OF_BYTES
from docmill.documents.intake import Source, shown_name, storable, take_in
from docmill.documents.limits import Limits
from docmill.documents.records import AUTOMATIC, LOCAL, DocumentRecord, insert_new
from docmill.engine.batch import NewJob
from docmill.model.documents import DocumentStatus
from docmill.model.errors import Conflict
from docmill.model.ids import DEFAULT_ORG, derived_id, new_id
from docmill.model.statuses import JobStatus
from docmill.services.acting import Acted
from docmill.services.documents import Documents
from docmill.services.expiring import stay
from docmill.services.following import wait
from docmill.services.jobs import Jobs
from docmill.services.outages import ModelAway, Outage, Vigil

TEMPLATE = "document-processing"
RUN = "document_run"
"""What entries in the audit log are about: one for all documents of a run, which know their run."""
_NAMED = 20
IN_FLIGHT = 200
"""Documents that are submitted and not finished: enough to keep every slot busy, few enough to lose little time on."""
CHUNK = 50
"""Documents that come in with one transaction."""
_READERS = 4
"""Files that are copied at the same time: most of it is waiting for the disk."""
_SOONEST, _LATEST = 0.02, 0.25
"""Seconds between two looks at documents in flight."""
_LOOKS_AT_MODEL = 1.0
"""Seconds between two looks at how the model stands."""
_PER_DOCUMENT = 0.001
"""Seconds between two looks for each of them: the more there are, the more a look costs, and the less it hurries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be done with the documents of a run."""

    schema: str | None = None
    """A schema by name; None: by the type of each document."""
    schema_file: str | None = None
    """The blob with the YAML of the schema."""
    schema_set: str | None = None
    """The blob with all schemas there are, where the type of each document decides."""
    schema_version: str = ""
    model: str | None = None
    """The model to ask, as `provider:model`; None: none."""
    out: str | None = None
    """The folder for outputs; None: that of the settings."""

    @property
    def variant(self) -> str:
        return LOCAL if self.model is None else self.model

    @property
    def metadata(self) -> dict[str, object]:
        """What the steps find in their job."""
        named = {name: getattr(self, name) for name in ("schema", "schema_file", "schema_set", "model", "out")}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One input of a run, and the document it became."""

    shown: str
    document_id: str


@dataclass(slots=True, kw_only=True)
class Progress:
    """How far a run has come."""

    total: int = 0
    ended: dict[DocumentStatus, int] = field(default_factory=dict)
    at: str | None = None
    """The first file that is not done: about where the readers are, for they take files in their order."""
    outage: Outage | None = None
    """The model that is away, while documents wait for it."""

    @property
    def done(self) -> int:
        return sum(self.ended.values())


class Watcher(Protocol):
    """Whoever wants to know how a run goes."""

    def __call__(self, progress: Progress) -> None: ...


class Processing(Acted):
    """Runs of one organisation."""

    def __init__(
        self,
        database: Database,
        blobs: Callable[[], Blobs],
        documents: Documents,
        jobs: Jobs,
        limits: Limits,
        org_id: str = DEFAULT_ORG,
        in_flight: int = IN_FLIGHT,
        vigil: Callable[[str], Vigil] | None = None,
    ) -> None:
        self._database = database.scoped(org_id)
        self._blobs = blobs
        self._documents = documents
        self._jobs = jobs
        self._limits = limits
        self._org_id = org_id
        self._in_flight = in_flight
        self._chunk = min(CHUNK, in_flight)
        self._vigil = vigil

    def open_run(self, paths: Sequence[str], order: Order) -> str:
        """The id of the unfinished run of these paths, or of a new one."""
        place = [path if path == "-" else os.path.abspath(path) for path in paths]
        named = orjson.dumps([[os.fsencode(each).hex() for each in place], order.metadata, order.schema_version])
        key = hashlib.sha256(named).hexdigest()
        mine = (
            document_runs.c.org_id == self._org_id,
            document_runs.c.key == key,
            document_runs.c.finished_at.is_(None),
        )
        with self._database.write() as connection:
            found = connection.execute(select(document_runs.c.id).where(*mine)).scalar()
            asked = {"paths": [storable(each) for each in place[:_NAMED]], "count": len(place), **order.metadata}
            if found is not None:
                self._record(connection, "document.resume", (RUN, str(found)), None, asked)
                return str(found)
            run = {"id": new_id(), "org_id": self._org_id, "key": key, "created_at": database_now(connection)}
            # Of two processes that begin the same at the same moment, the second waits here, and then joins the first.
            begin = insert_into(connection, document_runs).values(run).on_conflict_do_nothing()
            begun = connection.execute(begin.returning(document_runs.c.id)).first() is not None
            opened = str(connection.execute(select(document_runs.c.id).where(*mine)).scalar_one())
            action = "document.process" if begun else "document.resume"
            self._record(connection, action, (RUN, opened), None, asked)
            return opened

    def close_run(self, run_id: str) -> None:
        """The run has come to its end: the same command begins a new one."""
        with self._database.write() as connection:
            write = update(document_runs).where(document_runs.c.id == run_id, document_runs.c.finished_at.is_(None))
            connection.execute(write.values(finished_at=database_now(connection)))

    def run(
        self,
        run_id: str,
        inputs: Sequence[Source],
        order: Order,
        template_id: str,
        *,
        watch: Watcher,
        check: Callable[[], None] = lambda: None,
        pause: Callable[[float], object] = wait,
    ) -> list[Entry]:
        """Process the inputs to their ends. `check` may raise, to end the wait when nobody works any more.

        ModelAway if the model does not come back: the run stays open, and goes on when it is begun again.
        """
        progress = Progress(total=len(inputs))
        entries: list[Entry] = []
        open_files: dict[str, str] = {}
        failed: list[str] = []
        waiting = deque(inputs)
        interval, since_look = _SOONEST, 0.0
        vigil = None if order.model is None or self._vigil is None else self._vigil(order.model)
        with ThreadPoolExecutor(_READERS, thread_name_prefix="docmill-intake") as readers:
            while waiting or open_files:
                if waiting and len(open_files) <= self._in_flight - self._chunk:
                    some = [waiting.popleft() for _ in range(min(self._chunk, len(waiting)))]
                    taken = self._take_in(run_id, some, order, template_id, readers)
                    entries += taken
                    open_files.update((entry.document_id, entry.shown) for entry in taken)
                check()
                ended = self._documents.ended(sorted(open_files))
                for document_id, status in ended.items():
                    open_files.pop(document_id, None)
                    progress.ended[status] = progress.ended.get(status, 0) + 1
                    if status is DocumentStatus.FAILED:
                        failed.append(document_id)
                progress.at = next(iter(open_files.values()), None)
                if vigil is not None and since_look >= _LOOKS_AT_MODEL:
                    since_look, progress.outage = 0.0, vigil.look(sorted(open_files))
                watch(progress)
                if progress.outage is not None and progress.outage.hopeless:
                    raise ModelAway(progress.outage, done=progress.done, total=progress.total)
                room = waiting and len(open_files) <= self._in_flight - self._chunk
                if open_files and not room:
                    soonest = max(_SOONEST, _PER_DOCUMENT * len(open_files))
                    interval = soonest if ended else min(_LATEST, max(soonest, 1.5 * interval))
                    since_look += interval
                    pause(interval)
        # The others wrote down their end themselves.
        self._settle(failed)
        return entries

    def _settle(self, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), CHUNK):
            self._documents.settle(ids[start : start + CHUNK])

    def _take_in(
        self, run_id: str, some: Sequence[Source], order: Order, template_id: str, readers: ThreadPoolExecutor
    ) -> list[Entry]:
        """Store some inputs as documents and submit their jobs; what this run has taken in before stays as it is."""
        with self._database.read() as connection:
            now = database_now(connection)
        blobs = self._blobs()

        def read(document_id: str, source: Source) -> DocumentRecord:
            record = DocumentRecord(
                id=document_id,
                org_id=self._org_id,
                run_id=run_id,
                file_name=shown_name(str(source.path)) if source.path else "stdin",
                source=source.place,
                schema_asked=order.schema or AUTOMATIC,
                schema_asked_version=order.schema_version,
                variant=order.variant,
                job_id=derived_id("document-job", document_id),
                created_at=now,
            )
            return take_in(source, record, blobs, self._limits)

        # Ids in the order of the inputs, whoever is read first: of the same bytes, the first is the original.
        begun = [
            # Whoever waits for a pipe must be the one whom Ctrl-C reaches; a thread would wait on.
            partial(read, document_id, source)
            if source.keeps_waiting
            else readers.submit(read, document_id, source).result
            for document_id, source in zip(sorted(new_id() for _ in some), some, strict=True)
        ]
        records = [record() for record in begun]
        with self._database.write() as connection:
            known = _taken_in(connection, run_id, [str(record.source) for record in records])
            new = [record for record in records if (record.source, record.sha256) not in known]
            insert_new(connection, new)
            # Two processes may have begun the same run together: then the other's document stands.
            known = _taken_in(connection, run_id, [str(record.source) for record in records])
        stored = [known[str(record.source), record.sha256] for record in records]
        # Bytes that were there before may have expired a moment ago; from now on our row protects them.
        stay(self._database, sorted({each.original_key for each in records if each.original_key}), wait)
        for source, record in zip(some, records, strict=True):
            if record.original_key is not None and not blobs.has(record.original_key):
                self._again(source, blobs)
        self._submit(stored, order, template_id)
        self._retry([each.id for each in stored if each.job_failed])
        return [Entry(shown=source.shown, document_id=each.id) for source, each in zip(some, stored, strict=True)]

    def _again(self, source: Source, blobs: Blobs) -> None:
        if source.path is not None and source.path.is_file():
            with source.path.open("rb") as stream:
                blobs.put(stream, limit=self._limits.max_bytes)

    def _retry(self, ids: Sequence[str]) -> None:
        """Try documents again that failed in an earlier attempt at this run, unless their bytes are at fault."""
        for record in self._documents.many(ids).values() if ids else ():
            if record.job_id is not None and record.error_code not in CODES_OF_BYTES:
                with suppress(Conflict):  # Somebody else was quicker.
                    self._jobs.retry(record.job_id)

    def _submit(self, stored: "Sequence[_Stored]", order: Order, template_id: str) -> None:
        """Submit the jobs of documents that have none yet."""
        wanted = {each.job_id: each for each in stored if each.job_id is not None and not each.has_job}
        if not wanted:
            return
        self._jobs.submit(
            [
                NewJob(
                    id=job_id,
                    template_id=template_id,
                    org_id=self._org_id,
                    entity_type="document",
                    entity_id=each.id,
                    title=each.file_name,
                    metadata=order.metadata,
                    file_type=each.format,
                )
                for job_id, each in wanted.items()
            ]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """What submitting needs to know of a stored document."""

    id: str
    job_id: str | None
    file_name: str
    format: str | None
    has_job: bool
    job_failed: bool


def _taken_in(connection: Connection, run_id: str, places: Sequence[str]) -> Mapping[tuple[str, str | None], _Stored]:
    """The documents that this run has from these places, by place and hash."""
    query = (
        select(
            *(documents.c[name] for name in ("id", "job_id", "file_name", "format", "source", "sha256", "status")),
            jobs.c.id.label("found"),
            jobs.c.status.label("job_status"),
        )
        .select_from(documents.outerjoin(jobs, jobs.c.id == documents.c.job_id))
        .where(tuple_(documents.c.run_id, documents.c.source).in_([(run_id, place) for place in places]))
    )
    unfinished = (DocumentStatus.QUEUED.value, DocumentStatus.PROCESSING.value)
    return {
        (row.source, row.sha256): _Stored(
            id=row.id,
            job_id=row.job_id,
            file_name=row.file_name,
            format=row.format,
            # A job that was pruned has been; it is not done again.
            has_job=row.found is not None or row.status not in unfinished,
            # One that was cancelled is what somebody wanted.
            job_failed=row.job_status == JobStatus.FAILED.value,
        )
        for row in connection.execute(query)
    }
