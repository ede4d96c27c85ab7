"""Steps that go out together: one call, whatever becomes of each on its way there."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from docmill.engine.context import Context
from docmill.engine.gathering import Gathering
from docmill.engine.inflight import Key
from docmill.engine.pools import PoolSettings, Slots
from docmill.model.errors import LeaseLost, PermanentError
from docmill.plugin import PluginInvalid, StepContext, StepType, declared, step

KEYS: list[Key] = [("job", n, 1) for n in range(3)]


def context(key: Key) -> Context:
    def check_lease() -> None:
        if key in lost:
            raise LeaseLost("Somebody else has it.")

    return cast(Context, SimpleNamespace(step_key=f"s{key[1]}", check_lease=check_lease))


lost: set[Key] = set()


class Calls:
    """A step type that remembers how it was called, and waits until it may answer."""

    def __init__(self) -> None:
        self.seen: list[tuple[list[str], dict[str, Any]]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.cancelled = False
        self.answer: Any = None

    @property
    def step_type(self) -> StepType:
        @step("call", kind="external", together=True)
        async def call(steps: Sequence[StepContext], entity: Any, input: Any) -> Any:
            self.seen.append(([one.step_key for one in steps], {"entity": entity, "input": input}))
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cancelled = True
                raise
            if isinstance(self.answer, Exception):
                raise self.answer
            return [f"answer to {one.step_key}" for one in steps] if self.answer is None else self.answer

        return declared(call, StepType)


def join(gathering: Gathering, key: Key) -> "asyncio.Task[Any]":
    arguments = {"entity": {"read": key[1]}, "input": {"n": key[1]}}
    return asyncio.get_running_loop().create_task(gathering.join(key, context(key), arguments))


def play(scene: Any) -> None:
    asyncio.run(asyncio.wait_for(scene(), 10.0))


def test_the_last_to_join_sets_off_one_call_in_the_order_of_the_template() -> None:
    async def scene() -> None:
        calls = Calls()
        gathering = Gathering(calls.step_type, KEYS)
        tasks = [join(gathering, key) for key in (KEYS[2], KEYS[0])]
        await asyncio.wait(tasks, timeout=0.05)
        assert calls.seen == []
        tasks.append(join(gathering, KEYS[1]))
        assert await asyncio.gather(*tasks) == ["answer to s2", "answer to s0", "answer to s1"]
        ((keys, arguments),) = calls.seen
        assert keys == ["s0", "s1", "s2"]
        assert arguments["input"] == [{"n": 0}, {"n": 1}, {"n": 2}]

    play(scene)


def test_whoever_drops_out_on_the_way_holds_up_nobody() -> None:
    async def scene() -> None:
        calls = Calls()
        gathering = Gathering(calls.step_type, KEYS)
        gathering.leave(KEYS[0])
        task = join(gathering, KEYS[1])
        await asyncio.wait([task], timeout=0.05)
        gathering.leave(KEYS[2])
        assert await task == "answer to s1"
        assert [keys for keys, _ in calls.seen] == [["s1"]]

    play(scene)


def test_when_all_drop_out_nothing_is_called() -> None:
    async def scene() -> None:
        calls = Calls()
        gathering = Gathering(calls.step_type, KEYS)
        for key in KEYS:
            gathering.leave(key)
        assert calls.seen == []

    play(scene)


def test_one_that_is_cancelled_does_not_disturb_the_others() -> None:
    async def scene() -> None:
        calls = Calls()
        calls.gate.clear()
        gathering = Gathering(calls.step_type, KEYS[:2])
        one, other = join(gathering, KEYS[0]), join(gathering, KEYS[1])
        await asyncio.wait([one, other], timeout=0.05)
        one.cancel()
        await asyncio.wait([one])
        calls.gate.set()
        assert await other == "answer to s1"
        assert (one.cancelled(), calls.cancelled) == (True, False)

    play(scene)


def test_when_all_are_cancelled_so_is_the_call() -> None:
    async def scene() -> None:
        calls = Calls()
        calls.gate.clear()
        gathering = Gathering(calls.step_type, KEYS[:2])
        tasks = [join(gathering, key) for key in KEYS[:2]]
        await asyncio.wait(tasks, timeout=0.05)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert gathering._task is not None
        await asyncio.wait([gathering._task])
        assert calls.cancelled

    play(scene)


@pytest.mark.parametrize("answer", [PermanentError("no"), ["too few"], {"no": "list"}, 5])
def test_an_error_or_a_wrong_number_of_values_fails_all(answer: object) -> None:
    async def scene() -> None:
        calls = Calls()
        calls.answer = answer
        gathering = Gathering(calls.step_type, KEYS[:2])
        ends = await asyncio.gather(*[join(gathering, key) for key in KEYS[:2]], return_exceptions=True)
        assert [type(end) for end in ends] == [PermanentError, PermanentError]

    play(scene)


def test_only_external_coroutines_are_called_together() -> None:
    async def coroutine(steps: Sequence[StepContext]) -> list[object]:
        return []

    def plain(steps: Sequence[StepContext]) -> list[object]:
        return []

    with pytest.raises(PluginInvalid):
        step("x", kind="rule", together=True)(coroutine)
    with pytest.raises(PluginInvalid):
        step("x", kind="external", together=True)(plain)


def test_slots_taken_beyond_the_capacity_come_back_before_any_is_given() -> None:
    slots = Slots([PoolSettings(name="external", capacity=2)])
    assert slots.reserve_up_to("external", 10) == 2
    slots.release("external", 2 - 7)
    assert [use.busy for use in slots.use()] == [7]
    assert [use.idle for use in slots.use()] == [0]
    assert not slots.reserve("external")
    for _ in range(5):
        slots.release("external")
        assert not slots.reserve("external")
    slots.release("external")
    assert slots.reserve("external")


def test_what_is_no_longer_ours_when_the_last_has_joined_does_not_go_out() -> None:
    async def scene() -> None:
        calls = Calls()
        gathering = Gathering(calls.step_type, KEYS)
        tasks = [join(gathering, key) for key in KEYS[:2]]
        await asyncio.wait(tasks, timeout=0.05)
        lost.add(KEYS[0])
        tasks.append(join(gathering, KEYS[2]))
        taken, *others = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(taken, LeaseLost)
        assert others == ["answer to s1", "answer to s2"]
        assert [keys for keys, _ in calls.seen] == [["s1", "s2"]]

    try:
        play(scene)
    finally:
        lost.clear()
