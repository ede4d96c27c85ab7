"""How the API answers whatever is sent: problem documents that name field and remedy, and nothing half done."""

import json
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sqlalchemy import event

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


@pytest.mark.parametrize(
    ("path", "field", "remedy"),
    [
        ("documents?limit=-1", "query.limit", "Write 1 or more."),
        ("documents?limit=1000", "query.limit", "Write 200 or less."),
        ("documents?limit=many", "query.limit", "Write a whole number."),
        ("search?q=", "query.q", "Make it at least 1 long."),
        ("exports?since=yesterday", "query.since", "Write a moment with its zone, as 2026-05-14T09:30:00Z."),
        ("exports?since=20260514", "query.since", "Write a moment with its zone, as 2026-05-14T09:30:00Z."),
        ("exports?since=-1", "query.since", "Write a moment with its zone, as 2026-05-14T09:30:00Z."),
    ],
)
def test_what_is_out_of_bounds_is_answered_with_the_bounds(served: Served, path: str, field: str, remedy: str) -> None:
    told = problem(served.send("GET", f"{API}/{path}"), 422, "invalid_input")
    assert [(each["field"], each["remedy"]) for each in told["errors"]] == [(field, remedy)]  # type: ignore[attr-defined]


def test_a_parameter_that_a_path_does_not_know_is_told_by_every_path(served: Served) -> None:
    document = served.send("GET", f"{API}/openapi.json").json()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if "security" in operation:
                where = re.sub(r"\{\w+\}", NOWHERE, path)
                told = problem(served.send(method.upper(), f"{where}?surprise=1"), 422, "invalid_input")
                assert [each["field"] for each in told["errors"]] == ["query.surprise"]  # type: ignore[attr-defined]


def test_a_body_that_is_not_called_json_is_told_how_to_be(served: Served) -> None:
    answer = served.send("POST", f"{API}/jobs", content=b'{"template": "x"}', headers={"Content-Type": "text/plain"})
    errors = problem(answer, 422, "invalid_input")["errors"]
    assert [each["remedy"] for each in errors] == [  # type: ignore[attr-defined]
        "Send a JSON object, with Content-Type: application/json."
    ]


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

    faults = [(b"", 422, "empty_file"), (b"hello", 415, "unsupported_file"), (b"x" * (51 << 20), 413, "file_too_large")]
    for content, status, code in faults:
        (fault,) = problem(upload(content), status, code)["errors"]  # type: ignore[misc]
        assert fault["field"].startswith("body")  # type: ignore[has-type]
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
    uploaded = served.send("PUT", slot["url"], token=None, content=PDF)
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
    url = slot["url"]
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
    link = served.send("POST", f"{API}/documents/{document['id']}/link").json()["url"]
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


def test_the_secret_of_links_is_read_once_whatever_is_signed_and_checked(served: Served) -> None:
    document = served.send("POST", f"{API}/documents", files={"file": ("a.pdf", PDF)}).json()["id"]
    read: list[str] = []

    def note(connection: object, cursor: object, statement: str, *more: object) -> None:
        if "FROM installation_secrets" in statement:
            read.append(statement)

    event.listen(served.app.database.engine, "before_cursor_execute", note)
    for _ in range(3):
        link = served.send("POST", f"{API}/documents/{document}/link").json()["url"]
        assert served.send("GET", link, token=None).content == PDF
    assert 1 <= len(read) <= 2  # Looked for, and again by whoever makes it.


HALF = '"\\ud83d"'


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("uploads", f'{{"file_name": {HALF}}}', "body.file_name"),
        ("jobs", f'{{"template": {HALF}, "entity": "document:1"}}', "body.template"),
        (
            "jobs",
            f'{{"template": "plain", "entity": "document:1", "metadata": {{"a": [{HALF}]}}}}',
            "body.metadata.a.0",
        ),
        ("batches", f'{{"template": "plain", "entities": [{HALF}]}}', "body.entities.0"),
        ("issues", '{"title": "x", "entity": "document:1", "details": {"a": NaN}}', "body.details.a"),
        ("issues", '{"title": "x", "entity": "document:1", "details": {"a": 1e999}}', "body.details.a"),
        ("issues", f'{{"title": "x", "entity": "document:1", "details": {{{HALF}: 1}}}}', "body.details.\\ud83d"),
        ("issues", '{"title": "x", "entity": "document:1", "details": {"a": 1' + "0" * 30 + "}}", "body.details.a"),
        ("issues", '{"title": "x\\u0000", "entity": "document:1"}', "body.title"),
        (f"review/items/{NOWHERE}/comments", f'{{"body": {HALF}}}', "body.body"),
        ("keys", f'{{"name": {HALF}, "standing": "viewer"}}', "body.name"),
        ("invitations", f'{{"email": {HALF}, "standing": "viewer"}}', "body.email"),
        ("session", f'{{"email": "ann@mill.example", "password": {HALF}}}', "body.password"),
        ("templates/validate", f'{{"text": {HALF}}}', "body.text"),
        ("prompts/validate", f'{{"text": {HALF}}}', "body.text"),
        ("webhooks", f'{{"url": {HALF}, "events": ["ping"]}}', "body.url"),
    ],
)
def test_what_no_database_stores_is_refused_by_its_place(served: Served, path: str, body: str, field: str) -> None:
    answer = served.send("POST", f"{API}/{path}", content=body.encode(), headers=JSON)
    problem(answer, 422, "invalid_input")
    (fault,) = answer.json()["errors"]
    assert fault["field"] == field
    assert fault["remedy"] not in ("", fault["message"])


@pytest.mark.parametrize(
    "said", [{"schema": "receipt"}, {"schema_name": "receipt"}, {"schema": "receipt", "schema_name": "receipt"}]
)
def test_a_link_for_an_upload_takes_the_schema_by_the_name_that_the_form_has_for_it(
    served: Served, said: dict[str, str]
) -> None:
    slot = served.send("POST", f"{API}/uploads", json={"file_name": "a.pdf", **said}).json()
    assert served.send("PUT", slot["url"], token=None, content=PDF).status_code == 201
    assert served.app.documents.get(slot["document_id"]).schema_asked == "receipt"


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "issues", {"title": "x", "entity": "nothing"}, "body.entity"),
        ("POST", "issues", {"title": " ", "entity": "document:1"}, "body.title"),
        ("POST", "issues", {"title": "x"}, "body.entity"),
        ("GET", "issues?entity=nothing", None, "query.entity"),
        ("GET", "jobs?batch_id=" + "x" * 36, None, "query.batch_id"),
        ("GET", "prompts/greeting/diff", None, "query.old"),
        ("PUT", "prompts/-1", {"text": "x"}, "path.name"),
        ("PUT", "prompts/greeting", {"text": " "}, "body.text"),
        ("PUT", "templates/plain", {"text": "nothing"}, "body.text"),
        ("POST", "webhooks", {"url": "nowhere", "events": ["job.failed"]}, "body.url"),
        ("POST", "invitations", {"email": "nobody", "standing": "viewer"}, "body.email"),
        ("POST", "callbacks", {"stepKey": "a", "status": "COMPLETED"}, "body.jobId"),
        ("POST", "callbacks", [], "body"),
        ("POST", "uploads", {"file_name": "a.pdf", "schema_name": "unheard"}, "body.schema_name"),
        ("POST", "uploads", {"file_name": "a.pdf", "schema": "unheard"}, "body.schema"),
        ("POST", "uploads", {"file_name": "a.pdf", "schema": "invoice", "schema_name": "receipt"}, "body.schema"),
        ("PUT", "review/slas", {"seconds": 60, "schema_name": "unheard"}, "body.schema_name"),
    ],
)
def test_what_only_the_service_finds_wrong_is_named_by_its_place_too(
    served: Served, method: str, path: str, body: object, field: str
) -> None:
    served.send("PUT", f"{API}/prompts/greeting", json={"text": "Hello"}, headers={"If-Match": "*"})
    content = b"" if body is None else json.dumps(body).encode()
    answer = served.send(method, f"{API}/{path}", headers=JSON | {"If-Match": "*"}, content=content)
    assert answer.status_code == 422, answer.text
    (fault,) = answer.json()["errors"]
    assert fault["field"] == field
    assert fault["remedy"]
