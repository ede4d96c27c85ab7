"""What an entry says of a deed: who, what, before and after; committed with the deed, or neither."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, insert, select, text, update
from sqlalchemy.exc import DBAPIError

from docmill.bootstrap import App, open_app
from docmill.db.clock import database_now
from docmill.db.tables import ai_breakers, batches, documents, issues, jobs, prompts, templates
from docmill.engine.batch import NewJob
from docmill.model.errors import Forbidden
from docmill.model.ids import SHARED_ORG
from docmill.model.people import Principal
from docmill.model.statuses import JobStatus
from docmill.outputs.exporting import Choice, ExportFormat
from docmill.outputs.gathering import NothingYet
from docmill.people.audit import AuditEntry
from docmill.services.audit import Audit
from docmill.services.jobs import Retry
from docmill.services.processing import Order
from docmill.services.submission import new_job
from docmill.settings import Settings
from docmill.templates.compile import CompiledTemplate, compile_template
from docmill.testing.papers import invoice_pdf
from docmill.testing.waiting import until
from tests.contract.mailroom import letter, mailroom
from tests.contract.served import OTHER_ORG, somebody

ANN = somebody("ann")
STRANGER = somebody("stranger", org_id=OTHER_ORG)
ASKING = """
name: asking
processable_type: document
steps:
  - {step_key: ask, type: ai.generate, prompt: Ask, model_config: {model: "local:one"}}
  - {step_key: finish, type: FinishProcessing}
"""


@pytest.fixture
def app(database_url: str, tmp_path: Path) -> Iterator[App]:
    with open_app(Settings(home=tmp_path / "home", database_url=database_url)) as app:
        app.prompts.put("Ask", "What?")
        app.templates.register(compiled(app, ASKING))
        yield app


def compiled(app: App, written: str) -> CompiledTemplate:
    return compile_template(written, catalogue=app.catalogue, source="test")


def job(app: App, entity: str = "document:1") -> NewJob:
    return new_job(app.templates.find("asking"), entity, title="A title")


def log(app: App) -> list[AuditEntry]:
    """All entries, the oldest first; the chain must hold."""
    assert app.audit.verify(ANN).faults == ()
    return list(app.audit.export(ANN))


def only(app: App) -> AuditEntry:
    (entry,) = log(app)
    return entry


def last(app: App) -> tuple[str, tuple[str, str], Any, Any]:
    entry = log(app)[-1]
    assert (entry.actor_kind, entry.actor_id) == ("user", "ann")
    return entry.action, (entry.subject_type, entry.subject_id), entry.before, entry.after


def test_what_docmill_does_by_itself_is_not_recorded(app: App) -> None:
    app.jobs.submit([job(app)])
    app.batches.submit([job(app, "document:2")])
    assert log(app) == []


def test_nobody_acts_for_another_organisation(app: App) -> None:
    for service in (app.jobs, app.batches, app.issues, app.templates, app.prompts, app.documents, app.processing):
        with pytest.raises(Forbidden):
            service.by(STRANGER)


def test_nobody_brings_takes_along_or_opens_what_is_another_organisations(app: App) -> None:
    document = app.documents.get(uploaded(app))
    before = log(app)
    org = app.for_org(app.org_id)
    with pytest.raises(Forbidden):
        uploaded(app, 2, by=STRANGER)
    with pytest.raises(Forbidden):
        org.exports.write(Choice(), ExportFormat.CSV, by=STRANGER)
    with pytest.raises(Forbidden):
        org.documents.link(document, by=STRANGER, within=timedelta(minutes=5))
    assert [each.id for each in app.documents.list()] == [document.id]
    assert log(app) == before
    assert list(Audit(app.database, OTHER_ORG).export(STRANGER)) == []


def test_a_template_says_which_version_followed_which(app: App) -> None:
    store = app.templates.by(ANN)
    second = store.add(compiled(app, ASKING.replace("local:one", "local:two"))).template
    assert last(app) == (
        "template.publish",
        ("template", "asking"),
        {"version": 1},
        {"version": 2, "id": second.id, "digest": second.digest},
    )
    assert not store.add(compiled(app, ASKING.replace("local:one", "local:two"))).new
    store.add_all([compiled(app, ASKING.replace("asking", name)) for name in ("a", "b")])
    assert [(each.subject_id, each.before) for each in log(app)[1:]] == [("a", None), ("b", None)]


def test_a_prompt_says_what_its_text_and_its_description_were(app: App) -> None:
    store = app.prompts.by(ANN)
    first, second = app.prompts.get("Ask"), store.put("Ask", "What now?", description="Better").prompt
    action, subject, before, after = last(app)
    assert (action, subject) == ("prompt.publish", ("prompt", "Ask"))
    assert before == {"version": 1, "digest": first.digest, "description": ""}
    assert after == {"version": 2, "digest": second.digest, "description": "Better"}
    store.put("Ask", "What now?", description="Best")
    described = ("prompt.describe", ("prompt", "Ask"), {"description": "Better"}, {"description": "Best"})
    assert last(app) == described
    store.put("Ask", "What now?")
    assert len(log(app)) == 2


def test_shared_prompts_have_a_log_of_their_own(app: App) -> None:
    app.prompts.by(ANN).shared.put("Everybodys", "What?")
    assert log(app) == []
    (entry,) = Audit(app.database, SHARED_ORG).export(somebody("ann", org_id=SHARED_ORG))
    assert (entry.actor_id, entry.action, entry.subject_id) == ("ann", "prompt.publish", "Everybodys")


def test_a_job_says_what_for_and_what_became_of_it(app: App) -> None:
    store, new = app.jobs.by(ANN), job(app)
    store.submit([new])
    told = {"entity": "document:1", "template_id": new.template_id, "title": "A title", "priority": 0}
    assert last(app) == ("job.submit", ("job", new.id), None, told)
    store.submit([new])
    assert len(log(app)) == 1
    store.cancel(new.id)
    before = {"status": "PENDING", "run": 1}
    assert last(app) == ("job.cancel", ("job", new.id), before, {"status": "CANCELLED"})
    store.retry(new.id, Retry(everything=True))
    wish: dict[str, Any] = {"steps": [], "from_step": None, "everything": True, "keep_checkpoints": True}
    assert last(app) == ("job.retry", ("job", new.id), {"status": "CANCELLED", "run": 1}, {"run": 2, **wish})


def test_many_jobs_that_are_submitted_at_once_are_one_entry(app: App) -> None:
    new = sorted((job(app, f"document:{number}") for number in range(500)), key=lambda each: each.id)
    app.jobs.by(ANN).submit(new)
    action, subject, _, after = last(app)
    assert (action, subject) == ("job.submit", ("job", new[0].id))
    assert (after["jobs"], after["new"], after["last"]) == (500, 500, new[-1].id)
    assert len(log(app)) == 1


def test_another_model_for_a_step_and_the_run_that_asks_it(app: App) -> None:
    new = job(app)
    app.jobs.submit([new])
    app.jobs.cancel(new.id)
    app.for_org(app.org_id).reruns.by(ANN).rerun(new.id, "ask", "local:two")
    chosen, run = log(app)
    assert (chosen.action, chosen.subject_id) == ("job.model", new.id)
    assert (chosen.before, chosen.after) == ({"step": "ask", "model": None}, {"step": "ask", "model": "local:two"})
    assert (run.action, run.subject_id, (run.after or {})["steps"]) == ("job.retry", new.id, ["ask"])


def test_a_batch_is_one_entry_whatever_number_of_jobs_it_has(app: App) -> None:
    store = app.batches.by(ANN)
    batch = store.submit([job(app, f"document:{number}") for number in range(1200)], limit=7, title="Many").id
    used = [app.templates.find("asking").id]
    told = {"title": "Many", "limit": 7, "jobs": 1200, "template_ids": used}
    assert last(app) == ("batch.submit", ("batch", batch), None, told)
    store.set_limit(batch, 9)
    assert last(app) == ("batch.limit", ("batch", batch), {"limit": 7}, {"limit": 9})
    store.cancel(batch)
    assert last(app) == ("batch.cancel", ("batch", batch), {"cancelling": False}, {"cancelling": True})
    assert store.retry(batch, [JobStatus.CANCELLED]).again == 1200
    again = {"statuses": ["CANCELLED"], "keep_checkpoints": True}
    assert last(app) == ("batch.retry", ("batch", batch), None, again)
    assert len(log(app)) == 4


def test_a_batch_whose_entities_are_all_busy_is_recorded_too(app: App) -> None:
    app.jobs.submit([job(app)])
    batch = app.batches.by(ANN).submit([job(app)], skip_active=True)
    assert (batch.total, last(app)[:2]) == (0, ("batch.submit", ("batch", batch.id)))


def test_a_limit_that_is_the_same_and_a_batch_that_is_being_cancelled_leave_no_entry(app: App) -> None:
    batch = app.batches.submit([job(app)], limit=7).id
    app.batches.by(ANN).set_limit(batch, 7)
    # Somebody who asked for it died before all of its jobs had ended.
    with app.database.write() as connection:
        connection.execute(update(batches).values(cancelling=True))
    assert app.batches.by(ANN).cancel(batch) == 1
    assert log(app) == []


def test_an_issue_says_who_had_it_and_how_it_was_resolved(app: App) -> None:
    store = app.issues.by(ANN)
    issue = store.open(title="Odd", details={"page": 2}, entity=("document", "1"), by="ann").id
    action, subject, before, after = last(app)
    assert (action, subject, before) == ("issue.open", ("issue", issue), None)
    assert (after["title"], after["details"], after["entity_id"]) == ("Odd", {"page": 2}, "1")
    store.assign(issue, "bob")
    assert last(app) == ("issue.assign", ("issue", issue), {"assigned_to": None}, {"assigned_to": "bob"})
    store.assign(issue, "bob")
    assert len(log(app)) == 2
    store.unassign(issue)
    assert last(app) == ("issue.assign", ("issue", issue), {"assigned_to": "bob"}, {"assigned_to": None})
    store.resolve(issue, by="ann", note="It is fine.")
    told = {"status": "resolved", "action": "continue", "data": None, "note": "It is fine."}
    was = {"status": "open", "assigned_to": None}
    assert last(app) == ("issue.resolve", ("issue", issue), was, told)


def uploaded(app: App, number: int = 1, by: Principal = ANN) -> str:
    org = app.for_org(app.org_id)
    with closing(org.uploads.open()) as incoming:
        incoming.write(invoice_pdf(number).content)
        return org.uploads.accept(incoming, name="a.pdf", order=org.order("invoice", None), by=by).document.id


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


def test_jobs_that_somebody_prunes_are_one_entry(app: App) -> None:
    new = [job(app, f"document:{number}") for number in range(150)]
    app.jobs.submit(new)
    for each in new:
        app.jobs.cancel(each.id)
    with app.database.read() as connection:
        moment = database_now(connection) + timedelta(seconds=1)
    assert app.jobs.by(ANN).prune(finished_before=moment, dry_run=True).jobs == 150
    assert log(app) == []
    assert app.jobs.by(ANN).prune(finished_before=moment).jobs == 150
    assert only(app).action == "job.prune"
    assert (only(app).after or {})["statuses"] == ["CANCELLED", "COMPLETED", "FAILED", "PARTIAL_SUCCESS"]


def test_a_message_that_somebody_sends_by_hand_is_recorded_with_what_had_become_of_it(app: App) -> None:
    endpoint, _ = app.webhooks.create(ANN, "https://example.com/")
    ping = app.webhooks.ping(ANN, endpoint.id)
    subject = ("webhook_endpoint", endpoint.id)
    assert last(app) == ("webhooks.ping", subject, None, {"delivery_id": ping.id})
    app.webhooks.resend(ANN, ping.id)
    before = {"delivery_id": ping.id, "status": "pending", "attempts": 0}
    assert last(app) == ("webhooks.resend", subject, before, {"delivery_id": ping.id, "status": "pending"})


def test_a_breaker_that_somebody_closes_says_how_it_stood(app: App) -> None:
    with app.database.write() as connection:
        values = {"name": "local:one", "state": "open", "failures": 5, "opened_at": database_now(connection)}
        connection.execute(insert(ai_breakers).values(values))
    app.model_use.by(ANN).reset_breaker("local:one")
    before, after = {"state": "open", "failures": 5}, {"state": "closed", "failures": 0}
    assert last(app) == ("breaker.reset", ("breaker", "local:one"), before, after)
    app.model_use.by(ANN).reset_breaker("local:one")
    assert len(log(app)) == 1


def test_results_that_somebody_takes_along_are_recorded_before_they_go(database_url: str, tmp_path: Path) -> None:
    with mailroom(database_url, tmp_path) as room:
        org = room.app.for_org(room.app.org_id)
        with pytest.raises(NothingYet):
            org.exports.write(Choice(), ExportFormat.CSV, by=ANN)
        assert log(room.app) == []
        room.process(room.put("bill.pdf", letter("Invoice 4711\nTotal 12.50")), order=room.order(out=None))
        org.exports.write(Choice(items=True), ExportFormat.JSONL, by=ANN).unlink()
        told: dict[str, object] = {"format": "jsonl", "schema": None, "since": None, "items": True}
        told |= {"reviews": [], "duplicates": False}
        assert last(room.app) == ("results.export", ("organisation", org.id), None, told)
        forbid(room.app)
        with pytest.raises(DBAPIError, match="no more entries"):
            org.exports.write(Choice(), ExportFormat.CSV, by=ANN)
        assert not [path for path in room.app.blobs.workshop.iterdir() if path.name.startswith("export")]


def forbid(app: App) -> None:
    """Let no entry be written any more."""
    refused = "no more entries"
    with app.database.write() as connection:
        if app.database.kind == "sqlite":
            body = f"BEGIN SELECT RAISE(ABORT, '{refused}'); END"
            connection.execute(text(f"CREATE TRIGGER no_more BEFORE INSERT ON audit_log {body}"))
            return
        function = f"returns trigger language plpgsql as $$ begin raise exception '{refused}'; end $$"
        connection.execute(text(f"create function no_more() {function}"))
        each = "before insert on audit_log for each row execute function no_more()"
        connection.execute(text(f"create trigger no_more {each}"))


DEEDS: dict[str, Callable[[App], object]] = {
    "template": lambda app: app.templates.by(ANN).add(compiled(app, ASKING.replace("local:one", "local:two"))),
    "prompt": lambda app: app.prompts.by(ANN).put("Ask", "Other?"),
    "job": lambda app: app.jobs.by(ANN).submit([job(app, "document:other")]),
    "cancel": lambda app: app.jobs.by(ANN).cancel(app.jobs.list()[0].id),
    "batch": lambda app: app.batches.by(ANN).submit([job(app, "document:other")]),
    "limit": lambda app: app.batches.by(ANN).set_limit(app.batches.list()[0].id, 77),
    "issue": lambda app: app.issues.by(ANN).open(title="Odd", entity=("document", "1")),
    "resolve": lambda app: app.issues.by(ANN).resolve(app.issues.list()[0].id),
    "upload": lambda app: uploaded(app),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_what_cannot_be_recorded_is_not_done(app: App, deed: str) -> None:
    app.jobs.submit([job(app)])
    app.batches.submit([job(app, "document:2")])
    app.issues.open(title="Odd", entity=("document", "1"))
    # Stores what documents are processed by.
    uploaded(app, 2)
    before = _state(app)
    forbid(app)
    with pytest.raises(DBAPIError, match="no more entries"):
        DEEDS[deed](app)
    assert _state(app) == before


def _state(app: App) -> list[Any]:
    counted = [select(func.count()).select_from(table) for table in (templates, prompts, jobs, batches, documents)]
    statuses = [select(jobs.c.status), select(issues.c.status), select(batches.c.max_active)]
    with app.database.read() as connection:
        counts = [connection.execute(query).scalar_one() for query in counted]
        return counts + [sorted(connection.execute(query).scalars()) for query in statuses]
