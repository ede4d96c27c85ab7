"""Documents are found by what stands in them."""

from collections.abc import Iterator

import pytest
from sqlalchemy import insert, select, update

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import document_words, documents
from docmill.documents.records import DocumentRecord, row_of
from docmill.model.errors import InvalidInput
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.services.documents import Documents
from docmill.services.search import Search, words_in
from docmill.services.search_chores import SearchChores
from tests.contract.served import OTHER_ORG


class Shelf:
    """Documents without bytes: what they say is in their names."""

    def __init__(self, url: str) -> None:
        self.database = Database(url)

    def put(self, name: str, org_id: str = DEFAULT_ORG, key: str | None = "0" * 64) -> str:
        with self.database.scoped(org_id).write() as connection:
            record = DocumentRecord(
                id=new_id(),
                org_id=org_id,
                file_name=name,
                extraction_key=key,
                created_at=database_now(connection),
            )
            connection.execute(insert(documents), [row_of(record)])
        return record.id

    def stored(self, org_id: str = DEFAULT_ORG) -> Search:
        """A search, once a worker has been there."""
        found = self.search(org_id)
        found.store_words(1000)
        return found

    def search(self, org_id: str = DEFAULT_ORG) -> Search:
        return Search(self.database, Documents(self.database, lambda: _NoBlobs(), org_id), org_id)  # type: ignore[arg-type, return-value]


class _NoBlobs:
    def read(self, key: str) -> bytes:
        from docmill.documents.blobs import missing

        raise missing(key)


@pytest.fixture
def shelf(database_url: str) -> Iterator[Shelf]:
    found = Shelf(database_url)
    yield found
    found.database.close()


def test_words_are_folded_and_taken_apart() -> None:
    assert words_in("Straße INV-003/7 é") == ["strasse", "inv-003/7", "inv", "003", "7", "é"]
    assert words_in("1.234,50") == ["1.234,50", "1", "234", "50"]
    assert words_in(" \0 …") == []


def test_all_words_must_be_there_and_the_last_may_be_a_beginning(shelf: Shelf) -> None:
    first, second = shelf.put("Offer Meier 2026.pdf"), shelf.put("Invoice Meier 2025.pdf")
    for search in (shelf.search(), shelf.stored()):
        _find_meier(search, first, second)


def _find_meier(search: Search, first: str, second: str) -> None:
    assert [each.id for each in search.find("meier")] == [second, first]
    assert [each.id for each in search.find("MEIER inv")] == [second]
    assert [each.id for each in search.find("mei 2026")] == []
    assert [each.id for each in search.find("2026 mei")] == [first]
    assert [each.id for each in search.find("meier", before=second)] == [first]
    assert search.find("nothing") == []
    with pytest.raises(InvalidInput):
        search.find(" … ")


def test_what_has_a_new_result_is_found_by_it_and_no_longer_by_the_old_one(shelf: Shelf) -> None:
    document = shelf.put("before.pdf")
    search = shelf.stored()
    assert search.find("before")
    with shelf.database.scoped(DEFAULT_ORG).write() as connection:
        write = update(documents).where(documents.c.id == document)
        connection.execute(write.values(file_name="after.pdf", extraction_key="1" * 64))
    assert [each.id for each in search.find("after")] == [document]
    search.store_words(1000)
    assert not search.find("before")
    assert [each.id for each in search.find("after")] == [document]


def test_to_look_stores_nothing(shelf: Shelf) -> None:
    document = shelf.put("looked for.pdf")
    assert [each.id for each in shelf.search().find("looked")] == [document]
    with shelf.database.scoped(DEFAULT_ORG).read() as connection:
        assert connection.execute(select(document_words)).all() == []
        assert connection.execute(select(documents.c.words_of)).scalars().all() == [None]


def test_what_has_no_result_yet_is_not_found(shelf: Shelf) -> None:
    shelf.put("waiting.pdf", key=None)
    assert not shelf.search().find("waiting")


def test_organisations_find_their_own(shelf: Shelf) -> None:
    mine, theirs = shelf.put("shared name.pdf"), shelf.put("shared name.pdf", OTHER_ORG)
    assert [each.id for each in shelf.search().find("shared")] == [mine]
    assert [each.id for each in shelf.search(OTHER_ORG).find("shared")] == [theirs]


def test_workers_store_the_words_of_all_organisations_in_the_background(shelf: Shelf) -> None:
    shelf.put("one.pdf")
    shelf.put("two.pdf", OTHER_ORG)
    chore = SearchChores(shelf.database, lambda: _NoBlobs())  # type: ignore[arg-type, return-value]
    with shelf.database.scoped(DEFAULT_ORG).read() as connection:
        now = database_now(connection)
    chore(now)
    for org_id in (DEFAULT_ORG, OTHER_ORG):
        query = select(document_words.c.word).where(document_words.c.org_id == org_id)
        with shelf.database.scoped(org_id).read() as connection:
            assert connection.execute(query).scalars().all()
