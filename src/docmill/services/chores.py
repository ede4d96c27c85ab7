"""All that a worker looks after in the background, for all organisations."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from docmill.db.database import Database
from docmill.documents.blobs import Blobs
from docmill.people.audit import AuditTrail
from docmill.services.document_chores import document_chores
from docmill.services.people_chores import people_chores
from docmill.services.review_chores import review_chores
from docmill.services.search_chores import SearchChores
from docmill.services.webhook_events import Announcing
from docmill.services.webhook_sending import Sending, WebhookChore

Chore = Callable[[datetime], object]


def chores(
    database: Database, blobs: Callable[[], Blobs], sending: Sending, *, idle: timedelta, staying: bool
) -> Sequence[Chore]:
    """Documents, review, sessions, search and webhooks; one that fails keeps nobody from the rest.

    A worker that is not `staying`, because it goes with its command, leaves to others what can wait.
    """
    return tuple(_chosen(database, blobs, sending, idle, staying=staying))


def _chosen(
    database: Database, blobs: Callable[[], Blobs], sending: Sending, idle: timedelta, *, staying: bool
) -> Iterator[Chore]:
    yield from document_chores(database, blobs)
    yield review_chores(database, Announcing(AuditTrail()))
    yield people_chores(database, idle=idle)
    yield WebhookChore(database, sending)
    if staying:
        yield SearchChores(database, blobs)
