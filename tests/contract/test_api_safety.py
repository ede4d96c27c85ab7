"""What stands between the API and those who mean harm: hosts, origins, tokens, limits, signatures."""

import re
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import create_connection
from urllib.parse import urlsplit

import httpx
import orjson
import pytest
from standardwebhooks import Webhook
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from docmill.api.limiting import Limiter
from docmill.api.problems import TooManyRequests
from docmill.model.people import Role, system_principal
from docmill.testing.papers import invoice_pdf
from tests.contract.served import Served, serving, somebody
from tests.contract.test_api_manners import API, JSON, NOWHERE, problem

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_only_our_own_names_are_answered(served: Served) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "", "[::1", "localhost@evil.example"):
        problem(served.send("GET", f"{API}/documents", headers={"Host": host}), 403, "origin_refused")
    port = urlsplit(served.address).port
    assert served.send("GET", f"{API}/documents", headers={"Host": f"localhost:{port}"}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example", "file://"])
def test_pages_of_other_sites_are_refused(served: Served, origin: str) -> None:
    for method, path in (("GET", "/documents"), ("GET", "/events"), ("POST", "/jobs"), ("OPTIONS", "/jobs")):
        answer = served.send(method, API + path, headers={"Origin": origin})
        problem(answer, 403, "origin_refused")
        assert "access-control-allow-origin" not in answer.headers
    with pytest.raises(InvalidStatus) as told:
        _listening(served, {"Origin": origin, "Authorization": "Bearer owner"})
    _refused_handshake(told.value)


def test_a_socket_by_a_name_that_is_not_ours_is_told_why(served: Served) -> None:
    port = urlsplit(served.address).port
    with pytest.raises(InvalidStatus) as told, create_connection(("127.0.0.1", port)) as way:
        connect(f"ws://evil.example:{port}{API}/events/socket", sock=way)
    _refused_handshake(told.value)


def _refused_handshake(refused: InvalidStatus) -> None:
    """With the same answer as a request."""
    answer = refused.response
    assert (answer.status_code, answer.headers["content-type"]) == (403, "application/problem+json")
    assert answer.headers["x-content-type-options"] == "nosniff"
    body = orjson.loads(answer.body or b"")
    assert (body["code"], body["instance"]) == ("origin_refused", f"{API}/events/socket")


def test_our_own_page_may(served: Served) -> None:
    assert served.send("GET", f"{API}/documents", headers={"Origin": served.address}).status_code == 200


def _listening(served: Served, headers: dict[str, str], query: str = "") -> None:
    address = served.address.replace("http://", "ws://") + f"{API}/events/socket{query}"
    with connect(address, additional_headers=headers):
        pass


def test_a_socket_is_refused_without_a_token_and_for_a_foreign_job(served: Served) -> None:
    with pytest.raises(InvalidStatus):
        _listening(served, {})
    with pytest.raises(InvalidStatus):
        _listening(served, {"Authorization": "Bearer guessed"})
    with pytest.raises(InvalidStatus):
        _listening(served, {"Authorization": "Bearer owner"}, f"?job_id={NOWHERE}")
    with pytest.raises(InvalidStatus):
        _listening(served, {"Authorization": "Bearer owner"}, "?after=nonsense")
    problem(served.send("GET", f"{API}/events", token=None), 401, "unauthenticated")
    problem(served.send("GET", f"{API}/events?job_id={NOWHERE}"), 404, "not_found")
    problem(served.send("GET", f"{API}/events?after=x"), 422, "invalid_input")
    _listening(served, {"Authorization": "Bearer owner"})


@pytest.mark.parametrize(
    ("offered", "answered"),
    [
        (["docmill", "docmill.token.owner"], "docmill"),
        (["docmill.token.owner"], "docmill.token.owner"),
    ],
)
def test_a_browser_that_names_its_token_as_a_protocol_hears_one_of_those_it_named(
    served: Served, offered: list[str], answered: str
) -> None:
    """Without one it would close the connection, as the standard of browsers says."""
    address = served.address.replace("http://", "ws://") + f"{API}/events/socket"
    with connect(address, subprotocols=[Subprotocol(each) for each in offered]) as open_socket:
        assert open_socket.subprotocol == answered


def test_where_a_stream_is_to_go_on_is_named_where_it_was_said(served: Served) -> None:
    told = problem(served.send("GET", f"{API}/events?after=x"), 422, "invalid_input")
    assert [each["field"] for each in told["errors"]] == ["query.after"]  # type: ignore[attr-defined]
    told = problem(served.send("GET", f"{API}/events", headers={"Last-Event-ID": "x"}), 422, "invalid_input")
    assert [each["field"] for each in told["errors"]] == ["header.last-event-id"]  # type: ignore[attr-defined]
    with pytest.raises(InvalidStatus) as refused:
        _listening(served, {"Authorization": "Bearer owner"}, "?surprise=1")
    assert refused.value.response.status_code == 422


def test_every_answer_says_how_browsers_are_to_take_it(served: Served) -> None:
    for answer in (
        served.send("GET", f"{API}/documents"),
        served.send("GET", f"{API}/nothing"),
        served.send("GET", f"{API}/documents", headers={"Host": "evil.example"}),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers


def test_who_is_refused_before_the_body_was_read_may_go_on_with_the_connection(served: Served) -> None:
    where = urlsplit(served.address)
    size = 16 << 20
    head = (
        f"POST {API}/documents HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer guessed\r\n"
        f"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {size}\r\n\r\n"
    )
    with socket.create_connection((where.hostname, where.port), timeout=60) as wire:
        # More than the buffers of both sides hold: it comes to its end only if somebody takes it.
        wire.sendall(head.encode() + bytes(size))
        wire.sendall(f"GET {API}/health HTTP/1.1\r\nHost: {where.netloc}\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while piece := wire.recv(1 << 16):
            answer += piece
    assert re.findall(rb"HTTP/1\.1 (\d+)", answer) == [b"401", b"200"]


def test_who_asks_too_much_is_told_when_to_come_back(database_url: str, tmp_path: Path) -> None:
    with serving(database_url, tmp_path / "home", api={"rate": 0.001, "burst": 3}) as served:
        for _ in range(3):
            assert served.send("GET", f"{API}/documents").status_code == 200
        answer = served.send("GET", f"{API}/documents")
        problem(answer, 429, "too_many_requests")
        assert int(answer.headers["retry-after"]) >= 1
        assert served.send("GET", f"{API}/documents", token="viewer").status_code == 200


def test_guessing_tokens_is_limited_by_address() -> None:
    now = 0.0
    limiter = Limiter(rate=1, burst=1, clock=lambda: now)
    for _ in range(20):
        limiter.check_failures("10.0.0.1")
        limiter.failed("10.0.0.1")
    with pytest.raises(TooManyRequests):
        limiter.check_failures("10.0.0.1")
    limiter.check_failures("10.0.0.2")
    now = 10.0
    limiter.check_failures("10.0.0.1")


def test_a_role_that_is_taken_away_is_gone_with_the_next_request(served: Served) -> None:
    assert served.send("GET", f"{API}/configuration").status_code == 200
    served.people.tokens["owner"] = somebody("owner", Role.REVIEWER)
    problem(served.send("GET", f"{API}/configuration"), 403, "forbidden")
    del served.people.tokens["owner"]
    problem(served.send("GET", f"{API}/configuration"), 401, "unauthenticated")


def test_settings_are_shown_without_their_secrets(database_url: str, tmp_path: Path) -> None:
    executors = {"hub": {"url": "http://127.0.0.1:9/", "secret": SECRET}}
    with serving(database_url, tmp_path / "home", executors=executors) as served:
        answer = served.send("GET", f"{API}/configuration")
        assert answer.status_code == 200
        assert SECRET not in answer.text
        assert "executors.hub" in answer.text


def test_a_callback_needs_the_signature_of_its_executor(database_url: str, tmp_path: Path) -> None:
    executors = {"hub": {"url": "http://127.0.0.1:9/", "secret": SECRET}}
    body = f'{{"jobId": "{NOWHERE}", "stepKey": "ask", "status": "COMPLETED"}}'.encode()
    now = datetime.now(UTC)
    with serving(database_url, tmp_path / "home", executors=executors) as served:

        def send(headers: dict[str, str]) -> object:
            where = f"{API}/callbacks/hub"
            return served.send("POST", where, token=None, content=body, headers={**JSON, **headers})

        def signed(at: datetime, secret: str = SECRET, said: bytes = body) -> dict[str, str]:
            proof = Webhook(secret).sign("msg_1", at, said.decode())
            return {"webhook-id": "msg_1", "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": proof}

        foreign = "whsec_" + "A" * 32
        for headers in (
            {},
            signed(now, foreign),
            signed(now - timedelta(hours=1)),
            signed(now + timedelta(hours=1)),
            signed(now, said=b"{}"),
            {**signed(now), "webhook-signature": "v1,not base64 at all!"},
            {**signed(now), "webhook-signature": "nonsense"},
            {**signed(now), "webhook-timestamp": "yesterday"},
            {**signed(now), "webhook-timestamp": "9" * 400},
            {**signed(now), "webhook-id": ""},
        ):
            problem(send(headers), 401, "signature_invalid")
        # Well signed, of a job that is not there: heard, and told so.
        answer = send(signed(now))
        assert answer.status_code == 404  # type: ignore[attr-defined]
        assert answer.json()["code"] == "unknown_job"  # type: ignore[attr-defined]
        nonsense = served.send("POST", f"{API}/callbacks", token=None, content=b"[]", headers=JSON)
        problem(nonsense, 422, "callback_invalid")


@pytest.mark.parametrize("public", [None, "https://docmill.example"])
def test_a_signed_link_works_as_it_stands_by_the_address_that_it_is_asked_for_at_or_the_public_one(
    database_url: str, tmp_path: Path, public: str | None
) -> None:
    with serving(database_url, tmp_path / "home", api={"public_url": public}) as served:
        content = invoice_pdf(1).content

        def use(method: str, url: str, **more: object) -> httpx.Response:
            """As whoever has nothing but the link does; for the public name this machine stands in."""
            if public is None:
                return served.send(method, url, token=None, **more)
            assert url.startswith(f"{public}/")
            local = served.address + url.removeprefix(public)
            return served.send(method, local, token=None, headers={"Host": "docmill.example"}, **more)

        slot = served.send("POST", f"{API}/uploads", json={"file_name": "a.pdf"}).json()
        assert use("PUT", slot["url"], content=content).status_code == 201
        link = served.send("POST", f"{API}/documents/{slot['document_id']}/link").json()["url"]
        assert use("GET", link).content == content
        if public is None:
            assert slot["url"].startswith(f"{served.address}/")
            named = {"Host": served.address.removeprefix("http://").replace("127.0.0.1", "localhost")}
            asked = served.send("POST", f"{API}/uploads", json={"file_name": "b.pdf"}, headers=named).json()
            assert asked["url"].startswith(f"http://{named['Host']}/")


def test_behind_a_proxy_its_public_name_is_its_own_and_cookies_go_over_tls_alone(
    database_url: str, tmp_path: Path
) -> None:
    section = {"public_url": "https://docmill.example/"}
    with serving(database_url, tmp_path / "home", doors=True, api=section) as served:
        served.app.organisations.found("Mill", "ann@mill.example", "Ann", another=False, by="test")
        token = served.app.people.invite(system_principal(served.app.org_id), "bob@mill.example", Role.VIEWER)[1]
        body = {"token": token, "password": "correct horse battery staple", "name": "Bob"}
        outside = {"Host": "docmill.example", "Origin": "https://docmill.example"}
        joined = served.send("POST", f"{API}/session/accept", token=None, json=body, headers=outside)
        assert joined.status_code == 200, joined.text
        assert "secure" in joined.headers["set-cookie"].lower()
        assert "strict-transport-security" in joined.headers
        other = outside | {"Origin": "https://evil.example"}
        problem(served.send("DELETE", f"{API}/session", token=None, headers=other), 403, "origin_refused")
