"""What becomes of a message after an attempt: nothing is lost early, and nothing is tried for ever."""

from datetime import UTC, datetime, timedelta

import pytest

from docmill.model.webhooks import DeliveryStatus
from docmill.webhooks.posting import Reply
from docmill.webhooks.trying import JITTER, MOST_WAIT, WAITS, Standing, after_attempt

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def reply(status: int, retry_after: str | None = None) -> Reply:
    return Reply(status=status, retry_after=retry_after, body=b"")


@pytest.mark.parametrize("status", [200, 202, 204, 299])
def test_what_was_taken_is_delivered_however_late(status: int) -> None:
    late = after_attempt(len(WAITS) + 1, reply(status), chance=0.5, now=NOW)
    assert late == Standing(status=DeliveryStatus.DELIVERED, due_at=None)


@pytest.mark.parametrize("answer", [None, reply(199), reply(301), reply(400), reply(500)], ids=str)
def test_what_was_not_taken_is_tried_again_after_ever_longer_waits_and_then_given_up(answer: Reply | None) -> None:
    for tries, wait in enumerate(WAITS, start=1):
        again = after_attempt(tries, answer, chance=0.5, now=NOW)
        assert again == Standing(status=DeliveryStatus.PENDING, due_at=NOW + wait)
    assert list(WAITS) == sorted(WAITS)
    last = after_attempt(len(WAITS) + 1, answer, chance=0.5, now=NOW)
    assert last == Standing(status=DeliveryStatus.FAILED, due_at=None)


def test_chance_spreads_what_failed_together() -> None:
    soonest, latest = (after_attempt(2, None, chance=chance, now=NOW).due_at for chance in (0.0, 1.0))
    assert soonest == NOW + WAITS[1] * (1 - JITTER)
    assert latest == NOW + WAITS[1] * (1 + JITTER)


def test_a_receiver_that_is_gone_is_not_asked_again() -> None:
    first = after_attempt(1, reply(410, "60"), chance=0.5, now=NOW)
    assert first == Standing(status=DeliveryStatus.FAILED, due_at=None)


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("7200", timedelta(hours=2)),
        ("1", WAITS[0]),
        ("999999999", MOST_WAIT),
        ("Mon, 16 Nov 2026 13:00:00 GMT", timedelta(hours=1)),
        ("soon", WAITS[0]),
    ],
)
def test_a_receiver_is_left_alone_as_long_as_it_asks_but_not_for_ever(asked: str, given: timedelta) -> None:
    assert after_attempt(1, reply(503, asked), chance=0.5, now=NOW).due_at == NOW + given
