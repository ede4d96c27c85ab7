"""What passes in review without anybody looking, written down: ends of claims, times at risk and overdue."""

from datetime import datetime, timedelta

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.model.people import system_principal
from docmill.model.review import SlaState
from docmill.people.audit import AuditTrail, Deed
from docmill.review.queue import DUE_ORGS, settle
from docmill.review.recording import ITEM, Recorder
from docmill.services.intervals import Every

_REST = timedelta(seconds=10)
"""Between two looks."""


def review_chores(database: Database, recorder: Recorder | None = None) -> Every:
    """For all organisations, a look every few seconds."""
    return Every(_REST, lambda now: settle_all(database, recorder or AuditTrail()))


def settle_all(database: Database, recorder: Recorder) -> None:
    """Write down what has passed, wherever something has."""
    with database.as_keeper().read() as connection:
        now = database_now(connection)
        found: set[str] = set(connection.execute(DUE_ORGS, {"now": now}).scalars())
    for org_id in sorted(found):
        settle_one(database, org_id, now, recorder)


def settle_one(database: Database, org_id: str, now: datetime, recorder: Recorder) -> None:
    """Write down what has passed in one organisation, and record it as done by the system."""
    system = system_principal(org_id)
    with database.scoped(org_id).write() as connection:
        settled = settle(connection, org_id, now)
        told: list[tuple[str, str, dict[str, str], dict[str, str]]] = []
        told += [("claim_expired", item, {"claimed_by": who}, {}) for item, who in settled.expired.items()]
        told += [("resume", item, {}, {}) for item in settled.resumed]
        at_risk, overdue = {"sla_state": SlaState.AT_RISK.value}, {"sla_state": SlaState.OVERDUE.value}
        told += [("sla_at_risk", item, {}, at_risk) for item in settled.at_risk]
        # Whoever waits for the warning hears of it also when nobody looked in between, or the time was short.
        told += [("sla_at_risk", item, {}, overdue) for item in settled.unwarned]
        told += [("sla_overdue", item, {}, overdue) for item in settled.overdue]
        deeds = [Deed(f"review.{action}", (ITEM, item), before, after) for action, item, before, after in told]
        recorder.record(connection, system, deeds, now)
