"""Children that do CPU work: what they raise comes home, and none outlives its use."""

import asyncio
import os
import pickle
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from docmill.engine.children import ChildDied, Children, ChildSettings
from docmill.model.errors import Conflict, Deferred, DocmillError, RetryableError
from docmill.testing.waiting import until


class Refused(DocmillError):
    """An error as a plug-in may declare it: made of keywords alone."""

    code = "refused"

    def __init__(self, *, page: int) -> None:
        super().__init__(f"Page {page} is refused.", page=page)


ERRORS = {
    "deferred": Deferred("Not now.", delay=7.0),
    "retryable": RetryableError("Later.", retry_after=3.0, status=429),
    "conflict": Conflict("No.", job_id="x"),
}


def raising(name: str) -> None:
    raise ERRORS[name]


def burning(seconds: float) -> int:
    while time.process_time() < seconds:
        pass
    return os.getpid()


def waiting(sign: str) -> None:
    Path(sign).touch()
    signal.pause()


_LOADED: list[int] = []


def load() -> None:
    _LOADED.append(os.getpid())


def failing() -> None:
    raise ERRORS["conflict"]


def loaded() -> list[int]:
    return _LOADED


def same(one: DocmillError, other: DocmillError) -> bool:
    return (type(one), one.args, one.__dict__) == (type(other), other.args, other.__dict__)


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Iterator[Children]:
    # A child imports the function by its module's name, so this module must be found under it.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    for function in (raising, burning, waiting, load, failing, loaded):
        monkeypatch.setattr(function, "__module__", Path(__file__).stem)
    made = Children(ChildSettings(count=2, cpu_seconds=2))
    yield made
    made.close()


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_comes_home_as_it_was_raised(children: Children, name: str) -> None:
    with pytest.raises(DocmillError) as raised:
        asyncio.run(children.run(raising, (name,), 60.0))
    assert same(raised.value, ERRORS[name])


def test_an_error_of_a_plug_in_survives_the_journey_whatever_it_is_made_of() -> None:
    assert same(pickle.loads(pickle.dumps(Refused(page=3))), Refused(page=3))


def test_the_cpu_limit_is_of_a_task_not_of_all_that_a_child_has_done(children: Children) -> None:
    async def thrice() -> set[int]:
        return {await children.run(burning, (used,), 60.0) for used in (1.6, 3.2, 4.8)}

    assert len(asyncio.run(thrice())) == 1


def test_children_that_were_warmed_have_loaded_before_their_first_task(children: Children) -> None:
    children.warm(load, 5)
    seen = asyncio.run(children.run(loaded, (), 60.0))
    assert seen
    assert len(set(seen)) == 1


def test_what_fails_while_a_child_warms_up_does_not_concern_its_tasks(children: Children) -> None:
    children.warm(failing, 1)
    assert asyncio.run(children.run(loaded, (), 60.0)) == []


def test_closing_ends_a_child_at_work(children: Children, tmp_path: Path) -> None:
    sign = tmp_path / "begun"

    async def close_while_it_works() -> None:
        work = asyncio.create_task(children.run(waiting, (str(sign),), 3600.0))
        await asyncio.to_thread(until, sign.exists, 30.0)
        await asyncio.to_thread(children.close)
        await work

    with pytest.raises(ChildDied):
        asyncio.run(close_while_it_works())
