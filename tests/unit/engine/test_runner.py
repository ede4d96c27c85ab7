"""Whatever a step does, its attempt ends in exactly one report and its slot is free again."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

import orjson
import pytest

from docmill.engine.batch import Report, StepRun
from docmill.engine.children import Children, ChildSettings
from docmill.engine.events import Deferred, Failed, StepEvent
from docmill.engine.inflight import Inflight
from docmill.engine.lane_a import Item, LaneA
from docmill.engine.lease import Lease, monotonic
from docmill.engine.loading import Loader
from docmill.engine.pools import PoolSettings, Slots
from docmill.engine.retry import LONGEST_DELAY
from docmill.engine.runner import Runner
from docmill.engine.sql.rows import JobHead
from docmill.engine.state import StepState
from docmill.model import errors
from docmill.model.statuses import StepStatus
from docmill.model.tokens import Tokens
from docmill.plugin import Registry, StepContext, StepType, step
from docmill.testing.samples import Draft, make_plan

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WORKER = "00000000-0000-7000-8000-00000000000a"


class Unreadable(Exception):
    """An error of somebody else's."""

    def __str__(self) -> str:
        raise ValueError("no words")


def later(delay: object) -> errors.Deferred:
    return errors.Deferred("Not now.", delay=cast(float, delay))


RAISED: dict[str, BaseException] = {
    "any": ZeroDivisionError("by zero"),
    "unreadable": Unreadable(),
    "exit": SystemExit(3),
    "cancelled by nobody": asyncio.CancelledError(),
    "stop": StopIteration("over"),
    "retry_after": errors.RetryableError("Later.", retry_after=cast(float, "soon")),
    "delay": later("soon"),
}


class Lane:
    """Stands in for lane A: keeps what it is given."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.rung: list[frozenset[str]] = []
        self.told = asyncio.Event()

    def put(self, item: Item) -> None:
        self.items.append(item)
        self.told.set()

    def ring(self, queues: frozenset[str]) -> None:
        self.rung.append(queues)
        self.told.set()

    def now(self) -> datetime:
        return NOW

    @property
    def event(self) -> StepEvent:
        (item,) = self.items
        assert isinstance(item.entry, Report)
        return cast(StepEvent, item.entry.event)


def run_of(step_type: str, *, not_before: str | None = None) -> StepRun:
    plan = make_plan([Draft(key="a", step_type=step_type)])
    planned = plan.steps[0] if not_before is None else replace(plan.steps[0], not_before=not_before)
    head = JobHead("job", "org", "template", "document", "d1", 0, "", {}, None, None, NOW)
    state = StepState(status=StepStatus.IN_PROGRESS, epoch=1, worker=WORKER)
    return StepRun(head, 1, plan, planned, state, "system", False)


def attempt(
    function: Callable[..., object], run: StepRun, meddle: Callable[[Runner], Awaitable[None]] | None = None
) -> tuple[Lane, Slots]:
    """Run one claimed step to its end; what lane A heard, and the slots afterwards."""

    async def play() -> tuple[Lane, Slots]:
        registry, slots, lane = Registry(), Slots([PoolSettings(name="system", capacity=1)]), Lane()
        registry.add(cast(StepType, function.__dict__["__docmill__"][0]))
        lease = Lease(3600.0)
        lease.renewed(WORKER, monotonic())
        runner = Runner(
            registry=registry,
            loader=cast(Loader, None),
            slots=slots,
            inflight=Inflight(on_lost=lambda keys: None),
            children=Children(ChildSettings()),
            lease=lease,
            tokens=Tokens(b"secret"),
        )
        runner.lane_a = cast(LaneA, lane)
        assert slots.reserve("system")
        runner.start([run])
        if meddle is not None:
            await meddle(runner)
        await asyncio.wait_for(lane.told.wait(), 30.0)
        return lane, slots

    return asyncio.run(play())


def busy(slots: Slots) -> int:
    return sum(use.busy for use in slots.use())


@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
def test_whatever_a_step_raises_is_reported_as_a_failed_attempt(name: str, plain: bool) -> None:
    @step("raises")
    async def raises(ctx: StepContext) -> None:
        raise RAISED[name]

    @step("raises")
    def raises_in_thread(ctx: StepContext) -> None:
        raise RAISED[name]

    lane, _ = attempt(raises_in_thread if plain else raises, run_of("raises"))
    event = lane.event
    assert isinstance(event, Failed)
    assert not event.permanent
    assert type(RAISED[name]).__name__ in orjson.loads(event.error)["message"]


@pytest.mark.parametrize("delay", [1e15, float("inf"), -5.0, float("nan")])
def test_a_refusal_for_ever_is_looked_at_again_within_a_week(delay: float) -> None:
    @step("refuses")
    async def refuses(ctx: StepContext) -> None:
        raise later(delay)

    event = attempt(refuses, run_of("refuses"))[0].event
    assert isinstance(event, Deferred)
    assert NOW <= event.until <= NOW + timedelta(seconds=LONGEST_DELAY)


@pytest.mark.parametrize("instant", ["9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59.999999+14:00"])
def test_a_start_that_no_database_could_hold_is_put_off_to_one_that_it_can(instant: str) -> None:
    @step("late")
    async def late(ctx: StepContext) -> None:
        raise AssertionError("too early")

    event = attempt(late, run_of("late", not_before=f"'{instant}'"))[0].event
    assert isinstance(event, Deferred)
    assert event.until.astimezone(UTC).year <= NOW.year + 2


def test_a_step_lost_before_it_began_gives_its_slot_back_and_says_so() -> None:
    @step("waits")
    async def waits(ctx: StepContext) -> None:
        await asyncio.Event().wait()

    run = run_of("waits")

    async def lose(runner: Runner) -> None:
        # In the same round of the loop in which it is started: it is cancelled before its first line.
        runner.drop([run.key])

    lane, slots = attempt(waits, run, lose)
    assert lane.items == []
    assert lane.rung == [frozenset({"system"})]
    assert busy(slots) == 0


def test_a_plain_step_that_hears_nothing_keeps_nobody_from_ending() -> None:
    # The thread of a step that never returns must not be joined when the process ends.
    code = """
import asyncio, threading
from docmill.engine.thread_call import in_thread
async def main():
    asyncio.ensure_future(in_thread(threading.Event().wait))
    await asyncio.sleep(0)
asyncio.run(main())
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
