"""A document that is taken back as it came in: its bytes expired meanwhile, and nothing can be made of it."""

from collections.abc import Callable

from sqlalchemy import Connection, delete

from docmill.db.tables import documents
from docmill.documents.records import DocumentRecord
from docmill.engine.batch import Batch, Outcome, Report
from docmill.engine.bell import CONTROL, Bell
from docmill.engine.events import Cancelled
from docmill.engine.pruning import delete_jobs
from docmill.engine.store_pool import StorePool


def withdraw(stores: StorePool, bell: Bell, record: DocumentRecord, *, note: Callable[[Connection], None]) -> None:
    """Take it back, with its job; `note` writes down that it was, in the same commit."""
    job_id = str(record.job_id)

    def gone(connection: Connection, outcome: Outcome) -> None:
        delete_jobs(connection, [job_id])
        mine = (documents.c.id == record.id, documents.c.org_id == record.org_id)
        if connection.execute(delete(documents).where(*mine)).rowcount:
            note(connection)

    stores.commit(Batch(reports=[Report(job_id=job_id, event=Cancelled())]), also=gone)
    # A worker may have begun already.
    bell.ring([CONTROL])
