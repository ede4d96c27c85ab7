"""An organisation keeps no more than it has room for, whoever comes at the same time."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
from sqlalchemy import select

from docmill.db.tables import documents, jobs, leaving_blobs
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
