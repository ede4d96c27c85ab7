"""Who may do what with the rows of which table, as of revision 0007."""

from sqlalchemy import Connection, text

from docmill.db.protection import ALL, ORG, also_seen, make_roles, protect
from docmill.db.standing import ENGINE, ENTRY, KEEPER

_SHARED = "00000000-0000-7000-8000-000000000000"
_READ = "select"


def protect_all(connection: Connection) -> None:
    """Roles, then every table there is. On SQLite there is nothing to do."""
    if connection.dialect.name != "postgresql":
        return
    make_roles(connection)
    _engine(connection)
    _documents(connection)
    _review(connection)
    _models(connection)
    _people(connection)
    # Alembic's own: one row that says which revision this is.
    protect(connection, "alembic_version", app="")
    connection.execute(text("create policy everybody on alembic_version using (true) with check (true)"))
    connection.execute(text("grant select on alembic_version to public"))


def _engine(connection: Connection) -> None:
    engine, keeper = {ENGINE: ALL}, {ENGINE: ALL, KEEPER: _READ}
    # Undoing a job stores the template of its undoing.
    protect(connection, "process_templates", across={ENGINE: "select, insert"})
    protect(connection, "process_template_steps", under={"template_id": "process_templates"})
    protect(connection, "processing_jobs", across=keeper, under={"template_id": "process_templates"})
    protect(connection, "processing_job_steps", across=keeper, under={"job_id": "processing_jobs"})
    protect(connection, "processing_job_events", across=engine)
    protect(connection, "processing_step_parts", across=engine)
    protect(connection, "processing_batches", across=engine)
    protect(connection, "processing_issues", across=engine, under={"job_id": "processing_jobs"})
    protect(connection, "processing_callbacks", across=engine)
    protect(connection, "workers", app="", across=engine)
    protect(connection, "installation_secrets", app="", across={ENGINE: "select, insert"})


def _documents(connection: Connection) -> None:
    protect(connection, "documents", across={KEEPER: "select, update"})
    protect(connection, "processed_documents", across={KEEPER: "select, delete"})
    protect(connection, "document_runs", across={KEEPER: "select, delete"})
    # Bytes are known by their hash alone, whoever brought them.
    protect(connection, "leaving_blobs", across={KEEPER: ALL}, mine="true")


def _review(connection: Connection) -> None:
    protect(connection, "review_items", across={KEEPER: _READ}, under={"document_id": "documents"})
    for table in ("extracted_fields", "field_history", "review_comments"):
        protect(connection, table, under={"item_id": "review_items"})
    protect(connection, "review_settings")
    protect(connection, "reviewers", scoped={ENTRY: "select, insert"})


def _models(connection: Connection) -> None:
    protect(connection, "ai_prompts")
    also_seen(connection, "ai_prompts", f"org_id = '{_SHARED}'")
    for table in ("ai_calls", "ai_responses", "ai_budgets"):
        protect(connection, table)
    # Providers are the installation's: whoever finds one ill tells the others.
    protect(connection, "ai_breakers", mine="true")
    protect(connection, "ai_buckets", mine="true")


def _people(connection: Connection) -> None:
    protect(
        connection,
        "organisations",
        app="select, update",
        across={ENTRY: _READ, KEEPER: _READ},
        scoped={ENTRY: "select, insert, update"},
        mine=f"id = {ORG}",
    )
    member = f"exists (select 1 from memberships m where m.user_id = users.id and m.org_id = {ORG})"
    protect(connection, "users", app=_READ, across={ENTRY: "select, insert, update"}, mine=member)
    protect(connection, "memberships", across={ENTRY: _READ}, scoped={ENTRY: "select, insert"})
    protect(connection, "invitations", across={ENTRY: "select, insert, update", KEEPER: "select, delete"})
    protect(connection, "sessions", across={ENTRY: ALL, KEEPER: "select, delete"})
    protect(connection, "api_keys", across={ENTRY: "select, insert, update"})
    protect(connection, "sign_in_limits", app="", across={ENTRY: ALL, KEEPER: "select, delete"})
    # Never changed, whoever asks; triggers say the same.
    protect(connection, "audit_log", app="select, insert", scoped={ENTRY: "select, insert"})
    heads = "select, insert, update"
    protect(connection, "audit_heads", app=heads, scoped={ENTRY: heads})
