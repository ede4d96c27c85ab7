"""How long items may take, per organisation and schema."""

from collections.abc import Callable
from datetime import timedelta

from sqlalchemy import Connection, delete, insert, select

from docmill.db.alone import alone
from docmill.db.tables import review_settings
from docmill.model.errors import InvalidInput
from docmill.model.people import Permission, Principal
from docmill.people.audit import Deed
from docmill.review.priority import seconds_of
from docmill.services.review_base import ReviewBase

LONGEST_SLA = timedelta(days=3650)
_ANY_SCHEMA = ""

Slas = dict[str | None, timedelta | None]
"""By schema; under None, of all that have none of their own."""


class SlaSettings(ReviewBase):
    """The SLAs of one organisation."""

    def set_sla(
        self,
        principal: Principal,
        sla: timedelta | None,
        *,
        schema: str | None = None,
        onto: Callable[[Slas], None] | None = None,
    ) -> Slas:
        """How long items may take from now on, of one schema or of all without one of their own; None: no SLA.

        `onto` may refuse the SLAs that there are. Those that there are then are the answer.
        """
        self._allow(principal, Permission.REVIEW_MANAGE)
        if sla is not None and not timedelta(seconds=1) <= sla <= LONGEST_SLA:
            raise InvalidInput("An SLA lasts between a second and ten years.", field="seconds")
        key = {"org_id": self._org_id, "schema_name": schema or _ANY_SCHEMA}
        mine = [review_settings.c[name] == value for name, value in key.items()]
        with self._writing() as (connection, now):
            # There may be no row yet that could be locked.
            alone(connection, f"docmill.slas:{self._org_id}")
            if onto is not None:
                onto(self._slas(connection))
            before = connection.execute(select(review_settings.c.sla_seconds).where(*mine)).scalar()
            connection.execute(delete(review_settings).where(*mine))
            seconds = 0 if sla is None else seconds_of(sla)
            values = {"sla_seconds": seconds, "updated_by": principal.id, "updated_at": now}
            connection.execute(insert(review_settings).values(**key, **values))
            slas = self._slas(connection)
            subject, told = ("review_sla", schema or "*"), {"sla_seconds": seconds}
            was = None if before is None else {"sla_seconds": before}
            self._recorder.record(connection, principal, [Deed("review.set_sla", subject, was, told)], now)
            return slas

    def slas(self, principal: Principal) -> Slas:
        """The SLAs of the organisation."""
        self._allow(principal, Permission.REVIEW_READ)
        with self._database.read() as connection:
            return self._slas(connection)

    def _slas(self, connection: Connection) -> Slas:
        query = select(review_settings).where(review_settings.c.org_id == self._org_id)
        return {
            row.schema_name or None: timedelta(seconds=row.sla_seconds) if row.sla_seconds else None
            for row in connection.execute(query.order_by(review_settings.c.schema_name))
        }
