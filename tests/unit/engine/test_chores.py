"""What a worker looks after besides its steps: every chore in turn, none in another's way, and an end when told."""

from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event
from threading import enumerate as threads

import pytest

from docmill.engine.chores import Chores

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def alive() -> list[str]:
    return [thread.name for thread in threads() if thread.name == "docmill-chores"]


@pytest.mark.parametrize("chores", [(), (lambda now: None,)], ids=["none", "one"])
def test_its_thread_ends_when_told(chores: tuple[Callable[[datetime], object], ...]) -> None:
    """Also where there is nothing to do: one that never ended would keep a core busy for ever."""
    before = alive()
    kept = Chores(chores)
    kept.start()
    kept.ask(NOW)
    kept.close()
    assert alive() == before


def test_one_that_fails_does_not_keep_the_next_from_its_turn() -> None:
    done: list[datetime] = []
    finished = Event()

    def fail(now: datetime) -> None:
        raise OSError("the bucket is away")

    def do(now: datetime) -> None:
        done.append(now)
        finished.set()

    kept = Chores((fail, do))
    kept.start()
    kept.ask(NOW)
    assert finished.wait(30)
    kept.close()
    assert done == [NOW]
