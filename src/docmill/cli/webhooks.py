"""`docmill webhooks`: tell other systems what happens, and see whether they heard it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from docmill.cli.acting import Organisation, acting_for
from docmill.cli.options import Json, Limit
from docmill.cli.output import note_page, print_json, print_table, printable, record, styled, when
from docmill.cli.review import As
from docmill.model.webhooks import SUBSCRIBABLE, DeliveryStatus

if TYPE_CHECKING:
    from docmill.model.people import Principal
    from docmill.services.webhooks import DeliveryView, EndpointView, Webhooks

_EXAMPLES = """\
Examples:
  docmill webhooks add https://example.com/hook            hear of everything
  docmill webhooks add https://example.com/hook --event document.finished
  docmill webhooks log --status failed                     what was given up
  docmill webhooks resend DELIVERY                         send it once more"""

app = App(name="webhooks", help="Tell other systems what happens, and see whether they heard it.")

EndpointId = Annotated[str, Parameter(name="ENDPOINT", help="The endpoint's id.")]
DeliveryId = Annotated[str, Parameter(name="DELIVERY", help="The delivery's id, which is its message's.")]
Events = Annotated[
    tuple[str, ...],
    Parameter(
        name="--event",
        metavar="EVENT",
        negative="",
        consume_multiple=False,
        show_default=False,
        help=f"Only this; may be given several times: {', '.join(SUBSCRIBABLE)}.",
    ),
]
Description = Annotated[str, Parameter(metavar="TEXT", help="What it is for.")]


@contextmanager
def _post_office(organisation: str | None, name: str | None = None) -> "Iterator[tuple[Webhooks, Principal]]":
    with acting_for(organisation, name) as (installation, acting):
        yield installation.webhooks, acting


@app.command(name="list")
def list_endpoints(*, organisation: Organisation = None, json: Json = False) -> int:
    """List the places that messages go to."""
    with _post_office(organisation) as (webhooks, me):
        found = webhooks.list(me)
    if json:
        print_json({"endpoints": [record(endpoint) for endpoint in found]})
    elif found:
        heads = ("ID", "STATE", "URL", "EVENTS")
        print_table(heads, [_row(endpoint) for endpoint in found], give_way=("URL", "EVENTS"))
    else:
        print("No endpoints. `docmill webhooks add URL` adds one.", file=sys.stderr)
    return 0


def _row(endpoint: "EndpointView") -> tuple[str, str, str, str]:
    events = "all" if len(endpoint.events) == len(SUBSCRIBABLE) else ", ".join(endpoint.events)
    return endpoint.id, "on" if endpoint.enabled else f"off: {endpoint.disabled_reason}", endpoint.url, events


@app.command(name="add", help_epilogue=_EXAMPLES)
def add(
    url: Annotated[str, Parameter(name="URL", help="Where messages are posted.")],
    /,
    *,
    event: Events = (),
    description: Description = "",
    name: As = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Add a place that messages go to; prints the secret that they are signed with, this once."""
    with _post_office(organisation, name) as (webhooks, me):
        made, secret = webhooks.create(me, url, events=event or SUBSCRIBABLE, description=description)
    if json:
        print_json({"endpoint": record(made), "secret": secret})
    else:
        print(f"{made.id}  {printable(made.url)}\nsecret: {secret}")
        print("Keep the secret: it is not shown again. Receivers check signatures with it.", file=sys.stderr)
    return 0


@app.command(name="change")
def change(
    endpoint: EndpointId,
    /,
    *,
    url: Annotated[str | None, Parameter(metavar="URL", help="Another address.")] = None,
    event: Events = (),
    description: Annotated[str | None, Parameter(metavar="TEXT", help="What it is for.")] = None,
    on: Annotated[bool | None, Parameter(negative="--off", help="Switch it on again, or off.")] = None,
    name: As = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """Change a place, or switch it off and on."""
    with _post_office(organisation, name) as (webhooks, me):
        made = webhooks.change(me, endpoint, url=url, events=event or None, description=description, enabled=on)
    if json:
        print_json({"endpoint": record(made)})
    else:
        print("  ".join(printable(part) for part in _row(made)))
    return 0


@app.command(name="rotate")
def rotate(endpoint: EndpointId, /, *, name: As = None, organisation: Organisation = None, json: Json = False) -> int:
    """Make a new secret; for a day the old one signs as well."""
    with _post_office(organisation, name) as (webhooks, me):
        secret = webhooks.rotate(me, endpoint)
    if json:
        print_json({"secret": secret})
    else:
        print(f"secret: {secret}")
    return 0


@app.command(name="remove")
def remove(endpoint: EndpointId, /, *, name: As = None, organisation: Organisation = None, json: Json = False) -> int:
    """Remove a place, and the log of what was sent there."""
    with _post_office(organisation, name) as (webhooks, me):
        webhooks.remove(me, endpoint)
    if json:
        print_json({"removed": endpoint})
    else:
        print(f"{printable(endpoint)} is removed.")
    return 0


@app.command(name="ping")
def ping(endpoint: EndpointId, /, *, name: As = None, organisation: Organisation = None, json: Json = False) -> int:
    """Send a message that says nothing, to see whether it arrives; a worker sends it."""
    with _post_office(organisation, name) as (webhooks, me):
        made = webhooks.ping(me, endpoint)
    return _told(made, json=json)


@app.command(name="log")
def log(
    *,
    endpoint: Annotated[str | None, Parameter(metavar="ENDPOINT", help="Only what goes there.")] = None,
    status: Annotated[DeliveryStatus | None, Parameter(metavar="STATUS", help="pending, delivered or failed.")] = None,
    limit: Limit = 50,
    after: Annotated[str | None, Parameter(metavar="DELIVERY", help="Go on after this one: the next page.")] = None,
    organisation: Organisation = None,
    json: Json = False,
) -> int:
    """List what was sent, the newest first."""
    with _post_office(organisation) as (webhooks, me):
        found = webhooks.deliveries(me, endpoint_id=endpoint, status=status, limit=limit, after=after)
    if json:
        print_json({"deliveries": [record(delivery) for delivery in found]})
    elif found:
        heads = ("ID", "EVENT", "STATUS", "ATTEMPTS", "CREATED", "NEXT TRY")
        rows = [
            (
                each.id,
                each.event.value,
                styled(each.status),
                str(each.attempts),
                when(each.created_at),
                when(each.due_at),
            )
            for each in found
        ]
        print_table(heads, rows, give_way=("CREATED", "NEXT TRY"))
        note_page(len(found), limit, found[-1].id)
    else:
        print("Nothing was sent.", file=sys.stderr)
    return 0


@app.command(name="show")
def show(delivery: DeliveryId, /, *, organisation: Organisation = None, json: Json = False) -> int:
    """Show one message and each attempt to deliver it."""
    with _post_office(organisation) as (webhooks, me):
        found, attempts = webhooks.delivery(me, delivery)
    if json:
        print_json({"delivery": record(found), "attempts": [record(attempt) for attempt in attempts]})
        return 0
    _told(found, json=False)
    print(printable(found.body))
    if attempts:
        rows = [
            (str(each.number), when(each.at), f"{each.milliseconds} ms", str(each.answered or ""), each.error or "")
            for each in attempts
        ]
        print_table(("ATTEMPT", "AT", "TOOK", "ANSWER", "ERROR"), rows, give_way=("ERROR",))
    return 0


@app.command(name="resend")
def resend(delivery: DeliveryId, /, *, name: As = None, organisation: Organisation = None, json: Json = False) -> int:
    """Send a message once more, under the same id."""
    with _post_office(organisation, name) as (webhooks, me):
        made = webhooks.resend(me, delivery)
    return _told(made, json=json)


def _told(delivery: "DeliveryView", *, json: bool) -> int:
    if json:
        print_json({"delivery": record(delivery)})
    else:
        due = f", next try {when(delivery.due_at)}" if delivery.due_at else ""
        print(f"{delivery.id}  {delivery.event}  {delivery.status}{due}")
    return 0
