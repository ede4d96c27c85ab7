"""Steps that go out together: one call for all of an execution group that were claimed at the same moment.

Each step walks the runner's pipeline by itself (condition, inputs, its own time-out) and joins where it would compute.
The last one to join, or to drop out on its way, sets the call off; each then gets its own value, or all the same error.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from docmill.engine.batch import StepRun
from docmill.engine.context import Context
from docmill.engine.failpoints import failpoint
from docmill.engine.inflight import Key
from docmill.model.errors import LeaseLost, PermanentError
from docmill.plugin import StepType


class _Member(NamedTuple):
    key: Key
    context: Context
    arguments: Mapping[str, object]
    future: "asyncio.Future[Any]"


class Gathering:
    """One group on its way to one call. Lives on the runner's loop."""

    def __init__(self, step_type: StepType, keys: Iterable[Key]) -> None:
        self._step_type = step_type
        self._awaited = set(keys)
        self._members: list[_Member] = []
        self._task: asyncio.Task[None] | None = None

    async def join(self, key: Key, context: Context, arguments: Mapping[str, object]) -> Any:
        """Be part of the call; the value that it gives for this step."""
        member = _Member(key, context, arguments, asyncio.get_running_loop().create_future())
        self._members.append(member)
        self.leave(key)
        try:
            return await member.future
        except asyncio.CancelledError:
            if self._task is not None and all(other.future.done() for other in self._members):
                # Nobody is left to whom it matters.
                self._task.cancel()
            raise

    def leave(self, key: Key) -> None:
        """Nobody need wait for this step: it has joined, or it ended before it came so far."""
        self._awaited.discard(key)
        if not self._awaited and self._members and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._call())

    async def _call(self) -> None:
        # In the order of the template, whoever was first.
        in_order = sorted(self._members, key=lambda member: member.key)
        members = [member for member in in_order if not member.future.done() and self._still_ours(member)]
        try:
            if members:
                values = await self._values(members)
                failpoint("dispatch.sent")
                for member, value in zip(members, values, strict=True):
                    if not member.future.done():
                        member.future.set_result(value)
        except asyncio.CancelledError:
            for member in members:
                member.future.cancel()
        except (Exception, SystemExit) as error:
            for member in members:
                if not member.future.done():
                    member.future.set_exception(error)

    @staticmethod
    def _still_ours(member: _Member) -> bool:
        """At the last moment: a process that was stopped while others joined may have lost its steps since."""
        try:
            member.context.check_lease()
        except LeaseLost as error:
            member.future.set_exception(error)
            return False
        return True

    async def _values(self, members: Sequence[_Member]) -> Sequence[Any]:
        arguments = dict(members[-1].arguments)
        if "input" in arguments:
            arguments["input"] = [member.arguments["input"] for member in members]
        values = await self._step_type.function([member.context for member in members], **arguments)
        if not isinstance(values, Sequence) or len(values) != len(members):
            raise PermanentError(
                f"The step type {self._step_type.name!r} was called for {len(members)} steps and must return a list of "
                "as many values."
            )
        return values


def gatherings(runs: Sequence[StepRun], step_types: Mapping[str, StepType]) -> dict[Key, Gathering]:
    """Who goes out with whom among steps that start at the same moment; those that go alone by nature are left out."""
    groups: dict[tuple[str, int, str, str | None], list[Key]] = {}
    for run in runs:
        step_type = step_types.get(run.step.step_type)
        if step_type is not None and step_type.together and not run.state.checkpointed:
            place = (run.job.id, run.step.execution_group, run.step.step_type, run.step.executor)
            groups.setdefault(place, []).append(run.key)
    made: dict[Key, Gathering] = {}
    for place, keys in groups.items():
        made |= dict.fromkeys(keys, Gathering(step_types[place[2]], keys))
    return made
