"""What passes in review without anybody looking, written down: ends of claims, times at risk and overdue."""

from datetime import UTC, datetime, timedelta

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.model.people import system_principal
from docmill.people.audit import AuditTrail, Deed
from docmill.review.queue import DUE_ORGS, settle
from docmill.review.recording import ITEM, Recorder

_REST = timedelta(seconds=10)
"""Between two looks."""


class ReviewChores:
    """What passes without anybody looking, for all organisations: ends of claims, times at risk and overdue."""

    def __init__(self, database: Database, recorder: Recorder | None = None) -> None:
        self._database = database
        self._recorder = recorder or AuditTrail()
        self._next = datetime.min.replace(tzinfo=UTC)

    def __call__(self, now: datetime) -> None:
        if now < self._next:
            return
        self._next = now + _REST
        with self._database.as_keeper().read() as connection:
            moment = database_now(connection)
            found: set[str] = set(connection.execute(DUE_ORGS, {"now": moment}).scalars())
        for org_id in sorted(found):
            settle_one(self._database, org_id, moment, self._recorder)


def settle_one(database: Database, org_id: str, now: datetime, recorder: Recorder) -> None:
    """Write down what has passed in one organisation, and record it as done by the system."""
    system = system_principal(org_id)
    with database.scoped(org_id).write() as connection:
        settled = settle(connection, org_id, now)
        told: list[tuple[str, str, dict[str, str], dict[str, str]]] = []
        told += [("claim_expired", item, {"claimed_by": who}, {}) for item, who in settled.expired.items()]
        told += [("resume", item, {}, {}) for item in settled.resumed]
        told += [("sla_at_risk", item, {}, {"sla_state": "at_risk"}) for item in settled.at_risk]
        told += [("sla_overdue", item, {}, {"sla_state": "overdue"}) for item in settled.overdue]
        deeds = [Deed(f"review.{action}", (ITEM, item), before, after) for action, item, before, after in told]
        recorder.record_all(connection, system, deeds, now)
