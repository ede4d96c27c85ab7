"""The results of one organisation as one file, for whoever asks over the API."""

import secrets
from collections.abc import Callable
from pathlib import Path

from docmill.outputs.exporting import Choice, Export, ExportFormat
from docmill.outputs.gathering import NothingYet, gather
from docmill.outputs.places import OutputSettings


class Exports:
    """The exports of one organisation."""

    def __init__(self, places: OutputSettings, cache: Path, workshop: Callable[[], Path]) -> None:
        self._places = places
        self._cache = cache
        self._workshop = workshop

    def write(self, choice: Choice, form: ExportFormat) -> Path:
        """A file with the chosen rows; whoever asked deletes it. NothingYet if there are no outputs at all."""
        file = self._workshop() / f"export-{secrets.token_hex(16)}"
        try:
            connection = gather(self._places, self._cache)
        except NothingYet:
            # Where the outputs would lie is nobody's business outside of this machine.
            raise NothingYet("There are no results yet. Upload documents first.") from None
        try:
            chosen = Export(connection, choice, self._places.schema_folders)
            if form is ExportFormat.PARQUET:
                chosen.parquet(file)
            else:
                with file.open("x", encoding="utf-8", newline="") as stream:
                    stream.writelines(chosen.text(form))
        except BaseException:
            file.unlink(missing_ok=True)
            raise
        finally:
            connection.close()
        return file
