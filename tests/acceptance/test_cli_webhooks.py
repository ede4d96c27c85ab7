"""Other systems hear of what a real worker does, and the log tells whether they did."""

import pytest
from standardwebhooks import Webhook

from docmill.testing.receiver import Receiver
from docmill.testing.waiting import until
from tests.acceptance.conftest import Worker
from tests.acceptance.mill import TEMPLATES, Mill


@pytest.fixture
def telling(either: Mill) -> Mill:
    """An installation that may send to this machine, with a template."""
    mill = either.having(DOCMILL_WEBHOOKS__PRIVATE_ADDRESSES="true")
    assert mill("templates", "import", mill.write("plain.yaml", TEMPLATES["plain"])).code == 0
    return mill


def test_a_worker_tells_of_the_jobs_it_ends(telling: Mill, worker: Worker) -> None:
    with Receiver() as receiver:
        added = telling("webhooks", "add", receiver.url, "--event", "job.finished", "--description", "Books", "--json")
        assert added.code == 0, added
        worker(telling)
        done = telling("jobs", "submit", "plain", "document:7", "--watch", "--json")
        (message,) = receiver.wait_for(1)
        Webhook(added.data["secret"]).verify(message.body, dict(message.headers))
        assert message.told["data"]["job_id"] == done.lines[-1]["jobs"][0]["id"]

        def delivered() -> bool:
            rows = telling("webhooks", "log", "--json").data["deliveries"]
            return [row["status"] for row in rows] == ["delivered"]

        until(delivered, 60.0, interval=0.2)
        shown = telling("webhooks", "show", message.id)
        assert "job.finished  delivered" in shown.out
        assert "204" in shown.out
        again = telling("webhooks", "resend", message.id)
        assert f"{message.id}  job.finished  pending" in again.out
        assert {each.id for each in receiver.wait_for(2, 60.0)} == {message.id}


def test_a_private_address_is_refused_when_it_is_named(either: Mill) -> None:
    refused = either("webhooks", "add", "http://127.0.0.1:9000/hook", "--json")
    assert (refused.code, refused.error["code"]) == (2, "address_refused")
    assert "webhooks.private_addresses" in refused.error["message"]
    assert either("webhooks", "list", "--json").data == {"endpoints": []}


def test_endpoints_are_added_changed_and_removed(telling: Mill) -> None:
    assert "No endpoints" in telling("webhooks", "list").err
    added = telling("webhooks", "add", "https://example.com/hook")
    assert "secret: whsec_" in added.out
    (endpoint,) = telling("webhooks", "list", "--json").data["endpoints"]
    assert "whsec_" not in telling("webhooks", "list").out
    off = telling("webhooks", "change", endpoint["id"], "--off", "--event", "review.decided", "--as", "ann")
    assert "off: by ann" in off.out
    assert "review.decided" in off.out
    refused = telling("webhooks", "ping", endpoint["id"])
    assert refused.code == 1
    assert "Switch it on first" in refused.err
    assert telling("webhooks", "change", endpoint["id"], "--on").code == 0
    assert "pending" in telling("webhooks", "ping", endpoint["id"]).out
    assert telling("webhooks", "rotate", endpoint["id"], "--json").data["secret"].startswith("whsec_")
    assert telling("webhooks", "remove", endpoint["id"]).code == 0
    assert telling("webhooks", "log", "--json").data == {"deliveries": []}


def test_mistakes_are_told(telling: Mill) -> None:
    for words, told in (
        (["add", "ftp://example.com/"], "http:// or https://"),
        (["add", "https://example.com/", "--event", "job.exploded"], "Choose from document.finished"),
        (["show", "nonsense"], "There is no delivery nonsense"),
        (["ping", "nonsense"], "There is no endpoint nonsense"),
    ):
        answer = telling("webhooks", *words)
        assert answer.code in (1, 2)
        assert told in answer.err, answer
