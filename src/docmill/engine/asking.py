"""Asking a model on behalf of a step: who asks, and what, from the settings of the attempt. Pure.

The engine does not know the gateway; it is handed something that can `generate`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from docmill.model.ai import Attachment, Caller, Reply, Request
from docmill.model.errors import PermanentError

T = TypeVar("T")


class Models(Protocol):
    """The gateway, as far as the engine knows it."""

    async def generate(self, request: Request, caller: Caller, still_wanted: Callable[[], None]) -> Reply:
        """Ask a model; raises the errors of `docmill.model.ai_errors`, or Deferred.

        `still_wanted` is asked at the last moment before the model is; it raises if the answer would be of no use.
        """


def request_of(
    settings: Mapping[str, object],
    *,
    step_key: str,
    prompt: str | None,
    schema: Mapping[str, object] | None,
    instructions: str | None,
    attachments: Sequence[Attachment],
) -> Request:
    """The request that a step's `model_config` and its own words make; PermanentError names what is wrong in it."""
    if prompt is None:
        raise PermanentError(f"Step {step_key} asks a model without a prompt. Give the step one in its template.")
    rest = dict(settings)
    return Request(
        prompt=prompt,
        model=_taken(rest, "model", str, "a name", step_key),
        instructions=_taken(rest, "instructions", str, "text", step_key) or ""
        if instructions is None
        else instructions,
        attachments=tuple(attachments),
        output_schema=schema,
        max_tokens=_positive(_taken(rest, "max_tokens", int, "a whole number", step_key), "max_tokens", step_key),
        temperature=_number(rest, "temperature", step_key),
        timeout=_positive(_number(rest, "timeout", step_key), "timeout", step_key),
        cache=_truth(rest, "cache", step_key),
        options=rest,
    )


def _taken(rest: dict[str, object], name: str, kind: type[T], what: str, step_key: str) -> T | None:
    value = rest.pop(name, None)
    if value is None or (isinstance(value, kind) and not isinstance(value, bool)):
        return value
    raise PermanentError(f"Step {step_key}: {name} in model_config must be {what}, not {value!r}.")


def _truth(rest: dict[str, object], name: str, step_key: str) -> bool | None:
    value = rest.pop(name, None)
    if value is None or isinstance(value, bool):
        return value
    raise PermanentError(f"Step {step_key}: {name} in model_config must be true or false, not {value!r}.")


def _number(rest: dict[str, object], name: str, step_key: str) -> float | None:
    value = rest.pop(name, None)
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise PermanentError(f"Step {step_key}: {name} in model_config must be a number, not {value!r}.")


def _positive(value: T | None, name: str, step_key: str) -> T | None:
    if isinstance(value, int | float) and not value > 0:
        raise PermanentError(f"Step {step_key}: {name} in model_config must be above 0, not {value!r}.")
    return value
