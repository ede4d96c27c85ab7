"""What may be long comes in pages, what makes something is done once, and what is not there is told with what is."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

from sqlalchemy import update

from docmill.api.shapes import write_cursor
from docmill.db.tables import documents
from docmill.documents.reading import Format, Reading, Section
from docmill.model.documents import DocumentStatus
from docmill.steps.document_children import pack
from docmill.testing.papers.oddities import epub
from tests.contract.served import Served
from tests.contract.test_api_manners import API, JSON, problem
from tests.contract.test_api_once import stored


def pages(served: Served, path: str, limit: int = 1) -> Iterator[list[Any]]:
    cursor: dict[str, str] = {}
    while True:
        page = served.send("GET", API + path, params={"limit": str(limit), **cursor}).json()
        yield page["items"]
        if page["next_cursor"] is None:
            return
        cursor = {"cursor": page["next_cursor"]}


def test_events_of_a_job_come_in_pages(served: Served) -> None:
    job_id = served.send("POST", f"{API}/jobs", json=stored(served)).json()["job"]["id"]
    for deed in ("cancel", "retry", "cancel"):
        answer = served.send("POST", f"{API}/jobs/{job_id}/{deed}", json={} if deed == "retry" else None)
        assert answer.status_code == 202, answer.text
    whole = served.send("GET", f"{API}/jobs/{job_id}/events").json()
    versions = [event["version"] for event in whole["items"]]
    assert len(versions) >= 4
    assert whole["next_cursor"] is None
    found = list(pages(served, f"/jobs/{job_id}/events"))
    assert [[event["version"] for event in page] for page in found] == [[version] for version in versions]
    later = served.send("GET", f"{API}/jobs/{job_id}/events", params={"after": versions[1]}).json()["items"]
    assert [event["version"] for event in later] == versions[2:]
    for wrong in ("x", "-1", "9" * 30, "0" * 30 + "1", "\u0663"):
        cursor = write_cursor("event", wrong)
        problem(served.send("GET", f"{API}/jobs/{job_id}/events", params={"cursor": cursor}), 422, "invalid_input")
    problem(served.send("GET", f"{API}/jobs/{job_id}/events", params={"limit": 201}), 422, "invalid_input")


def test_callbacks_of_a_job_come_in_pages(served: Served) -> None:
    job_id = served.send("POST", f"{API}/jobs", json=stored(served)).json()["job"]["id"]
    for number in range(3):
        body = {"jobId": job_id, "stepKey": f"none-{number}", "status": "COMPLETED", "token": "dmt1.x"}
        assert served.send("POST", f"{API}/callbacks", token=None, json=body, headers=JSON).status_code in (403, 404)
    found = list(pages(served, f"/jobs/{job_id}/callbacks", limit=2))
    assert [[view["step_key"] for view in page] for page in found] == [["none-0", "none-1"], ["none-2"]]
    problem(served.send("GET", f"{API}/jobs/{job_id}/callbacks", params={"limit": 201}), 422, "invalid_input")


def test_a_ping_and_a_reset_with_a_key_are_done_once(served: Served) -> None:
    served.app.organisations.found("Mill", "boss@mill.example", "Boss", another=False, by="test")
    with served.client() as client:
        endpoint = client.call("POST", "/webhooks", {"url": "https://example.com/"})["endpoint"]["id"]
        invited = client.call("POST", "/invitations", {"email": "ann@mill.example"})
    ann = served.app.sessions.accept(invited["token"], "correct horse battery staple").principal.id
    ping, reset = f"{API}/webhooks/{endpoint}/ping", f"{API}/members/{ann}/reset"
    first, again = [served.send("POST", ping, headers={"Idempotency-Key": "p-1"}) for _ in range(2)]
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["id"] == again.json()["id"]
    assert len(served.send("GET", f"{API}/webhooks/deliveries").json()["items"]) == 1
    first, again = [served.send("POST", reset, headers={"Idempotency-Key": "r-1"}) for _ in range(2)]
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["invitation"] == again.json()["invitation"]
    assert first.json()["token"]
    assert again.json()["token"] is None
    # Without a key, each is one of its own.
    assert served.send("POST", ping).json()["id"] != served.send("POST", ping).json()["id"]


def test_a_step_that_is_not_there_is_answered_with_those_that_are(served: Served) -> None:
    job = served.send("POST", f"{API}/jobs", json=stored(served)).json()
    known = [step["step_key"] for step in job["steps"]]
    found = served.send("GET", f"{API}/jobs/{job['job']['id']}/steps/{known[0]}")
    assert found.json() == job["steps"][0]
    told = problem(served.send("GET", f"{API}/jobs/{job['job']['id']}/steps/nothing"), 404, "not_found")
    assert told["detail"] == f"The job has no step nothing; its steps are {', '.join(known)}."


def test_a_book_has_sections_instead_of_pages(served: Served) -> None:
    book = {"file": ("book.epub", epub().content)}
    document_id = served.send("POST", f"{API}/documents", files=book).json()["id"]
    path = f"{API}/documents/{document_id}/sections"
    assert served.send("GET", path).json() == []
    chapters = (Section(path="1", title="One", text="It began."), Section(path="2", title=None, text="It ended."))
    reading = Reading(sha256="ab" * 32, format=Format.EPUB, sections=chapters)
    key = served.app.blobs.put(BytesIO(pack(reading.as_json()))).key
    with served.app.database.write() as connection:
        connection.execute(update(documents).where(documents.c.id == document_id).values(reading_key=key))
    told = [{"number": 1, "title": "One", "text": "It began."}, {"number": 2, "title": None, "text": "It ended."}]
    assert served.send("GET", path).json() == told
    assert served.send("GET", path, params={"section": 2}).json() == told[1:]
    problem(served.send("GET", path, params={"section": 3}), 404, "not_found")
    problem(served.send("GET", path, params={"section": 0}), 422, "invalid_input")
    # Another organisation's book is not there.
    problem(served.send("GET", path, token="stranger"), 404, "not_found")


def test_documents_are_listed_with_their_copies_or_without(served: Served) -> None:
    ids = []
    for number in range(3):
        paper = {"file": (f"{number}.epub", epub(number).content)}
        ids.append(served.send("POST", f"{API}/documents", files=paper).json()["id"])
    with served.app.database.write() as connection:
        copy = update(documents).where(documents.c.id == ids[1])
        connection.execute(copy.values(status=DocumentStatus.DUPLICATE.value, duplicate_of=ids[0]))

    def listed(query: str) -> list[str]:
        return [each["id"] for each in served.send("GET", f"{API}/documents{query}").json()["items"]]

    assert listed("") == ids[::-1]
    assert listed("?duplicates=false") == [ids[2], ids[0]]
    assert listed("?duplicates=false&status=duplicate") == [ids[1]]
