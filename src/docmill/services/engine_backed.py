"""What services have in common that write through the engine's store: jobs, batches, issues."""

from collections.abc import Sequence

from sqlalchemy import Column, ColumnElement

from docmill.db.database import Database
from docmill.db.tables import jobs
from docmill.engine.bell import Bell
from docmill.engine.store import PlanSource
from docmill.engine.store_pool import StorePool
from docmill.model.ids import DEFAULT_ORG
from docmill.services.acting import Acted


class EngineBacked(Acted):
    """A service of one organisation that changes jobs and wakes the workers; with `seen_by`, for what a person sees."""

    def __init__(
        self,
        database: Database,
        bell: Bell,
        org_id: str = DEFAULT_ORG,
        stores: StorePool | None = None,
        *,
        seen_by: str | None = None,
    ) -> None:
        self._database = database.scoped(org_id)
        self._bell = bell
        self._org_id = org_id
        self._seen_by = seen_by
        self._stores = (stores or StorePool(database, PlanSource())).standing_as(self._database)

    def close(self) -> None:
        """Let go of the connections."""
        self._stores.close()

    @property
    def _own_jobs(self) -> Sequence[ColumnElement[bool]]:
        """What makes a job one that is seen here."""
        return self._own(jobs.c.org_id, jobs.c.created_by)

    def _own(self, org_id: Column[str], created_by: Column[str]) -> Sequence[ColumnElement[bool]]:
        return [org_id == self._org_id] + ([] if self._seen_by is None else [created_by == self._seen_by])
