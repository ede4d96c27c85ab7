"""A small typed client of the HTTP API: what people do with documents, jobs and review, and a way to everything else.

Needs the extra `client`, and says so. Imports nothing of the server.

    with Client("http://127.0.0.1:8400", token) as docmill:
        document = docmill.upload(Path("invoice.pdf"))
        document = docmill.finished(document["id"])
"""

from docmill.model.extras import to_install

try:
    from docmill.client.calls import Client
except ModuleNotFoundError as error:
    if error.name != "httpx":
        raise
    raise ModuleNotFoundError(
        f"docmill.client needs httpx, which the extra `client` brings: {to_install('client')}.",
        name="httpx",
    ) from None
from docmill.client.problem import Refused
from docmill.client.shapes import Decision, Document, Event, Field, Item, ItemView, Job, JobDetail, Page, Step

__all__ = [
    "Client",
    "Decision",
    "Document",
    "Event",
    "Field",
    "Item",
    "ItemView",
    "Job",
    "JobDetail",
    "Page",
    "Refused",
    "Step",
]
