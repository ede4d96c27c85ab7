"""What an outside executor sends back, checked before it is believed. Pure; nothing it is given makes it raise anything
but CallbackInvalid.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from docmill.engine.context import to_json
from docmill.model.callbacks import CallbackStatus
from docmill.model.errors import DocmillError, InvalidInput

MOST_BYTES = 4 * 1024 * 1024
DEEPEST = 100
_LONGEST_NAME = 200
_LONGEST_ERROR = 2000


class CallbackInvalid(InvalidInput):
    """The callback makes no sense; the message says what is wrong with it."""

    code = "callback_invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackPayload:
    """One callback, well-formed. Whether its token is good for its step is not known yet."""

    job_id: str
    step_key: str
    status: CallbackStatus
    result: object
    error: str | None
    token: object

    def stored(self, fault: Mapping[str, object] | None = None) -> str:
        """As it is kept: without the token, which is a secret; `fault` says why a result is as good as a failure."""
        kept = {**self._head(), "resultData": self.result}
        return orjson.dumps(kept if fault is None else {**kept, "fault": fault}).decode()

    def stored_head(self) -> str:
        """As it is kept when it is refused: anybody can send nonsense, and it must not fill the database."""
        return orjson.dumps({name: _cut(value) for name, value in self._head().items()}).decode()

    def _head(self) -> dict[str, object]:
        return {"jobId": self.job_id, "stepKey": self.step_key, "status": self.status, "errorMessage": self.error}


def read_payload(body: bytes | Mapping[str, object]) -> CallbackPayload:
    """The callback in a body, or already taken out of one."""
    data = _decoded(body)
    status = data.get("status")
    if not isinstance(status, str) or status not in set(CallbackStatus):
        known = ", ".join(CallbackStatus)
        raise CallbackInvalid(f"'status' is one of {known}.", field="status")
    error = data.get("errorMessage")
    if error is not None and not isinstance(error, str):
        raise CallbackInvalid("'errorMessage' is text, or left out.", field="errorMessage")
    return CallbackPayload(
        job_id=_name(data, "jobId"),
        step_key=_name(data, "stepKey"),
        status=CallbackStatus(status),
        result=data.get("resultData"),
        error=None if error is None else error[:_LONGEST_ERROR],
        token=data.get("token"),
    )


def _decoded(body: bytes | Mapping[str, object]) -> dict[str, Any]:
    """Plain JSON data that any database can hold."""
    if isinstance(body, bytes):
        _check_size(len(body))
    try:
        text = body if isinstance(body, bytes) else to_json(dict(body), "the callback").encode()
        _check_size(len(text))
        data = orjson.loads(text)
        # What came as bytes may hold an escaped NUL, which no database takes.
        to_json(data, "the callback")
    except CallbackInvalid:
        raise
    except (ValueError, DocmillError) as error:
        reason = error.message if isinstance(error, DocmillError) else f"{error}"
        raise CallbackInvalid(f"The callback is no JSON that can be stored: {reason[:200]}", field="body") from error
    if not isinstance(data, dict):
        raise CallbackInvalid(
            "A callback is a JSON object: {jobId, stepKey, status, resultData, errorMessage, token}.", field="body"
        )
    _check_depth(data)
    return data


def _check_size(size: int) -> None:
    if size > MOST_BYTES:
        raise CallbackInvalid(f"The callback has {size:,} bytes; {MOST_BYTES:,} are allowed.", field="body")


def _check_depth(data: object) -> None:
    level = [data]
    for _ in range(DEEPEST):
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return
    raise CallbackInvalid(f"The callback is nested deeper than {DEEPEST} levels; send it flatter.", field="body")


def _name(data: Mapping[str, object], field: str) -> str:
    value = data.get(field)
    if not isinstance(value, str) or not value or len(value) > _LONGEST_NAME:
        raise CallbackInvalid(f"'{field}' is text of 1 to {_LONGEST_NAME} characters.", field=field)
    return value


def _cut(value: object) -> object:
    return value[:_LONGEST_NAME] if isinstance(value, str) and not isinstance(value, CallbackStatus) else value
