"""Documents by the words that stand in them, in their names and in their values.

A document's words are stored by the workers in the background, and anew when its result changed; whoever looks writes
nothing. Until then the newest of those that wait are found by their names and types, and by what they said before.
Documents without a result are not found. A query means all of its words, the last of them as a beginning.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, literal, or_, select, text, tuple_, update

from docmill.db.database import Database
from docmill.db.tables import document_words, documents
from docmill.documents.blobs import BlobDamaged, BlobMissing
from docmill.documents.records import DocumentRecord
from docmill.model.errors import InvalidInput
from docmill.model.ids import canonical_id
from docmill.services.documents import Documents

LONGEST = 64
MOST_WORDS = 5000
"""Of one document; a book is found by its first pages."""
MOST_ASKED = 10
_AT_ONCE = 50
_YOUNG = 200
"""Documents, the newest of those whose words are not stored, that one look knows by their names."""
_WORD = re.compile(r"\w+(?:[.,/:-]\w+)*")
UNSTORED = {
    "sqlite": "extraction_key IS NOT NULL AND words_of IS NOT extraction_key",
    "postgresql": "extraction_key IS NOT NULL AND words_of IS DISTINCT FROM extraction_key",
}
_W = document_words.c


def words_in(content: str) -> list[str]:
    """The words of a text as they are stored and looked for: folded, and composed ones in parts as well."""
    found: dict[str, None] = {}
    for match in _WORD.finditer(unicodedata.normalize("NFKC", content).casefold()):
        whole = match[0]
        for word in (whole, *(re.split(r"[.,/:-]", whole) if not whole.isalnum() else ())):
            if word:
                found[word[:LONGEST]] = None
    return list(found)


class Search:
    """The search of one organisation."""

    def __init__(self, database: Database, documents: Documents, org_id: str) -> None:
        self._database = database.scoped(org_id)
        self._documents = documents
        self._org_id = org_id

    def find(self, query: str, *, before: str | None = None, limit: int = 50) -> Sequence[DocumentRecord]:
        """Documents with all words of the query, the newest first."""
        asked = _asked(query)
        with self._database.read() as connection:
            young = self._young(connection, asked)
            found = select(documents.c.id).where(documents.c.org_id == self._org_id)
            matching = and_(*self._matching(asked))
            found = found.where(or_(matching, documents.c.id.in_(young)) if young else matching)
            if before is not None:
                found = found.where(self._older(connection, before))
            found = found.order_by(documents.c.created_at.desc(), documents.c.id.desc()).limit(limit)
            ids = [str(each) for each in connection.execute(found).scalars()]
        records = self._documents.many(ids)
        return [records[each] for each in ids if each in records]

    def _matching(self, asked: Sequence[str]) -> Iterator[ColumnElement[bool]]:
        for place, word in enumerate(asked):
            last = place == len(asked) - 1
            # A beginning is a range: behind it comes what begins so, up to the last character there is.
            same = _W.word.between(word, word + "\U0010ffff") if last else _W.word == word
            with_it = select(_W.document_id).where(_W.org_id == self._org_id, same)
            yield documents.c.id.in_(with_it)

    def _young(self, connection: Connection, asked: Sequence[str]) -> list[str]:
        """Documents whose words are not stored yet, if their names have these."""
        query = (
            select(documents.c.id, documents.c.file_name, documents.c.document_type)
            .where(documents.c.org_id == self._org_id, text(UNSTORED[self._database.kind]))
            .order_by(documents.c.id.desc())
            .limit(_YOUNG)
        )
        return [
            str(row.id)
            for row in connection.execute(query)
            if _has_all(words_in(f"{row.file_name}\n{row.document_type or ''}"), asked)
        ]

    def _older(self, connection: Connection, before: str) -> Any:
        query = select(documents.c.created_at, documents.c.id).where(
            documents.c.id == canonical_id(before), documents.c.org_id == self._org_id
        )
        row = connection.execute(query).first()
        if row is None:
            raise InvalidInput("The cursor is not one of this list; begin again without one.", field="query.cursor")
        place = tuple_(literal(row.created_at, documents.c.created_at.type), literal(row.id, documents.c.id.type))
        return tuple_(documents.c.created_at, documents.c.id) < place

    def store_words(self, most: int) -> int:
        """Store the words of documents that have new results, at most so many of them; how many."""
        stored = 0
        while stored < most:
            with self._database.read() as connection:
                query = (
                    select(documents.c.id)
                    .where(documents.c.org_id == self._org_id, text(UNSTORED[self._database.kind]))
                    .order_by(documents.c.id)
                    .limit(min(_AT_ONCE, most - stored))
                )
                ids = [str(each) for each in connection.execute(query).scalars()]
            if not ids:
                break
            for record in self._documents.many(ids).values():
                self._store(record)
            stored += len(ids)
        return stored

    def _store(self, record: DocumentRecord) -> None:
        found = self._words(record)
        with self._database.write() as connection:
            # Conditional: a result that came meanwhile is for the next time, and of two workers one is enough.
            mark = update(documents).where(
                documents.c.id == record.id,
                documents.c.extraction_key == record.extraction_key,
                text(UNSTORED[self._database.kind]),
            )
            if connection.execute(mark.values(words_of=record.extraction_key)).rowcount:
                connection.execute(delete(document_words).where(_W.document_id == record.id))
                rows = [{"org_id": self._org_id, "word": word, "document_id": record.id} for word in found]
                if rows:
                    connection.execute(insert(document_words), rows)

    def _words(self, record: DocumentRecord) -> list[str]:
        parts = [record.file_name, record.document_type or ""]
        try:
            extraction = self._documents.extraction_json(record)
            parts += _texts(extraction)
            reading = self._documents.reading(record)
            parts += [] if reading is None else [reading.text]
        except (BlobMissing, BlobDamaged):
            # What is gone cannot be found by; the name still can.
            pass
        return words_in("\n".join([*parts, *_texts(dict(record.locked))]))[:MOST_WORDS]


def _has_all(words: Sequence[str], asked: Sequence[str]) -> bool:
    *whole, beginning = asked
    return set(whole) <= set(words) and any(word.startswith(beginning) for word in words)


def _texts(value: Any) -> Iterable[str]:
    """The texts in a structure, whatever its form."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [each for part in value.values() for each in _texts(part)]
    if isinstance(value, list):
        return [each for part in value for each in _texts(part)]
    return []


def _asked(query: str) -> list[str]:
    found = words_in(query)
    if not found:
        raise InvalidInput("Write at least one word to look for.", field="query.q")
    return found[:MOST_ASKED]
