"""Every route of the OpenAPI document, with ids of another organisation: as if they were not there."""

import json
import re
from typing import Any

import pytest

from docmill.testing.papers import invoice_pdf
from tests.contract.desk import Desk, extraction
from tests.contract.served import Served
from tests.contract.test_api_manners import API, problem

PLAIN = """
name: plain
processable_type: document
steps:
  - {step_key: finish, type: FinishProcessing}
"""
BODIES: dict[str, Any] = {
    "/review/items/{item_id}/correct": {"path": "total", "value": "1"},
    "/review/items/{item_id}/add": {"path": "total", "value": "1"},
    "/review/items/{item_id}/clear": {"path": "total"},
    "/review/items/{item_id}/reject": {"reason": "No."},
    "/review/items/{item_id}/postpone": {"until": "2099-01-01T00:00:00Z"},
    "/review/items/{item_id}/comments": {"body": "Hello"},
    "/issues/{issue_id}/assign": {"to": "me"},
    "/batches/{batch_id}": {"limit": 1},
    "/jobs/{job_id}/steps/{step_key}/rerun": {"model": "local:echo"},
    "/members/{member_id}": {"standing": "viewer"},
}
"""Of operations whose body may not be empty."""
WITHOUT_ROWS = {"/events", "/health", "/ready", "/me", "/exports", "/configuration", "/configuration/schemas"}
WITHOUT_ROWS |= {"/audit/verify", "/audit/export", "/session/oidc", "/session/oidc/return", "/analytics/throughput"}
WITHOUT_ROWS |= {"/analytics/reliability"}
"""Lists of what is no organisation's own, and what is looked at by itself."""
ELSEWHERE = {"/callbacks/{executor}", "/uploads/{token}", "/review/reviewers/{name}", "/configuration/schemas/{name}"}
"""Paths whose last part is no id: signed, a name that is stored nowhere, or the installation's own."""


@pytest.fixture
def ours(served: Served) -> dict[str, str]:
    """Something of every kind in the owner's organisation."""
    served.app.organisations.found("Mill", "boss@mill.example", "Boss", another=False, by="test")
    with served.client() as client:
        client.put_template("plain", PLAIN)
        client.call("PUT", "/prompts/Ask", {"text": "What?"}, headers={"If-Match": "*"})
        job = client.call("POST", "/jobs", {"template": "plain", "entity": "document:secret"})
        batch = client.call("POST", "/batches", {"template": "plain", "entities": ["document:b"]})
        issue = client.call("POST", "/issues", {"title": "Secret", "job_id": job["job"]["id"]})
        document = client.upload(invoice_pdf(1).content, name="secret.pdf")
        key = client.call("POST", "/keys", {"name": "ours"})["key"]["id"]
        endpoint = client.call("POST", "/webhooks", {"url": "https://example.com/"})["endpoint"]["id"]
        delivery = client.call("POST", f"/webhooks/{endpoint}/ping", {})["id"]
        first = client.call("POST", "/invitations", {"email": "ann@mill.example"})
        open_one = client.call("POST", "/invitations", {"email": "bob@mill.example"})
    member = served.app.sessions.accept(first["token"], "correct horse battery staple").principal.id
    desk = Desk(served.app.database, served.app.settings.home)
    item = desk.slip(extraction(number="SECRET", total="10.00"))
    desk.close()
    return {
        "document_id": document["id"],
        "job_id": job["job"]["id"],
        "batch_id": batch["id"],
        "issue_id": issue["id"],
        "item_id": item,
        "key_id": key,
        "endpoint_id": endpoint,
        "delivery_id": delivery,
        "member_id": member,
        "invitation_id": open_one["invitation"]["id"],
        "name": "plain",
        "step_key": "finish",
        "number": "1",
        "version": "1",
    }


def operations(served: Served) -> list[tuple[str, str, dict[str, Any]]]:
    document = served.send("GET", f"{API}/openapi.json", token=None).json()
    return [
        (method.upper(), path.removeprefix(API), operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_route_with_a_foreign_id_finds_nothing(served: Served, ours: dict[str, str]) -> None:
    tried = 0
    for method, path, _ in operations(served):
        named = re.findall(r"{(\w+)}", path)
        if not named or path in ELSEWHERE or (method == "PUT" and path.startswith(("/templates", "/prompts"))):
            continue
        values = {**ours, "name": "Ask" if path.startswith("/prompts") else "plain"}
        where = API + path.format(**values)
        body = BODIES.get(path, {})
        with_body = {} if method == "GET" else {"json": body}
        mine = served.send(method, where, token="stranger", headers={"If-Match": "*"}, **with_body)
        problem(mine, 404, mine.json()["code"])
        assert mine.json()["code"] in ("not_found", "unknown_prompt"), (method, path)
        tried += 1
    assert tried >= 45
    # And it was there all the time.
    assert served.send("GET", f"{API}/jobs/{ours['job_id']}").json()["job"]["status"] == "PENDING"
    assert served.send("GET", f"{API}/review/items/{ours['item_id']}").json()["item"]["version"] == 1
    assert served.send("GET", f"{API}/batches/{ours['batch_id']}").json()["limit"] == 10


def test_lists_search_exports_and_counts_hold_nothing_foreign(served: Served, ours: dict[str, str]) -> None:
    for method, path, operation in operations(served):
        if method != "GET" or "{" in path or path in ELSEWHERE | WITHOUT_ROWS:
            continue
        query = {"q": "secret"} if path == "/search" else {}
        answer = served.send("GET", API + path, token="stranger", params=query)
        assert answer.status_code == 200, (path, answer.text)
        found = answer.json()
        assert (found["items"] if isinstance(found, dict) else found) == [], (path, operation)
    problem(served.send("GET", f"{API}/exports", token="stranger"), 404, "no_outputs")
    assert served.send("GET", f"{API}/audit/export", token="stranger").text == ""
    assert served.send("GET", f"{API}/audit/verify", token="stranger").json()["entries"] == 0
    days = served.send("GET", f"{API}/analytics/throughput", token="stranger").json()
    assert {count for day in days for name, count in day.items() if name != "day"} == {0}
    assert served.send("GET", f"{API}/analytics/reliability", token="stranger").json()["values"] == 0
    for filtered in (f"job_id={ours['job_id']}", "entity=document:secret"):
        answer = served.send("GET", f"{API}/issues?{filtered}", token="stranger")
        assert answer.status_code == 404 or answer.json()["items"] == []


def test_own_parent_and_foreign_child_do_not_meet(served: Served, ours: dict[str, str]) -> None:
    with served.client("stranger") as client:
        client.put_template("plain", PLAIN)
    foreign = {"title": "Mine", "job_id": ours["job_id"]}
    problem(served.send("POST", f"{API}/issues", token="stranger", json=foreign), 404, "not_found")
    # The same names are other things.
    assert served.send("GET", f"{API}/templates/plain", token="stranger").json()["template"]["version"] == 1
    mine = served.send("POST", f"{API}/jobs", token="stranger", json={"template": "plain", "entity": "document:secret"})
    assert mine.status_code == 201
    theirs = f"document:{ours['document_id']}"
    one, many = {"template": "plain", "entity": theirs}, {"template": "plain", "entities": ["document:a", theirs]}
    problem(served.send("POST", f"{API}/jobs", token="stranger", json=one), 404, "not_found")
    problem(served.send("POST", f"{API}/batches", token="stranger", json=many), 404, "not_found")
    assert served.send("GET", f"{API}/batches", token="stranger").json()["items"] == []
    assert served.send("POST", f"{API}/jobs", json=one).status_code == 201
    assert served.send("POST", f"{API}/review/next/claim", token="stranger").status_code == 204


def test_settings_and_places_of_the_installation_are_told_to_its_own_administrators_only(served: Served) -> None:
    assert served.send("GET", f"{API}/configuration").status_code == 200
    for token in ("viewer", "reviewer", "stranger"):
        problem(served.send("GET", f"{API}/configuration", token=token), 403, "forbidden")
    for token in ("owner", "stranger"):
        nothing = served.send("GET", f"{API}/exports", token=token)
        problem(nothing, 404, "no_outputs")
        assert str(served.app.settings.home) not in nothing.text


def test_events_of_another_organisation_are_not_heard(served: Served, ours: dict[str, str]) -> None:
    with served.client("stranger") as client:
        client.put_template("plain", PLAIN)
        mine = client.call("POST", "/jobs", {"template": "plain", "entity": "document:mine"})["job"]["id"]
        first = next(client.events(after=f"1-{ours['job_id']}-0"))
        assert first["job_id"] == mine
    assert "secret" not in json.dumps(first)
