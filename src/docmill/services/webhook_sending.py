"""Deliveries that are due are posted: signed anew each time, tried for days, and all that came of it written down.

At least once: whoever dies between an answer and its row leaves the delivery claimed, and when the claim has run out it
is sent again under the same id. No transaction is open while anybody is waited for.
"""

import logging
import os
import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from socket import gethostname
from time import monotonic
from typing import Any

from sqlalchemy import Connection, Row, Update, delete, select, update

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import webhook_attempts, webhook_deliveries, webhook_endpoints
from docmill.model.errors import RetryableError
from docmill.model.people import system_principal
from docmill.model.webhooks import DeliveryStatus
from docmill.people.audit import record
from docmill.services.intervals import Every
from docmill.services.webhook_events import gather
from docmill.services.workers import leads
from docmill.webhooks.posting import Reply, post
from docmill.webhooks.signatures import signed_headers
from docmill.webhooks.trying import Standing, after_attempt, gone, taken

log = logging.getLogger("docmill.webhooks")

AT_ONCE = 8
PER_ENDPOINT = 2
"""Of those at once: a place that hangs must not keep the others waiting."""
_LOOK, _FORGET = timedelta(seconds=2), timedelta(hours=1)
"""Between two looks at what has happened, and at what is old."""
_ANYWAY = timedelta(seconds=60)
"""Between two looks of a worker whose turn it is not."""

_D = webhook_deliveries.c
_E = webhook_endpoints.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """How messages are posted."""

    timeout: float = 15.0
    """Seconds for one, in all."""
    private: bool = False
    """Whether they may go to private networks, this machine included."""
    keep: timedelta = timedelta(days=30)
    """How long it is kept what became of a message."""

    @property
    def claim(self) -> timedelta:
        """How long a delivery is left to whoever sends it: longer than it can take."""
        return timedelta(seconds=2 * self.timeout + 30)


class WebhookChore:
    """Finds what is to be told, and tells it, for all organisations."""

    def __init__(
        self,
        database: Database,
        sending: Sending | None = None,
        *,
        chance: Callable[[], float] = random.random,
        pid: int | None = None,
    ) -> None:
        """`pid` is that of the worker whose chore this is, if not this process."""
        self._database = database
        self._across = database.as_keeper()
        self._sending = sending or Sending()
        self._chance = chance
        self._leads = partial(leads, database, host=gethostname(), pid=pid or os.getpid())
        self._anyway: datetime | None = None
        self._gather = Every(_LOOK, lambda now: gather(database, now, partial(self._ours, now)))
        self._forget = Every(_FORGET, lambda now: forget(self._across, now - self._sending.keep))
        self._threads: ThreadPoolExecutor | None = None
        self._running: dict[Future[None], str] = {}

    def __call__(self, now: datetime) -> None:
        self._gather(now)
        self.send_due()
        self._forget(now)

    def _ours(self, now: datetime) -> bool:
        """To find what is to be told is for one worker; any may send what was found.

        But whose turn it is may hang in another chore while its lease holds, so the others look as well, now and then.
        """
        if self._leads() or (self._anyway is not None and now >= self._anyway):
            self._anyway = now + _ANYWAY
            return True
        self._anyway = self._anyway or now + _ANYWAY
        return False

    def send_due(self) -> None:
        """Begin to send what is due, as much as there is room for; returns while it is being sent."""
        for delivery in self._claim():
            if self._threads is None:
                self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="docmill-webhook")
            self._running[self._threads.submit(self._send, delivery)] = delivery.endpoint_id

    def close(self) -> None:
        """Wait for what is being sent."""
        if self._threads is not None:
            self._threads.shutdown()

    def _claim(self) -> list[Row[Any]]:
        self._running = {future: endpoint for future, endpoint in self._running.items() if not future.done()}
        taken = Counter(self._running.values())
        full = [endpoint for endpoint, count in taken.items() if count >= PER_ENDPOINT]
        room = AT_ONCE - taken.total()
        if room <= 0:
            return []
        with self._across.read() as connection:
            due = select(_D.id, _D.endpoint_id).where(
                _D.due_at <= database_now(connection), _D.endpoint_id.not_in(full)
            )
            found = connection.execute(due.order_by(_D.due_at, _D.id).limit(16 * AT_ONCE)).all()
        chosen: list[str] = []
        for row in found:
            if len(chosen) < room and taken[row.endpoint_id] < PER_ENDPOINT:
                taken[row.endpoint_id] += 1
                chosen.append(row.id)
        if not chosen:
            return []
        with self._across.write() as connection:
            now = database_now(connection)
            # Conditional once more: of two that found the same, the second finds it put off.
            claim = update(webhook_deliveries).where(_D.id.in_(chosen), _D.due_at <= now)
            return list(connection.execute(claim.values(due_at=now + self._sending.claim).returning(*_D)))

    def _send(self, delivery: Row[Any]) -> None:
        try:
            deliver_one(self._database.scoped(delivery.org_id), delivery, self._sending, self._chance)
        except Exception as error:
            # The claim runs out, and it is sent again.
            log.warning("message %s was not sent: %s", delivery.id, error)


def forget(database: Database, before: datetime) -> None:
    """Delete what came to its end before then."""
    old = _D.settled_at < before
    with database.read() as connection:
        found = connection.execute(select(_D.id).where(old).limit(1)).first()
    if found is not None:
        with database.write() as connection:
            connection.execute(delete(webhook_deliveries).where(old))


def deliver_one(database: Database, delivery: Row[Any], sending: Sending, chance: Callable[[], float]) -> None:
    """Post one claimed delivery, and write down what came of it."""
    with database.read() as connection:
        now = database_now(connection)
        endpoint = connection.execute(select(webhook_endpoints).where(_E.id == delivery.endpoint_id)).one_or_none()
    if endpoint is None:
        return  # Deleted, and its deliveries with it.
    if not endpoint.enabled:
        with database.write() as connection:
            _hold_back(connection, delivery)
        return
    began = monotonic()
    reply, error = _post(endpoint, delivery, sending, now)
    took = round(1000 * (monotonic() - began))
    with database.write() as connection:
        now = database_now(connection)
        standing = after_attempt(delivery.tries + 1, reply, chance=chance(), now=now)
        if _settle(connection, delivery, standing, now):
            attempt = {
                "delivery_id": delivery.id,
                "number": delivery.attempts + 1,
                "org_id": delivery.org_id,
                "at": now,
            }
            answered = None if reply is None else reply.status
            attempt |= {"milliseconds": took, "answered": answered, "error": error}
            connection.execute(webhook_attempts.insert().values(attempt))
            if gone(reply):
                disable_gone(connection, endpoint, now)


def _post(endpoint: Row[Any], delivery: Row[Any], sending: Sending, now: datetime) -> tuple[Reply | None, str | None]:
    """What was answered, and what was wrong with it."""
    body = delivery.body.encode()
    old = endpoint.old_key if endpoint.old_key is not None and endpoint.old_key_until > now else None
    headers = signed_headers(endpoint.key, message_id=delivery.id, body=body, now=now, old_key=old)
    headers |= {"content-type": "application/json", "user-agent": "docmill"}
    try:
        reply = post(endpoint.url, body, headers, timeout=sending.timeout, public=not sending.private)
    except RetryableError as error:
        return None, error.message
    if taken(reply):
        return reply, None
    return reply, f"answered {reply.status}" + (": redirects are not followed" if 300 <= reply.status < 400 else "")


def _settle(connection: Connection, delivery: Row[Any], standing: Standing, now: datetime) -> bool:
    """Write down where the delivery stands now; False if somebody else has sent it meanwhile."""
    counts = {"attempts": delivery.attempts + 1, "tries": delivery.tries + 1}
    settled_at = None if standing.status is DeliveryStatus.PENDING else now
    written = _if_still_ours(delivery).values(
        status=standing.status.value, due_at=standing.due_at, settled_at=settled_at, **counts
    )
    return bool(connection.execute(written).rowcount)


def _if_still_ours(delivery: Row[Any]) -> Update:
    """Somebody else may have claimed it since, or a person asked for it anew: then its time is another."""
    return update(webhook_deliveries).where(_D.id == delivery.id, _D.due_at == delivery.due_at)


def _hold_back(connection: Connection, delivery: Row[Any]) -> None:
    """It waits until its endpoint is switched on again."""
    connection.execute(_if_still_ours(delivery).values(due_at=None))


def disable_gone(connection: Connection, endpoint: Row[Any], now: datetime) -> None:
    """The receiver says that it is no more: nothing further is sent there until a person switches it on."""
    off = update(webhook_endpoints).where(_E.id == endpoint.id)
    reason = "the receiver answered 410 Gone"
    connection.execute(off.values(enabled=False, disabled_reason=reason, version=_E.version + 1, updated_at=now))
    pending = update(webhook_deliveries).where(_D.endpoint_id == endpoint.id, _D.status == DeliveryStatus.PENDING.value)
    connection.execute(pending.values(status=DeliveryStatus.FAILED.value, due_at=None, settled_at=now))
    after = {"enabled": False, "disabled_reason": reason}
    system = system_principal(endpoint.org_id)
    record(connection, system, "webhooks.gone", ("webhook_endpoint", endpoint.id), {"enabled": True}, after, now=now)
