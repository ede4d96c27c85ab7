"""The section about outgoing webhooks."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from docmill.settings.section import Length, Section


class WebhookSection(Section):
    """How messages to other systems are sent, and how long is kept what became of them."""

    private_addresses: bool = False
    timeout: float = Field(default=15.0, gt=0, le=120)
    keep: Annotated[Length, Field(gt=timedelta(0))] = timedelta(days=30)
