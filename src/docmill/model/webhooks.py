"""Words of outgoing webhooks: what is told, and how far the telling has come."""

from enum import StrEnum


class WebhookEvent(StrEnum):
    """What a place can hear of."""

    DOCUMENT_FINISHED = "document.finished"
    DOCUMENT_FAILED = "document.failed"
    JOB_FINISHED = "job.finished"
    JOB_FAILED = "job.failed"
    REVIEW_DECIDED = "review.decided"
    REVIEW_SLA_AT_RISK = "review.sla_at_risk"
    PING = "ping"
    """Sent on request, to see whether a place can be reached."""


SUBSCRIBABLE = tuple(event for event in WebhookEvent if event is not WebhookEvent.PING)
"""What an endpoint chooses from; a ping goes to whichever it is meant for."""


class DeliveryStatus(StrEnum):
    """`failed`: given up, after days of trying or because the endpoint is gone. It can still be sent again by hand."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"
