"""What was found on straightened pages, brought back to where it stands on pages that lie askew. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from docmill.documents.reading import Reading
from docmill.documents.skew import Tilt
from docmill.extraction.result import Evidence, Extraction, FieldValue


def as_it_lies(found: Extraction, reading: Reading) -> Extraction:
    """The extraction with its boxes on the pages of `reading`, which were `straightened` for whoever made it."""
    tilts = {page.number: Tilt.of(page) for page in reading.pages if page.skew}
    if not tilts:
        return found
    fields = {name: _moved(value, tilts) for name, value in found.fields.items()}
    rows = {
        name: [{column: _moved(value, tilts) for column, value in row.items()} for row in table]
        for name, table in found.rows.items()
    }
    return replace(found, fields=fields, rows=rows)


def _moved(value: FieldValue, tilts: Mapping[int, Tilt]) -> FieldValue:
    places = (
        replace(place, box=tilts[place.page].on_page(place.box)) if place.page in tilts else place
        for place in value.evidence
    )
    evidence: tuple[Evidence, ...] = tuple(places)
    return replace(value, evidence=evidence)
