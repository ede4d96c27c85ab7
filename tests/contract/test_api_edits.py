"""What can be edited has a tag, and an edit that names an old one changes nothing."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

from tests.contract.served import Served
from tests.contract.test_api_manners import API, problem
from tests.contract.town import PASSWORD

PLAIN = "{name: plain, processable_type: document, steps: [{step_key: finish, type: FinishProcessing}]}"
NO_EDITS = {"/uploads/{token}", "/review/reviewers/{name}"}
"""The bytes of a document that is new, and whether somebody is given work: neither is made from what was there."""


class Edit(NamedTuple):
    """How something is looked at, and two edits of it."""

    look: str
    method: str
    path: str
    first: Mapping[str, Any]
    second: Mapping[str, Any]


def _member(served: Served) -> Edit:
    served.app.organisations.found("Mill", "boss@mill.example", "Boss", another=False, by="test")
    invited = served.send("POST", f"{API}/invitations", json={"email": "mia@mill.example"}).json()
    member = f"{API}/members/{served.app.sessions.accept(invited['token'], PASSWORD).principal.id}"
    return Edit(member, "PATCH", member, {"standing": "viewer"}, {"standing": "admin"})


def _batch(served: Served) -> Edit:
    served.send("PUT", f"{API}/templates/plain", json={"text": PLAIN})
    made = served.send("POST", f"{API}/batches", json={"template": "plain", "entities": ["document:1"]}).json()
    batch = f"{API}/batches/{made['id']}"
    return Edit(batch, "PATCH", batch, {"limit": 3}, {"limit": 5})


def _slas(served: Served) -> Edit:
    slas = f"{API}/review/slas"
    return Edit(slas, "PUT", slas, {"seconds": 60}, {"seconds": 90, "schema_name": "invoice"})


def _issue(served: Served) -> Edit:
    made = served.send("POST", f"{API}/issues", json={"title": "Odd", "entity": "document:1"}).json()
    issue = f"{API}/issues/{made['id']}"
    return Edit(issue, "POST", f"{issue}/assign", {"to": "mia"}, {"to": None})


def _webhook(served: Served) -> Edit:
    made = served.send("POST", f"{API}/webhooks", json={"url": "https://example.com/"}).json()
    endpoint = f"{API}/webhooks/{made['endpoint']['id']}"
    return Edit(endpoint, "PATCH", endpoint, {"description": "One"}, {"description": "Two"})


EDITS = pytest.mark.parametrize("made", [_member, _batch, _slas, _issue, _webhook])


@EDITS
def test_an_edit_of_what_has_changed_since_is_refused(served: Served, made: Callable[[Served], Edit]) -> None:
    edit = made(served)
    old = served.send("GET", edit.look).headers["etag"]
    first = served.send(edit.method, edit.path, json=edit.first, headers={"If-Match": old})
    assert first.is_success, first.text
    looked = served.send("GET", edit.look)
    assert first.headers["etag"] == looked.headers["etag"] != old
    for stale in (old, "nonsense", '""'):
        refused = served.send(edit.method, edit.path, json=edit.second, headers={"If-Match": stale})
        assert refused.status_code == 412, refused.text
    assert served.send("GET", edit.look).json() == looked.json()
    new = looked.headers["etag"]
    taken = served.send(edit.method, edit.path, json=edit.second, headers={"If-Match": f"W/{new}"})
    assert taken.is_success, taken.text
    assert served.send(edit.method, edit.path, json=edit.first, headers={"If-Match": "*"}).is_success


@pytest.mark.parametrize("made", [_member, _batch, _slas, _issue])
def test_where_no_version_is_counted_none_need_be_named(served: Served, made: Callable[[Served], Edit]) -> None:
    edit = made(served)
    assert served.send(edit.method, edit.path, json=edit.first).is_success
    assert served.send(edit.method, edit.path, json=edit.second).is_success


@EDITS
def test_of_many_who_edit_the_same_at_once_one_is_taken(served: Served, made: Callable[[Served], Edit]) -> None:
    edit = made(served)
    seen = {"If-Match": served.send("GET", edit.look).headers["etag"]}

    def change(_: int) -> bool:
        answer = served.send(edit.method, edit.path, json=edit.first, headers=seen)
        assert answer.is_success or answer.status_code == 412, answer.text
        return answer.is_success

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(change, range(8))) == 1


def test_an_issue_is_resolved_as_it_was_looked_at(served: Served) -> None:
    issue = _issue(served).look
    old = served.send("GET", issue).headers["etag"]
    given = served.send("POST", f"{issue}/assign", json={"to": "mia"})
    problem(served.send("POST", f"{issue}/resolve", headers={"If-Match": old}), 412, "precondition_failed")
    assert served.send("GET", issue).json()["status"] == "open"
    resolved = served.send("POST", f"{issue}/resolve", headers={"If-Match": given.headers["etag"]})
    assert resolved.json()["status"] == "resolved"
    assert resolved.headers["etag"] == served.send("GET", issue).headers["etag"]


def test_a_tag_of_one_thing_is_none_of_another(served: Served) -> None:
    one, other = _issue(served).look, _issue(served).look
    tag = served.send("GET", one).headers["etag"]
    answer = served.send("POST", f"{other}/assign", json={"to": "mia"}, headers={"If-Match": tag})
    problem(answer, 412, "precondition_failed")


def test_every_edit_in_the_document_may_name_what_it_was_made_from(served: Served) -> None:
    document = served.send("GET", f"{API}/openapi.json", token=None).json()
    edits = {
        f"{method} {path.removeprefix(API)}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if method in ("put", "patch") and path.removeprefix(API) not in NO_EDITS
    }
    assert len(edits) == 6
    for name, operation in edits.items():
        assert "If-Match" in {each["name"] for each in operation["parameters"]}, name
