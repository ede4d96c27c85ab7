"""The client: one method for each thing that people do."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event as Pause
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import quote

import httpx

from docmill.client.problem import Refused
from docmill.client.shapes import Decision, Document, Event, Item, ItemView, Job, JobDetail, Page
from docmill.model.documents import FINISHED_DOCUMENTS
from docmill.model.errors import DocmillError
from docmill.model.statuses import FINISHED_JOBS

PREFIX = "/api/v1"
_LOOK = 0.1


class TookTooLong(DocmillError):
    """What was waited for did not happen in time."""

    code = "took_too_long"


class Client:
    """One server, one token. Closed by `with`, or by `close`."""

    def __init__(
        self, address: str, token: str | None, *, timeout: float = 60.0, transport: httpx.BaseTransport | None = None
    ) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=address, headers=headers, timeout=timeout, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> httpx.Response:
        """Any request below `/api/v1`; Refused for what is not answered with success."""
        asked = {name: value for name, value in (query or {}).items() if value is not None}
        content = None if body is None else json.dumps(body)
        kind = {} if body is None else {"Content-Type": "application/json"}
        answer = self._http.request(
            method, PREFIX + path, content=content, headers={**kind, **(headers or {})}, params=asked
        )
        return _checked(answer)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        """As `send`; what the answer says, None if it says nothing."""
        answer = self.send(method, path, body, headers=headers, query=query)
        return answer.json() if answer.content else None

    def upload(
        self,
        file: Path | bytes,
        *,
        name: str | None = None,
        schema: str | None = None,
        model: str | None = None,
        key: str | None = None,
    ) -> Document:
        """Send a document; it is processed at once. `key`: the same again is uploaded once."""
        content = file.read_bytes() if isinstance(file, Path) else file
        called = name or (file.name if isinstance(file, Path) else "document")
        fields = {label: value for label, value in (("schema", schema), ("model", model)) if value is not None}
        answer = self._http.post(
            PREFIX + "/documents",
            files={"file": (called, content)},
            data=fields,
            headers={} if key is None else {"Idempotency-Key": key},
        )
        return cast(Document, _checked(answer).json())

    def document(self, document_id: str) -> Document:
        """One document, with what was extracted from it."""
        return cast(Document, self.call("GET", f"/documents/{document_id}"))

    def documents(self, **query: Any) -> Iterator[Document]:
        """All documents, the newest first, page by page."""
        return cast(Iterator[Document], self.pages("/documents", query))

    def search(self, words: str) -> Iterator[Document]:
        """Documents with these words."""
        return cast(Iterator[Document], self.pages("/search", {"q": words}))

    def jobs(self, **query: Any) -> Iterator[Job]:
        """All jobs, the newest first."""
        return cast(Iterator[Job], self.pages("/jobs", query))

    def pages(self, path: str, query: Mapping[str, Any]) -> Iterator[Any]:
        """Everything in a list, asked for page by page."""
        cursor: str | None = None
        while True:
            page: Page[Any] = self.call("GET", path, query={**query, "cursor": cursor})
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def job(self, job_id: str) -> JobDetail:
        """A job with its steps."""
        return cast(JobDetail, self.call("GET", f"/jobs/{job_id}"))

    def finished(self, document_id: str, *, within: float = 120.0) -> Document:
        """The document once it has come to its end; TookTooLong if that takes longer."""
        for _ in range(max(1, round(within / _LOOK))):
            document = self.document(document_id)
            if document["status"] in FINISHED_DOCUMENTS:
                return document
            Pause().wait(_LOOK)
        raise TookTooLong(
            f"Document {document_id} has not come to its end within {within:g} s. Wait longer, or see its job."
        )

    def job_finished(self, job_id: str, *, within: float = 120.0) -> JobDetail:
        """The job once it has come to its end."""
        for _ in range(max(1, round(within / _LOOK))):
            job = self.job(job_id)
            if job["job"]["status"] in FINISHED_JOBS:
                return job
            Pause().wait(_LOOK)
        raise TookTooLong(f"Job {job_id} has not come to its end within {within:g} s. Its steps tell why.")

    def reprocess(self, document_id: str, *, schema: str | None = None, model: str | None = None) -> str:
        """Process a document again; the id of the job. By another schema or model that of another document."""
        asked = {name: value for name, value in (("schema", schema), ("model", model)) if value is not None}
        return str(self.call("POST", f"/documents/{document_id}/reprocess", asked)["job_id"])

    def item(self, item_id: str) -> ItemView:
        """A review item with its fields; also by the id of its document."""
        return cast(ItemView, self.call("GET", f"/review/items/{item_id}"))

    def claim_next(self) -> Item | None:
        """Claim what comes first; None if there is nothing."""
        return cast("Item | None", self.call("POST", "/review/next/claim"))

    def edit(self, item: Item, verb: str, body: Mapping[str, Any] | None = None) -> Item:
        """Change an item as it was seen: correct, add, clear, confirm, undo, release, postpone, assign, …"""
        return cast(Item, self.call("POST", f"/review/items/{item['id']}/{verb}", body, headers=_seen(item)))

    def correct(self, item: Item, path: str, value: str) -> Item:
        """Give a field this value."""
        return self.edit(item, "correct", {"path": path, "value": value})

    def approve(self, item: Item, *, anyway: bool = True) -> Decision:
        """Approve the values as they stand; unless `anyway`, only if all checks hold."""
        path = f"/review/items/{item['id']}/approve"
        return cast(Decision, self.call("POST", path, {"anyway": anyway}, headers=_seen(item)))

    def reject(self, item: Item, reason: str) -> Decision:
        """Reject the document."""
        path = f"/review/items/{item['id']}/reject"
        return cast(Decision, self.call("POST", path, {"reason": reason}, headers=_seen(item)))

    def export(self, form: str = "csv", **query: Any) -> bytes:
        """What was read from documents, as one file."""
        return self.send("GET", "/exports", query={"format": form, **query}).content

    def put_template(self, name: str, text: str, *, version: int | None = None) -> Any:
        """Store a template; `version`: the one that it was made from."""
        seen = "*" if version is None else f'"{version}"'
        return self.call("PUT", f"/templates/{quote(name, safe='')}", {"text": text}, headers={"If-Match": seen})

    def events(self, *, after: str | None = None, job_id: str | None = None) -> Iterator[Event]:
        """What happens, as it happens, until the connection ends; `after`: go on behind this event."""
        asked = {name: value for name, value in (("after", after), ("job_id", job_id)) if value is not None}
        with self._http.stream("GET", PREFIX + "/events", params=asked) as answer:
            if answer.is_error:
                answer.read()
                _checked(answer)
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    yield cast(Event, json.loads(line.removeprefix("data: ")))


def _seen(item: Item) -> dict[str, str]:
    return {"If-Match": f'"{item["version"]}"'}


def _checked(answer: httpx.Response) -> httpx.Response:
    if answer.is_success:
        return answer
    try:
        body = answer.json()
    except ValueError:
        body = {}
    refused = Refused(answer.status_code, body if isinstance(body, dict) else {})
    waiting = answer.headers.get("Retry-After", "")
    refused.retry_after = float(waiting) if waiting.isdigit() else None
    raise refused
