"""What is created is created once, and what is edited is what was looked at."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count

import pytest
from sqlalchemy import select

from docmill.client import Refused
from docmill.db.tables import leaving_blobs
from docmill.model.errors import Conflict
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.model.people import Role
from docmill.services import ordering
from docmill.services.templates import Templates, TemplateVersion
from docmill.templates.catalogue import Catalogue
from docmill.testing.papers import invoice_pdf
from tests.contract.desk import Desk, extraction
from tests.contract.served import Served, somebody
from tests.contract.test_api_manners import API, NOWHERE, problem
from tests.fault.conftest import volume

PDF = invoice_pdf(1).content
PLAIN = """
name: plain
processable_type: document
steps:
  - {step_key: finish, type: FinishProcessing}
"""


@pytest.fixture
def desk(served: Served) -> Iterator[Desk]:
    found = Desk(served.app.database, served.app.settings.home)
    yield found
    found.close()


def stored(served: Served) -> dict[str, str]:
    with served.client() as client:
        client.put_template("plain", PLAIN)
    return {"template": "plain", "entity": "document:7"}


def test_the_same_key_with_the_same_content_gets_the_same_answer(served: Served) -> None:
    body = stored(served)
    key = {"Idempotency-Key": "k-1"}
    first = served.send("POST", f"{API}/jobs", json=body, headers=key)
    again = served.send("POST", f"{API}/jobs", json=body, headers=key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["job"]["id"] == again.json()["job"]["id"]
    assert again.headers["idempotent-replayed"] == "true"
    assert len(served.send("GET", f"{API}/jobs").json()["items"]) == 1
    other = served.send("POST", f"{API}/jobs", json={**body, "entity": "document:8"}, headers=key)
    problem(other, 422, "idempotency_key_reused")
    # Another principal's key is another key.
    assert served.send("POST", f"{API}/jobs", token="service", json=body, headers=key).status_code == 409


def test_an_upload_with_a_key_is_one_document(served: Served) -> None:
    with served.client() as client:
        first = client.upload(PDF, name="a.pdf", key="u-1")
        assert client.upload(PDF, name="a.pdf", key="u-1")["id"] == first["id"]
        with pytest.raises(Refused) as refused:
            client.upload(PDF + b"x", name="a.pdf", key="u-1")
        assert refused.value.code == "idempotency_key_reused"
        assert len(list(client.documents())) == 1


def test_of_two_who_send_other_bytes_for_one_document_at_once_the_second_is_told(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    org = served.app.for_org(DEFAULT_ORG)

    def send(content: bytes, document_id: str) -> None:
        with closing(org.uploads.open()) as incoming:
            incoming.write(content)
            org.uploads.accept(
                incoming, name="a.pdf", order=org.order(None, None), by=somebody("ann"), document_id=document_id
            )

    document_id = new_id()
    send(PDF, document_id)
    # Both had looked before either wrote.
    monkeypatch.setattr(org.uploads, "_known", lambda *_: None)
    with pytest.raises(Conflict):
        send(PDF + b"x", document_id)
    with served.app.database.as_keeper().read() as connection:
        leaving = set(connection.execute(select(leaving_blobs.c.key)).scalars())
    assert leaving == {hashlib.sha256(PDF + b"x").hexdigest()}


def test_a_key_whose_request_failed_may_be_used_again(served: Served) -> None:
    key = {"Idempotency-Key": "k-2"}
    answer = served.send("POST", f"{API}/jobs", json={"template": "plain", "entity": "document:7"}, headers=key)
    problem(answer, 404, "not_found")
    assert served.send("POST", f"{API}/jobs", json=stored(served), headers=key).status_code == 201


def test_of_many_with_one_key_at_once_one_creates(served: Served) -> None:
    body = stored(served)

    def send(_: int) -> tuple[int, str]:
        answer = served.send("POST", f"{API}/jobs", json=body, headers={"Idempotency-Key": "k-3"})
        return answer.status_code, answer.json().get("code", "")

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(send, range(16)))
    assert answers <= {(201, ""), (409, "idempotency_in_flight")}
    assert len(served.send("GET", f"{API}/jobs").json()["items"]) == 1


def test_long_keys_that_begin_the_same_name_two_things(served: Served) -> None:
    with served.client() as client:
        first = client.upload(PDF, name="a.pdf", key="k" * 254 + "1")
        assert client.upload(PDF + b"x", name="a.pdf", key="k" * 254 + "2")["id"] != first["id"]


def test_with_a_key_content_that_cannot_be_stored_is_refused(served: Served) -> None:
    body = stored(served)
    for wrong in ("1" + "0" * 30, r'"\ud800"'):
        text = f'{{"template": "plain", "entity": "document:7", "metadata": {{"a": {wrong}}}}}'
        headers = {"Idempotency-Key": "k-4", "Content-Type": "application/json"}
        problem(served.send("POST", f"{API}/jobs", content=text, headers=headers), 422, "invalid_input")
    # The order of keys is no content.
    for metadata in ({"a": 1, "b": 2}, {"b": 2, "a": 1}):
        answer = served.send(
            "POST", f"{API}/jobs", json={**body, "metadata": metadata}, headers={"Idempotency-Key": "k-4"}
        )
        assert answer.status_code == 201, answer.text


def test_of_many_edits_of_one_version_at_once_one_is_taken(served: Served) -> None:
    stored(served)
    served.send("PUT", f"{API}/prompts/Ask", json={"text": "Zero"}, headers={"If-Match": "*"})

    def put(number: int) -> tuple[int, int]:
        named = PLAIN.replace("FinishProcessing}", f"FinishProcessing, display_name: End {number}}}")
        bodies = {"templates/plain": named, "prompts/Ask": f"Number {number}"}
        first, second = (
            served.send("PUT", f"{API}/{path}", json={"text": text}, headers={"If-Match": '"1"'}).status_code
            for path, text in bodies.items()
        )
        return first, second

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(put, range(12)))
    for of_one in zip(*answers, strict=True):
        assert sorted(of_one) == [200] + 11 * [412]


def test_an_edit_names_what_it_was_made_from(served: Served, desk: Desk) -> None:
    item_id = desk.slip(extraction(number="7", total="10.00"))
    looked = served.send("GET", f"{API}/review/items/{item_id}")
    assert looked.headers["etag"] == '"1"'
    claimed = served.send("POST", f"{API}/review/items/{item_id}/claim")
    assert claimed.headers["etag"] == '"2"'
    where, body = f"{API}/review/items/{item_id}/release", None
    problem(served.send("POST", where, json=body), 428, "precondition_required")
    for stale in ('"1"', '"99"', "nonsense", '""'):
        answer = served.send("POST", where, headers={"If-Match": stale})
        assert answer.status_code == 412, answer.text
    assert served.send("POST", where, headers={"If-Match": '"2"'}).headers["etag"] == '"3"'


def test_templates_and_prompts_are_not_written_over_unseen(served: Served) -> None:
    stored(served)
    changed = PLAIN.replace("FinishProcessing}", "FinishProcessing, display_name: The end}")
    where = f"{API}/templates/plain"
    problem(served.send("PUT", where, json={"text": changed}), 428, "precondition_required")
    problem(served.send("PUT", where, json={"text": changed}, headers={"If-Match": '"7"'}), 412, "precondition_failed")
    answer = served.send("PUT", where, json={"text": changed}, headers={"If-Match": '"1"'})
    assert answer.json()["template"]["version"] == 2
    difference = served.send("GET", f"{where}/diff").json()
    assert [change["field"] for change in difference["changes"]] == ["display_name"]
    assert [each["template"]["version"] for each in served.send("GET", f"{where}/versions").json()] == [2, 1]
    faulty = served.send("PUT", where, json={"text": "name: plain\nsteps: []"}, headers={"If-Match": "*"})
    told = problem(faulty, 422, "template_invalid")
    assert told["details"]["faults"]  # type: ignore[index]
    checked = served.send("POST", f"{API}/templates/validate", json={"text": "name: plain\nsteps: []"}).json()
    assert not checked["valid"]
    prompt = f"{API}/prompts/Ask"
    # What is not there yet has no tag that could be named.
    problem(served.send("PUT", prompt, json={"text": "One"}, headers={"If-Match": '"1"'}), 412, "precondition_failed")
    first = served.send("PUT", prompt, json={"text": "One {!entity.a}"})
    assert first.json()["prompt"]["version"] == 1
    problem(served.send("PUT", prompt, json={"text": "Two"}), 428, "precondition_required")
    other = served.send("PUT", f"{API}/templates/fresh", json={"text": PLAIN.replace("name: plain", "name: fresh")})
    assert other.json()["template"]["version"] == 1
    stale = served.send("PUT", prompt, json={"text": "Two"}, headers={"If-Match": '"3"'})
    problem(stale, 412, "precondition_failed")
    assert served.send("PUT", prompt, json={"text": "Two"}, headers={"If-Match": '"1"'}).status_code == 200
    assert "+Two" in served.send("GET", f"{prompt}/diff").json()["text"]
    answer = served.send("POST", f"{API}/prompts/validate", json={"text": "{!entity."})
    assert not answer.json()["valid"]


def test_of_two_reviewers_who_claim_one_item_one_gets_it(served: Served, desk: Desk) -> None:
    item_id = desk.put(1)[0]
    served.people.tokens |= {name: somebody(name, Role.REVIEWER) for name in ("ann", "bob")}

    def claim(name: str) -> int:
        return served.send("POST", f"{API}/review/items/{item_id}/claim", token=name).status_code

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(claim, ("ann", "bob"))) == [200, 409]


def test_a_hundred_reviewers_at_once_get_each_item_once(served: Served, desk: Desk) -> None:
    # Ten thousand take minutes, in which client and server share an interpreter.
    items = desk.put(volume(400, 10_000))
    names = [f"reviewer-{number}" for number in range(100)]
    served.people.tokens |= {name: somebody(name, Role.REVIEWER) for name in names}
    calls = count()

    def work(name: str) -> list[str]:
        mine = []
        with served.client(name) as client:
            while (item := client.claim_next()) is not None:
                mine.append(item["id"])
                next(calls)
        return mine

    with ThreadPoolExecutor(100) as pool:
        claimed = [each for mine in pool.map(work, names) for each in mine]
    assert len(claimed) == len(set(claimed))
    assert set(claimed) == set(items)


def test_everything_that_a_person_does_to_an_item_is_there(served: Served, desk: Desk) -> None:
    item_id = desk.slip(extraction([{"description": "Pen", "amount": "10.00"}], number="7", total="10.00"))
    with served.client() as client:
        item = client.call("POST", f"/review/items/{item_id}/claim")
        item = client.edit(item, "confirm", {"paths": ["number"]})
        item = client.edit(item, "undo", {})
        item = client.edit(item, "clear", {"path": "number"})
        item = client.edit(item, "undo", {"path": "number"})
        item = client.edit(item, "release")
        item = client.edit(item, "assign", {"to": "ann"})
        item = client.edit(item, "unassign")
        item = client.edit(item, "postpone", {"until": "2099-01-01T00:00:00Z"})
        assert client.claim_next() is None
        item = client.edit(item, "resume")
        said = client.call("POST", f"/review/items/{item_id}/comments", {"body": "Is this right?", "path": "total"})
        assert client.call("GET", f"/review/items/{item_id}/comments")[0]["id"] == said["id"]
        actions = [each["action"] for each in client.call("GET", f"/review/items/{item_id}/history")]
        assert actions == ["confirm", "undo", "clear", "undo"]
        client.call("PUT", "/review/slas", {"seconds": 3600})
        assert client.call("GET", "/review/slas") == [{"schema_name": None, "seconds": 3600}]
        client.call("PUT", "/review/reviewers/ann")
        assert client.call("GET", "/review/reviewers") == ["ann"]
        client.call("DELETE", "/review/reviewers/ann")
        assert client.call("GET", "/review/reviewers") == []
        item = client.call("POST", f"/review/items/{item_id}/claim")
        decision = client.reject(item, "Not ours.")
        assert decision["item"]["status"] == "rejected"
        listed = client.call("GET", "/review/items", query={"status": "rejected"})
        assert [each["id"] for each in listed["items"]] == [item_id]
        with pytest.raises(Refused) as refused:
            client.call("GET", f"/review/items/{NOWHERE}")
        assert refused.value.status == 404


def test_the_template_of_the_outputs_is_compiled_once_until_somebody_stores_another(
    served: Served, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    compiling = ordering.outputs_template

    def counted(templates: Templates, catalogue: Catalogue) -> TemplateVersion:
        compiled.append("once")
        return compiling(templates, catalogue)

    monkeypatch.setattr(ordering, "outputs_template", counted)
    with served.client() as client:
        for _ in range(3):
            item_id = desk.slip(extraction(number="7", total="10.00"))
            item = client.call("POST", f"/review/items/{item_id}/claim")
            assert client.reject(item, "Not ours.")["item"]["status"] == "rejected"
    assert compiled == ["once"]


def test_a_document_is_asked_another_question_once_by_one_key(served: Served) -> None:
    first = served.send("POST", f"{API}/documents", files={"file": ("a.pdf", PDF)}).json()
    again, key = f"{API}/documents/{first['id']}/reprocess", {"Idempotency-Key": "once"}
    answers = [served.send("POST", again, json={"schema": "receipt"}, headers=key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json() == answers[1].json()
    other = served.send("GET", f"{API}/documents/{answers[0].json()['document_id']}").json()
    assert (other["id"] != first["id"], other["sha256"], other["job_id"]) == (
        True,
        first["sha256"],
        answers[0].json()["job_id"],
    )
    assert len(served.send("GET", f"{API}/documents").json()["items"]) == 2
    assert served.send("GET", f"{API}/jobs/{other['job_id']}").json()["metadata"]["schema"] == "receipt"
    for body, place in (({"schema": "nonsense"}, "body.schema"), ({"model": "nope:x"}, "body.model")):
        told = problem(served.send("POST", again, json=body), 422, "invalid_input")
        assert place in str(told)
