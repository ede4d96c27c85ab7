"""`until` returns what it waited for, and gives up at its deadline; `until_true` waits on an event loop."""

import asyncio
from collections.abc import Iterator

import pytest

from docmill.testing.waiting import TimedOut, until, until_true


def test_returns_the_first_true_answer() -> None:
    answers: Iterator[int] = iter([0, 0, 7, 8])
    assert until(lambda: next(answers), interval=0) == 7


def test_gives_up_at_the_deadline_and_names_what_it_waited_for() -> None:
    with pytest.raises(TimedOut, match="in vain for: the moon"):
        until(lambda: False, timeout=0.02, what="the moon")


def test_asks_at_least_once_even_without_time() -> None:
    assert until(lambda: "there", timeout=0) == "there"


def test_an_error_in_the_predicate_is_not_swallowed() -> None:
    with pytest.raises(ZeroDivisionError):
        until(lambda: 1 // 0)


def test_on_an_event_loop_others_go_on_meanwhile() -> None:
    heard: list[str] = []

    async def play() -> None:
        waiting = asyncio.ensure_future(until_true(lambda: heard, interval=0))
        await asyncio.sleep(0)
        assert not waiting.done()
        heard.append("the bell")
        await waiting

    asyncio.run(play())
