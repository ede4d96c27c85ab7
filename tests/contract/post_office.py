"""Endpoints and their messages, for tests of what webhooks promise."""

from datetime import datetime

from sqlalchemy import select, update

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import webhook_deliveries
from docmill.model.ids import DEFAULT_ORG
from docmill.model.people import system_principal
from docmill.services.webhook_events import gather
from docmill.services.webhook_sending import Sending, WebhookChore
from docmill.services.webhooks import DeliveryView, Webhooks

BOSS = system_principal(DEFAULT_ORG, "boss")
HERE = Sending(private=True, timeout=5.0)


class PostOffice:
    """Endpoints, and a chore that is called by hand."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.webhooks = Webhooks(database, private_addresses=True)
        self.chore = WebhookChore(database, HERE, chance=lambda: 1.0)

    def now(self) -> datetime:
        with self.database.read() as connection:
            return database_now(connection)

    def work(self) -> None:
        """Find what is to be told, and send what is due, to the end."""
        gather(self.database, self.now())
        while self.due():
            self.chore.send_due()
            self.chore.close()
            self.chore = WebhookChore(self.database, HERE, chance=lambda: 1.0)

    def due(self) -> bool:
        with self.database.read() as connection:
            query = select(webhook_deliveries.c.id).where(webhook_deliveries.c.due_at <= database_now(connection))
            return connection.execute(query.limit(1)).first() is not None

    def hurry(self) -> None:
        """What waits for its next try is due now."""
        waiting = update(webhook_deliveries).where(webhook_deliveries.c.due_at.is_not(None))
        with self.database.write() as connection:
            connection.execute(waiting.values(due_at=database_now(connection)))

    def only(self) -> DeliveryView:
        (delivery,) = self.webhooks.deliveries(BOSS)
        return delivery

    def ping(self, url: str, count: int = 1) -> tuple[str, str]:
        """An endpoint with so many messages for it; its id and secret."""
        endpoint, secret = self.webhooks.create(BOSS, url)
        for _ in range(count):
            self.webhooks.ping(BOSS, endpoint.id)
        return endpoint.id, secret
