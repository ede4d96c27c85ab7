"""What an entry says of a deed: who, what, before and after; committed with the deed, or neither."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, insert, select, update
from sqlalchemy.exc import DBAPIError

from docmill.bootstrap import App, open_app
from docmill.db.clock import database_now
from docmill.db.tables import ai_breakers, batches, documents, issues, jobs, prompts, templates
from docmill.engine.batch import NewJob
from docmill.model.errors import Forbidden
from docmill.model.ids import SHARED_ORG
from docmill.model.statuses import JobStatus
from docmill.outputs.exporting import Choice, ExportFormat
from docmill.people.audit import AuditEntry
from docmill.services.audit import Audit
from docmill.services.jobs import Retry
from docmill.services.submission import new_job
from docmill.settings import Settings
from tests.contract.audited import ANN, ASKING, compiled, forbid, last, log, uploaded
from tests.contract.served import OTHER_ORG, somebody

STRANGER = somebody("stranger", org_id=OTHER_ORG)


@pytest.fixture
def app(database_url: str, tmp_path: Path) -> Iterator[App]:
    with open_app(Settings(home=tmp_path / "home", database_url=database_url)) as app:
        app.prompts.put("Ask", "What?")
        app.templates.register(compiled(app, ASKING))
        yield app


def job(app: App, entity: str = "document:1") -> NewJob:
    return new_job(app.templates.find("asking"), entity, title="A title")


def only(app: App) -> AuditEntry:
    (entry,) = log(app)
    return entry


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
