"""What an entry says of documents that came, ran, were given out, taken along or let go."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text, update
from sqlalchemy.exc import DBAPIError

from docmill.bootstrap import App, open_app
from docmill.db.clock import database_now
from docmill.db.tables import documents
from docmill.outputs.exporting import Choice, ExportFormat
from docmill.outputs.gathering import NothingYet
from docmill.services.jobs import Retry
from docmill.services.processing import Order
from docmill.settings import Settings
from docmill.testing.waiting import until
from tests.contract.audited import ANN, ASKING, compiled, forbid, last, log, uploaded
from tests.contract.mailroom import letter, mailroom


@pytest.fixture
def app(database_url: str, tmp_path: Path) -> Iterator[App]:
    with open_app(Settings(home=tmp_path / "home", database_url=database_url)) as app:
        app.prompts.put("Ask", "What?")
        app.templates.register(compiled(app, ASKING))
        yield app


def test_a_document_says_what_came_and_that_it_was_given_out_or_processed_again(app: App) -> None:
    document = uploaded(app)
    record = app.documents.get(document)
    action, subject, before, after = last(app)
    assert (action, subject, before) == ("document.upload", ("document", document), None)
    assert (after["file_name"], after["sha256"], after["job_id"]) == ("a.pdf", record.sha256, record.job_id)
    assert after["schema"] == "invoice"
    app.documents.link(record, by=ANN, within=timedelta(minutes=5))
    action, subject, before, after = last(app)
    assert (action, subject, after["file_name"]) == ("document.link", ("document", document), "a.pdf")
    app.jobs.cancel(str(record.job_id))
    app.jobs.by(ANN).retry(str(record.job_id), Retry(everything=True), document_id=document)
    action, subject, before, after = last(app)
    assert (action, subject, before) == (
        "document.reprocess",
        ("document", document),
        {"status": "CANCELLED", "run": 1},
    )
    assert (after["job_id"], after["run"]) == (record.job_id, 2)


def test_a_run_over_many_files_is_one_entry_and_one_more_when_it_goes_on(app: App) -> None:
    store, paths = app.processing.by(ANN), [f"/papers/{number}" for number in range(30)]
    run = store.open_run(paths, Order(schema="invoice"))
    action, subject, _, after = last(app)
    assert (action, subject) == ("document.process", ("document_run", run))
    assert (after["count"], after["paths"], after["schema"]) == (30, paths[:20], "invoice")
    assert store.open_run(paths, Order(schema="invoice")) == run
    assert last(app)[:2] == ("document.resume", ("document_run", run))
    assert len(log(app)) == 2


def test_of_two_who_begin_the_same_run_at_once_one_begins_it_and_the_other_joins(app: App) -> None:
    def begin(_: int) -> str:
        return app.processing.by(ANN).open_run(["/papers"], Order())

    def both_wait() -> bool:
        waiting = "select count(*) from pg_locks where relation = 'document_runs'::regclass and not granted"
        with app.database.read() as connection:
            return bool(connection.execute(text(waiting)).scalar_one() == 2)

    with ThreadPoolExecutor(2) as threads:
        with app.database.write() as connection:
            if app.database.kind == "postgresql":
                # To look is allowed, and each sees that there is no such run yet; to begin one is not.
                connection.execute(text("lock table document_runs in share mode"))
            runs = threads.map(begin, range(2))
            if app.database.kind == "postgresql":
                until(both_wait, 60, what="the two who begin")
        assert len(set(runs)) == 1
    assert [each.action for each in log(app)] == ["document.process", "document.resume"]


def test_originals_that_somebody_lets_expire_are_one_entry(app: App) -> None:
    for number in (1, 2):
        uploaded(app, number)
    with app.database.write() as connection:
        due = {"original_expires_at": database_now(connection), "status": "completed"}
        connection.execute(update(documents).values(due))
    before = len(log(app))
    assert app.documents.by(ANN).expire() == 2
    assert last(app) == ("document.expire", ("organisation", app.org_id), None, {"done_before": None})
    assert app.documents.by(ANN).expire() == 0
    assert len(log(app)) == before + 1


def test_originals_whose_time_is_up_and_those_of_old_documents_are_one_entry(app: App) -> None:
    due, old, other = (uploaded(app, number) for number in (1, 2, 3))
    with app.database.write() as connection:
        now = database_now(connection)
        for document, values in (
            (due, {"original_expires_at": now, "finished_at": now}),
            (old, {"finished_at": now - timedelta(days=40)}),
            (other, {"finished_at": now}),
        ):
            write = update(documents).where(documents.c.id == document)
            connection.execute(write.values(status="completed", **values))
    before = len(log(app))
    moment = now - timedelta(days=30)
    assert app.documents.by(ANN).expire(before=moment) == 2
    assert app.documents.get(other).original_key is not None
    told = {"done_before": moment.isoformat()}
    assert last(app) == ("document.expire", ("organisation", app.org_id), None, told)
    assert len(log(app)) == before + 1


def test_results_that_somebody_takes_along_are_recorded_before_they_go(database_url: str, tmp_path: Path) -> None:
    with mailroom(database_url, tmp_path) as room:
        org = room.app.for_org(room.app.org_id)
        with pytest.raises(NothingYet):
            org.exports.write(Choice(), ExportFormat.CSV, by=ANN)
        assert log(room.app) == []
        room.process(room.put("bill.pdf", letter("Invoice 4711\nTotal 12.50")), order=room.order(out=None))
        org.exports.write(Choice(table="line_items"), ExportFormat.JSONL, by=ANN).unlink()
        told: dict[str, object] = {"format": "jsonl", "schema": None, "since": None, "table": "line_items"}
        told |= {"reviews": [], "duplicates": False}
        assert last(room.app) == ("results.export", ("organisation", org.id), None, told)
        forbid(room.app)
        with pytest.raises(DBAPIError, match="no more entries"):
            org.exports.write(Choice(), ExportFormat.CSV, by=ANN)
        assert not [path for path in room.app.blobs.workshop.iterdir() if path.name.startswith("export")]
