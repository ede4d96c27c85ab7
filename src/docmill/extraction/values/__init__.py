"""Values as they are written and as they are kept: amounts, dates, currencies, texts, identifiers.

Everything here is pure: text in, canonical text or nothing out. The canonical forms are those of
`docmill.extraction.result`. Which value of a page is meant is decided elsewhere.
"""

from docmill.extraction.values.canonical import Hints, canonical, hints_of
from docmill.extraction.values.kinds import FieldType

__all__ = ["FieldType", "Hints", "canonical", "hints_of"]
