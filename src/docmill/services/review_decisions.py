"""The end of a review: approved, corrected or rejected, with the job that writes the outputs in the same commit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, exists, select, update

from docmill.db.clock import database_now
from docmill.db.tables import documents, jobs, review_items
from docmill.engine.batch import Batch, NewJob, Outcome
from docmill.engine.store import PlanSource, Store
from docmill.engine.store_pool import StorePool
from docmill.model.errors import DocmillError, InvalidInput
from docmill.model.ids import derived_id
from docmill.model.people import Permission, Principal
from docmill.model.review import CHANGED, ChecksFail, RequiredMissing, ReviewStatus
from docmill.review.editing import lacking, rechecked
from docmill.review.queue import NOBODY
from docmill.review.rows import fields_of
from docmill.services.review_base import ReviewBase
from docmill.services.review_views import ItemSummary

OUTPUTS = "document-review-outputs"
"""The template whose jobs write the outputs."""
MOST_REASON = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision, and the jobs that carry it into the outputs."""

    item: ItemSummary
    job_ids: Sequence[str]
    failing: Sequence[Mapping[str, Any]] = ()
    """Rules of the schema that do not hold for what was approved, as `ItemView.checks` has them; none where what was
    read cannot be asked any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    principal: Principal
    item_id: str
    version: int | None
    reason: str | None
    template_id: str
    anyway: bool
    readable: bool
    """Whether the rules can be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """What the transaction did."""

    outcome: Outcome | None = None
    """None: nothing for workers, or an earlier attempt did it."""
    job_ids: Sequence[str] = ()
    failing: Sequence[Mapping[str, Any]] = ()


class Decisions(ReviewBase):
    """Items that somebody has claimed come to their end."""

    def approve(
        self, principal: Principal, item_id: str, *, version: int | None = None, anyway: bool = True
    ) -> Decided:
        """Approve the values as they stand: `corrected` if a person changed any of them.

        RequiredMissing names the fields without which it cannot be. Duplicates that point at this item get its values.
        The answer tells the rules that do not hold; unless `anyway`, ChecksFail does, and nothing is decided.
        """
        return self._decide(principal, item_id, version, None, anyway=anyway)

    def reject(self, principal: Principal, item_id: str, reason: str, *, version: int | None = None) -> Decided:
        """Reject the document, with a reason."""
        reason = reason.strip()
        if not reason or len(reason) > MOST_REASON or "\0" in reason:
            raise InvalidInput(f"A rejection needs a reason of 1 to {MOST_REASON:,} characters.", field="reason")
        return self._decide(principal, item_id, version, reason)

    def close(self) -> None:
        """Let go of the connections."""
        if self._stores is not None:
            self._stores.close()

    def _decide(
        self, principal: Principal, item_id: str, version: int | None, reason: str | None, *, anyway: bool = True
    ) -> Decided:
        self._allow(principal, Permission.REVIEW_DECIDE)
        if self._stores is None:
            self._stores = StorePool(self._database, PlanSource())
        with self._database.read() as connection:
            item = str(self._found(connection, item_id).id)
        readable = reason is None
        try:
            if readable:
                self._warm(item)
        except DocmillError:
            if not anyway:
                raise
            # Whoever approves it as it stands needs no rules for that: bytes that the disk lost hold up nobody.
            readable = False
        wish = _Wish(
            principal=principal,
            item_id=item,
            version=version,
            reason=reason,
            template_id=self._outputs_template(),
            anyway=anyway,
            readable=readable,
        )
        ended = self._stores.work(
            lambda store: self._transact(store, wish), again=lambda store: self._transact_again(store, wish)
        )
        if ended.outcome is not None:
            self._bell.ring(ended.outcome.left_ready)
        with self._database.read() as connection:
            shown = self._summary(connection, item, database_now(connection), principal)
        return Decided(item=shown, job_ids=ended.job_ids, failing=ended.failing)

    def _failing(self, connection: Connection, item: Row[Any], wish: _Wish) -> Sequence[Mapping[str, Any]]:
        """The rules that do not hold for the values as they stand."""
        if not wish.readable:
            return ()
        _, checks = rechecked(fields_of(connection, item.id), *self._extraction_of(item))
        return [each for each in checks if not each["passed"]]

    def _transact_again(self, store: Store, wish: _Wish) -> _Ended:
        """After an attempt whose commit may have been done although its answer was lost."""
        with store.session.read() as connection:
            item = connection.execute(select(review_items).where(review_items.c.id == wish.item_id)).one()
            mine = item.decided_by == wish.principal.id and item.reason == wish.reason
            if ReviewStatus(item.status).decided and mine:
                return _Ended(failing=self._failing(connection, item, wish))
        return self._transact(store, wish)

    def _transact(self, store: Store, wish: _Wish) -> _Ended:
        with store.session.write() as connection:
            now = database_now(connection)
            item = self._hold(connection, wish.item_id, wish.version)
            self._check_claim(connection, item, wish.principal, now)
            failing = self._failing(connection, item, wish)
            status = self._status(connection, item, wish, failing)
            decided = {"decided_by": wish.principal.id, "decided_at": now, "sla_at": None, "reason": wish.reason}
            self._write(connection, item, now, status=status, **decided, **NOBODY)
            new_jobs = [] if wish.reason is not None else self._jobs(connection, item, wish)
            transaction = store.begin()
            outcome = transaction.run(Batch(submissions=new_jobs)) if new_jobs else None
            after = {"status": status.value} | ({"reason": wish.reason} if wish.reason else {})
            verb = "reject" if status is ReviewStatus.REJECTED else "approve"
            self._record(connection, wish.principal, verb, item.id, now, {"status": item.status}, after)
        return _Ended(outcome=outcome, job_ids=[job.id for job in new_jobs], failing=failing)

    def _status(
        self, connection: Connection, item: Row[Any], wish: _Wish, failing: Sequence[Mapping[str, Any]]
    ) -> ReviewStatus:
        if wish.reason is not None:
            return ReviewStatus.REJECTED
        rows = fields_of(connection, item.id)
        schema = self._reading.schema(item.schema_name, item.options.get("schema_file"))
        missing = lacking(rows, schema)
        if missing:
            raise RequiredMissing(
                f"Item {item.id} cannot be approved without {', '.join(missing)}. Add them, or reject it.",
                id=item.id,
                missing=missing,
            )
        if failing and not wish.anyway:
            told = " ".join(f"{each['name']}: {each['message']}" for each in failing)
            raise ChecksFail(
                f"Item {item.id} has values that do not pass all checks. {told} Correct what is wrong.",
                id=item.id,
                failing=[each["name"] for each in failing],
            )
        changed = any(row.state in CHANGED for row in rows)
        return ReviewStatus.CORRECTED if changed else ReviewStatus.APPROVED

    def _jobs(self, connection: Connection, item: Row[Any], wish: _Wish) -> list[NewJob]:
        """One for the document, and for each duplicate that has no item of its own: they share its values."""
        query = select(documents.c.locked, documents.c.file_name).where(documents.c.id == item.document_id)
        document = connection.execute(query).one()
        if not document.locked:
            return []
        twin = documents.alias("twin")
        of_its_own = exists(select(1).where(review_items.c.document_id == twin.c.id))
        twins = (
            select(twin.c.id, jobs.c.metadata)
            .select_from(twin.outerjoin(jobs, jobs.c.id == twin.c.job_id))
            .where(twin.c.duplicate_of == item.document_id, ~of_its_own, twin.c.org_id == item.org_id)
            .order_by(twin.c.id)
        )
        options = {item.document_id: item.options}
        for row in connection.execute(twins):
            # Where its own outputs are, its own job knows, unless that is gone.
            options[row.id] = item.options if row.metadata is None else row.metadata
        if len(options) > 1:
            write = update(documents).where(documents.c.id.in_([each for each in options if each != item.document_id]))
            connection.execute(write.values(locked=document.locked))
        return [
            NewJob(
                id=derived_id("review-outputs", item.id, document_id),
                template_id=wish.template_id,
                org_id=item.org_id,
                entity_type="document",
                entity_id=document_id,
                title=document.file_name,
                metadata=told,
                created_by=wish.principal.id,
                # An item is decided once. What an earlier decision still writes is written again if it comes second.
                family=f"{OUTPUTS}/{item.id}",
            )
            for document_id, told in options.items()
        ]
