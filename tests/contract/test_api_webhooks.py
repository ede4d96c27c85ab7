"""Outgoing webhooks and analytics over HTTP."""

from pathlib import Path

from docmill.services.webhook_sending import Sending, WebhookChore
from docmill.testing.receiver import Receiver
from tests.contract.served import Served, serving
from tests.contract.test_api_manners import API, problem


def test_an_address_that_no_message_can_reach_is_refused_at_once(served: Served) -> None:
    for host in (
        "127.0.0.1:8000",
        "localhost",
        "[::1]",
        "10.0.0.1",
        "2130706433",
        "0x7f.1",
        "receiver",
        "hook.internal",
    ):
        told = problem(served.send("POST", f"{API}/webhooks", json={"url": f"http://{host}/"}), 422, "address_refused")
        assert "webhooks.private_addresses" in str(told["detail"])
        assert told["errors"][0]["field"] == "body.url"  # type: ignore[index]
    assert served.send("GET", f"{API}/webhooks").json() == []
    made = served.send("POST", f"{API}/webhooks", json={"url": "https://example.com/"}).json()["endpoint"]
    where = f"{API}/webhooks/{made['id']}"
    version = {"If-Match": served.send("GET", where).headers["etag"]}
    problem(served.send("PATCH", where, json={"url": "http://10.0.0.1/"}, headers=version), 422, "address_refused")
    assert served.send("GET", where).json()["url"] == "https://example.com/"


def test_an_endpoint_is_made_told_changed_and_removed(database_url: str, tmp_path: Path) -> None:
    private = {"private_addresses": True}
    with (
        serving(database_url, tmp_path / "home", webhooks=private) as served,
        Receiver() as receiver,
        served.client() as client,
    ):
        made = client.call("POST", "/webhooks", {"url": receiver.url, "events": ["job.finished"]})
        endpoint = made["endpoint"]["id"]
        assert made["secret"].startswith("whsec_")
        delivery = client.call("POST", f"/webhooks/{endpoint}/ping", {})
        chore = WebhookChore(served.app.database, Sending(private=True, timeout=5.0))
        chore.send_due()
        chore.close()
        details = client.call("GET", f"/webhooks/deliveries/{delivery['id']}")
        assert details["delivery"]["status"] == "delivered"
        assert [attempt["answered"] for attempt in details["attempts"]] == [204]
        (listed,) = client.call("GET", "/webhooks/deliveries?status=delivered")["items"]
        assert listed["id"] == receiver.messages[0].id
        assert client.call("POST", f"/webhooks/deliveries/{delivery['id']}/resend", {})["status"] == "pending"
        seen = served.send("GET", f"{API}/webhooks/{endpoint}")
        assert "secret" not in seen.json()
        tag = seen.headers["etag"]
        where = f"{API}/webhooks/{endpoint}"
        off = served.send("PATCH", where, json={"enabled": False}, headers={"If-Match": tag})
        assert off.json()["disabled_reason"] == "by owner"
        problem(served.send("PATCH", where, json={"enabled": True}, headers={"If-Match": tag}), 412, "version_conflict")
        problem(served.send("PATCH", where, json={"enabled": True}), 428, "precondition_required")
        problem(served.send("POST", f"{where}/ping", json={}), 409, "conflict")
        assert served.send("DELETE", where).status_code == 204
        problem(served.send("GET", where), 404, "not_found")


def test_a_secret_is_told_once_even_if_the_answer_is_asked_for_again(served: Served) -> None:
    key, body = {"Idempotency-Key": "one"}, {"url": "https://example.com/"}
    first = served.send("POST", f"{API}/webhooks", json=body, headers=key).json()
    again = served.send("POST", f"{API}/webhooks", json=body, headers=key).json()
    assert again == first | {"secret": None}
    assert len(served.send("GET", f"{API}/webhooks").json()) == 1


def test_what_is_wrong_is_named(served: Served) -> None:
    for body, field in (
        ({"url": "ftp://example.com"}, None),
        ({"url": "https://example.com/", "events": []}, "body.events"),
        ({"url": "https://example.com/", "org_id": "x"}, "body.org_id"),
        ({"url": 7}, "body.url"),
        ({}, "body.url"),
    ):
        answer = served.send("POST", f"{API}/webhooks", json=body)
        assert answer.status_code == 422, body
        if field is not None:
            assert field in [fault["field"] for fault in answer.json()["errors"]], answer.text
    for role in ("viewer", "reviewer", "service"):
        problem(served.send("GET", f"{API}/webhooks", token=role), 403, "forbidden")


def test_analytics_answer_for_the_time_asked(served: Served) -> None:
    assert len(served.send("GET", f"{API}/analytics/throughput?days=7").json()) == 7
    for part in ("steps", "fields", "cost"):
        assert served.send("GET", f"{API}/analytics/{part}").json() == []
    assert served.send("GET", f"{API}/analytics/reliability").json()["calibration_error"] is None
    for by in ("day", "model", "template"):
        assert served.send("GET", f"{API}/analytics/cost?by={by}").status_code == 200
    assert served.send("GET", f"{API}/analytics/throughput?days=0").status_code == 422
    problem(served.send("GET", f"{API}/analytics/steps", token="service"), 403, "forbidden")
