"""An organisation keeps no more than it has room for, whoever comes at the same time."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Connection, event, select, update

from docmill.db.clock import database_now
from docmill.db.tables import documents, jobs, leaving_blobs
from docmill.documents.records import DocumentRecord, insert_new
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.services.quota import QuotaExceeded, Room
from docmill.testing.papers import invoice_pdf
from tests.contract.served import Served, serving
from tests.contract.test_api_manners import API, problem

PAPERS = [invoice_pdf(seed).content for seed in range(8)]

HASHES = [hashlib.sha256(content).hexdigest() for content in PAPERS]


def upload(served: Served, content: bytes, token: str = "owner") -> httpx.Response:
    return served.send("POST", f"{API}/documents", token=token, files={"file": ("a.pdf", content)})


def kept(served: Served) -> tuple[set[str], int]:
    """Hashes of the documents that are there and not about to go, and how many jobs there are."""
    with served.app.database.as_keeper().read() as connection:
        leaving = set(connection.execute(select(leaving_blobs.c.key)).scalars())
        found = set(connection.execute(select(documents.c.sha256)).scalars())
        submitted = len(connection.execute(select(jobs.c.id)).all())
    assert {key for key in HASHES if served.app.blobs.has(key)} - leaving == found
    return found, submitted


def test_what_an_organisation_has_no_room_for_is_refused_and_leaves_nothing_behind(
    database_url: str, tmp_path: Path
) -> None:
    room = len(PAPERS[0]) + len(PAPERS[1])
    with serving(database_url, tmp_path / "home", storage={"quota_bytes": room}) as served:
        assert upload(served, PAPERS[0]).status_code == 201
        assert upload(served, PAPERS[1]).status_code == 201
        before = kept(served)
        told = problem(upload(served, PAPERS[2]), 409, "quota_exceeded")
        assert told["details"] == {"wanted": room + len(PAPERS[2]), "quota": room}
        assert "storage.quota_bytes" in str(told["detail"])
        assert served.litter == []
        assert kept(served) == before
        # Others have room of their own.
        assert upload(served, PAPERS[2], token="stranger").status_code == 201


def test_of_many_at_once_no_more_come_in_than_there_is_room_for(database_url: str, tmp_path: Path) -> None:
    room = max(map(len, PAPERS)) * 3
    with serving(database_url, tmp_path / "home", storage={"quota_bytes": room}) as served:
        with ThreadPoolExecutor(len(PAPERS)) as pool:
            answers = list(pool.map(lambda content: upload(served, content), PAPERS))
        taken = [content for content, answer in zip(PAPERS, answers, strict=True) if answer.status_code == 201]
        assert {answer.status_code for answer in answers} == {201, 409}
        assert sum(map(len, taken)) <= room
        assert len(kept(served)[0]) == len(taken)


def put(connection: Connection, number: int, ago: timedelta) -> str:
    """A document of 100 bytes that came so long ago."""
    found = new_id()
    record = DocumentRecord(
        id=found,
        org_id=DEFAULT_ORG,
        file_name="a.pdf",
        size=100,
        original_key=f"{number:064x}",
        created_at=database_now(connection) - ago,
    )
    insert_new(connection, [record])
    return found


def test_what_came_long_ago_is_added_up_once_and_nobody_is_refused_for_what_went(served: Served) -> None:
    database, asked = served.app.database, list[str]()
    room = Room(DEFAULT_ORG, 500)

    def uploaded(number: int) -> int:
        """How many times all documents were added up for this one."""
        asked.clear()
        with database.write() as connection:
            event.listen(connection, "before_cursor_execute", lambda _, __, sql, *___: asked.append(sql))
            put(connection, number, timedelta())
            room.check(connection)
        sums = [sql for sql in asked if "sum(documents.size)" in sql]
        return sum("created_at >=" not in sql for sql in sums)

    with database.write() as connection:
        old = [put(connection, number, timedelta(days=1)) for number in range(3)]
    assert [uploaded(10), uploaded(11)] == [1, 0]
    # Full: all is added up before that is said, and what was refused takes no room.
    with pytest.raises(QuotaExceeded, match="would keep 600 bytes"):
        uploaded(12)
    with database.write() as connection:
        connection.execute(update(documents).where(documents.c.id == old[0]).values(original_key=None))
    assert uploaded(13) == 1
