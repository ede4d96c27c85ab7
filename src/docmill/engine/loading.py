"""What a step starts from: entity, results of earlier steps, prompt, stored parts. Read on two threads of their own."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Protocol, TypeVar

import orjson
from sqlalchemy import Connection, bindparam, select

from docmill.db.database import Database, is_transient
from docmill.db.tables import issues, job_steps, step_parts
from docmill.engine.batch import StepRun, parsed
from docmill.engine.context import AppliedDatabase
from docmill.engine.readers import Read, Readers
from docmill.model.errors import DatabaseUnavailable, PermanentError
from docmill.model.issues import IssueStatus
from docmill.model.statuses import StepStatus
from docmill.plugin import Registry, Resolution

T = TypeVar("T")
log = logging.getLogger("docmill.engine")
_READERS = 2
# Built once: it is run for nearly every step, and to build it takes longer than to run it.
_RESULTS = select(job_steps.c.step_key, job_steps.c.result).where(
    job_steps.c.job_id == bindparam("of_job"), job_steps.c.status == StepStatus.COMPLETED.value
)

_SQLITE_RESULTS = "select step_key, result from processing_job_steps where job_id = ? and status = ?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What expressions and step functions can name."""

    entity: Mapping[str, object] | None = None
    results: Mapping[str, object] = field(default_factory=dict)
    metadata: Mapping[str, object] = field(default_factory=dict)

    def names(self) -> dict[str, object]:
        """As the expression language sees it."""
        return {"entity": self.entity, "results": self.results, "metadata": self.metadata}


class StepPrompt(Protocol):
    """What a step is to ask a model, filled in for its entity."""

    @property
    def prompt_id(self) -> str:
        """The version it was made from."""

    @property
    def text(self) -> str: ...


class PromptResolver(Protocol):
    """How the engine gets at prompts, which it knows nothing about; `docmill.prompts.store.resolve` is one."""

    def __call__(
        self,
        connection: Connection,
        reference: str,
        /,
        *,
        org_id: str,
        entity: Mapping[str, object] | None,
        entity_id: str,
        entity_type: str,
    ) -> StepPrompt:
        """The prompt as it is now; raises a PermanentError if there is none or it cannot be filled in."""


class Loader:
    """Reads on behalf of the runner; a consistent look per step, freshly taken."""

    def __init__(
        self,
        database: Database,
        registry: Registry,
        resolver: PromptResolver | None = None,
        *,
        patience: float,
        database_answers: Callable[[], bool],
    ) -> None:
        self._database = database
        self._registry = registry
        self._resolver = resolver
        self._readers = Readers(_READERS, patience=patience, database_answers=database_answers)
        self._closing = Event()

    async def read(self, org_id: str, work: Callable[[Connection], T]) -> T:
        """Run the work with a connection of its organisation on a reader thread, waiting for a database that is away.

        An outage must not cost a step one of its attempts: the database is no part of what the step does.
        """
        database = self._database.scoped(org_id)
        return await self._readers.run(lambda read: self._persist(database, read, work))

    def _persist(self, database: Database, read: Read[T], work: Callable[[Connection], T]) -> T:
        pause = 0.02
        while True:
            try:
                with read.timed(), database.read() as connection:
                    return work(connection)
            except Exception as error:
                transient = isinstance(error, DatabaseUnavailable) or is_transient(error)
                if not transient or self._closing.wait(pause):
                    raise
                log.warning("reader: trying again after: %s", error)
                pause = min(1.0, 2 * pause)

    async def scope(self, run: StepRun, needs: frozenset[str]) -> Scope:
        """Load what is needed, and no more."""
        known = "results" not in needs or run.results is not None
        if "entity" not in needs and known:
            # Not looked at again: whoever changes a result takes the step away, or waits for its end.
            results = parsed(run.results or {}) if "results" in needs else {}
            return Scope(results=results, metadata=run.job.metadata)
        return await self.read(run.job.org_id, lambda connection: self._scope(connection, run, needs))

    def _scope(self, connection: Connection, run: StepRun, needs: frozenset[str]) -> Scope:
        return Scope(
            entity=self._entity(connection, run) if "entity" in needs else None,
            results=self._results(connection, run) if "results" in needs else {},
            metadata=run.job.metadata,
        )

    def _entity(self, connection: Connection, run: StepRun) -> Mapping[str, object] | None:
        loader = self._registry.loaders.get(run.job.entity_type)
        if loader is None:
            raise PermanentError(
                f"Nothing here can load entities of type {run.job.entity_type!r}; declare an entity_loader for it."
            )
        whose = {"org_id": run.job.org_id} if loader.for_org else {}
        return loader.function(AppliedDatabase(connection), run.job.entity_id, **whose)

    @staticmethod
    def _results(connection: Connection, run: StepRun) -> Mapping[str, object]:
        if run.results is not None:
            return parsed(run.results)
        if connection.dialect.name == "sqlite":
            # By the driver, for what it costs otherwise; one statement is one look, with a transaction or without.
            raw: Any = connection.connection.driver_connection
            rows = raw.execute(_SQLITE_RESULTS, (run.job.id, StepStatus.COMPLETED.value))
            return {key: None if result is None else orjson.loads(result) for key, result in rows}
        return {row.step_key: row.result for row in connection.execute(_RESULTS, {"of_job": run.job.id})}

    async def prompt(self, run: StepRun, entity: Mapping[str, object] | None) -> StepPrompt:
        """The prompt that the step names, filled in with this entity. Read anew for each attempt, so that a corrected
        prompt is used by the next; on a reader's thread, since a large entity takes time to word."""
        resolver, reference, job = self._resolver, run.step.prompt, run.job
        assert reference is not None
        if resolver is None:
            raise PermanentError(f"This worker was made without prompts, so it has no prompt {reference!r}.")
        return await self.read(
            job.org_id,
            lambda connection: resolver(
                connection,
                reference,
                org_id=job.org_id,
                entity=entity,
                entity_id=job.entity_id,
                entity_type=job.entity_type,
            ),
        )

    async def result(self, run: StepRun) -> str:
        """The checkpointed result of the step itself, as JSON text."""
        return await self.read(run.job.org_id, lambda connection: self._result(connection, run))

    @staticmethod
    def _result(connection: Connection, run: StepRun) -> str:
        query = select(job_steps.c.result).where(
            job_steps.c.job_id == run.job.id, job_steps.c.position == run.step.position
        )
        return orjson.dumps(connection.execute(query).scalar_one()).decode()

    async def error(self, run: StepRun) -> object:
        """What the last attempt of the step ended with."""
        query = select(job_steps.c.error).where(
            job_steps.c.job_id == run.job.id, job_steps.c.position == run.step.position
        )
        return await self.read(run.job.org_id, lambda connection: connection.execute(query).scalar())

    async def parts(self, run: StepRun) -> dict[str, object]:
        """The stored parts of the step."""
        return await self.read(run.job.org_id, lambda connection: self._parts(connection, run))

    @staticmethod
    def _parts(connection: Connection, run: StepRun) -> dict[str, object]:
        query = select(step_parts.c.name, step_parts.c.value).where(
            step_parts.c.job_id == run.job.id, step_parts.c.position == run.step.position
        )
        return {row.name: row.value for row in connection.execute(query)}

    async def resolutions(self, run: StepRun) -> Sequence[Resolution]:
        """How issues of the step were resolved, oldest first."""
        return await self.read(run.job.org_id, lambda connection: self._resolutions(connection, run))

    @staticmethod
    def _resolutions(connection: Connection, run: StepRun) -> Sequence[Resolution]:
        query = (
            select(issues)
            .where(
                issues.c.job_id == run.job.id,
                issues.c.position == run.step.position,
                issues.c.status == IssueStatus.RESOLVED.value,
            )
            .order_by(issues.c.resolved_at, issues.c.id)
        )
        return [
            Resolution(code=row.code, by=row.resolved_by, note=row.note, **row.resolution)
            for row in connection.execute(query)
        ]

    def close(self) -> None:
        self._closing.set()
        self._readers.close()
