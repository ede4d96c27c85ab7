"""Every operation of the API that changes something leaves an entry in the audit log, by whoever asked for it."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from docmill.testing.papers import invoice_pdf
from tests.contract.desk import Desk, extraction
from tests.contract.served import Served, somebody
from tests.contract.test_api_manners import API

PASSWORD = "correct horse battery staple"
PLAIN = """
name: plain
processable_type: document
steps:
  - step_key: ask
    type: ai.generate
    prompt: Ask
    model_config: {{model: "local:echo", max_output_tokens: {number}}}
  - {{step_key: finish, type: FinishProcessing}}
"""
SLIP = """
name: slip
title: Slip
fields:
  number: {type: text, labels: [Invoice]}
  total: {type: amount, labels: [Total]}
  due_date: {type: date, labels: [Due]}
"""
UNRECORDED = {
    "POST /templates/validate": "looks at a text, and keeps nothing",
    "POST /prompts/validate": "looks at a text, and keeps nothing",
    "POST /uploads": "keeps nothing; what is uploaded by the link is recorded, by who asked for the link",
    "POST /callbacks": "an executor's answer, kept with its outcome among the callbacks of the job",
    "POST /callbacks/{executor}": "an executor's answer, kept with its outcome among the callbacks of the job",
}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request that is to succeed."""

    body: Any = None
    path: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    token: str | None = "owner"
    by: str = "owner"
    """Who must be found in the log."""


class Hand:
    """Prepares what an operation is done to, anew for each."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self._desk = Desk(served.app.database, served.app.settings.home)
        self._numbers = count(1)
        schemas = served.app.settings.home / "schemas"
        schemas.mkdir()
        (schemas / "slip.yaml").write_text(SLIP)
        served.app.organisations.found("Mill", "boss@mill.example", "Boss", another=False, by="test")
        self.done("PUT", "/prompts/Ask", {"text": "What?"})
        self.done("PUT", "/templates/plain", {"text": self.template()})

    def done(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        answer = self.send(method, path, body, **more)
        assert answer.is_success, (method, path, answer.text)
        return answer.json() if answer.content else None

    def send(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        headers = {"If-Match": "*", **more.pop("headers", {})}
        with_body = {} if body is None else {"json": body}
        return self.served.send(method, API + path, headers=headers, **with_body, **more)

    def number(self) -> int:
        return next(self._numbers)

    def template(self) -> str:
        return PLAIN.format(number=self.number())

    def job(self, *, over: bool = False) -> str:
        body = {"template": "plain", "entity": f"document:{self.number()}"}
        found: str = self.done("POST", "/jobs", body)["job"]["id"]
        if over:
            self.done("POST", f"/jobs/{found}/cancel")
        return found

    def batch(self, *, over: bool = False) -> str:
        body = {"template": "plain", "entities": [f"document:{self.number()}"]}
        found: str = self.done("POST", "/batches", body)["id"]
        if over:
            self.done("POST", f"/batches/{found}/cancel")
        return found

    def document(self, *, over: bool = False) -> str:
        with self.served.client() as client:
            found = client.upload(invoice_pdf(self.number()).content, name="paper.pdf")
        if over:
            self.done("POST", f"/jobs/{found['job_id']}/cancel")
        return str(found["id"])

    def issue(self) -> str:
        return str(self.done("POST", "/issues", {"title": "Odd", "entity": "document:1"})["id"])

    def item(self, *, claimed: bool = True) -> str:
        found = self._desk.slip(extraction(number="A-1", total="10.00"))
        if claimed:
            self.done("POST", f"/review/items/{found}/claim")
        return found

    def endpoint(self) -> str:
        return str(self.done("POST", "/webhooks", {"url": "https://example.com/"})["endpoint"]["id"])

    def invitation(self) -> Any:
        return self.done("POST", "/invitations", {"email": f"p{self.number()}@mill.example"})

    def member(self) -> tuple[str, str]:
        """The id and the address of somebody who has joined."""
        invited = self.invitation()
        joined = self.served.app.sessions.accept(invited["token"], PASSWORD).principal
        return joined.id, invited["invitation"]["email"]

    def close(self) -> None:
        self._desk.close()


def _of_item(body: Any = None, *, claimed: bool = True) -> Callable[[Hand], Asked]:
    return lambda hand: Asked(path={"item_id": hand.item(claimed=claimed)}, body=body)


def _of_the_next(hand: Hand) -> Asked:
    hand.item(claimed=False)
    return Asked()


def _of_resumed(hand: Hand) -> Asked:
    item = hand.item()
    hand.done("POST", f"/review/items/{item}/postpone", {"until": "2099-01-01T00:00:00Z"})
    return Asked(path={"item_id": item})


def _of_undone(hand: Hand) -> Asked:
    item = hand.item()
    hand.done("POST", f"/review/items/{item}/correct", {"path": "total", "value": "12.00"})
    return Asked(path={"item_id": item}, body={})


def _of_added(hand: Hand) -> Asked:
    return Asked(path={"item_id": hand.item()}, body={"path": "due_date", "value": "2026-01-01"})


def _given(hand: Hand) -> Asked:
    return Asked(path={"item_id": hand.item(claimed=False)}, body={"to": hand.member()[0]})


def _given_back(hand: Hand) -> Asked:
    given = _given(hand)
    hand.done("POST", f"/review/items/{given.path['item_id']}/assign", given.body)
    return Asked(path=given.path)


def _enrolled_anew(hand: Hand) -> Asked:
    member, _ = hand.member()
    hand.done("DELETE", f"/review/reviewers/{member}")
    return Asked(path={"name": member})


def _uploaded_by_link(hand: Hand) -> Asked:
    url = hand.done("POST", "/uploads", {"file_name": "paper.pdf"})["url"]
    content = invoice_pdf(hand.number()).content
    return Asked(path={"token": url.rpartition("/")[2]}, more={"content": content}, token=None)


def _signed_in(hand: Hand) -> Asked:
    member, email = hand.member()
    return Asked(body={"email": email, "password": PASSWORD}, token=None, by=member)


def _signed_out(hand: Hand) -> Asked:
    member, email = hand.member()
    token = hand.served.app.sessions.sign_in(email, PASSWORD).token
    return Asked(more={"headers": {"Cookie": f"docmill_session={token}"}}, token=None, by=member)


def _accepted(hand: Hand) -> Asked:
    _, email = hand.member()
    member = next(each for each in hand.done("GET", "/members") if each["email"] == email)["id"]
    return Asked(
        body={"token": hand.done("POST", f"/members/{member}/reset")["token"], "password": PASSWORD + "!"},
        token=None,
        by=member,
    )


def _resent(hand: Hand) -> Asked:
    return Asked(path={"delivery_id": hand.done("POST", f"/webhooks/{hand.endpoint()}/ping", {})["id"]})


DOING: Mapping[str, Callable[[Hand], Asked]] = {
    "PUT /uploads/{token}": _uploaded_by_link,
    "POST /documents": lambda hand: Asked(more={"files": {"file": ("a.pdf", invoice_pdf(hand.number()).content)}}),
    "DELETE /documents/{document_id}": lambda hand: Asked(path={"document_id": hand.document(over=True)}),
    "POST /documents/{document_id}/link": lambda hand: Asked(path={"document_id": hand.document()}),
    "POST /documents/{document_id}/reprocess": lambda hand: Asked(
        path={"document_id": hand.document(over=True)}, body={}
    ),
    "POST /jobs": lambda hand: Asked(body={"template": "plain", "entity": f"document:{hand.number()}"}),
    "POST /jobs/{job_id}/retry": lambda hand: Asked(path={"job_id": hand.job(over=True)}, body={}),
    "POST /jobs/{job_id}/cancel": lambda hand: Asked(path={"job_id": hand.job()}),
    "POST /jobs/{job_id}/steps/{step_key}/rerun": lambda hand: Asked(
        path={"job_id": hand.job(over=True), "step_key": "ask"}, body={"model": "local:echo"}
    ),
    "POST /batches": lambda hand: Asked(body={"template": "plain", "entities": [f"document:{hand.number()}"]}),
    "PATCH /batches/{batch_id}": lambda hand: Asked(path={"batch_id": hand.batch()}, body={"limit": 3}),
    "POST /batches/{batch_id}/cancel": lambda hand: Asked(path={"batch_id": hand.batch()}),
    "POST /batches/{batch_id}/retry": lambda hand: Asked(
        path={"batch_id": hand.batch(over=True)}, body={"statuses": ["CANCELLED"]}
    ),
    "PUT /templates/{name}": lambda hand: Asked(path={"name": "plain"}, body={"text": hand.template()}),
    "PUT /prompts/{name}": lambda hand: Asked(path={"name": "Ask"}, body={"text": f"What {hand.number()}?"}),
    "POST /review/next/claim": _of_the_next,
    "POST /review/items/{item_id}/claim": _of_item(claimed=False),
    "POST /review/items/{item_id}/release": _of_item(),
    "POST /review/items/{item_id}/postpone": _of_item({"until": "2099-01-01T00:00:00Z"}),
    "POST /review/items/{item_id}/resume": _of_resumed,
    "POST /review/items/{item_id}/assign": _given,
    "POST /review/items/{item_id}/unassign": _given_back,
    "POST /review/items/{item_id}/correct": _of_item({"path": "total", "value": "12.00"}),
    "POST /review/items/{item_id}/add": _of_added,
    "POST /review/items/{item_id}/clear": _of_item({"path": "total"}),
    "POST /review/items/{item_id}/confirm": _of_item({"paths": ["total"]}),
    "POST /review/items/{item_id}/undo": _of_undone,
    "POST /review/items/{item_id}/approve": _of_item(),
    "POST /review/items/{item_id}/reject": _of_item({"reason": "No."}),
    "POST /review/items/{item_id}/comments": _of_item({"body": "Hello"}),
    "PUT /review/slas": lambda hand: Asked(body={"seconds": 3600 + hand.number()}),
    "PUT /review/reviewers/{name}": _enrolled_anew,
    "DELETE /review/reviewers/{name}": lambda hand: Asked(path={"name": hand.member()[0]}),
    "POST /issues": lambda hand: Asked(body={"title": "Odd", "entity": "document:1"}),
    "POST /issues/{issue_id}/assign": lambda hand: Asked(path={"issue_id": hand.issue()}, body={"to": "mia"}),
    "POST /issues/{issue_id}/resolve": lambda hand: Asked(path={"issue_id": hand.issue()}, body={"note": "Done."}),
    "POST /webhooks": lambda hand: Asked(body={"url": "https://example.com/"}),
    "POST /webhooks/deliveries/{delivery_id}/resend": _resent,
    "PATCH /webhooks/{endpoint_id}": lambda hand: Asked(
        path={"endpoint_id": hand.endpoint()}, body={"description": "Another"}
    ),
    "DELETE /webhooks/{endpoint_id}": lambda hand: Asked(path={"endpoint_id": hand.endpoint()}),
    "POST /webhooks/{endpoint_id}/rotate": lambda hand: Asked(path={"endpoint_id": hand.endpoint()}),
    "POST /webhooks/{endpoint_id}/ping": lambda hand: Asked(path={"endpoint_id": hand.endpoint()}),
    "POST /session": _signed_in,
    "DELETE /session": _signed_out,
    "POST /session/accept": _accepted,
    "PATCH /members/{member_id}": lambda hand: Asked(path={"member_id": hand.member()[0]}, body={"standing": "admin"}),
    "DELETE /members/{member_id}": lambda hand: Asked(path={"member_id": hand.member()[0]}),
    "POST /members/{member_id}/reset": lambda hand: Asked(path={"member_id": hand.member()[0]}),
    "POST /invitations": lambda hand: Asked(body={"email": f"p{hand.number()}@mill.example"}),
    "DELETE /invitations/{invitation_id}": lambda hand: Asked(
        path={"invitation_id": hand.invitation()["invitation"]["id"]}
    ),
    "POST /keys": lambda hand: Asked(body={"name": f"k{hand.number()}"}),
    "DELETE /keys/{key_id}": lambda hand: Asked(
        path={"key_id": hand.done("POST", "/keys", {"name": f"k{hand.number()}"})["key"]["id"]}
    ),
}
"""How each operation is brought to succeed."""


@pytest.fixture
def hand(served: Served) -> Iterator[Hand]:
    hand = Hand(served)
    yield hand
    hand.close()


def mutating(served: Served) -> list[str]:
    document = served.send("GET", f"{API}/openapi.json", token=None).json()
    return [
        f"{method.upper()} {path.removeprefix(API)}"
        for path, methods in document["paths"].items()
        for method in methods
        if method != "get"
    ]


def documented() -> set[str]:
    """The actions that the page about people lists."""
    page = (Path(__file__).parents[2] / "docs/reference/people.md").read_text()
    section = page[page.index("## The audit log") : page.index("## Tables")]
    return set(re.findall(r"`([a-z]+\.[a-z_]+)`", section))


def log(hand: Hand) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = hand.done("GET", "/audit", params={"limit": 200})["items"]
    return entries


def test_whatever_changes_something_is_recorded_or_said_why_not(hand: Hand) -> None:
    asked = mutating(hand.served)
    assert sorted(asked) == sorted([*DOING, *UNRECORDED])
    silent = {}
    for operation in DOING:
        method, _, path = operation.partition(" ")
        request = DOING[operation](hand)
        last = log(hand)[0]["number"]
        answer = hand.send(method, path.format(**request.path), request.body, token=request.token, **request.more)
        assert answer.is_success, (operation, answer.text)
        new = [each for each in log(hand) if each["number"] > last]
        if not new or {each["actor_id"] for each in new} != {request.by}:
            silent[operation] = new
    assert silent == {}
    told = {entry.action for entry in hand.served.app.audit.export(somebody("owner"))}
    assert told - documented() == set()
    assert hand.done("GET", "/audit/verify")["faults"] == []


def test_what_is_refused_or_done_before_is_not_recorded(hand: Hand) -> None:
    job = hand.job(over=True)
    last = log(hand)[0]["number"]
    assert hand.send("POST", f"/jobs/{job}/cancel").status_code == 409
    text = hand.done("GET", "/prompts/Ask")["text"]
    assert hand.done("PUT", "/prompts/Ask", {"text": text})["new"] is False
    once = {"headers": {"Idempotency-Key": "one"}}
    body = {"template": "plain", "entity": "document:once"}
    first = hand.done("POST", "/jobs", body, **once)["job"]["id"]
    assert hand.done("POST", "/jobs", body, **once)["job"]["id"] == first
    new = [(each["action"], each["subject_id"]) for each in log(hand) if each["number"] > last]
    assert new == [("job.submit", first)]
