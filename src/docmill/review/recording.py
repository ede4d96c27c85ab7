"""Who hears of what people do: an audit log, inside the transaction that does it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Connection

from docmill.model.people import Principal

ITEM = "review_item"


class Recorder(Protocol):
    """Records one action; what it writes is committed with the action, or not at all."""

    def record(
        self,
        connection: Connection,
        principal: Principal,
        action: str,
        subject: tuple[str, str],
        before: Mapping[str, Any] | None,
        after: Mapping[str, Any] | None,
        now: datetime,
    ) -> None:
        """`action` is `review.VERB`; `subject` the kind and the id of what it was done to."""
