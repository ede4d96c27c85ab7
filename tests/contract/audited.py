"""An installation whose log of deeds is looked at, for tests."""

from contextlib import closing
from typing import Any

from sqlalchemy import text

from docmill.bootstrap import App
from docmill.model.people import Principal
from docmill.people.audit import AuditEntry
from docmill.templates.compile import CompiledTemplate, compile_template
from docmill.testing.papers import invoice_pdf
from tests.contract.served import somebody

ANN = somebody("ann")
ASKING = """
name: asking
processable_type: document
steps:
  - {step_key: ask, type: ai.generate, prompt: Ask, model_config: {model: "local:one"}}
  - {step_key: finish, type: FinishProcessing}
"""


def compiled(app: App, written: str) -> CompiledTemplate:
    return compile_template(written, catalogue=app.catalogue, source="test")


def log(app: App) -> list[AuditEntry]:
    """All entries, the oldest first; the chain must hold."""
    assert app.audit.verify(ANN).faults == ()
    return list(app.audit.export(ANN))


def last(app: App) -> tuple[str, tuple[str, str], Any, Any]:
    entry = log(app)[-1]
    assert (entry.actor_kind, entry.actor_id) == ("user", "ann")
    return entry.action, (entry.subject_type, entry.subject_id), entry.before, entry.after


def uploaded(app: App, number: int = 1, by: Principal = ANN) -> str:
    org = app.for_org(app.org_id)
    with closing(org.uploads.open()) as incoming:
        incoming.write(invoice_pdf(number).content)
        return org.uploads.accept(incoming, name="a.pdf", order=org.order("invoice", None), by=by).document.id


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
