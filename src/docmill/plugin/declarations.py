"""The decorators, and what they note on a function: a mark, which the registry of an application collects."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from docmill.model.ai import Answer, ModelCall
from docmill.model.errors import DocmillError
from docmill.model.statuses import StepKind
from docmill.plugin.answers import Fallback, GiveUp, Retry
from docmill.plugin.contexts import ApplyContext, StepContext

FINISH_TYPE = "FinishProcessing"
_MARK = "__docmill__"
_LOADABLE = frozenset({"entity", "results", "input", "item"})

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class PluginInvalid(DocmillError):
    """A plug-in declares something that cannot work; the message names it."""

    code = "plugin_invalid"


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
    at_once: bool = False
    """Called in the transaction that makes the step ready, where nothing stands in the way; see `step`."""


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
    function: Callable[..., Mapping[str, object] | None]
    for_org: bool = False
    """Whether it asks, by a parameter `org_id`, for whose job it loads."""


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
    at_once: bool = False,
) -> Callable[[F], F]:
    """Declare a step type.

    `paid` (default: true for `ai`) stores the result durably before it is applied, so that it is never computed twice.
    `recoveries` are strategies for its failures, by the name that a template gives in `recovery`; the one named
    `recovery` here is used where the template names none.
    `output` names the key of the result that a template's `output_schema` describes (default: the whole result).
    `together` (only for `external`) calls the function once for all steps of one execution group and one executor that
    are ready at the same moment: it gets a list of contexts, `input` as a list in the same order, and returns as many
    values.
    `at_once` (only for plain `def` functions) says that the result follows from `results` and the context's metadata in
    next to no time, with nobody asked and nothing written: then the step needs no transaction of its own.
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
        if at_once and (is_async or paid or step_kind not in (StepKind.RULE, StepKind.SYSTEM)):
            raise PluginInvalid(f"Step {name!r}: only plain `def` steps of kind rule or system are done at once.")
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
            at_once=at_once,
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
    """Declare how entities of a type are loaded: `def load(db: Database, entity_id: str) -> dict | None`.

    With a third parameter `org_id` it is told the organisation of the job as well, and should find nothing of another.
    """

    def declare(function: F) -> F:
        for_org = "org_id" in inspect.signature(function).parameters
        return _mark(function, EntityLoader(entity_type=entity_type, function=function, for_org=for_org))

    return declare


def marks(function: object) -> tuple[Declaration, ...]:
    """All that the decorators noted on a function."""
    return getattr(function, _MARK, ()) if callable(function) else ()


def declared(function: Callable[..., Any], kind: type[T]) -> T:
    """What the decorators noted on a function, of this kind: for step types that are made at run time."""
    (spec,) = [spec for spec in marks(function) if isinstance(spec, kind)]
    return spec


def provider(name: str, *, limited: bool = True) -> Callable[[F], F]:
    """Declare a provider of models: `async def ask(call: ModelCall) -> Answer`.

    It answers for models named `name:...`. What goes wrong it raises as `ModelUnavailable` and its like: by
    them the gateway knows whether the provider is ill, and the engine whether to try again.
    """

    def declare(function: F) -> F:
        if not inspect.iscoroutinefunction(function) or ":" in name:
            raise PluginInvalid(f"Provider {name!r} must be an `async def` function, and its name have no colon.")
        return _mark(function, Provider(name=name, function=function, limited=limited))

    return declare


def _mark(function: F, spec: Declaration) -> F:
    function.__dict__[_MARK] = (*marks(function), spec)
    return function
