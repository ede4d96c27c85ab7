"""What steps and processors are called with, as they see it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol, TypeVar, overload

from docmill.model.ai import Attachment, Reply
from docmill.model.issues import Issue, Resolution
from docmill.plugin.answers import FollowUp, Reconciled

T = TypeVar("T")


class StepContext(Protocol):
    """What a step knows and can do while it computes."""

    job_id: str
    org_id: str
    entity_type: str
    entity_id: str
    title: str
    metadata: Mapping[str, object]
    file_type: str | None
    step_key: str
    attempt: int
    """1 for the first attempt."""
    max_attempts: int
    effect_key: str
    """The same for every attempt of this step in this run: give it to services that deduplicate."""
    token: str
    """Answers this very attempt while it waits: a secret, for whoever is to answer and nobody else."""
    display_name: str
    task_type: str
    """That of the template."""
    execution_group: int
    executor: str | None
    """Whom the template wants an external step sent to."""
    answer_within: float | None
    """Seconds that the template gives an outside executor to answer."""
    model: Mapping[str, object]
    """Model settings of this attempt, switched and raised as the template says."""
    prompt: str | None
    """The text of the prompt that the template names, read for this attempt and filled in with the entity."""
    prompt_id: str | None
    """The version of the prompt that the text was made from."""
    output_schema: Mapping[str, object] | None
    item: object
    """In a step with `for_each`: the item this call is for; `effect_key`, `token` and `once` are then its own."""
    item_key: str | None
    """What the item is known by: itself if it is text or a number, its `key` or `id`, or its place in the list."""
    item_index: int | None

    @property
    def stopping(self) -> bool:
        """True once the step should wind up: it is cancelled, nearly out of time, or its worker is shutting down."""

    # Two signatures rather than `Awaitable[T] | T`, from which type checkers cannot infer T.
    @overload
    async def once(self, name: str, compute: Callable[[], Awaitable[T]]) -> T: ...

    @overload
    async def once(self, name: str, compute: Callable[[], T]) -> T: ...

    async def once(self, name: str, compute: Callable[[], Any]) -> Any:
        """The value of `compute`, stored durably under this name: a rerun of the step gets it back without computing.

        The value must be JSON-able. Only for `async def` steps.
        """

    async def generate(
        self,
        prompt: str | None = None,
        *,
        schema: Mapping[str, object] | None = None,
        instructions: str | None = None,
        attachments: Sequence[Attachment] = (),
        **settings: object,
    ) -> Reply:
        """Ask a model: the step's own `prompt`, `output_schema` and `model` settings unless you give others.

        `settings` are those of `model_config`: `model`, `max_tokens`, `temperature`, `timeout`, and whatever else the
        provider reads. The call is recorded against this attempt, and limits and budget are kept. An answer that is
        truncated, malformed or against its schema raises. Only for `async def` steps.
        """

    async def cpu(self, function: Callable[..., T], *arguments: object, timeout: float | None = None) -> T:
        """Run a module-level function in a child process with memory and time limits; one that dies harms nobody."""

    def follow_up(self, job: FollowUp) -> None:
        """Submit this job when the step completes."""

    def issue(self, issue: Issue) -> None:
        """Open this issue when the step completes; with a blocking one it waits, and completes with the answer."""

    async def resolutions(self) -> Sequence[Resolution]:
        """How earlier issues of this step were resolved, oldest first. Only for `async def` steps."""


class Database(Protocol):
    """The transaction that completes the step, for your own tables. Never commit or roll back yourself."""

    def execute(self, statement: Any, parameters: Any = None) -> Any:
        """Run SQL text (`:name` parameters) or a SQLAlchemy statement; returns a SQLAlchemy result.

        A database error fails the apply even if you swallow it, unless it happened inside `savepoint()`.
        """

    def savepoint(self) -> AbstractContextManager[None]:
        """What fails inside is undone, and the rest of the transaction lives on."""


class ApplyContext(Protocol):
    """What a processor knows. It may only write through `db`: no calls to the outside world."""

    db: Database
    job_id: str
    org_id: str
    entity_type: str
    entity_id: str
    metadata: Mapping[str, object]
    step_key: str
    effect_key: str
    now: datetime

    def follow_up(self, job: FollowUp) -> None:
        """Submit this job in the same transaction."""

    def issue(self, issue: Issue) -> None:
        """Open this issue in the same transaction. It cannot block: the step completes."""

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
        """Make `rows` the rows of this scope, without taking away any that a later stage may be using.

        Rows are known by `key`, which a rerun must produce again: make it with `derived_id`. Rows that are there as
        they should be are not touched. Those of the scope (columns and their values, such as `{"book_id": …}`) that
        are no longer produced are removed, but only while no other job of the entity is active and no foreign key
        points at them; otherwise they stay until a later call finds them unused. `superseded` names a nullable
        column that then tells them apart: it holds the time since when they are stale, and null for rows that are
        not. `used_by` names further entities, (type, id), whose jobs use the rows.
        """
