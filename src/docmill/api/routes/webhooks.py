"""Outgoing webhooks: where messages go, what became of each, sending one again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from docmill.api.access import Acting, Guarded, allowed
from docmill.api.creating import Creating
from docmill.api.etags import Seen, etag
from docmill.api.shapes import Cursor, Id, Limit, Page, Text, Wire, page_of
from docmill.model.people import Permission
from docmill.model.webhooks import SUBSCRIBABLE, DeliveryStatus
from docmill.services.webhooks import (
    LONGEST_DESCRIPTION,
    LONGEST_URL,
    AttemptView,
    DeliveryView,
    EndpointView,
)

routes = APIRouter(prefix="/webhooks", tags=["webhooks"], route_class=Guarded)

Url = Annotated[Text, Field(min_length=1, max_length=LONGEST_URL)]
Events = Annotated[
    list[Annotated[Text, Field(max_length=100)]],
    Field(min_length=1, max_length=len(SUBSCRIBABLE), description=f"From {', '.join(SUBSCRIBABLE)}."),
]
Description = Annotated[Text, Field(max_length=LONGEST_DESCRIPTION)]


class NewEndpoint(Wire):
    """A place that messages go to."""

    url: Url
    events: Events = Field(default_factory=lambda: [event.value for event in SUBSCRIBABLE])
    description: Description = ""


class EndpointChange(Wire):
    """What is to change; what is left out stays."""

    url: Url | None = None
    events: Events | None = None
    description: Description | None = None
    enabled: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointMade:
    """A new endpoint. The secret that its messages are signed with is shown this once."""

    endpoint: EndpointView
    secret: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretMade:
    """A new secret, shown this once; for a day the old one signs as well."""

    secret: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryDetails:
    """One message, with every attempt to deliver it."""

    delivery: DeliveryView
    attempts: Sequence[AttemptView]


@routes.get("")
@allowed(Permission.WEBHOOKS_MANAGE)
def list_endpoints(call: Acting) -> Sequence[EndpointView]:
    """All endpoints, the oldest first."""
    return call.org.webhooks.list(call.principal)


@routes.post("", status_code=201, response_model=EndpointMade)
@allowed(Permission.WEBHOOKS_MANAGE)
def create_endpoint(body: NewEndpoint, call: Acting, creating: Creating) -> Response:
    """Tell this place what happens from now on."""

    def work() -> EndpointMade:
        endpoint, secret = call.org.webhooks.create(
            call.principal, body.url, events=body.events, description=body.description
        )
        return EndpointMade(endpoint=endpoint, secret=secret)

    return creating.once(body, work, secret="secret")


@routes.get("/deliveries")
@allowed(Permission.WEBHOOKS_MANAGE)
def list_deliveries(
    call: Acting,
    endpoint_id: str | None = None,
    status: DeliveryStatus | None = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Page[DeliveryView]:
    """What was sent, the newest first."""
    shown, following = page_of(
        "delivery",
        cursor,
        limit,
        lambda after, most: call.org.webhooks.deliveries(
            call.principal, endpoint_id=endpoint_id, status=status, limit=most, after=after
        ),
        lambda delivery: delivery.id,
    )
    return Page(items=shown, next_cursor=following)


@routes.get("/deliveries/{delivery_id}")
@allowed(Permission.WEBHOOKS_MANAGE)
def get_delivery(delivery_id: Id, call: Acting) -> DeliveryDetails:
    """One message, with every attempt."""
    delivery, attempts = call.org.webhooks.delivery(call.principal, delivery_id)
    return DeliveryDetails(delivery=delivery, attempts=attempts)


@routes.post("/deliveries/{delivery_id}/resend", status_code=202)
@allowed(Permission.WEBHOOKS_MANAGE)
def resend(delivery_id: Id, call: Acting) -> DeliveryView:
    """Send it once more, under the same id."""
    return call.org.webhooks.resend(call.principal, delivery_id)


@routes.get("/{endpoint_id}")
@allowed(Permission.WEBHOOKS_MANAGE)
def get_endpoint(endpoint_id: Id, call: Acting, response: Response) -> EndpointView:
    """One endpoint."""
    found = call.org.webhooks.get(call.principal, endpoint_id)
    etag(response, found.version)
    return found


@routes.patch("/{endpoint_id}")
@allowed(Permission.WEBHOOKS_MANAGE)
def change_endpoint(
    endpoint_id: Id, body: EndpointChange, call: Acting, seen: Seen, response: Response
) -> EndpointView:
    """Change it, or switch it off and on."""
    changed = call.org.webhooks.change(
        call.principal,
        endpoint_id,
        url=body.url,
        events=body.events,
        description=body.description,
        enabled=body.enabled,
        version=seen,
    )
    etag(response, changed.version)
    return changed


@routes.delete("/{endpoint_id}", status_code=204)
@allowed(Permission.WEBHOOKS_MANAGE)
def remove_endpoint(endpoint_id: Id, call: Acting) -> None:
    """Remove it, with the log of what was sent there."""
    call.org.webhooks.remove(call.principal, endpoint_id)


@routes.post("/{endpoint_id}/rotate", response_model=SecretMade)
@allowed(Permission.WEBHOOKS_MANAGE)
def rotate(endpoint_id: Id, call: Acting, creating: Creating) -> Response:
    """Make a new secret."""
    return creating.once(
        {},
        lambda: SecretMade(secret=call.org.webhooks.rotate(call.principal, endpoint_id)),
        status=200,
        secret="secret",
    )


@routes.post("/{endpoint_id}/ping", status_code=202, response_model=DeliveryView)
@allowed(Permission.WEBHOOKS_MANAGE)
def ping(endpoint_id: Id, call: Acting, creating: Creating) -> Response:
    """Send a message that says nothing, to see whether it arrives."""
    return creating.once({}, lambda: call.org.webhooks.ping(call.principal, endpoint_id), status=202)
