"""The results of one organisation as one file, for whoever asks over the API."""

import secrets
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.model.people import Principal
from docmill.outputs.csv_text import RFC_4180, CsvStyle
from docmill.outputs.exporting import Choice, Export, ExportFormat
from docmill.outputs.gathering import Known, NothingYet, gather
from docmill.outputs.places import OutputSettings
from docmill.people.audit import ORGANISATION, record
from docmill.services.acting import OrgService
from docmill.services.documents import Documents
from docmill.services.review_statuses import review_statuses


def record_export(database: Database, principal: Principal, choice: Choice, form: ExportFormat) -> None:
    """Write down who takes which results along; before they are given out."""
    told = {"format": form.value, **asdict(choice)}
    subject = (ORGANISATION, principal.org_id)
    with database.write() as connection:
        record(connection, principal, "results.export", subject, None, told, now=database_now(connection))


class Exports(OrgService):
    """The exports of one organisation."""

    def __init__(
        self,
        database: Database,
        places: OutputSettings,
        cache: Path,
        workshop: Callable[[], Path],
        documents: Documents,
        org_id: str,
    ) -> None:
        self._database = database
        self._places = places
        self._documents = documents
        self._org_id = org_id
        self._cache = cache
        self._workshop = workshop

    def write(self, choice: Choice, form: ExportFormat, *, by: Principal, style: CsvStyle = RFC_4180) -> Path:
        """A file with the chosen rows; whoever asked deletes it. NothingYet if there are no outputs at all.

        With `duplicates` every document has a row, also those of which only the database knows.
        """
        self._check_organisation(by)
        file = self._workshop() / f"export-{secrets.token_hex(16)}"
        try:
            connection = gather(
                self._places,
                self._cache,
                known=Known(
                    without=lambda: self._documents.facts() if choice.duplicates else (),
                    reviews=lambda: review_statuses(self._database, self._org_id),
                ),
                org_id=self._org_id,
            )
        except NothingYet:
            # Where the outputs would lie is nobody's business outside of this machine.
            raise NothingYet("There are no results yet. Upload documents first.") from None
        try:
            chosen = Export(connection, choice, self._places.schema_folders)
            if form is ExportFormat.PARQUET:
                chosen.parquet(file)
            else:
                with file.open("x", encoding="utf-8", newline="") as stream:
                    stream.writelines(chosen.text(form, style))
            record_export(self._database, by, choice, form)
        except BaseException:
            file.unlink(missing_ok=True)
            raise
        finally:
            connection.close()
        return file
