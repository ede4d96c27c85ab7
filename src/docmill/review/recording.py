"""Who hears of what people do: an audit log, inside the transaction that does it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Connection

from docmill.model.people import Principal
from docmill.people.audit import Deed

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

    def record_all(self, connection: Connection, principal: Principal, deeds: Sequence[Deed], now: datetime) -> None:
        """Many at once: what passed while nobody looked may be thousands."""
