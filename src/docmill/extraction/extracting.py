"""The one chain that every document goes through: type, schema, reader, checks, confidence.

An e-invoice is read from its XML; receipts and invoices by the learned local reader; any other schema by the labels it
names, with the help of the learned reader for fields that invoices and receipts have too. What a model read comes in at
`finish`, so that checks and confidence are the same for all.
"""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from docmill.documents.reading import Format, Reading, TextSource
from docmill.documents.skew import straightened
from docmill.extraction import models as stored
from docmill.extraction.askew import as_it_lies
from docmill.extraction.checks import check
from docmill.extraction.classification import Classified, DocumentType, classify
from docmill.extraction.confidence import calibrated
from docmill.extraction.extent import edges
from docmill.extraction.likeness import KINDS as LEARNED
from docmill.extraction.likeness import counterparts, known_as, lent, standard
from docmill.extraction.models import Models
from docmill.extraction.overrides import apply_overrides
from docmill.extraction.result import Check, Extraction, Reader
from docmill.extraction.schema import FieldSchema, chosen_schema
from docmill.extraction.several_documents import marked, several_documents
from docmill.model.documents import NothingRead

_PAID = (DocumentType.INVOICE, DocumentType.CREDIT_NOTE, DocumentType.RECEIPT)
"""Documents that the learned readers know."""
_UNPAID = (DocumentType.OTHER, DocumentType.LETTER)
"""What has no amounts that anybody owes or paid, unless a reader finds all that a schema requires."""
_SURELY_OTHER = 0.8
"""Confidence from which on a letter, or a document of no named type, is one, whatever a reader would find in it."""
_NOTES = 20
"""About the file that are told with its fields: damage may be noted for every page."""
_PICTURES = frozenset({Format.JPEG, Format.PNG, Format.WEBP, Format.GIF, Format.BMP, Format.TIFF})
_FEW = 40
"""Letters and digits that a photograph has at least of which anything can be told."""
Options = Mapping[str, Any]
"""Plain data, so that it can be sent to a child: `models`, the folder of learned sets; `schemas`, folders in which
schemas are looked for first; `schema_set`, the file with those that were kept with the job; `tolerance`, of rules that
name none; `overrides`, what this installation asks of fields and rules instead of what their schemas ask."""


def extract(
    reading: Reading,
    schema: FieldSchema | str | None = None,
    options: Options | None = None,
    *,
    models: Models | None = None,
) -> Extraction:
    """The fields of a document, without asking a model.

    `schema` is one, or the name or path of one; None: the type of the document decides, and one that is of no type is
    not read as an invoice just because nothing else is left.
    """
    options = options or {}
    models = models or models_in(options)
    kind, chosen = recognise(reading, schema, options, models=models)
    surely_other = kind.type in _UNPAID and kind.confidence >= _SURELY_OTHER
    if schema is None and (surely_other or reading.declared is not None):
        return _told(_nothing(kind, reading), reading)
    found = _told(read(reading, chosen, models), reading)
    if schema is None and _too_little(kind, found, chosen):
        return _told(_nothing(kind, reading), reading)
    if found.reader is not Reader.EINVOICE:
        told = _settled(kind, chosen, asked=schema is not None)
        found = replace(found, document_type=told.type.value, type_confidence=told.confidence)
    several = _several(reading, found, models)
    if several is not None:
        found = replace(found, checks=(*found.checks, several))
    return finish(found, reading, chosen, options, models=models)


def _several(reading: Reading, found: Extraction, models: Models) -> Check | None:
    """Whether there is more than one paper in the file. The shipped schemas know papers, whatever was asked for."""

    def opens(part: Reading) -> bool:
        kind = classify(part, models.classifier)
        if kind.type in _UNPAID:
            return kind.schema == DocumentType.RECEIPT and kind.confidence < _SURELY_OTHER
        return kind.type is DocumentType.RECEIPT or (kind.type in _PAID and kind.titled)

    def alone(part: Reading) -> Extraction | None:
        kind = classify(part, models.classifier)
        schema = standard(kind.schema)
        read_alone = _learned(part, schema, models)
        if kind.type in _UNPAID and _too_little(kind, read_alone, schema):
            return None
        told = _settled(kind, schema, asked=False)
        return finish(replace(read_alone, document_type=told.type.value), part, schema, models=models)

    number = found.fields.get("invoice_number")
    return several_documents(reading, None if number is None else number.value, opens=opens, alone=alone)


def _told(found: Extraction, reading: Reading) -> Extraction:
    """With what could not be read of the file: whoever looks at the fields must know what they were not read from."""
    notes = tuple(dict.fromkeys((*reading.notes[:_NOTES], *found.notes)))
    return replace(found, notes=notes, cut=reading.cut)


def _settled(kind: Classified, schema: FieldSchema, *, asked: bool) -> Classified:
    """What it is once it was read by a schema of something that is paid.

    With a schema that somebody named it is what they say: read as an invoice, a quote is one for them. A photograph of
    a receipt that nobody knows the title of has shown what it is by all that was found on it. So what is `other`, or a
    letter, has neither schema nor fields, and all that is summed up is called what it is summed up as.
    """
    if schema.name not in LEARNED or kind.type in _PAID:
        return kind
    if asked:
        return replace(kind, type=DocumentType(schema.name), confidence=1.0)
    if kind.type in _UNPAID:
        return replace(kind, type=DocumentType(schema.name), confidence=1 - kind.confidence)
    return kind


def _too_little(kind: Classified, found: Extraction, schema: FieldSchema) -> bool:
    """Whether what was found does not make the document what it was taken for.

    A report of many pages has words of an invoice here and there, and something that could be a total. What does not
    call itself one must have all that is required, or lines with amounts.
    """
    if set(schema.required) <= {*found.fields, *found.rows}:
        return False
    return kind.type in _UNPAID or not (kind.titled or found.rows.get("line_items"))


def _nothing(kind: Classified, reading: Reading) -> Extraction:
    # A letter or a quote is what its title says; an invoice without an invoice's fields is none.
    taken = DocumentType.OTHER if kind.type in (DocumentType.INVOICE, DocumentType.RECEIPT) else kind.type
    return Extraction(
        schema="",
        schema_version="",
        reader=Reader.LOCAL,
        document_type=taken.value,
        type_confidence=kind.confidence if taken is kind.type else 1 - kind.confidence,
        notes=(_why_nothing(taken, reading).value,),
    )


def _why_nothing(taken: DocumentType, reading: Reading) -> NothingRead:
    """What a person can do about it differs: to name a schema does not help with a page on which nothing is seen."""
    if taken is not DocumentType.OTHER:
        return NothingRead.NO_SCHEMA
    if reading.pages and not any(page.lines for page in reading.pages):
        # Nobody photographs an empty page; what is blurred enough looks like one.
        return NothingRead.HARDLY if reading.format in _PICTURES else NothingRead.EMPTY
    seen = sum(char.isalnum() for page in reading.pages for char in page.text)
    photographed = any(page.source is TextSource.OCR for page in reading.pages)
    return NothingRead.HARDLY if photographed and seen < _FEW * len(reading.pages) else NothingRead.UNKNOWN


def recognise(
    reading: Reading,
    schema: FieldSchema | str | None = None,
    options: Options | None = None,
    *,
    models: Models | None = None,
) -> tuple[Classified, FieldSchema]:
    """What the document is, and the schema to read it by."""
    options = options or {}
    kind = classify(reading, (models or models_in(options)).classifier)
    if not isinstance(schema, FieldSchema):
        schema = chosen_schema(schema or kind.schema, options)
    return kind, apply_overrides(schema, options.get("overrides"))


def read(reading: Reading, schema: FieldSchema, models: Models) -> Extraction:
    """What the reader that suits the document finds; neither checked nor calibrated."""
    notes: tuple[str, ...] = ()
    if reading.invoice is not None:
        from docmill.extraction.einvoice import EInvoiceInvalid, compared_with_page, read_einvoice

        try:
            return compared_with_page(read_einvoice(reading.invoice.xml, schema), reading, schema)
        except EInvoiceInvalid as error:
            if not reading.pages:
                raise
            notes = (f"The XML in the PDF could not be read, so the page was: {error.message}",)
    found = _local(reading, schema, models)
    return replace(found, schema=schema.name, schema_version=schema.version, notes=(*found.notes, *notes))


def _local(reading: Reading, schema: FieldSchema, models: Models) -> Extraction:
    """By the learned reader, which reads by labels what it has not learned; or by labels alone.

    However long the document is, no more of it is looked at than `docmill.extraction.extent` says.
    """
    if schema.name in LEARNED and not _renamed(schema):
        return _learned(reading, schema, models)
    found = _by_labels(reading, schema)
    kind = classify(reading, models.classifier)
    name = schema.name if schema.name in LEARNED else kind.schema
    shipped = standard(name)
    doubtful = kind.type is DocumentType.OTHER and kind.confidence < _SURELY_OTHER
    known = schema.name in LEARNED or kind.type in _PAID or doubtful
    if not known or not counterparts(schema, shipped):
        return found
    return lent(found, _learned(reading, shipped, models), schema, shipped)


def _renamed(schema: FieldSchema) -> bool:
    """Whether a schema of one's own that is called like a shipped one calls fields otherwise."""
    return any(own != there for own, there in counterparts(schema, standard(schema.name)).items())


def _learned(reading: Reading, schema: FieldSchema, models: Models) -> Extraction:
    seen = edges(reading)
    if schema.name == "receipt":
        from docmill.extraction.local.receipts import read_receipt

        found = read_receipt(seen.reading, schema, models.ranker("receipt"))
    else:
        from docmill.extraction.local.invoices import read_invoice

        found = read_invoice(seen.reading, models.ranker("invoice"), schema)
    return replace(found, notes=(*found.notes, *seen.notes))


def _by_labels(reading: Reading, schema: FieldSchema) -> Extraction:
    from docmill.extraction.labelled import read_labelled
    from docmill.extraction.pages import Pages
    from docmill.extraction.tables import read_tables

    pages = Pages(straightened(reading))
    fields, rows = read_labelled(pages, schema), read_tables(pages, schema)
    found = Extraction(
        schema=schema.name,
        schema_version=schema.version,
        reader=Reader.LOCAL,
        document_type="other",
        fields=fields,
        rows=rows,
        notes=tuple(pages.notes),
    )
    return as_it_lies(found, reading)


def finish(
    extraction: Extraction,
    reading: Reading,
    schema: FieldSchema,
    options: Options | None = None,
    *,
    models: Models | None = None,
) -> Extraction:
    """The extraction with its checks made and its confidence stated, whoever read it."""
    options = options or {}
    tolerance = options.get("tolerance")
    judged = marked(check(extraction, schema, tolerance=None if tolerance is None else Decimal(str(tolerance))))
    calibration = (models or models_in(options)).calibration
    known = known_as(judged, schema)
    return calibrated(judged, required=schema.required, calibration=calibration, known_as=known)


def models_in(options: Options) -> Models:
    """The models that the options name: the learned set in use, or those that ship. A process reads each set once."""
    folder = options.get("models")
    chosen = stored.current(Path(folder)) if folder else None
    return stored.load(str(chosen) if chosen else None)
