"""The contexts that steps and processors get: see `docmill.plugin` for what they promise."""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import orjson
from sqlalchemy import Connection, TextClause, text
from sqlalchemy.exc import SQLAlchemyError

from docmill.engine.asking import request_of
from docmill.engine.batch import StepRun
from docmill.engine.reconcile import RowSet, reconcile
from docmill.engine.retry import attempt_settings
from docmill.engine.write_only import WriteOnlyDatabase
from docmill.model.ai import Attachment, Caller, Reply, Request
from docmill.model.errors import PermanentError
from docmill.model.tokens import Tokens
from docmill.plugin import FollowUp, Issue, Reconciled, Resolution

T = TypeVar("T")

_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
"""An escaped NUL, and not the text of one: an even number of backslashes stands before it."""

STEP_MODELS = "step_models"
"""Key of the job's metadata: by step, the model that it asks instead of the template's."""


class Services(Protocol):
    """What a context needs from the worker."""

    async def load_parts(self, run: StepRun) -> dict[str, object]:
        """The stored parts of this step."""

    def check_lease(self, run: StepRun) -> None:
        """Raises LeaseLost when the step is not surely still ours."""

    async def store_part(self, run: StepRun, name: str, value: str) -> None:
        """Store a part durably; raises LeaseLost when the step is no longer ours."""

    async def load_resolutions(self, run: StepRun) -> Sequence[Resolution]:
        """How issues of this step were resolved so far."""

    async def run_child(self, function: Callable[..., Any], arguments: tuple[object, ...], timeout: float) -> Any:
        """Run a function in a limited child process."""

    async def generate(self, run: StepRun, request: Request, caller: Caller) -> Reply:
        """Ask a model through the gateway of this worker."""


def effect_key(run: StepRun) -> str:
    """The same for every attempt of the step in this run."""
    return f"{run.job.id}/{run.step.step_key}/{run.run}"


class Context:
    """`StepContext` for one attempt."""

    def __init__(self, run: StepRun, services: Services, tokens: Tokens) -> None:
        job, planned = run.job, run.step
        self._run = run
        self._services = services
        self._tokens = tokens
        self._parts: dict[str, object] | None = None
        self.stopping = False
        self.follow_ups: list[FollowUp] = []
        self.issues: list[Issue] = []
        self.item: object = None
        self.item_key: str | None = None
        self.item_index: int | None = None
        self.recovery_model: Mapping[str, object] = {}
        """What the recovery strategy wants changed about the model in this attempt."""
        self.recovered: str | None = None
        """The error that a recovery strategy made up for, as it is stored."""
        self.job_id = job.id
        self.org_id = job.org_id
        self.entity_type = job.entity_type
        self.entity_id = job.entity_id
        self.title = job.title
        self.metadata: Mapping[str, object] = job.metadata
        self.file_type = job.file_type
        self.step_key = planned.step_key
        self.display_name = planned.display_name
        self.task_type = run.plan.task_type
        self.execution_group = planned.execution_group
        self.executor = planned.executor
        self.answer_within = planned.answer_within
        self.attempt = run.state.failures + 1
        self.max_attempts = planned.max_attempts
        self.prompt: str | None = None
        self.prompt_id: str | None = None
        self.output_schema = planned.output_schema

    @property
    def effect_key(self) -> str:
        return effect_key(self._run)

    @property
    def token(self) -> str:
        return self._tokens.make(*self._run.key)

    @property
    def model(self) -> Mapping[str, object]:
        settings = attempt_settings(self._run.step, failures=self._run.state.failures)
        chosen = self.metadata.get(STEP_MODELS)
        if isinstance(chosen, Mapping) and self._run.step.step_key in chosen:
            # Somebody wants to see what another one says: the template's own has no word in this.
            settings = {**settings, "model": chosen[self._run.step.step_key]}
        return {**settings, **self.recovery_model} if self.recovery_model else settings

    async def once(self, name: str, compute: Callable[[], Awaitable[T] | T]) -> T:
        parts = await self.parts()
        if name in parts:
            return parts[name]  # type: ignore[return-value]  # stored by an earlier call of the same code
        # A process that was stopped in the middle of its parts wakes here: what others have done is not paid for again.
        self.check_lease()
        outcome = compute()
        value = await outcome if inspect.isawaitable(outcome) else outcome
        stored = to_json(value, f"the part {name!r}")
        await self.store_part(name, stored)
        # What a rerun would get: the value as JSON gives it back.
        parts[name] = orjson.loads(stored)
        return parts[name]  # type: ignore[return-value]

    async def parts(self) -> dict[str, object]:
        """What is stored of this step, read once."""
        if self._parts is None:
            loaded = await self._services.load_parts(self._run)
            # Whoever was quicker may have stored something since.
            self._parts = loaded if self._parts is None else self._parts
        return self._parts

    def check_lease(self) -> None:
        """Raise LeaseLost when the step is no longer ours."""
        self._services.check_lease(self._run)

    async def store_part(self, name: str, value: str) -> None:
        """Store JSON text as a part, durably; raises LeaseLost when the step is no longer ours."""
        await self._services.store_part(self._run, name, value)

    async def generate(
        self,
        prompt: str | None = None,
        *,
        schema: Mapping[str, object] | None = None,
        instructions: str | None = None,
        attachments: Sequence[Attachment] = (),
        **settings: object,
    ) -> Reply:
        request = request_of(
            {**self.model, **settings},
            step_key=self.step_key,
            prompt=self.prompt if prompt is None else prompt,
            schema=self.output_schema if schema is None else schema,
            instructions=instructions,
            attachments=attachments,
        )
        caller = Caller(
            org_id=self.org_id,
            job_id=self.job_id,
            position=self._run.step.position,
            step_key=self.step_key,
            attempt=self.attempt,
            prompt_id=self.prompt_id if prompt is None else None,
        )
        return await self._services.generate(self._run, request, caller)

    async def cpu(self, function: Callable[..., T], *arguments: object, timeout: float | None = None) -> T:
        result: T = await self._services.run_child(function, arguments, timeout or self._run.step.timeout)
        return result

    def follow_up(self, job: FollowUp) -> None:
        self.follow_ups.append(job)

    def issue(self, issue: Issue) -> None:
        self.issues.append(issue)

    async def resolutions(self) -> Sequence[Resolution]:
        return await self._services.load_resolutions(self._run)


def to_json(value: object, what: str) -> str:
    """JSON text of a value a plug-in gave us, or an error that says what is wrong with it."""
    try:
        stored = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError) as error:
        raise PermanentError(
            f"Cannot store {what} as JSON: {error}. Use dicts, lists, text, numbers, booleans and None."
        ) from error
    if "\\u0000" in stored and _NUL.search(stored):
        raise PermanentError(f"Cannot store {what}: it contains a NUL character, which databases refuse. Remove it.")
    return stored


@lru_cache(maxsize=512)
def _prepared(statement: str) -> TextClause:
    """Parsed once: SQLAlchemy keeps what it compiled for the same object."""
    return text(statement)


class AppliedDatabase:
    """`plugin.Database` over the completing transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._nested = 0
        self.error: SQLAlchemyError | None = None
        """The first database error outside a savepoint: it fails the apply even if it was swallowed."""

    def raise_swallowed(self) -> None:
        """Fail the apply that went on after a database error."""
        if self.error is not None:
            raise self.error

    def full(self) -> "AppliedDatabase":
        """This one can be read."""
        return self

    @property
    def kind(self) -> str:
        """The name of the database's dialect."""
        return self._connection.dialect.name

    def execute(self, statement: Any, parameters: Any = None) -> Any:
        prepared = _prepared(statement) if isinstance(statement, str) else statement
        try:
            return self._connection.execute(prepared, parameters)
        except SQLAlchemyError as error:
            if not self._nested and self.error is None:
                self.error = error
            raise

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self._nested += 1
        try:
            with self._connection.begin_nested():
                yield
        finally:
            self._nested -= 1


class Applying:
    """`ApplyContext` for one apply."""

    def __init__(self, run: StepRun, database: AppliedDatabase | WriteOnlyDatabase, now: datetime) -> None:
        self._run = run
        self.db = database
        self.job_id = run.job.id
        self.org_id = run.job.org_id
        self.entity_type = run.job.entity_type
        self.entity_id = run.job.entity_id
        self.metadata: Mapping[str, object] = run.job.metadata
        self.step_key = run.step.step_key
        self.effect_key = effect_key(run)
        self.now = now
        self.follow_ups: list[FollowUp] = []
        self.issues: list[Issue] = []

    def follow_up(self, job: FollowUp) -> None:
        self.follow_ups.append(job)

    def issue(self, issue: Issue) -> None:
        if issue.blocking:
            raise PermanentError(
                f"Issue {issue.code!r}: a processor cannot wait for a person. Raise blocking issues in a step, before "
                "its result is applied."
            )
        self.issues.append(issue)

    def reconcile(
        self,
        table: str,
        *,
        scope: Mapping[str, object],
        rows: Sequence[Mapping[str, object]],
        key: str = "id",
        superseded: str | None = None,
        used_by: Sequence[tuple[str, str]] = (),
    ) -> Reconciled:
        database = self.db.full()
        wanted = RowSet(table=table, key=key, scope=scope, rows=rows, superseded=superseded)
        return reconcile(database, database.kind, self._run.job, wanted, used_by=used_by, now=self.now)
