"""Who hears of what people do: an audit log, inside the transaction that does it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from sqlalchemy import Connection

from docmill.model.people import Principal
from docmill.people.audit import Deed

ITEM = "review_item"


class Recorder(Protocol):
    """Records what was done; what it writes is committed with the deeds, or not at all."""

    def record(self, connection: Connection, principal: Principal, deeds: Sequence[Deed], now: datetime) -> None:
        """Often one, but what passed while nobody looked may be thousands."""
