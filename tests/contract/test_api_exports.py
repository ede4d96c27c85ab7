"""Exports hold what is an organisation's own: all of it, if all is asked for."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import httpx
import psycopg
import pytest
from sqlalchemy import insert, update

from docmill.bootstrap import output_settings
from docmill.db.tables import documents, review_items
from docmill.documents.records import DocumentRecord, row_of
from docmill.extraction.result import Extraction, FieldValue, Reader
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.outputs.gathering import gather
from docmill.outputs.writing import write
from docmill.services import documents as document_service
from docmill.services import review_statuses
from docmill.testing.papers import invoice_pdf
from docmill.testing.waiting import until
from docmill.testing.world import migrate
from tests.conftest import PostgresCopies
from tests.contract.desk import item_row
from tests.contract.served import OTHER_ORG, Served, serving
from tests.contract.test_api_manners import API, problem

OWNER = {"Authorization": "Bearer owner"}
NOW = datetime(2026, 11, 16, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What outputs need to know of a document."""

    id: str
    org_id: str
    file_name: str
    sha256: str | None
    status: str = "completed"
    format: str | None = "pdf"
    duplicate_of: str | None = None
    created_at: datetime = NOW


def put(served: Served, org_id: str, number: str) -> str:
    """A document with outputs."""
    document_id = new_id()
    value = FieldValue(value=number, raw=number, confidence=0.9)
    found = Extraction(
        schema="invoice",
        schema_version="1",
        reader=Reader.LOCAL,
        document_type="invoice",
        fields={"invoice_number": value},
    )
    facts = Facts(id=document_id, org_id=org_id, file_name=f"{number}.pdf", sha256=number.encode().hex())
    write(found, facts, output_settings(served.app.settings), NOW)
    return document_id


def exported(served: Served, token: str, **query: str) -> list[dict[str, object]]:
    answer = served.send("GET", f"{API}/exports", token=token, params={"format": "json", **query})
    assert answer.status_code == 200, answer.text
    return list(json.loads(answer.content))


def test_only_rows_of_the_organisation_that_asks_are_loaded(served: Served) -> None:
    mine, theirs = put(served, DEFAULT_ORG, "M-1"), put(served, OTHER_ORG, "T-1")
    assert [row["id"] for row in exported(served, "owner")] == [mine]
    assert [row["id"] for row in exported(served, "stranger")] == [theirs]
    with gather(output_settings(served.app.settings), None, org_id=OTHER_ORG) as connection:
        assert connection.execute("SELECT id FROM documents").fetchall() == [(theirs,)]


def test_csv_comes_as_a_spreadsheet_expects_it(served: Served) -> None:
    put(served, DEFAULT_ORG, "Müller")
    answer = served.send("GET", f"{API}/exports?excel=true&decimal=,")
    assert answer.content.startswith("\ufefffile_name;review;".encode())
    assert ";Müller;".encode() in answer.content
    told = problem(served.send("GET", f"{API}/exports?delimiter=-"), 422, "invalid_input")
    assert "delimiter" in str(told)


def test_everything_is_every_document_also_those_without_a_result(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Several looks at the database, as for many documents.
    monkeypatch.setattr(document_service, "BATCH", 2)
    done = put(served, DEFAULT_ORG, "M-1")
    put(served, OTHER_ORG, "T-1")
    with served.client() as client:
        waiting = {client.upload(invoice_pdf(seed).content, name=f"{seed}.pdf")["id"] for seed in range(5)}
    with served.client("stranger") as client:
        client.upload(invoice_pdf(1).content, name="theirs.pdf")
    assert [row["id"] for row in exported(served, "owner")] == [done]
    rows = exported(served, "owner", everything="true")
    assert sorted(str(row["id"]) for row in rows) == sorted({done} | waiting)
    assert {row["status"] for row in rows if row["id"] in waiting} == {"queued"}


def test_everything_is_told_also_where_nothing_has_a_result(served: Served) -> None:
    with served.client() as client:
        waiting = client.upload(invoice_pdf(1).content, name="a.pdf")["id"]
    for query in ({}, {"items": "true"}, {"table": "tax_lines"}):
        rows = exported(served, "owner", everything="true", **query)
        assert [row["id"] for row in rows] == ([] if query else [waiting])
    problem(served.send("GET", f"{API}/exports"), 404, "no_outputs")
    problem(served.send("GET", f"{API}/exports?everything=true&table=parcels"), 404, "not_found")


def reviewed(served: Served, org_id: str, document_id: str, *statuses: str) -> None:
    """Items of a document, one after another."""
    rows = [
        item_row(NOW, org_id=org_id, id=new_id(), document_id=document_id, round=number, status=status)
        for number, status in enumerate(statuses, start=1)
    ]
    record = DocumentRecord(id=document_id, org_id=org_id, file_name="a.pdf", created_at=NOW)
    with served.app.database.scoped(org_id).write() as connection:
        connection.execute(insert(documents), [row_of(record)])
        connection.execute(insert(review_items), rows)


def test_exports_tell_where_the_review_stands_now_and_take_only_what_is_asked_for(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Several looks at the database, as for many items.
    monkeypatch.setattr(review_statuses, "BATCH", 2)
    names = ("A", "B", "C", "D")
    ids = {name: put(served, DEFAULT_ORG, name) for name in names}
    theirs = put(served, OTHER_ORG, "T")
    reviewed(served, DEFAULT_ORG, ids["A"], "rejected", "approved")
    reviewed(served, DEFAULT_ORG, ids["B"], "corrected")
    reviewed(served, DEFAULT_ORG, ids["C"], "approved", "pending")
    reviewed(served, OTHER_ORG, theirs, "approved")

    def found(**query: str) -> dict[object, object]:
        return {row["invoice_number"]: row["review"] for row in exported(served, "owner", **query)}

    assert found() == {"A": "approved", "B": "corrected", "C": "pending", "D": None}
    assert found(review="approved,corrected") == {"A": "approved", "B": "corrected"}
    assert found(review="none") == {"D": None}
    assert [row["review"] for row in exported(served, "stranger")] == ["approved"]
    with served.app.database.scoped(DEFAULT_ORG).write() as connection:
        connection.execute(update(review_items).where(review_items.c.document_id == ids["C"]).values(status="rejected"))
    assert found(review="rejected") == {"C": "rejected"}
    twice = served.send("GET", f"{API}/exports?format=json&review=rejected&review=corrected").json()
    assert sorted(row["review"] for row in twice) == ["corrected", "rejected"]
    told = problem(served.send("GET", f"{API}/exports?review=aproved"), 422, "invalid_input")
    assert "pending, in_review, approved" in str(told["detail"])


def test_two_exports_are_written_at_once_and_requests_are_answered_meanwhile(
    postgres_copy_of: PostgresCopies, tmp_path: Path
) -> None:
    url = postgres_copy_of("migrated", migrate)
    waiting = "select count(*) from pg_locks where not granted and relation = 'audit_heads'::regclass"
    with serving(url, tmp_path / "home") as served, ThreadPoolExecutor(30) as askers:
        put(served, DEFAULT_ORG, "M-1")
        with psycopg.connect(url) as held, psycopg.connect(url, autocommit=True) as watching:

            def stand() -> int:
                found = watching.execute(waiting).fetchone()
                return 0 if found is None else int(found[0])

            # Who takes results along is written down before they are given out: there they all stand.
            held.execute("lock table audit_heads in access exclusive mode")
            asked = [askers.submit(exported, served, "owner") for _ in range(30)]
            until(lambda: stand() == 2, 60, what="exports that are being written")
            begin = monotonic()
            while monotonic() < begin + 3:
                answer = httpx.get(f"{served.address}{API}/documents", headers=OWNER, timeout=20)
                assert answer.status_code == 200
                assert stand() == 2
        assert all(len(each.result(60)) == 1 for each in asked)
