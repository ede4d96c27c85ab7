"""Documents and what was read from them, made up."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from docmill.documents.reading import Box
from docmill.extraction.result import Check, Evidence, Extraction, FieldValue, Reader
from docmill.model.ids import DEFAULT_ORG
from docmill.outputs.places import OutputSettings
from docmill.outputs.querying import Outputs
from docmill.outputs.writing import write
from docmill.testing import papers
from docmill.testing.papers import Paper

CAME_IN = datetime(2026, 11, 16, 23, 30, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What outputs need to know of a document."""

    id: str
    org_id: str = DEFAULT_ORG
    file_name: str = "scan.pdf"
    sha256: str | None = "ab" * 32
    format: str | None = "pdf"
    status: str = "completed"
    duplicate_of: str | None = None
    created_at: datetime = CAME_IN


def found(value: str, confidence: float = 0.9) -> FieldValue:
    """A value that stands on the first page."""
    place = Evidence(page=1, box=Box(0.1, 0.2, 0.3, 0.25))
    return FieldValue(value=value, raw=f" {value}", confidence=confidence, evidence=(place,), passed=("type",))


def extraction(paper: Paper | None = None, **more: FieldValue) -> Extraction:
    """What a faultless reader finds on a paper."""
    paper = paper or papers.invoice_pdf(1, language="de", items=2)
    assert paper.schema is not None
    return Extraction(
        schema=paper.schema,
        schema_version="1",
        reader=Reader.LOCAL,
        document_type=paper.schema,
        fields={name: found(value) for name, value in paper.fields.items()} | more,
        rows={
            name: [{key: found(cell) for key, cell in row.items()} for row in rows] for name, rows in paper.rows.items()
        },
        checks=(Check(name="total_adds_up", passed=True, message="1 + 1 == 2", fields=("total",)),),
        confidence=0.8,
    )


INVOICE = papers.invoice_pdf(1, language="de", items=3)
RECEIPT = papers.receipt_image(2)


def filled(folder: Path) -> OutputSettings:
    """An invoice, a receipt that came a day later, and a copy of the invoice."""
    settings = OutputSettings(root=folder / "out's")
    write(extraction(INVOICE), Facts(id="a1"), settings, CAME_IN)
    later = CAME_IN + timedelta(days=1)
    write(extraction(RECEIPT), Facts(id="b2", created_at=later), settings, later)
    write(extraction(INVOICE), Facts(id="c3", status="duplicate", duplicate_of="a1"), settings, CAME_IN)
    return settings


def one(outputs: Outputs, sql: str) -> object:
    """The only value of an answer."""
    ((value,),) = outputs.ask(sql).rows
    return value
