"""Outgoing webhooks as people use them: where messages go, what became of each, and sending one again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, Row, delete, insert, select, update

from docmill.db.alone import alone
from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import webhook_attempts, webhook_deliveries, webhook_endpoints
from docmill.model.errors import Conflict, InvalidInput, NotFound
from docmill.model.ids import DEFAULT_ORG, canonical_id, new_id
from docmill.model.people import Permission, Principal
from docmill.model.review import VersionConflict
from docmill.model.webhooks import SUBSCRIBABLE, DeliveryStatus, WebhookEvent
from docmill.people.audit import record
from docmill.services.acting import OrgService
from docmill.services.webhook_events import Happening, deliver
from docmill.webhooks.addresses import is_plainly_private
from docmill.webhooks.posting import checked_url
from docmill.webhooks.signatures import new_secret, read_secret

ENDPOINT = "webhook_endpoint"
OLD_KEY_SIGNS = timedelta(hours=24)
"""How long after a change of secret the old one signs too."""
MOST_ENDPOINTS = 50
"""Of an organisation: everything that happens is written down once for each."""
LONGEST_URL, LONGEST_DESCRIPTION = 2000, 500

_D = webhook_deliveries.c
_E = webhook_endpoints.c


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointView:
    """One place that messages go to. Its secret is told once, when it is made."""

    id: str
    url: str
    description: str
    events: Sequence[WebhookEvent]
    enabled: bool
    disabled_reason: str | None
    version: int
    created_by: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """One attempt to deliver: what was answered, or why nothing was."""

    number: int
    at: datetime
    milliseconds: int
    answered: int | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryView:
    """One message to one endpoint."""

    id: str
    endpoint_id: str
    event: WebhookEvent
    status: DeliveryStatus
    attempts: int
    due_at: datetime | None
    """When it is tried next; None where it has come to its end, or waits for its endpoint to be switched on."""
    created_at: datetime
    settled_at: datetime | None
    body: str


class PrivateAddress(InvalidInput):
    """Messages would never get there: the address is on a network that they are not sent to."""

    code = "address_refused"


class Webhooks(OrgService):
    """The outgoing webhooks of one organisation."""

    def __init__(self, database: Database, org_id: str = DEFAULT_ORG, *, private_addresses: bool = False) -> None:
        """`private_addresses`: whether messages may go to the own network, as the settings say."""
        self._database = database.scoped(org_id)
        self._org_id = org_id
        self._private_addresses = private_addresses

    def list(self, principal: Principal) -> Sequence[EndpointView]:
        """All endpoints, oldest first."""
        self._allow(principal, Permission.WEBHOOKS_MANAGE)
        query = select(webhook_endpoints).where(_E.org_id == self._org_id).order_by(_E.id)
        with self._database.read() as connection:
            return [_endpoint(row) for row in connection.execute(query)]

    def get(self, principal: Principal, endpoint_id: str) -> EndpointView:
        """The endpoint; NotFound if there is none."""
        self._allow(principal, Permission.WEBHOOKS_MANAGE)
        with self._database.read() as connection:
            return _endpoint(self._found(connection, endpoint_id))

    def create(
        self, principal: Principal, url: str, *, events: Sequence[str] = SUBSCRIBABLE, description: str = ""
    ) -> tuple[EndpointView, str]:
        """A new endpoint, and the secret that its messages are signed with: told this once."""
        self._allow(principal, Permission.WEBHOOKS_MANAGE)
        values = {"url": self._url(url), "events": _events(events), "description": _description(description)}
        secret = new_secret()
        with self._database.write() as connection:
            # Of two at once, the second counts what the first has made.
            alone(connection, f"docmill.webhooks:{self._org_id}")
            now = database_now(connection)
            known = connection.execute(select(_E.id).where(_E.org_id == self._org_id)).all()
            if len(known) >= MOST_ENDPOINTS:
                raise Conflict(f"There are {MOST_ENDPOINTS} endpoints already; remove one that is not needed.")
            row = {"id": new_id(), "org_id": self._org_id, "key": read_secret(secret), "enabled": True, "version": 1}
            row |= {"told_from": now, "told_until": now, "created_by": principal.id, "created_at": now}
            connection.execute(insert(webhook_endpoints).values(row | values | {"updated_at": now}))
            made = _endpoint(self._found(connection, str(row["id"])))
            self._record(connection, principal, "create", made.id, None, values, now)
        return made, secret

    def _url(self, url: str) -> str:
        """The address, if messages can go there: whoever names another is told now, not by what fails tomorrow."""
        if len(url) > LONGEST_URL:
            raise InvalidInput(f"An address is at most {LONGEST_URL} characters long.", field="url")
        checked = checked_url(url)
        host = urlsplit(checked).hostname or ""
        if not self._private_addresses and is_plainly_private(host):
            raise PrivateAddress(
                f"{host} is on a private network, where messages are not sent to. Give a public address, or set "
                "webhooks.private_addresses if the network is yours.",
                field="url",
            )
        return checked

    def change(
        self,
        principal: Principal,
        endpoint_id: str,
        *,
        url: str | None = None,
        events: Sequence[str] | None = None,
        description: str | None = None,
        enabled: bool | None = None,
        version: int | None = None,
    ) -> EndpointView:
        """Change what is given. Switched on again, it is sent what is still pending, and told what happens from now."""
        self._allow(principal, Permission.WEBHOOKS_MANAGE)
        values: dict[str, Any] = {}
        if url is not None:
            values["url"] = self._url(url)
        if events is not None:
            values["events"] = _events(events)
        if description is not None:
            values["description"] = _description(description)
        if enabled is not None:
            values |= {"enabled": enabled, "disabled_reason": None if enabled else f"by {principal.name}"}
        with self._database.write() as connection:
            now = database_now(connection)
            row = self._held(connection, endpoint_id, version)
            if enabled and not row.enabled:
                values |= {"told_from": now, "told_until": now}
                pending = update(webhook_deliveries).where(
                    _D.endpoint_id == row.id, _D.status == DeliveryStatus.PENDING.value, _D.due_at.is_(None)
                )
                connection.execute(pending.values(due_at=now))
            self._write(connection, row, values, now)
            told = {name: value for name, value in values.items() if not name.startswith("told_")}
            before = {name: getattr(row, name) for name in told}
            self._record(connection, principal, "change", row.id, before, told, now)
            return _endpoint(self._found(connection, row.id))

    def rotate(self, principal: Principal, endpoint_id: str) -> str:
        """A new secret. For a day messages are signed with the old one as well, so that the receiver can follow."""
        self._allow(principal, Permission.WEBHOOKS_MANAGE)
        secret = new_secret()
        with self._database.write() as connection:
            now = database_now(connection)
            row = self._held(connection, endpoint_id, None)
            values = {"key": read_secret(secret), "old_key": row.key, "old_key_until": now + OLD_KEY_SIGNS}
            self._write(connection, row, values, now)
            self._record(connection, principal, "rotate", row.id, None, None, now)
        return secret

    def remove(self, principal: Principal, endpoint_id: str) -> None:
        """The endpoint with all its deliveries."""
        self._allow(principal, Permission.WEBHOOKS_MANAGE)
        with self._database.write() as connection:
            row = self._held(connection, endpoint_id, None)
            connection.execute(delete(webhook_endpoints).where(_E.id == row.id))
            self._record(connection, principal, "remove", row.id, {"url": row.url}, None, database_now(connection))

    def ping(self, principal: Principal, endpoint_id: str) -> DeliveryView:
        """A message that says nothing, to see whether the endpoint takes it; its delivery tells."""
        self._allow(principal, Permission.WEBHOOKS_MANAGE)
        with self._database.write() as connection:
            now = database_now(connection)
            row = self._held(connection, endpoint_id, None)
            if not row.enabled:
                raise Conflict(
                    f"Endpoint {row.id} is switched off: {row.disabled_reason}. Switch it on first.", id=row.id
                )
            key = f"ping:{new_id()}"
            deliver(connection, row, [Happening(event=WebhookEvent.PING, key=key, at=now, data={})], now)
            query = select(webhook_deliveries).where(_D.endpoint_id == row.id, _D.event_key == key)
            made = _delivery(connection.execute(query).one())
            self._record(connection, principal, "ping", row.id, None, {"delivery_id": made.id}, now)
            return made

    def deliveries(
        self,
        principal: Principal,
        *,
        endpoint_id: str | None = None,
        status: DeliveryStatus | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Sequence[DeliveryView]:
        """A page of deliveries, newest first; `after`: go on behind this one, the last of the page before."""
        self._allow(principal, Permission.WEBHOOKS_MANAGE)
        query = select(webhook_deliveries).where(_D.org_id == self._org_id).order_by(_D.id.desc()).limit(limit)
        with self._database.read() as connection:
            if endpoint_id is not None:
                query = query.where(_D.endpoint_id == self._found(connection, endpoint_id).id)
            if status is not None:
                query = query.where(_D.status == status.value)
            if after is not None:
                query = query.where(_D.id < self._found_delivery(connection, after).id)
            return [_delivery(row) for row in connection.execute(query)]

    def delivery(self, principal: Principal, delivery_id: str) -> tuple[DeliveryView, Sequence[AttemptView]]:
        """One delivery, with every attempt that was made."""
        self._allow(principal, Permission.WEBHOOKS_MANAGE)
        with self._database.read() as connection:
            row = self._found_delivery(connection, delivery_id)
            attempts = select(webhook_attempts).where(webhook_attempts.c.delivery_id == row.id)
            made = connection.execute(attempts.order_by(webhook_attempts.c.number))
            return _delivery(row), [_attempt(each) for each in made]

    def resend(self, principal: Principal, delivery_id: str) -> DeliveryView:
        """Send it once more, now, under the same id: a receiver that has it can tell."""
        self._allow(principal, Permission.WEBHOOKS_MANAGE)
        with self._database.write() as connection:
            now = database_now(connection)
            row = self._found_delivery(connection, delivery_id)
            endpoint = self._found(connection, row.endpoint_id)
            if not endpoint.enabled:
                raise Conflict(
                    f"Endpoint {endpoint.id} is switched off: {endpoint.disabled_reason}. Switch it on first.",
                    id=endpoint.id,
                )
            again = update(webhook_deliveries).where(_D.id == row.id)
            values = {"status": DeliveryStatus.PENDING.value, "tries": 0, "due_at": now, "settled_at": None}
            connection.execute(again.values(values))
            sent = _delivery(self._found_delivery(connection, row.id))
            before = {"delivery_id": row.id, "status": row.status, "attempts": row.attempts}
            after = {"delivery_id": row.id, "status": sent.status}
            self._record(connection, principal, "resend", endpoint.id, before, after, now)
            return sent

    def _found(self, connection: Connection, endpoint_id: str) -> Row[Any]:
        query = select(webhook_endpoints).where(_E.id == canonical_id(endpoint_id), _E.org_id == self._org_id)
        row = connection.execute(query).one_or_none()
        if row is None:
            raise NotFound(
                f"There is no endpoint {endpoint_id}. `docmill webhooks list` shows those there are.", id=endpoint_id
            )
        return row

    def _held(self, connection: Connection, endpoint_id: str, version: int | None) -> Row[Any]:
        """The endpoint, locked, if it is still at the version that was looked at."""
        found = self._found(connection, endpoint_id)
        row = connection.execute(select(webhook_endpoints).where(_E.id == found.id).with_for_update()).one()
        if version is not None and row.version != version:
            raise VersionConflict(
                f"Endpoint {row.id} is at version {row.version}, not {version}. Look at it again.",
                id=row.id,
                version=row.version,
            )
        return row

    def _found_delivery(self, connection: Connection, delivery_id: str) -> Row[Any]:
        query = select(webhook_deliveries).where(_D.id == canonical_id(delivery_id), _D.org_id == self._org_id)
        row = connection.execute(query).one_or_none()
        if row is None:
            raise NotFound(
                f"There is no delivery {delivery_id}. `docmill webhooks log` shows those there are.", id=delivery_id
            )
        return row

    def _write(self, connection: Connection, row: Row[Any], values: dict[str, Any], now: datetime) -> None:
        write = update(webhook_endpoints).where(_E.id == row.id)
        connection.execute(write.values(values | {"version": row.version + 1, "updated_at": now}))

    def _record(
        self,
        connection: Connection,
        principal: Principal,
        verb: str,
        endpoint_id: str,
        before: dict[str, Any] | None,
        after: dict[str, Any] | None,
        now: datetime,
    ) -> None:
        record(connection, principal, f"webhooks.{verb}", (ENDPOINT, endpoint_id), before, after, now=now)


def _description(text: str) -> str:
    if len(text) > LONGEST_DESCRIPTION or "\0" in text:
        raise InvalidInput(f"A description has at most {LONGEST_DESCRIPTION} characters.", field="description")
    return text


def _events(names: Sequence[str]) -> list[str]:
    unknown = [name for name in names if name not in SUBSCRIBABLE]
    if unknown or not names:
        problem = f"There is no event {unknown[0]!r}." if unknown else "An endpoint without events hears nothing."
        raise InvalidInput(f"{problem} Choose from {', '.join(SUBSCRIBABLE)}.", field="events")
    return [event.value for event in SUBSCRIBABLE if event in names]


def _endpoint(row: Row[Any]) -> EndpointView:
    return EndpointView(
        id=row.id,
        url=row.url,
        description=row.description,
        events=tuple(WebhookEvent(name) for name in row.events),
        enabled=row.enabled,
        disabled_reason=row.disabled_reason,
        version=row.version,
        created_by=row.created_by,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _delivery(row: Row[Any]) -> DeliveryView:
    return DeliveryView(
        id=row.id,
        endpoint_id=row.endpoint_id,
        event=WebhookEvent(row.event),
        status=DeliveryStatus(row.status),
        attempts=row.attempts,
        due_at=row.due_at,
        created_at=row.created_at,
        settled_at=row.settled_at,
        body=row.body,
    )


def _attempt(row: Row[Any]) -> AttemptView:
    return AttemptView(
        number=row.number, at=row.at, milliseconds=row.milliseconds, answered=row.answered, error=row.error
    )
