"""What all of review stands on: who may, whose item it is, and how a change is written down."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, select, update

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import documents, review_items
from docmill.engine.bell import Bell
from docmill.engine.store_pool import StorePool
from docmill.model.errors import InvalidInput, NotFound
from docmill.model.ids import DEFAULT_ORG, canonical_id
from docmill.model.people import Principal
from docmill.model.review import AlreadyDecided, NotYours, ReviewStatus, Superseded, VersionConflict
from docmill.people.audit import AuditTrail, Deed
from docmill.review.recording import ITEM, Recorder
from docmill.review.rows import HOLD_ITEM
from docmill.services.acting import OrgService
from docmill.services.names import names_of
from docmill.services.review_views import SUMMARIES, ItemSummary, summary, whose

if TYPE_CHECKING:
    from docmill.extraction.result import Extraction
    from docmill.extraction.schema import FieldSchema

CLAIM_FOR = timedelta(minutes=30)
Check = Callable[[Connection], None]
"""Looks at somebody in the transaction that gives them work, and may refuse."""


def nobody_asks(connection: Connection) -> None:
    """For whoever gives work to people of any name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Where review finds what the tables do not hold; each answers None for what is gone."""

    extraction: "Callable[[str], Extraction | None]"
    """By the key of its blob."""
    schema: "Callable[[str, str | None], FieldSchema | None]"
    """By its name, and the blob of its text if it came as a file."""


class ReviewBase(OrgService):
    """The review of one organisation, as its parts see it."""

    def __init__(
        self,
        database: Database,
        bell: Bell,
        reading: Reading,
        outputs_template: Callable[[], str],
        *,
        org_id: str = DEFAULT_ORG,
        claim_for: timedelta = CLAIM_FOR,
        recorder: Recorder | None = None,
        stores: StorePool | None = None,
    ) -> None:
        self._database = database.scoped(org_id)
        self._stores = None if stores is None else stores.standing_as(self._database)
        self._bell = bell
        self._reading = reading
        self._outputs_template = outputs_template
        self._org_id = org_id
        self._claim_for = claim_for
        self._recorder = recorder or AuditTrail()

    @contextmanager
    def _writing(self) -> Iterator[tuple[Connection, datetime]]:
        with self._database.write() as connection:
            yield connection, database_now(connection)

    def _found(self, connection: Connection, item_id: str) -> Row[Any]:
        """The item with its file's name; also by the id of its document, whose latest item it then is."""
        stored = canonical_id(item_id)
        mine = SUMMARIES.where(review_items.c.org_id == self._org_id)
        row = None
        if stored is not None:
            row = connection.execute(mine.where(review_items.c.id == stored)).first()
        if row is None and stored is not None:
            row = connection.execute(_latest_of(mine, stored)).first() or self._of_original(connection, mine, stored)
        if row is None:
            raise NotFound(
                f"There is no review item {item_id}. `docmill review list` shows those there are.", id=item_id
            )
        return row

    def _of_original(self, connection: Connection, mine: Any, document_id: str) -> Row[Any] | None:
        """For a duplicate without an item of its own, the item of its original stands."""
        query = select(documents.c.duplicate_of).where(
            documents.c.id == document_id, documents.c.org_id == self._org_id, documents.c.duplicate_of.is_not(None)
        )
        original = connection.execute(query).scalar()
        row: Row[Any] | None = None if original is None else connection.execute(_latest_of(mine, original)).first()
        return row

    def _warm(self, item_id: str) -> None:
        """Fetch what is stored outside the database before a transaction is open, which would hold others up."""
        with self._database.read() as connection:
            item = self._found(connection, item_id)
        self._extraction_of(item)

    def _extraction_of(self, item: Row[Any]) -> "tuple[Extraction | None, FieldSchema | None]":
        extraction = self._reading.extraction(item.extraction_key)
        return extraction, self._reading.schema(item.schema_name, item.options.get("schema_file"))

    def _hold(self, connection: Connection, item_id: str, version: int | None) -> Row[Any]:
        """The item, locked after its document: the order in which the processing of documents locks them too."""
        seen = self._found(connection, item_id)
        connection.execute(select(documents.c.id).where(documents.c.id == seen.document_id).with_for_update())
        return self._hold_item(connection, seen.id, version)

    def _hold_item(self, connection: Connection, item_id: str, version: int | None) -> Row[Any]:
        row = connection.execute(HOLD_ITEM, {"item": item_id}).one()
        if version is not None and row.version != version:
            raise VersionConflict(
                f"Item {row.id} has changed since you looked at it: it is at version {row.version}, not {version}. "
                "Look at it again.",
                id=row.id,
                version=row.version,
            )
        return row

    def _check_undecided(self, connection: Connection, item: Row[Any]) -> None:
        status = ReviewStatus(item.status)
        if status.decided:
            who = f" by {self._called(connection, item.decided_by)}" if item.decided_by else ""
            raise AlreadyDecided(f"Item {item.id} is {status}{who}; a decision stands.", id=item.id)
        if item.superseded_by is not None:
            raise Superseded(
                f"The document of item {item.id} was read anew: item {item.superseded_by} stands in its place, with "
                "what was said here. Look at that one.",
                id=item.id,
                superseded_by=item.superseded_by,
            )

    def _check_claim(self, connection: Connection, item: Row[Any], principal: Principal, now: datetime) -> None:
        """Only whoever holds the claim writes, and only while it lasts."""
        self._check_undecided(connection, item)
        if item.status == ReviewStatus.IN_REVIEW.value and item.claimed_by == principal.id:
            if item.claim_expires_at > now:
                return
            raise NotYours(f"Your claim of item {item.id} has ended. Claim it again.", id=item.id)
        holder = f"{self._called(connection, item.claimed_by)} has it" if item.claimed_by else "nobody has it"
        raise NotYours(f"Item {item.id} is not claimed by {principal.name}: {holder}. Claim it first.", id=item.id)

    def _called(self, connection: Connection, whom: str) -> str:
        """What somebody is called, for whoever is told that they were quicker."""
        return names_of(connection, self._org_id, [whom]).get(whom, whom)

    def _renewed(self, now: datetime) -> dict[str, Any]:
        """Whoever works on an item keeps it."""
        return {"claim_expires_at": now + self._claim_for}

    def _write(
        self,
        connection: Connection,
        item: Row[Any],
        now: datetime,
        *,
        status: ReviewStatus | None = None,
        **values: Any,
    ) -> None:
        """Change the item that we hold; its status only to one that it may become."""
        if status is not None:
            before = ReviewStatus(item.status)
            assert before.may_become(status), f"{before} does not become {status}"
            values["status"] = status.value
        write = update(review_items).where(review_items.c.id == item.id, review_items.c.version == item.version)
        changed = connection.execute(write.values(version=item.version + 1, updated_at=now, **values)).rowcount
        assert changed == 1, "the item is locked by this transaction"

    def _record(
        self,
        connection: Connection,
        principal: Principal,
        action: str,
        item_id: str,
        now: datetime,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> None:
        deed = Deed(f"review.{action}", (ITEM, item_id), before, after)
        self._recorder.record(connection, principal, [deed], now)

    def _summary(self, connection: Connection, item_id: str, now: datetime, by: Principal) -> ItemSummary:
        return self._summaries(connection, [self._found(connection, item_id)], now, by)[0]

    def _summaries(
        self, connection: Connection, rows: Sequence[Row[Any]], now: datetime, by: Principal
    ) -> list[ItemSummary]:
        names = names_of(connection, self._org_id, (each for row in rows for each in whose(row)), by)
        return [summary(row, now, names) for row in rows]


def _latest_of(query: Any, document_id: str) -> Any:
    return query.where(review_items.c.document_id == document_id).order_by(review_items.c.round.desc()).limit(1)


def check_text(text: str, what: str, most: int, field: str) -> None:
    """InvalidInput if a person has said nothing, or too much, or what no database stores."""
    if not text.strip() or len(text) > most or "\0" in text:
        raise InvalidInput(f"A {what} has 1 to {most:,} characters.", field=field)
