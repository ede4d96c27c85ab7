"""What the steps of a document write, in the transactions that complete them; and how a document is loaded for them.

Every statement is built once: to build one costs ten times what it costs to run it.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, bindparam, exists, func, literal, select, text, update
from sqlalchemy.dialects import postgresql, sqlite

from docmill.db.tables import documents, jobs, processed_documents
from docmill.db.tables.documents import UNFINISHED
from docmill.db.tables.jobs import LIVE
from docmill.documents import paper_claims
from docmill.documents.records import ASKED, COLUMNS, KEY, NAMES, WORKED_ON, free_for
from docmill.model.documents import DocumentStatus, leading_to
from docmill.model.errors import Deferred, NotFound
from docmill.model.ids import is_id
from docmill.plugin import ApplyContext, Database
from docmill.review.rows import review, stand_again
from docmill.review.superseding import hold_documents, hold_twins

_CACHE = processed_documents.c
# A job names its document by any text; on SQLite nothing else keeps it from naming another organisation's.
_OWN = (documents.c.id == bindparam("the_id"), documents.c.org_id == bindparam("the_org"))
_DONE = (
    *("duplicate_of", "extraction_key", "reading_key", "schema_name", "schema_version", "document_type"),
    *("confidence", "outputs", "locked", "original_expires_at", "finished_at"),
)


def _moving(status: DocumentStatus, *columns: str) -> Any:
    """Write a status, if it can follow the one that is there."""
    before = ", ".join(f"'{each.value}'" for each in leading_to(status))
    return (
        update(documents)
        .where(*_OWN)
        .where(text(f"documents.status IN ({before})"))
        .values({"status": status.value, **{name: bindparam(name) for name in columns}})
    )


def _ending(status: DocumentStatus) -> Any:
    """Likewise, if nobody has fixed a value since its outputs were written."""
    seen = documents.c.locked == bindparam("locked_seen", type_=documents.c.locked.type)
    return _moving(status, *_DONE).where(seen)


_BEGIN = _moving(DocumentStatus.PROCESSING, "error_code", "error_message", "finished_at")
_END = {status: _ending(status) for status in (DocumentStatus.COMPLETED, DocumentStatus.DUPLICATE)}
_REWRITTEN = (
    update(documents)
    .where(*_OWN)
    .where(documents.c.locked == bindparam("locked_seen", type_=documents.c.locked.type))
    .values(extraction_key=bindparam("extraction_key"), outputs=bindparam("outputs"))
)
_TELL = update(documents).where(*_OWN).values(locked=bindparam("locked"))
_LOCKED = select(documents.c.locked).where(*_OWN)

_CHANGING = ("document_id", "job_id", "extraction_key", "created_at", "completed_at", "expires_at")


def _upserting(insert: Any, where: Any) -> Any:
    """The row of the document's key, taken from the document itself."""
    given = (bindparam(name, type_=_CACHE[name].type).label(name) for name in _CHANGING)
    row = select(*(documents.c[name] for name in ASKED), *given).where(*_OWN)
    new = insert(processed_documents).from_select([*KEY, *_CHANGING], row)
    changed = {name: new.excluded[name] for name in _CHANGING}
    # SQLAlchemy forgets the number of rows of an INSERT unless told to keep it.
    upsert = new.on_conflict_do_update(index_elements=list(KEY), set_=changed, where=where)
    return upsert.execution_options(preserve_rowcount=True)


_FREE = free_for(bindparam("me", type_=_CACHE.document_id.type), bindparam("now", type_=_CACHE.expires_at.type))
_STALE = _CACHE.extraction_key == bindparam("stale")
# Somebody else's result stands: this one was done again by hand, and is just as good.
_MINE = (_CACHE.document_id == bindparam("me")) | _CACHE.extraction_key.is_(None)
_UPSERTS = {
    (kind, name): _upserting(insert, where)
    for kind, insert in (("postgresql", postgresql.insert), ("sqlite", sqlite.insert))
    for name, where in (("free", _FREE), ("stale", _STALE), ("mine", _MINE))
}

_ORIGINAL, _READ, _TWIN = documents.alias("original"), documents.alias("read"), documents.alias("twin")
_DECIDED = documents.alias("decided")
_READ_BEFORE = (
    select(_READ.c.reading_key)
    .where(_READ.c.org_id == documents.c.org_id, _READ.c.sha256 == documents.c.sha256, _READ.c.reading_key.is_not(None))
    # The newest: an older one may have been cut short by a limit of its day.
    .order_by(_READ.c.id.desc())
    .limit(1)
    .correlate(documents)
    .scalar_subquery()
)
# Ids grow in the order in which a run takes documents in.
_EARLIER_TWIN = exists(
    select(1)
    .select_from(_TWIN.join(jobs, jobs.c.id == _TWIN.c.job_id))
    .where(*(_TWIN.c[name] == documents.c[name] for name in (*ASKED, "run_id")), _TWIN.c.id < documents.c.id)
    .where(text(f"twin.status IN ({UNFINISHED})"), text(f"processing_jobs.status IN ({LIVE})"))
    .correlate(documents)
)
_SAME_BYTES = tuple(_DECIDED.c[name] == documents.c[name] for name in ("org_id", "sha256"))
_OF_THE_SAME_BYTES = (
    *_SAME_BYTES,
    _DECIDED.c.id != documents.c.id,
    _DECIDED.c.locked != literal({}, documents.c.locked.type),
)
_DECIDED_ELSEWHERE = exists(select(1).select_from(_DECIDED).where(*_OF_THE_SAME_BYTES).correlate(documents))
_NUMBERED = (
    select(
        *(_DECIDED.c[name] for name in ("id", "duplicate_of", "schema_name", "locked", "finished_at")),
        func.coalesce(_DECIDED.c.duplicate_of, _DECIDED.c.id).label("reading"),
        func.row_number().over(order_by=(_DECIDED.c.created_at, _DECIDED.c.id)).label("number"),
    )
    .select_from(documents.join(_DECIDED, and_(*_SAME_BYTES)))
    .where(*_OWN)
    .subquery("numbered")
)
_ASKED_LAST = func.max(_NUMBERED.c.number).over(partition_by=_NUMBERED.c.reading).label("asked_last")
_SAID = select(_NUMBERED, _ASKED_LAST).subquery("said")
# The latest last, because what it says counts: the reading that was asked for last, and of its documents the original.
_DECISIONS = (
    select(_SAID.c.schema_name, _SAID.c.locked)
    .where(_SAID.c.id != bindparam("the_id", type_=documents.c.id.type))
    .where(_SAID.c.locked != literal({}, documents.c.locked.type))
    .order_by(_SAID.c.asked_last, _SAID.c.duplicate_of.is_(None), _SAID.c.finished_at, _SAID.c.id)
)
_LOADED = (
    select(
        *COLUMNS,
        _CACHE.document_id.label("before_id"),
        _CACHE.extraction_key.label("before_key"),
        _CACHE.expires_at.label("before_expires_at"),
        WORKED_ON.label("worked_on"),
        _ORIGINAL.c.schema_name.label("original_schema"),
        _ORIGINAL.c.reading_key.label("reading_of_hit"),
        _READ_BEFORE.label("read_before"),
        _EARLIER_TWIN.label("earlier_twin"),
        _DECIDED_ELSEWHERE.label("decided_elsewhere"),
    )
    .select_from(
        documents.outerjoin(
            processed_documents,
            and_(*(_CACHE[mine] == documents.c[its] for mine, its in zip(KEY, ASKED, strict=True))),
        ).outerjoin(_ORIGINAL, _ORIGINAL.c.id == _CACHE.document_id)
    )
    .where(*_OWN)
)


def claim(ctx: ApplyContext, result: Mapping[str, Any]) -> None:
    """The document is being processed; unless it is a duplicate, it is so for its key from now on, and it alone."""
    _move(ctx, _BEGIN, {"error_code": None, "error_message": None, "finished_at": None})
    if result["hit"]:
        return
    stale = result.get("stale")
    row = _cache_row(ctx, extraction_key=None, completed_at=None, expires_at=None)
    given = {"stale": stale} if stale else {"me": ctx.entity_id, "now": ctx.now}
    # The document is there: its status was written a moment ago.
    if not ctx.db.execute(_UPSERTS[_kind(ctx), "stale" if stale else "free"], row | given).rowcount:
        # A twin was quicker between the look and now: look again.
        raise Deferred("The same bytes are being processed for another document.", delay=0.2)


def complete(ctx: ApplyContext, result: Mapping[str, Any]) -> None:
    """The document is done, and its result answers for the same bytes from now on."""
    hit = result["hit"]
    asked = result["review"] is not None or hit is not None
    twins = asked and result["schema"] is not None and hold_twins(ctx.db, ctx.org_id, ctx.entity_id, hit)
    # Before the document's own row: whoever decides about an original holds that one, then its copies.
    said = _said(ctx, result) if twins and result.get("inherits") else {}
    values = {
        "duplicate_of": hit,
        "extraction_key": result["extraction"],
        "reading_key": result["reading"],
        "schema_name": result["schema"],
        "schema_version": result["schema_version"],
        "document_type": result["document_type"],
        "confidence": result["confidence"],
        "outputs": result["outputs"],
        "locked": result["locked"],
        "original_expires_at": _later(ctx.now, result["original_expires_after"]),
        "finished_at": ctx.now,
        "locked_seen": result["locked_seen"],
    }
    _move(ctx, _END[DocumentStatus.DUPLICATE if hit else DocumentStatus.COMPLETED], values)
    _claim_paper(ctx, result, result["extraction"])
    if twins and hit:
        _let_stand(ctx, hit, result["schema"], said)
    if result["review"] is not None:
        review(
            ctx.db,
            _kind(ctx),
            org_id=ctx.org_id,
            document_id=ctx.entity_id,
            job_id=ctx.job_id,
            metadata=ctx.metadata,
            result=result,
            now=ctx.now,
            twins=twins,
        )
    if hit:
        return
    expires_at = _later(ctx.now, result["cache_ttl"])
    row = _cache_row(ctx, extraction_key=result["extraction"], completed_at=ctx.now, expires_at=expires_at)
    ctx.db.execute(_UPSERTS[_kind(ctx), "mine"], row | {"me": ctx.entity_id})


def _said(ctx: ApplyContext, result: Mapping[str, Any]) -> dict[str, Any]:
    """What people said of the same bytes until this moment: it is in the result, or that is void. Until the commit
    nobody says more."""
    hold_documents(ctx.db, ctx.org_id, ctx.entity_id)
    said = _decisions(ctx.db, ctx.entity_id, ctx.org_id).get(result["schema"], {})
    if {**said, **result["locked_seen"]} != result["locked"]:
        raise Deferred("A person has just decided a value of the same bytes in another document.", delay=0.2)
    return said


def _let_stand(ctx: ApplyContext, original: str, schema: str, said: Mapping[str, Any]) -> None:
    """The question that the original answers was asked last: what people said elsewhere since is said of it."""
    about = {"org_id": ctx.org_id, "document_id": ctx.entity_id, "original": original, "schema": schema}
    if stand_again(ctx.db, _kind(ctx), **about, locks=said, now=ctx.now):
        ctx.db.execute(_TELL, {"the_id": original, "the_org": ctx.org_id, "locked": said})


def _paper(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the paper is known by. A step that was done under the release before says one hash, of an invoice."""
    if (invoice := result.get("invoice")) is not None:
        return {"claims": (invoice,), "against": (invoice,)}
    return result.get("paper") or {"claims": (), "against": ()}


def _claim_paper(ctx: ApplyContext, result: Mapping[str, Any], key: str) -> None:
    """The document has its paper, or knows who had it first."""
    paper = _paper(result)
    claims, against = paper["claims"], paper["against"]
    if not claims:
        return
    mine = {"org_id": ctx.org_id, "document_id": ctx.entity_id}
    if paper_claims.claim(ctx.db, _kind(ctx), **mine, claims=claims, job_id=ctx.job_id, key=key, now=ctx.now):
        return
    first = paper_claims.earlier(ctx.db, **mine, against=against)
    if first is not None and result["earlier"] is None:
        # Another file with the same paper was quicker between the look and now: write them again, with the check.
        raise Deferred("The same paper was just processed in another file.", delay=0.2)


def review_outputs(ctx: ApplyContext, result: Mapping[str, Any]) -> None:
    """The outputs say what a person decided, and the document's result too."""
    written = {name: result[name] for name in ("extraction_key", "outputs", "locked_seen")}
    if not ctx.db.execute(_REWRITTEN, {"the_id": ctx.entity_id, "the_org": ctx.org_id, **written}).rowcount:
        _refuse(ctx, result["locked_seen"])
    # What a person corrected is this document's from now on, and what it was read as is free.
    paper_claims.leave(ctx.db, org_id=ctx.org_id, document_id=ctx.entity_id, but=_paper(result)["claims"])
    _claim_paper(ctx, result, result["extraction_key"])


def _refuse(ctx: ApplyContext, locked_seen: Any) -> None:
    locked = ctx.db.execute(_LOCKED, {"the_id": ctx.entity_id, "the_org": ctx.org_id}).scalar()
    if locked is not None and locked != locked_seen:
        # Somebody fixed a value between the look and now: write them again, with it.
        raise Deferred("A person has just decided a value of this document.", delay=0.2)
    raise NotFound(f"Document {ctx.entity_id} is gone, or has come to another end.")


def _move(ctx: ApplyContext, statement: Any, values: Mapping[str, Any]) -> None:
    if not ctx.db.execute(statement, {"the_id": ctx.entity_id, "the_org": ctx.org_id, **values}).rowcount:
        if "locked_seen" in values:
            _refuse(ctx, values["locked_seen"])
        raise NotFound(f"Document {ctx.entity_id} is gone, or has come to another end.")


def _cache_row(ctx: ApplyContext, **values: object) -> dict[str, object]:
    """The row of the document's key, written by its job."""
    mine = {"the_id": ctx.entity_id, "the_org": ctx.org_id}
    return {**mine, "document_id": ctx.entity_id, "job_id": ctx.job_id, "created_at": ctx.now, **values}


def _later(now: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else now + timedelta(seconds=seconds)


def _kind(ctx: ApplyContext) -> str:
    # Only asked once a statement has been read from, so never of the database that can only write.
    return str(getattr(ctx.db, "kind", "sqlite"))


def load_document(db: Database, entity_id: str, org_id: str) -> Mapping[str, object] | None:
    """The organisation's document with all its columns, and what is known of its bytes.

    `processed`: the result or the claim that stands for its key, or None; `earlier_twin`: whether its run has the same
    bytes before it, and they are not done; `read_before`: key of a reading of the same bytes, or None;
    `original_schema` and `reading_of_hit`: of the document that has the result; `decided`: what
    people decided in other documents of the same bytes, by schema.
    """
    if not is_id(entity_id):
        return None
    row = db.execute(_LOADED, {"the_id": entity_id, "the_org": org_id}).first()
    if row is None:
        return None
    before = {
        "document_id": row.before_id,
        "extraction_key": row.before_key,
        "expires_at": row.before_expires_at,
        "worked_on": bool(row.worked_on),
    }
    return {
        **{name: getattr(row, name) for name in NAMES},
        "status": DocumentStatus(row.status),
        "processed": None if row.before_id is None else before,
        "earlier_twin": bool(row.earlier_twin),
        "read_before": row.reading_key or row.read_before,
        "original_schema": row.original_schema,
        "decided": _decisions(db, entity_id, org_id) if row.decided_elsewhere else {},
        "reading_of_hit": row.reading_of_hit,
    }


def _decisions(db: Database, entity_id: str, org_id: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for row in db.execute(_DECISIONS, {"the_id": entity_id, "the_org": org_id}):
        if row.schema_name is not None:
            found.setdefault(row.schema_name, {}).update(row.locked)
    return found
