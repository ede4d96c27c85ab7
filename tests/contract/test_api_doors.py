"""The ways in over HTTP: invitations, sessions in cookies, keys; and how they end."""

import base64
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import update

from docmill.api import limiting
from docmill.api.doors import FILE, installation_token
from docmill.db.tables import api_keys
from docmill.model.people import Role, system_principal
from docmill.people.secrets import INVITATION, KEY, SESSION
from docmill.testing.papers import invoice_pdf
from tests.contract.served import Served, serving
from tests.contract.test_api_manners import API, JSON, problem

PASSWORD = "correct horse battery staple"


@pytest.fixture
def gate(database_url: str, tmp_path: Path) -> Iterator[Served]:
    """The API with its real doors."""
    with serving(database_url, tmp_path / "home", doors=True) as found:
        found.app.organisations.found("Mill", "ann@mill.example", "Ann", another=False, by="test")
        yield found


def ann(gate: Served) -> httpx.Client:
    """A browser with nothing in it."""
    return httpx.Client(base_url=gate.address, headers={"Origin": gate.address}, timeout=60)


def invited(gate: Served, email: str, role: Role) -> str:
    people = gate.app.people
    return people.invite(system_principal(gate.app.org_id, "test"), email, role)[1]


def test_an_invitation_leads_to_a_session_and_signing_out_ends_it(gate: Served) -> None:
    token = invited(gate, "bob@mill.example", Role.REVIEWER)
    with ann(gate) as browser:
        body = {"token": token, "password": PASSWORD, "name": "Bob"}
        joined = browser.post(f"{API}/session/accept", json=body)
        assert joined.status_code == 200, joined.text
        assert joined.json()["role"] == "reviewer"
        cookie = joined.headers["set-cookie"].lower()
        assert all(word in cookie for word in ("httponly", "samesite=strict", "path=/"))
        first = browser.cookies["docmill_session"]
        assert first not in joined.text
        assert browser.get(f"{API}/me").json()["name"] == "Bob"
        again = browser.post(f"{API}/session", json={"email": "bob@mill.example", "password": PASSWORD})
        assert again.status_code == 200
        second = browser.cookies["docmill_session"]
        assert second != first
        # The one before it is dead.
        answer = httpx.get(f"{gate.address}{API}/me", cookies={"docmill_session": first})
        problem(answer, 401, "unauthenticated")
        assert browser.delete(f"{API}/session").status_code == 204
        answer = httpx.get(f"{gate.address}{API}/me", cookies={"docmill_session": second})
        problem(answer, 401, "unauthenticated")
        problem(browser.post(f"{API}/session/accept", json=body), 403, "invitation_invalid")


def test_whoever_shows_a_key_that_has_ended_is_told_and_strangers_are_not(gate: Served) -> None:
    boss = system_principal(gate.app.org_id, "test")
    keys = {name: gate.app.keys.create(boss, name)[1] for name in ("late", "gone")}
    with gate.app.database.scoped(gate.app.org_id).write() as connection:
        late = update(api_keys).where(api_keys.c.name == "late")
        connection.execute(late.values(expires_at=api_keys.c.created_at))
    gate.app.keys.revoke(boss, "gone")

    def told(token: str) -> tuple[dict[str, object], str]:
        answer = gate.send("GET", f"{API}/me", token=token)
        return answer.json(), answer.headers["www-authenticate"]

    expired, _ = told(keys["late"])
    assert (expired["status"], expired["code"]) == (401, "key_expired")
    assert "'late' expired at" in str(expired["detail"])
    revoked, _ = told(keys["gone"])
    assert (revoked["status"], revoked["code"]) == (401, "key_revoked")
    # Nobody else can tell a key that once was from one that never was.
    strangers = [told(keys["late"][:-2] + "xy")[0], told(KEY + "never")[0], told("nonsense")[0]]
    assert {each["code"] for each in strangers} == {"unauthenticated"}
    assert len({each["detail"] for each in strangers}) == 1


def test_a_form_of_another_site_cannot_act_with_the_cookie(gate: Served) -> None:
    token = invited(gate, "bob@mill.example", Role.ADMIN)
    with ann(gate) as browser:
        browser.post(f"{API}/session/accept", json={"token": token, "password": PASSWORD})
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}):
            problem(browser.post(f"{API}/keys", json={"name": "x"}, headers=headers), 403, "origin_refused")
        browser.headers.pop("Origin")
        headers = {"Sec-Fetch-Site": "cross-site"}
        problem(browser.post(f"{API}/keys", json={"name": "x"}, headers=headers), 403, "origin_refused")


def test_guessing_passwords_is_limited_and_answers_are_the_same(gate: Served) -> None:
    token = invited(gate, "bob@mill.example", Role.VIEWER)
    with ann(gate) as browser:
        browser.post(f"{API}/session/accept", json={"token": token, "password": PASSWORD})
        browser.delete(f"{API}/session")
        told = set()
        for email in ("bob@mill.example", "nobody@mill.example"):
            answer = browser.post(f"{API}/session", json={"email": email, "password": "wrong"})
            told.add(problem(answer, 401, "sign_in_failed")["detail"])
        assert len(told) == 1
        statuses = [
            browser.post(f"{API}/session", json={"email": "bob@mill.example", "password": "wrong"}).status_code
            for _ in range(8)
        ]
        assert statuses[-1] == 429
        limited = browser.post(f"{API}/session", json={"email": "bob@mill.example", "password": PASSWORD})
        problem(limited, 429, "sign_in_limited")
        assert int(limited.headers["retry-after"]) > 0


def test_a_link_to_upload_names_nobody_and_what_comes_by_it_is_recorded_by_name(gate: Served) -> None:
    system = system_principal(gate.app.org_id, "test")
    _, key = gate.app.keys.create(system, "The scanner", scopes=["documents.write"])
    member = gate.app.sessions.accept(invited(gate, "bob@mill.example", Role.ADMIN), PASSWORD, name="Bob Miller")
    asked = {
        "The scanner": {"Authorization": f"Bearer {key}"},
        "Bob Miller": {"Cookie": f"docmill_session={member.token}", "Origin": gate.address},
    }
    for number, (name, headers) in enumerate(asked.items(), 1):
        answer = gate.send("POST", f"{API}/uploads", token=None, json={"file_name": "a.pdf"}, headers=headers)
        assert answer.status_code == 201, answer.text
        url = answer.json()["url"]
        said = url.rpartition("/")[2].partition(".")[0]
        assert name not in base64.urlsafe_b64decode(said + "=" * (-len(said) % 4)).decode()
        sent = gate.send("PUT", url, token=None, content=invoice_pdf(number).content)
        assert sent.status_code == 201, sent.text
        (entry,) = gate.app.audit.list(system, limit=1)
        assert (entry.action, entry.actor_name) == ("document.upload", name)


def test_a_key_opens_what_it_was_made_for_until_it_is_revoked(gate: Served) -> None:
    body = {"name": "scanner", "scopes": ["documents.read"]}
    headers = {"Idempotency-Key": "k"}
    made = gate.send("POST", f"{API}/keys", token="installation", json=body, headers=headers)
    assert made.status_code == 201, made.text
    secret = made.json()["token"]
    # Told once: not even the same request hears it again.
    assert gate.send("POST", f"{API}/keys", token="installation", json=body, headers=headers).json()["token"] is None
    assert gate.send("GET", f"{API}/documents", token=secret).status_code == 200
    problem(gate.send("GET", f"{API}/jobs", token=secret), 403, "forbidden")
    problem(gate.send("GET", f"{API}/keys", token=secret), 403, "forbidden")
    listed = gate.send("GET", f"{API}/keys", token="installation")
    assert secret not in listed.text
    key_id = made.json()["key"]["id"]
    assert gate.send("DELETE", f"{API}/keys/{key_id}", token="installation").json()["revoked_at"]
    problem(gate.send("GET", f"{API}/documents", token=secret), 401, "key_revoked")


def test_a_member_whose_role_changes_is_held_to_it_at_once(gate: Served) -> None:
    token = invited(gate, "bob@mill.example", Role.ADMIN)
    with ann(gate) as browser:
        me = browser.post(f"{API}/session/accept", json={"token": token, "password": PASSWORD}).json()
        assert browser.get(f"{API}/members").status_code == 200
        changed = gate.send(
            "PATCH", f"{API}/members/{me['principal']}", token="installation", json={"standing": "reviewer"}
        )
        assert changed.json()["role"] == "reviewer"
        problem(browser.get(f"{API}/members"), 403, "forbidden")
        assert gate.send("DELETE", f"{API}/members/{me['principal']}", token="installation").status_code == 204
        problem(browser.get(f"{API}/me"), 401, "unauthenticated")


def test_before_the_organisation_is_founded_nobody_is_let_in(database_url: str, tmp_path: Path) -> None:
    with serving(database_url, tmp_path / "home", doors=True) as bare:
        for path, body in (("keys", {"name": "x"}), ("invitations", {"email": "eve@mill.example"})):
            answer = bare.send("POST", f"{API}/{path}", token="installation", json=body)
            told = problem(answer, 409, "conflict")
            assert "docmill init" in str(told["detail"])


def test_an_invitation_can_be_taken_back(gate: Served) -> None:
    body = {"email": "eve@mill.example", "standing": "viewer"}
    made = gate.send("POST", f"{API}/invitations", token="installation", json=body).json()
    assert [each["email"] for each in gate.send("GET", f"{API}/invitations", token="installation").json()][:1]
    where = f"{API}/invitations/{made['invitation']['id']}"
    assert gate.send("DELETE", where, token="installation").status_code == 204
    answer = gate.send("POST", f"{API}/session/accept", token=None, json={"token": made["token"], "password": PASSWORD})
    problem(answer, 403, "invitation_invalid")


def test_wrong_tokens_of_others_behind_the_same_proxy_lock_nobody_out(
    gate: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing is forgiven while this test runs, however long it takes.
    monkeypatch.setattr(limiting, "_FAILURES_PER_SECOND", 1e-6)
    guesses = [gate.send("GET", f"{API}/me", token=f"dmk_{number}").status_code for number in range(25)]
    assert (guesses[0], guesses[-1]) == (401, 429)
    assert gate.send("GET", f"{API}/me", token="installation").status_code == 200


def test_strangers_send_little(gate: Served) -> None:
    body = {"email": "ann@mill.example", "password": "x", "organisation": "y" * (65 << 10)}
    for path in ("session", "session/accept"):
        problem(gate.send("POST", f"{API}/{path}", token=None, json=body), 413, "body_too_large")
    # Without a header that says so, too.
    pieces = (b"x" * 1024 for _ in range(65))
    answer = gate.send("POST", f"{API}/session", token=None, content=pieces, headers=JSON)
    problem(answer, 413, "body_too_large")
    # What executors answer is as large as what members send.
    answer = gate.send("POST", f"{API}/callbacks", token=None, json={"jobId": "x" * (65 << 10)})
    assert answer.status_code != 413, answer.text


def test_everybody_who_is_somebody_may_ask_who_they_are(gate: Served) -> None:
    body = {"name": "starter", "scopes": ["jobs.write"]}
    secret = gate.send("POST", f"{API}/keys", token="installation", json=body).json()["token"]
    assert gate.send("GET", f"{API}/me", token=secret).json()["permissions"] == ["jobs.write"]
    problem(gate.send("GET", f"{API}/me", token=None), 401, "unauthenticated")


def test_over_the_api_members_and_keys_are_known_by_their_ids_alone(gate: Served) -> None:
    email = f"{'b' * 23}@mill.example"
    name = "k" * 36
    assert len(email) == len(name)
    with ann(gate) as browser:
        browser.post(f"{API}/session/accept", json={"token": invited(gate, email, Role.VIEWER), "password": PASSWORD})
        gate.send("POST", f"{API}/keys", token="installation", json={"name": name})
        for method, path in (
            ("DELETE", f"members/{email}"),
            ("GET", f"members/{email}"),
            ("POST", f"members/{email}/reset"),
            ("DELETE", f"keys/{name}"),
        ):
            problem(gate.send(method, f"{API}/{path}", token="installation"), 404, "not_found")
        assert browser.get(f"{API}/me").status_code == 200


def test_the_token_of_the_installation_looks_like_no_invitation(tmp_path: Path) -> None:
    token = installation_token(tmp_path)
    assert token == installation_token(tmp_path)
    assert not token.startswith((KEY, SESSION, INVITATION))


def test_the_token_of_an_earlier_release_stays_good(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("dmi_of-an-earlier-release\n")
    assert installation_token(tmp_path) == "dmi_of-an-earlier-release"


def test_what_is_logged_of_a_bug_holds_no_secret_of_a_path(
    gate: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(token: str, now: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(gate.app.slots, "read", broken)
    answer = gate.send("PUT", f"{API}/uploads/a-secret-token", token=None, content=b"x")
    problem(answer, 500, "internal")
    assert "uploads/{token}" in caplog.text
    assert "a-secret-token" not in caplog.text
