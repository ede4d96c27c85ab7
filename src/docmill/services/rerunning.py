"""One step once more, by another model: what it said before is kept, so that both can be held side by side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, update

from docmill.db.database import Database
from docmill.db.tables import ai_calls, documents, jobs, processed_documents, review_items
from docmill.documents.blobs import BlobMissing
from docmill.engine.context import STEP_MODELS
from docmill.model.errors import Conflict, InvalidInput, NotFound
from docmill.model.ids import is_id
from docmill.model.statuses import JobStatus, StepKind
from docmill.people.audit import Deed
from docmill.services.acting import Acted
from docmill.services.documents import Documents
from docmill.services.job_views import JobView, StepView
from docmill.services.jobs import JOB, Jobs, Retry
from docmill.services.noting import Noted
from docmill.services.submission import checked_metadata
from docmill.services.templates import Templates
from docmill.templates.plan import Plan

BEFORE = "reruns"
"""Key of the job's metadata: by step, what it said before it was run again."""
_ASK, _EXTRACT = "document.ask", "extract"
_EXTRACTING = (_ASK, "document.extract")
"""Types of steps whose results name extractions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDifference:
    """A value that is not the same any more; None: there is none."""

    path: str
    before: object
    after: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What a step said, and what that cost."""

    model: str | None
    run: int
    cost_nanos: int
    """Of all its calls in that run."""
    result: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A step before and after it was run again."""

    job_id: str
    step_key: str
    status: JobStatus
    before: Side
    after: Side
    differences: Sequence[FieldDifference]
    """Empty as long as the new run has not come to its end."""


class Reruns(Acted):
    """Steps that are run again by other models, of one organisation."""

    def __init__(self, database: Database, jobs: Jobs, templates: Templates, documents: Documents, org_id: str) -> None:
        self._database = database.scoped(org_id)
        self._jobs = jobs
        self._templates = templates
        self._documents = documents
        self._org_id = org_id

    def rerun(self, job_id: str, step_key: str, model: str) -> JobView:
        """Run this step of a finished job again, by this model (`provider:name`), and what rests on it."""
        view = self._jobs.get(job_id)
        step = step_of(view, step_key)
        if step.kind != StepKind.AI:
            told = f"The step {step_key} asks no model: it is of the kind {step.kind}. Name one of the kind ai."
            raise InvalidInput(told, field="path.step_key")
        if not view.summary.status.finished:
            raise Conflict(f"Job {view.summary.id} is still running; wait for its end or cancel it.", job_id=job_id)
        again = self._jobs if self._actor is None else self._jobs.by(self._actor)
        noted = self._noted(view, step, model)
        again.retry(view.summary.id, Retry(steps=(step_key,), keep_checkpoints=False), noted=noted)
        return self._jobs.get(view.summary.id)

    def _noted(self, view: JobView, step: StepView, model: str) -> Noted:
        about_document = self._about_document(view, step)
        result = step.result
        if result is None and about_document:
            # Nobody was asked before: then what was found without a model is what stands against it.
            result = step_of(view, _EXTRACT).result
        calls = len(self._costs(view.summary.id, step.step_key))
        before = {"model": step.model, "run": view.summary.run, "result": result, "calls": calls}
        metadata = {
            **view.metadata,
            STEP_MODELS: {**_mapping(view.metadata.get(STEP_MODELS)), step.step_key: model},
            BEFORE: {**_mapping(view.metadata.get(BEFORE)), step.step_key: before},
            **({"model": model} if about_document else {}),
        }
        checked_metadata(metadata)
        told = ({"step": step.step_key, "model": step.model}, {"step": step.step_key, "model": model})

        def check(connection: Connection) -> None:
            if about_document:
                self._check_at_rest(connection, view)

        def write(connection: Connection) -> None:
            if about_document and is_id(view.summary.entity_id):
                # By whom a document is read is part of the key under which its result answers for others.
                document = update(documents).where(documents.c.id == view.summary.entity_id)
                connection.execute(document.where(documents.c.org_id == self._org_id).values(variant=model))

        deed = Deed("job.model", (JOB, view.summary.id), *told)
        return Noted(version=view.version, metadata=metadata, check=check, write=write, deeds=[deed])

    def _check_at_rest(self, connection: Connection, view: JobView) -> None:
        """Whoever works on the document this moment must not find that it is to be read by somebody else."""
        live = [status.value for status in JobStatus if not status.finished]
        about = (jobs.c.entity_type == view.summary.entity_type, jobs.c.entity_id == view.summary.entity_id)
        query = select(jobs.c.id).where(jobs.c.org_id == self._org_id, *about, jobs.c.status.in_(live))
        busy = connection.execute(query.limit(1)).scalar()
        if busy is not None:
            raise Conflict(f"Job {busy} is at work on the same document; wait for its end or cancel it.", job_id=busy)

    def _about_document(self, view: JobView, step: StepView) -> bool:
        """Whether the step's results are our own, and name extractions."""
        return self._plan(view).step(step.step_key).step_type == _ASK

    def _plan(self, view: JobView) -> Plan:
        return self._templates.plan(self._templates.find(view.summary.template, view.summary.template_version).id)

    def compare(self, job_id: str, step_key: str) -> Comparison:
        """The step before and after it was run again; NotFound if it was not."""
        view = self._jobs.get(job_id)
        step = step_of(view, step_key)
        kept = _kept(view.metadata, step_key)
        if kept is None:
            raise NotFound(
                f"The step {step_key} was not run again by another model. Run it again first.", step_key=step_key
            )
        costs = self._costs(view.summary.id, step_key)
        done = view.summary.status.finished and view.summary.run > kept.run
        chosen = _mapping(view.metadata.get(STEP_MODELS)).get(step_key)
        return Comparison(
            job_id=view.summary.id,
            step_key=step_key,
            status=view.summary.status,
            before=Side(model=kept.model, run=kept.run, cost_nanos=sum(costs[: kept.calls]), result=kept.result),
            after=Side(
                model=step.model if done else chosen if isinstance(chosen, str) else None,
                run=view.summary.run,
                cost_nanos=sum(costs[kept.calls :]),
                result=step.result if done else None,
            ),
            differences=tuple(self._differences(view, step, kept.result)) if done else (),
        )

    def _costs(self, job_id: str, step_key: str) -> list[int]:
        """Of every call that the step made, in order."""
        query = select(ai_calls.c.cost_nanos).where(
            ai_calls.c.job_id == job_id, ai_calls.c.step_key == step_key, ai_calls.c.org_id == self._org_id
        )
        with self._database.read() as connection:
            return list(connection.execute(query.order_by(ai_calls.c.created_at, ai_calls.c.id)).scalars())

    def _differences(self, view: JobView, step: StepView, before: object) -> Iterator[FieldDifference]:
        read = self._extracted if self._about_document(view, step) else _answered
        old, new = dict(_leaves(read(view, before))), dict(_leaves(read(view, step.result)))
        for path in dict.fromkeys([*old, *new]):
            if old.get(path) != new.get(path):
                yield FieldDifference(path=path, before=old.get(path), after=new.get(path))

    def _extracted(self, view: JobView, result: object) -> object:
        """The values of the extraction that a result names; None if there is none, or it is not ours to read."""
        key = _mapping(result).get("extraction")
        if not isinstance(key, str) or not self._named(view, key):
            return None
        try:
            return self._documents.values(key)
        except BlobMissing:
            return None

    def _named(self, view: JobView, key: str) -> bool:
        """Whether one of our own steps in this job names the blob, or a row about its document does.

        What metadata says was once said by somebody, and whoever knows a key must not get what lies under it.
        """
        plan = self._plan(view)
        ours = [step for step in view.steps if plan.step(step.step_key).step_type in _EXTRACTING]
        if any(_mapping(step.result).get("extraction") == key for step in ours):
            return True
        if not is_id(view.summary.entity_id):
            return False
        mine = (documents.c.id == view.summary.entity_id, documents.c.org_id == self._org_id)
        cached, reviewed = processed_documents.c, review_items.c
        rows = (
            select(documents.c.id).where(*mine, documents.c.extraction_key == key),
            select(documents.c.id)
            .join(processed_documents, (cached.org_id == documents.c.org_id) & (cached.sha256 == documents.c.sha256))
            .where(*mine, cached.extraction_key == key),
            select(documents.c.id)
            .join(review_items, reviewed.document_id == documents.c.id)
            .where(*mine, reviewed.extraction_key == key),
        )
        with self._database.read() as connection:
            return any(connection.execute(query.limit(1)).first() is not None for query in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """What a step said before, as it was noted."""

    model: str | None
    run: int
    calls: int
    result: object


def _kept(metadata: Mapping[str, object], step_key: str) -> _Kept | None:
    """The note of this step; None if there is none that could be Docmill's."""
    match _mapping(metadata.get(BEFORE)).get(step_key):
        case {"model": str() | None as model, "run": int(run), "calls": int(calls), "result": result} if calls >= 0:
            return _Kept(model=model, run=run, calls=calls, result=result)
        case _:
            return None


def _answered(view: JobView, result: object) -> object:
    """What of a model's answer is held against the other."""
    told = _mapping(result)
    return told.get("data") if told.get("data") is not None else told.get("message", result)


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Every plain value in a structure, by its path."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _leaves(part, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        for place, part in enumerate(value):
            yield from _leaves(part, f"{path}[{place}]")
    elif value is not None:
        yield path, value


def step_of(view: JobView, step_key: str) -> StepView:
    """The step of a job by its key; NotFound names those there are."""
    for step in view.steps:
        if step.step_key == step_key:
            return step
    known = ", ".join(step.step_key for step in view.steps)
    raise NotFound(f"The job has no step {step_key}; its steps are {known}.", step_key=step_key)


def _mapping(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}
