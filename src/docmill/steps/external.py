"""`external.call`: sends the ready steps of one execution group to an outside executor, which answers by callback.

One message for all of them, with the entity as it is now. It may arrive twice: its id is the same then, and each step's
`effectKey` is the same for every attempt. What changes with each sending are the deadlines and the link to the file,
which is made for this message and kept nowhere. The page docs/reference/external-steps.md has the wire format.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import orjson

from docmill.engine.thread_call import in_thread
from docmill.model.errors import PermanentError, RetryableError
from docmill.model.ids import derived_id
from docmill.plugin import StepContext, StepType, Wait, declared, step
from docmill.templates.catalogue import EXTERNAL_TYPE
from docmill.webhooks.posting import Reply, post
from docmill.webhooks.signatures import signed_headers

if TYPE_CHECKING:
    # Not to check a template: it must not cost the import of a database library.
    from docmill.documents.handing_out import FileLink, Originals

MOST_SENT = 16 * 1024 * 1024
"""Bytes of a message."""
ANSWER_WITHIN = 24 * 3600.0
"""Seconds that an outside executor has if the template does not say."""
GRACE = timedelta(minutes=1)
"""So much longer than the last deadline a file can be fetched: clocks differ, and a link counts whole seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """Somebody outside who does steps for us."""

    url: str
    key: bytes | None = None
    """Signs what we send and proves what comes back; None: neither is signed."""
    timeout: float = 30.0


def external_call(
    executors: Mapping[str, Executor], clock: Callable[[], datetime], originals: "Originals | None" = None
) -> StepType:
    """The step type, for the executors of one installation; without `originals` they are given no file."""

    @step(EXTERNAL_TYPE, kind="external", together=True)
    async def call(
        steps: Sequence[StepContext], entity: Mapping[str, object] | None, input: Sequence[Mapping[str, object]]
    ) -> list[Wait]:
        """Send one message and let all its steps wait."""
        name = steps[0].executor
        executor = executors.get(name or "")
        if executor is None:
            known = ", ".join(sorted(executors)) or "none"
            raise PermanentError(f"There is no executor {name!r} in the settings (`executors`); there are: {known}.")
        now = clock()
        file = None if originals is None else await in_thread(lambda: _file(originals, steps, now))
        body = _message(steps, entity, input, file, now)
        message_id = derived_id("dispatch", *sorted(context.token for context in steps))
        headers = {
            "content-type": "application/json",
            "user-agent": "docmill",
            **signed_headers(executor.key, message_id=message_id, body=body, now=now),
        }
        reply = await in_thread(lambda: post(executor.url, body, headers, timeout=executor.timeout))
        _check_accepted(str(name), reply, clock())
        note = {"executor": name, "message_id": message_id}
        return [Wait(within=_within(context), note=note) for context in steps]

    return declared(call, StepType)


def _within(context: StepContext) -> float:
    return ANSWER_WITHIN if context.answer_within is None else context.answer_within


def _file(originals: "Originals", steps: Sequence[StepContext], now: datetime) -> "FileLink | None":
    """The file of the job, for as long as any of these steps may take."""
    first, longest = steps[0], max(map(_within, steps))
    within = timedelta(seconds=longest) + GRACE
    return originals.link(first.org_id, first.entity_type, first.entity_id, within=within, now=now)


def _message(
    steps: Sequence[StepContext],
    entity: Mapping[str, object] | None,
    inputs: Sequence[Mapping[str, object]],
    file: "FileLink | None",
    now: datetime,
) -> bytes:
    first = steps[0]
    message = {
        "type": first.task_type,
        "entityId": first.entity_id,
        "entityType": first.entity_type,
        "entity": entity,
        "metadata": {
            "jobId": first.job_id,
            "executionGroup": first.execution_group,
            "job": first.metadata,
            "fileType": first.file_type,
            "fileUrl": None if file is None else file.url,
            "fileUrlExpiresAt": None if file is None else file.expires_at.isoformat(timespec="seconds"),
            "steps": [_step(context, values, now) for context, values in zip(steps, inputs, strict=True)],
        },
    }
    try:
        body = orjson.dumps(message, option=orjson.OPT_NON_STR_KEYS)
    except TypeError as error:
        raise PermanentError(f"The entity cannot be sent as JSON: {error}. Correct its entity_loader.") from error
    if len(body) > MOST_SENT:
        raise PermanentError(
            f"The message has {len(body):,} bytes; {MOST_SENT:,} are allowed. Load less of the entity."
        )
    return body


def _step(context: StepContext, values: Mapping[str, object], now: datetime) -> dict[str, object]:
    return {
        "stepKey": context.step_key,
        "displayName": context.display_name,
        "prompt": context.prompt,
        "model": dict(context.model),
        "outputSchema": context.output_schema,
        "input": dict(values),
        "token": context.token,
        "attempt": context.attempt,
        "maxAttempts": context.max_attempts,
        "effectKey": context.effect_key,
        "deadline": (now + timedelta(seconds=_within(context))).isoformat(timespec="seconds"),
    }


def _check_accepted(name: str, reply: Reply, now: datetime) -> None:
    """2xx: they have it. Not a word of what they say beyond the status: it may hold anything."""
    status = reply.status
    if 200 <= status < 300:
        return
    said = f"The executor {name!r} answered {status}"
    if status in (408, 429) or status >= 500:
        raise RetryableError(f"{said}.", retry_after=reply.retry_seconds(now) if status in (429, 503) else None)
    if 300 <= status < 400:
        raise PermanentError(f"{said}: redirects are not followed. Correct `executors.{name}.url` in the settings.")
    raise PermanentError(f"{said} and will not take this message. Look at its log.")
