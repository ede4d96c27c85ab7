"""The public way in: write step types, processors and entity loaders for Docmill. Follows semantic versioning.

Long because it is the one page that authors of plug-ins read.

A step *computes* (calls models, reads files, asks services) with no transaction open; a processor *applies* the result
to your tables in the transaction that completes the step. So a database effect happens exactly once, whatever dies.

    from docmill.plugin import ApplyContext, StepContext, processor, step

    @step("invoice.total", kind="rule")
    async def total(ctx: StepContext, entity: dict) -> dict:
        return {"total": sum(line["amount"] for line in entity["lines"])}

    @processor("invoice", "saveTotal")
    def save_total(ctx: ApplyContext, result: dict) -> None:
        ctx.db.execute("update invoices set total = :t where id = :id", {"t": result["total"], "id": ctx.entity_id})

Docmill finds them through the `docmill.plugins` entry point of your package (its value names a module), or through the
setting `plugins` (DOCMILL_PLUGINS=your.module). A step function may ask for `entity`, `results`, `input` and `item` by
naming parameters so: what it does not ask for is not loaded. Plain `def` steps run in a thread, `async def` steps on
the loop.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any, Protocol, TypeVar, assert_never, overload

from docmill.model.ai import Answer, Attachment, FinishReason, ModelCall, Reply
from docmill.model.errors import Deferred, DocmillError, PermanentError, RetryableError
from docmill.model.ids import derived_id
from docmill.model.issues import Issue, Resolution
from docmill.model.statuses import StepKind

__all__ = [
    "Answer",
    "ApplyContext",
    "Attachment",
    "Database",
    "Deferred",
    "Fallback",
    "FinishReason",
    "FollowUp",
    "GiveUp",
    "Issue",
    "ModelCall",
    "PermanentError",
    "Reconciled",
    "Recovery",
    "Registry",
    "Reply",
    "Resolution",
    "Retry",
    "RetryableError",
    "StepContext",
    "Wait",
    "derived_id",
    "entity_loader",
    "processor",
    "provider",
    "step",
]

FINISH_TYPE = "FinishProcessing"
_MARK = "__docmill__"
_LOADABLE = frozenset({"entity", "results", "input", "item"})

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class PluginInvalid(DocmillError):
    """A plug-in declares something that cannot work; the message names it."""

    code = "plugin_invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """A job to submit when this step completes: once, in the same transaction. The step does not wait for it."""

    template: str
    entity_type: str
    entity_id: str
    title: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Returned by a step that now waits for a callback or a person; without an answer in time the attempt fails."""

    within: timedelta | float | None = None
    """How long: a timedelta, or seconds. None: as the template says (`answer_within`), else 30 days."""
    note: Mapping[str, object] = field(default_factory=dict)
    """What to remember while waiting, such as the id the other side gave."""
    issue: Issue | None = None
    """A question to a person; if it blocks, the data of its resolution is the result of the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A recovery strategy's answer: another attempt, if one is left, however the failure was meant."""

    after: timedelta | float | None = None
    """How long to wait, in seconds if a number; None: as the template says."""
    model: Mapping[str, object] = field(default_factory=dict)
    """Model settings to change in the next attempt."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """A recovery strategy's answer: complete the step with this result, which is checked and applied as any other."""

    result: object


@dataclass(frozen=True, slots=True)
class GiveUp:
    """A recovery strategy's answer: the step has failed, whatever attempts are left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """What `ApplyContext.reconcile` did to a set of rows."""

    written: int
    """Rows that are new or were changed."""
    unchanged: int
    """Rows that were there already, as they are."""
    removed: int
    """Rows that are no longer produced and that nobody can be using."""
    kept: tuple[str, ...]
    """Keys of rows that are no longer produced and stay, for something may be using them. A later call removes them."""
    busy: bool
    """Whether they stay because another job of the entity is active, and not because a foreign key points at them."""


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


Recovery = Callable[
    [StepContext, Exception], Awaitable[Retry | Fallback | GiveUp | None] | Retry | Fallback | GiveUp | None
]
"""What to do about a failure: `def decide(ctx, error)`, plain or async; None means what usually happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepType:
    """A registered step type."""

    name: str
    kind: StepKind
    function: Callable[..., Any]
    needs: frozenset[str]
    paid: bool
    recoveries: Mapping[str, "Recovery"]
    recovery: str | None
    """The strategy it has unless a template names another."""
    is_async: bool
    output: str | None = None
    """The key of the result that `output_schema` describes; None: the whole result."""
    together: bool = False
    """Called once for all steps of an execution group that are ready at the same moment; see `step`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """A registered processor."""

    service: str
    method: str
    function: Callable[[ApplyContext, Any], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityLoader:
    """A registered entity loader."""

    entity_type: str
    function: Callable[[Database, str], Mapping[str, object] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A registered provider of models."""

    name: str
    function: Callable[[ModelCall], Awaitable[Answer]]
    limited: bool
    """Whether breaker, rate limit and budget stand before it; not for what neither costs nor can be overloaded."""


def step(
    name: str,
    *,
    kind: str = "rule",
    paid: bool | None = None,
    recoveries: Mapping[str, Recovery] | None = None,
    recovery: str | None = None,
    output: str | None = None,
    together: bool = False,
) -> Callable[[F], F]:
    """Declare a step type.

    `paid` (default: true for `ai`) stores the result durably before it is applied, so that it is never computed twice.
    `recoveries` are strategies for its failures, by the name that a template gives in `recovery`; the one named
    `recovery` here is used where the template names none.
    `output` names the key of the result that a template's `output_schema` describes (default: the whole result).
    `together` (only for `external`) calls the function once for all steps of one execution group and one executor that
    are ready at the same moment: it gets a list of contexts, `input` as a list in the same order, and returns as many
    values.
    """
    step_kind = StepKind(kind)
    if recovery is not None and recovery not in (recoveries or {}):
        raise PluginInvalid(f"Step {name!r}: its recovery {recovery!r} is none of its recoveries.")

    def declare(function: F) -> F:
        parameters = list(inspect.signature(function).parameters)
        needs = frozenset(parameters[1:])
        if not parameters or not needs <= _LOADABLE:
            unknown = ", ".join(sorted(needs - _LOADABLE)) or "nothing"
            raise PluginInvalid(
                f"Step {name!r}: the function takes the context first, then any of entity, results, input, item; "
                f"it asks for {unknown}."
            )
        is_async = inspect.iscoroutinefunction(function)
        if together and not (is_async and step_kind is StepKind.EXTERNAL):
            raise PluginInvalid(f"Step {name!r}: only `async def` steps of kind external are called together.")
        spec = StepType(
            name=name,
            kind=step_kind,
            function=function,
            needs=needs,
            paid=step_kind is StepKind.AI if paid is None else paid,
            recoveries=dict(recoveries or {}),
            recovery=recovery,
            is_async=is_async,
            together=together,
            output=output,
        )
        return _mark(function, spec)

    return declare


Declaration = StepType | Processor | EntityLoader | Provider
"""What a plug-in may declare."""


def processor(service: str, method: str) -> Callable[[F], F]:
    """Declare a processor: `def apply(ctx: ApplyContext, result) -> None`, a plain function."""

    def declare(function: F) -> F:
        if inspect.iscoroutinefunction(function):
            raise PluginInvalid(f"Processor {service}.{method} must be a plain function: it runs in a transaction.")
        return _mark(function, Processor(service=service, method=method, function=function))

    return declare


def entity_loader(entity_type: str) -> Callable[[F], F]:
    """Declare how entities of a type are loaded: `def load(db: Database, entity_id: str) -> dict | None`."""

    def declare(function: F) -> F:
        return _mark(function, EntityLoader(entity_type=entity_type, function=function))

    return declare


def declared(function: Callable[..., Any], kind: type[T]) -> T:
    """What the decorators noted on a function, of this kind: for step types that are made at run time."""
    (spec,) = [spec for spec in getattr(function, _MARK, ()) if isinstance(spec, kind)]
    return spec


def provider(name: str, *, limited: bool = True) -> Callable[[F], F]:
    """Declare a provider of models: `async def ask(call: ModelCall) -> Answer`.

    It answers for models named `name:...`. What goes wrong it raises as the errors of `docmill.model.ai_errors`: by
    them the gateway knows whether the provider is ill, and the engine whether to try again.
    """

    def declare(function: F) -> F:
        if not inspect.iscoroutinefunction(function) or ":" in name:
            raise PluginInvalid(f"Provider {name!r} must be an `async def` function, and its name have no colon.")
        return _mark(function, Provider(name=name, function=function, limited=limited))

    return declare


def _mark(function: F, spec: Declaration) -> F:
    function.__dict__[_MARK] = (*getattr(function, _MARK, ()), spec)
    return function


class Registry:
    """Everything that was declared for an application. Made once at start; there is no global one."""

    def __init__(self) -> None:
        self.steps: dict[str, StepType] = {}
        self.processors: dict[tuple[str, str], Processor] = {}
        self.loaders: dict[str, EntityLoader] = {}
        self.providers: dict[str, Provider] = {}

    def add_module(self, module: ModuleType) -> None:
        """Take in everything declared in a module."""
        for function in list(vars(module).values()):
            for spec in getattr(function, _MARK, ()) if callable(function) else ():
                self.add(spec)

    def add(self, spec: Declaration) -> None:
        """Take in one declaration; a second one of the same name is refused."""
        match spec:
            case StepType():
                self._put(self.steps, spec.name, spec, f"step type {spec.name!r}")
            case Processor():
                name = f"processor {spec.service}.{spec.method}"
                self._put(self.processors, (spec.service, spec.method), spec, name)
            case EntityLoader():
                self._put(self.loaders, spec.entity_type, spec, f"loader of {spec.entity_type!r}")
            case Provider():
                self._put(self.providers, spec.name, spec, f"model provider {spec.name!r}")
            case _:
                assert_never(spec)

    @staticmethod
    def _put(table: dict[Any, Any], key: object, spec: Any, what: str) -> None:
        known = table.setdefault(key, spec)
        if known is not spec and known.function is not spec.function:
            raise PluginInvalid(
                f"The {what} is declared twice, in {known.function.__module__} and {spec.function.__module__}."
            )
