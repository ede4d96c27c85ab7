"""All that a worker looks after in the background, for all organisations."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from docmill.db.database import Database
from docmill.documents.blobs import Blobs
from docmill.people.audit import AuditTrail
from docmill.services.document_chores import document_chores
from docmill.services.people_chores import people_chores
from docmill.services.review_chores import ReviewChores
from docmill.services.webhook_events import Announcing
from docmill.services.webhook_sending import Sending, WebhookChore


def chores(
    database: Database, blobs: Callable[[], Blobs], sending: Sending, *, idle: timedelta
) -> Sequence[Callable[[datetime], object]]:
    """Documents, review, sessions and webhooks; one that fails keeps nobody from the rest."""
    return (
        *document_chores(database, blobs),
        ReviewChores(database, Announcing(AuditTrail())),
        people_chores(database, idle=idle),
        WebhookChore(database, sending),
    )
