"""How the API answers whatever is sent: problem documents that name field and remedy, and nothing half done."""

import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from docmill.api.problems import status_of
from docmill.db import schema
from docmill.engine.children import ChildDied, ChildTimedOut
from docmill.model.errors import DocmillError
from docmill.testing.papers import invoice_pdf
from docmill.testing.waiting import until
from tests.contract.served import Served

API = "/api/v1"
PDF = invoice_pdf(1).content
JSON = {"Content-Type": "application/json"}
NOWHERE = "00000000-0000-7000-8000-00000000dead"


def problem(answer: object, status: int, code: str) -> dict[str, object]:
    """The problem document of an answer, which must be one."""
    assert answer.status_code == status, answer.text  # type: ignore[attr-defined]
    assert answer.headers["content-type"] == "application/problem+json"  # type: ignore[attr-defined]
    body: dict[str, object] = answer.json()  # type: ignore[attr-defined]
    assert (body["status"], body["code"]) == (status, code)
    assert body["detail"]
    return body


def test_every_error_is_a_problem_document(served: Served) -> None:
    problem(served.send("GET", f"{API}/nothing"), 404, "not_found")
    problem(served.send("DELETE", f"{API}/documents"), 405, "method_not_allowed")
    problem(served.send("GET", f"{API}/documents/{NOWHERE}"), 404, "not_found")
    problem(served.send("GET", f"{API}/documents", token=None), 401, "unauthenticated")
    problem(served.send("GET", f"{API}/documents", token="guessed"), 401, "unauthenticated")
    problem(served.send("POST", f"{API}/jobs", token="viewer", json={}), 403, "forbidden")
    problem(served.send("GET", f"{API}/documents?limit=0"), 422, "invalid_input")
    problem(served.send("GET", f"{API}/documents?limit=many"), 422, "invalid_input")
    problem(served.send("POST", f"{API}/jobs", content=b"{", headers=JSON), 422, "invalid_input")
    problem(served.send("POST", f"{API}/jobs", content=b"\xff", headers=JSON), 400, "malformed")
    problem(served.send("GET", f"{API}/prompts/%00"), 422, "invalid_input")
    huge = json.dumps({"template": "x" * (17 << 20), "entity": "document:1"})
    problem(served.send("POST", f"{API}/jobs", content=huge, headers=JSON), 413, "body_too_large")


def test_a_body_that_is_wrong_names_field_and_remedy(served: Served) -> None:
    body = {"template": 7, "entity": "document:1", "surprise": 1}
    told = problem(served.send("POST", f"{API}/jobs", json=body), 422, "invalid_input")
    errors = {each["field"]: each for each in told["errors"]}  # type: ignore[attr-defined]
    assert set(errors) == {"body.template", "body.surprise"}
    assert errors["body.template"]["remedy"] == "Write text in quotes."
    assert "Leave this field out" in errors["body.surprise"]["remedy"]


@pytest.mark.parametrize("name", ["org_id", "role", "status", "cost", "created_by", "id"])
def test_nobody_sets_what_is_not_theirs_to_set(served: Served, name: str) -> None:
    body = {"template": "plain", "entity": "document:1", name: "mine"}
    problem(served.send("POST", f"{API}/jobs", json=body), 422, "invalid_input")
    form = {"file": ("a.pdf", PDF)}
    problem(served.send("POST", f"{API}/documents", files=form, data={name: "x"}), 422, "invalid_input")


@pytest.mark.parametrize("value", [True, "1", 1.5, [], {}, None])
def test_a_number_is_a_number(served: Served, value: object) -> None:
    body = {"template": "plain", "entity": "document:1", "priority": value}
    problem(served.send("POST", f"{API}/jobs", json=body), 422, "invalid_input")


def test_permission_is_asked_before_the_body_is_read(served: Served) -> None:
    """A stranger's gigabyte is refused by its first line."""
    host = urlsplit(served.address)
    with socket.create_connection((host.hostname, host.port)) as wire:
        wire.sendall(
            f"POST {API}/documents HTTP/1.1\r\nHost: {host.netloc}\r\nAuthorization: Bearer viewer\r\n"
            "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 1000000000\r\n\r\n".encode()
        )
        assert wire.recv(100).startswith(b"HTTP/1.1 403")


def test_cursors_lead_through_a_list_once_and_nonsense_is_refused(served: Served) -> None:
    for number in range(5):
        answer = served.send("POST", f"{API}/documents", files={"file": (f"{number}.pdf", PDF + bytes([number]))})
        assert answer.status_code == 201, answer.text
    with served.client() as client:
        names = [document["file_name"] for document in client.documents(limit=2)]
        assert names == [f"{number}.pdf" for number in reversed(range(5))]
    first = served.send("GET", f"{API}/documents?limit=2").json()
    for cursor in ("x", "é", "Zm9v", first["next_cursor"][:-4], first["next_cursor"] + "AAAA"):
        told = problem(served.send("GET", f"{API}/documents", params={"cursor": cursor}), 422, "invalid_input")
        assert told["errors"][0]["field"] == "query.cursor"  # type: ignore[index]
    # Of another list, and of another organisation.
    problem(served.send("GET", f"{API}/jobs", params={"cursor": first["next_cursor"]}), 422, "invalid_input")
    foreign = served.send("GET", f"{API}/documents", token="stranger", params={"cursor": first["next_cursor"]})
    problem(foreign, 422, "invalid_input")


def test_what_is_no_document_is_refused_and_leaves_nothing_behind(served: Served) -> None:
    def upload(content: bytes, data: dict[str, str] | None = None) -> object:
        return served.send("POST", f"{API}/documents", files={"file": ("a.pdf", content)}, data=data or {})

    problem(upload(b""), 422, "empty_file")
    problem(upload(b"hello"), 415, "unsupported_file")
    problem(upload(b"x" * (51 << 20)), 413, "file_too_large")
    problem(upload(PDF, data={"schema": "../../etc/passwd"}), 422, "invalid_input")
    problem(upload(PDF, data={"model": "nobody:nothing"}), 422, "invalid_input")
    problem(served.send("POST", f"{API}/documents", data={"schema": "invoice"}), 422, "invalid_input")
    problem(served.send("POST", f"{API}/documents", json={}), 422, "invalid_input")
    two = [("file", ("a.pdf", PDF)), ("file", ("b.pdf", PDF))]
    problem(served.send("POST", f"{API}/documents", files=two), 422, "invalid_input")
    assert served.send("GET", f"{API}/documents").json()["items"] == []
    assert served.litter == []


def test_an_upload_that_is_cut_off_or_never_ends_leaves_nothing_behind(served: Served) -> None:
    host = urlsplit(served.address)
    head = (
        f"POST {API}/documents HTTP/1.1\r\nHost: {host.netloc}\r\nAuthorization: Bearer owner\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n"
    )
    part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n'
    with socket.create_connection((host.hostname, host.port)) as wire:
        wire.sendall(head.encode() + b"Content-Length: 5000000\r\n\r\n" + part + PDF)
        until(lambda: served.litter, 30, what="the beginning of the file")
    until(lambda: not served.litter, 30, what="the file to be gone")
    with socket.create_connection((host.hostname, host.port)) as wire:
        wire.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        chunk = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
        wire.sendall(b"%x\r\n%s\r\n" % (len(part), part))
        answer = b""
        try:
            for _ in range(200):
                wire.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            answer = wire.recv(100)
        except ConnectionResetError:
            answer = b"HTTP/1.1 413"
        assert answer.startswith(b"HTTP/1.1 413")
    until(lambda: not served.litter, 30, what="the file to be gone")
    assert served.send("GET", f"{API}/documents").json()["items"] == []


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "a\0b.pdf",
        "a\r\nSet-Cookie: x=1.pdf",
        "‮fdp.exe",
        "x" * 300 + ".pdf",
        'q"uo\\te.pdf',
        "é ü.pdf",
    ],
)
def test_a_name_is_shown_and_never_believed(served: Served, name: str) -> None:
    body = {"file_name": name.replace("\0", "")}
    slot = served.send("POST", f"{API}/uploads", json=body).json()
    uploaded = served.send("PUT", served.address + slot["url"], token=None, content=PDF)
    assert uploaded.status_code == 201, uploaded.text
    shown = uploaded.json()["file_name"]
    assert "/" not in shown
    assert shown.isprintable()
    assert len(shown) <= 200
    answer = served.send("GET", f"{API}/documents/{slot['document_id']}/download")
    assert answer.content == PDF
    assert answer.headers["content-disposition"].startswith('attachment; filename="')
    assert "set-cookie" not in answer.headers
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not list(Path(served.app.settings.home).rglob("*passwd*"))


def test_a_link_to_upload_is_good_for_one_document_and_nothing_else(served: Served) -> None:
    slot = served.send("POST", f"{API}/uploads", json={"file_name": "a.pdf"}).json()
    url = served.address + slot["url"]
    said, _, proof = slot["url"].rpartition("/")[2].partition(".")
    for method in ("GET", "POST", "DELETE"):
        problem(served.send(method, url, token=None), 403, "link_refused")
    for altered in (f"{said}A.{proof}", f"{said}.{proof[:-2]}AA", said, "x.y", "é.é"):
        answer = served.send("PUT", f"{served.address}{API}/uploads/{altered}", token=None, content=PDF)
        problem(answer, 403, "link_refused")
    first = served.send("PUT", url, token=None, content=PDF)
    assert first.json()["id"] == slot["document_id"]
    assert served.send("PUT", url, token=None, content=PDF).json()["id"] == slot["document_id"]
    problem(served.send("PUT", url, token=None, content=PDF + b"other"), 409, "conflict")


def test_a_link_to_a_file_is_refused_when_altered_or_used_otherwise(served: Served) -> None:
    document = served.send("POST", f"{API}/documents", files={"file": ("a.pdf", PDF)}).json()
    link = served.address + served.send("POST", f"{API}/documents/{document['id']}/link").json()["url"]
    assert served.send("GET", link, token=None).content == PDF
    problem(served.send("PUT", link, token=None, content=b"x"), 403, "link_refused")
    problem(served.send("GET", link + "x", token=None), 403, "link_refused")
    problem(served.send("GET", link.replace("expires=", "expires=9"), token=None), 403, "link_refused")


def test_whoever_has_another_schema_is_not_ready(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = served.send("GET", f"{API}/ready", token=None)
    assert (ready.status_code, ready.json()["status"]) == (200, "ready")
    monkeypatch.setattr(schema, "HEAD", "another")
    answer = served.send("GET", f"{API}/ready", token=None)
    assert (answer.status_code, answer.json()["status"]) == (503, "schema_outdated")


@pytest.mark.parametrize("kind", [ChildDied, ChildTimedOut])
def test_a_file_that_kills_whoever_looks_into_it_is_at_fault(kind: type[DocmillError]) -> None:
    assert status_of(kind("The page cannot be shown.")) == 422
