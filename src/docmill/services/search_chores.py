"""What a worker does for search in the background: a few documents at a time, so that steps come first."""

from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import select, text

from docmill.db.database import Database
from docmill.db.tables import documents
from docmill.documents.blobs import Blobs
from docmill.services.documents import Documents
from docmill.services.intervals import Every
from docmill.services.search import UNSTORED, Search

_REST = timedelta(seconds=2)
_SOME = 20
"""Documents of one organisation in one go; 36,000 an hour."""
_ORGANISATIONS = 10


class SearchChores:
    """Stores the words of documents that have new results, of all organisations in turn."""

    def __init__(self, database: Database, blobs: Callable[[], Blobs]) -> None:
        self._database = database
        self._blobs = blobs
        self._last = ""
        self._store = Every(_REST, lambda now: self._store_some())

    def __call__(self, now: datetime) -> None:
        self._store(now)

    def _store_some(self) -> None:
        for org_id in self._waiting():
            known = Documents(self._database, self._blobs, org_id)
            Search(self._database, known, org_id).store_words(_SOME)

    def _waiting(self) -> list[str]:
        """Organisations with something to store; those after the last one served come first."""
        query = select(documents.c.org_id).where(text(UNSTORED[self._database.kind])).distinct()
        with self._database.as_keeper().read() as connection:
            found = sorted(str(each) for each in connection.execute(query).scalars())
        turn = [each for each in found if each > self._last] + [each for each in found if each <= self._last]
        served = turn[:_ORGANISATIONS]
        if served:
            self._last = served[-1]
        return served
