"""Refusals of the server, as errors."""

from collections.abc import Mapping, Sequence
from typing import Any

from docmill.model.errors import DocmillError


class Refused(DocmillError):
    """The server refused; `status`, `code` and `errors` are those of its problem document."""

    code = "refused"

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        super().__init__(str(body.get("detail") or f"The server answered {status}."))
        self.status = status
        self.code = str(body.get("code") or "refused")
        self.errors: Sequence[Mapping[str, str]] = body.get("errors") or ()
        self.retry_after: float | None = None
