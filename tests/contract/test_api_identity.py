"""Signing in by the word of an identity provider, from the first link to the session, over HTTP."""

import base64
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from docmill.settings import OidcSection
from docmill.testing.identity import CLIENT, SECRET, StandInProvider
from tests.contract.served import Served, serving
from tests.contract.test_api_manners import API, problem

NUMBERS = base64.urlsafe_b64encode(b'{"state":1,"nonce":2,"verifier":3}').decode()


@pytest.fixture
def provider() -> Iterator[StandInProvider]:
    with StandInProvider() as provider:
        provider.claims |= {"email": "ann@mill.example"}
        yield provider


@pytest.fixture
def gate(database_url: str, tmp_path: Path, provider: StandInProvider) -> Iterator[Served]:
    oidc = OidcSection(issuer=provider.issuer, client_id=CLIENT, client_secret=SECRET)  # type: ignore[arg-type]
    with serving(database_url, tmp_path / "home", doors=True, oidc=oidc) as found:
        found.app.organisations.found("Mill", "ann@mill.example", "Ann", another=False, by="test")
        yield found


def test_a_member_is_sent_there_comes_back_and_is_in(gate: Served, provider: StandInProvider) -> None:
    with httpx.Client(base_url=gate.address, timeout=60) as browser:
        sent = browser.get(f"{API}/session/oidc")
        assert sent.status_code == 303
        cookie = sent.headers["set-cookie"].lower()
        assert all(word in cookie for word in ("httponly", "samesite=lax", "max-age=600"))
        back = provider.visit(sent.headers["location"])
        answer = browser.get(f"{API}/session/oidc/return", params=back)
        assert answer.status_code == 200, answer.text
        assert (answer.json()["name"], answer.json()["role"]) == ("Ann", "owner")
        assert browser.get(f"{API}/me").json()["name"] == "Ann"
        # What it brought back is worth nothing a second time.
        problem(browser.get(f"{API}/session/oidc/return", params=back), 401, "identity_refused")


def test_a_browser_that_began_nothing_is_refused(gate: Served, provider: StandInProvider) -> None:
    with httpx.Client(base_url=gate.address, timeout=60) as browser:
        back = provider.visit(browser.get(f"{API}/session/oidc").headers["location"])
    slipped = httpx.get(f"{gate.address}{API}/session/oidc/return", params=back)
    problem(slipped, 401, "identity_refused")
    for cookie in ("nonsense", "e30=", "W10=", NUMBERS):
        answer = httpx.get(
            f"{gate.address}{API}/session/oidc/return", params=back, cookies={"docmill_handshake": cookie}
        )
        problem(answer, 401, "identity_refused")


def test_somebody_who_is_no_member_stays_outside(gate: Served, provider: StandInProvider) -> None:
    provider.claims["email"] = "eve@example.org"
    with httpx.Client(base_url=gate.address, timeout=60) as browser:
        back = provider.visit(browser.get(f"{API}/session/oidc").headers["location"])
        answer = browser.get(f"{API}/session/oidc/return", params=back)
        problem(answer, 401, "sign_in_failed")
        assert "docmill_session" not in browser.cookies


def test_without_a_provider_there_is_no_such_way(served: Served) -> None:
    problem(served.send("GET", f"{API}/session/oidc", token=None), 404, "not_found")
