"""The runner: computes on one event loop. A waiting model call costs a coroutine, not a thread or a process.

Execution is a flat pipeline over one claimed step: condition, inputs, compute, outcome; every way through it ends in
exactly one report to a lane.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from random import random
from typing import Any, NamedTuple

from docmill.engine.asking import Models
from docmill.engine.batch import NewJob, Part, Report, StepRun
from docmill.engine.children import Children
from docmill.engine.computing import check_result, compute, needs_of
from docmill.engine.context import Context, to_json
from docmill.engine.events import (
    Checkpointed,
    Completed,
    Deferred,
    Failed,
    Released,
    Skipped,
    StepEvent,
)
from docmill.engine.failpoints import failpoint
from docmill.engine.failure import failure
from docmill.engine.follow_ups import (
    Wanted,
    follow_ups_to_part,
    newest_template,
    part_name,
    resolve_follow_ups,
    wanted_from_parts,
)
from docmill.engine.gathering import Gathering, gatherings
from docmill.engine.inflight import Inflight, Key
from docmill.engine.issues import NewIssue
from docmill.engine.lane_a import Item, LaneA
from docmill.engine.lane_b import Apply, LaneB
from docmill.engine.lease import Lease
from docmill.engine.loading import Loader, Scope
from docmill.engine.pools import Slots
from docmill.engine.processors import choose_processor
from docmill.engine.raised import Raised, raised_from_parts, raised_now, suspension
from docmill.engine.recovery import computed
from docmill.model import errors
from docmill.model.ai import Caller, Reply, Request
from docmill.model.tokens import Tokens
from docmill.plugin import Registry, Resolution, StepType, Wait
from docmill.templates import conditions
from docmill.templates.times import LONGEST, instant

log = logging.getLogger("docmill.engine")

_TICK = 0.1
"""Seconds between looks at the time-outs."""
_SOFT = 0.9
"""Share of the time-out after which a step is asked to wind up."""


class _Running(NamedTuple):
    task: "asyncio.Task[None]"
    context: Context
    since: float
    timeout: float


class _End(NamedTuple):
    """How an attempt ended, the jobs to submit and the issues to open with it."""

    event: StepEvent
    follow_ups: tuple[NewJob, ...] = ()
    issues: tuple[NewIssue, ...] = ()


class Runner:
    """Runs claimed steps on the loop it was made for."""

    def __init__(
        self,
        *,
        registry: Registry,
        loader: Loader,
        slots: Slots,
        inflight: Inflight,
        children: Children,
        lease: Lease,
        tokens: Tokens,
        models: Models | None = None,
    ) -> None:
        self._registry = registry
        self._loader = loader
        self._slots = slots
        self._inflight = inflight
        self._children = children
        self._lease = lease
        self._tokens = tokens
        self._gatherings: dict[Key, Gathering] = {}
        self._models = models
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[Key, _Running] = {}
        self._lost: set[Key] = set()
        self._timed_out: set[Key] = set()
        self._ticking: asyncio.TimerHandle | None = None
        self._needs: dict[int, frozenset[str]] = {}
        self.lane_a: LaneA
        self.lane_b: LaneB

    # Called from other threads.

    def start(self, runs: Sequence[StepRun]) -> None:
        """Run these steps; called by the lanes after the claim is committed."""
        self._loop.call_soon_threadsafe(self._start, runs)

    def drop(self, keys: Sequence[Key]) -> None:
        """These steps are no longer ours: stop working on them and report nothing."""
        self._loop.call_soon_threadsafe(self._drop, keys)

    def context(self, run: StepRun) -> Context:
        """What the function of a step is called with."""
        return Context(run, self, self._tokens)

    # On the loop.

    def _start(self, runs: Sequence[StepRun]) -> None:
        now = self._loop.time()
        self._gatherings |= gatherings(runs, self._registry.steps)
        for run in runs:
            context = self.context(run)
            task = self._loop.create_task(self._execute(run, context))
            self._tasks[run.key] = _Running(task, context, now, run.step.timeout)
        if self._ticking is None and self._tasks:
            self._tick()

    def _drop(self, keys: Sequence[Key]) -> None:
        for key in keys:
            entry = self._tasks.get(key)
            if entry is not None:
                self._lost.add(key)
                entry.context.stopping = True
                self._cancel(entry.task)

    def _cancel(self, task: "asyncio.Task[None]") -> None:
        """Not at once: a task cancelled before its first step never runs at all, and would report nothing."""
        self._loop.call_soon(task.cancel)

    def _tick(self) -> None:
        """Time-outs, looked at together: two timers for every step would cost more than the steps."""
        now = self._loop.time()
        for key, running in self._tasks.items():
            spent = now - running.since
            if spent >= running.timeout:
                # Once: the step may be cleaning up.
                if key not in self._timed_out:
                    self._timed_out.add(key)
                    self._cancel(running.task)
            elif spent >= running.timeout * _SOFT:
                running.context.stopping = True
        self._ticking = self._loop.call_later(_TICK, self._tick) if self._tasks else None

    async def drain(self, grace: float) -> None:
        """Let running steps end; after the grace, give back what is left."""
        tasks = [running.task for running in self._tasks.values()]
        for running in self._tasks.values():
            running.context.stopping = True
        if tasks:
            await asyncio.wait(tasks, timeout=grace)
        left = [running.task for running in self._tasks.values()]
        for task in left:
            self._cancel(task)
        if left:
            await asyncio.wait(left, timeout=5)

    async def _execute(self, run: StepRun, context: Context) -> None:
        """One attempt from claim to report."""
        end: _End | None
        try:
            end = await self._attempt(run, context)
        except asyncio.CancelledError:
            end = _End(self._interrupted(run))
        except (Exception, SystemExit) as error:
            # SystemExit too: a library that thinks it owns the process must not take the worker with it.
            end = _End(self._failure(run, error))
        finally:
            self._tasks.pop(run.key, None)
            self._timed_out.discard(run.key)
            gathering = self._gatherings.pop(run.key, None)
            if gathering is not None:
                gathering.leave(run.key)
        lost = run.key in self._lost
        self._lost.discard(run.key)
        if end is None:
            return  # Lane B has it, and its slot with it.
        if lost:
            self._slots.release(run.queue)
            # Nobody commits on its behalf, so nobody else says that there is a slot.
            self.lane_a.ring(frozenset({run.queue}))
        else:
            self._send(run, end.event, end.follow_ups, end.issues)

    async def _attempt(self, run: StepRun, context: Context) -> _End | None:
        """What to report; None when the result went to lane B."""
        planned = run.step
        position, epoch = planned.position, run.state.epoch
        step_type = self._registry.steps.get(planned.step_type)
        if step_type is None:
            raise errors.PermanentError(
                f"This worker knows no step type {planned.step_type!r}; install the plug-in that has it."
            )
        if run.state.checkpointed:
            return await self._conclude(run, context, step_type, await self._loader.result(run), stored=True)
        # Plans are kept for good, so their steps can be known by identity.
        needs = self._needs.get(id(planned))
        if needs is None:
            needs = self._needs[id(planned)] = needs_of(planned, step_type)
        scope = await self._loader.scope(run, needs) if needs else Scope()
        if planned.condition is not None and not conditions.parse(planned.condition).holds(scope.names()):
            return _End(Skipped(position=position, epoch=epoch))
        if planned.not_before is not None:
            start = instant(conditions.parse(planned.not_before).evaluate(scope.names()))
            now = self.lane_a.now()
            if start is not None and start > now:
                # Looked at again then, so an instant that no database could hold is as good as any other.
                until = min(start, now + timedelta(seconds=LONGEST))
                return _End(Deferred(position=position, epoch=epoch, until=until))
        if planned.prompt is not None:
            prompt = await self._loader.prompt(run, scope.entity)
            context.prompt, context.prompt_id = prompt.text, prompt.prompt_id
        # A process that was stopped wakes with steps that others have long done: they must not be paid for again.
        self.check_lease(run)
        failpoint("compute.before")
        if run.state.failures and planned.on_retry.switch_models:
            failpoint("model.switched")
        value = await computed(
            run,
            context,
            step_type,
            self._loader,
            lambda: compute(run, context, step_type, scope, self._gatherings.get(run.key)),
            timed_out=lambda: run.key in self._timed_out,
        )
        failpoint("compute.after")
        if isinstance(value, Wait):
            note = to_json(value.note, f"the note of {planned.step_key}")
            asked = raised_now(run, [*context.issues, *([value.issue] if value.issue else ())])
            await self._keep(run, context, raised_now(run, ()))
            event = suspension(run, now=self.lane_a.now(), within=value.within, result=note)
            return _End(event, issues=asked.opened(run, corrects=False))
        result = to_json(value, f"the result of {planned.step_key}")
        if context.recovered is not None:
            check_result(planned, step_type, value)
        # A result that was only fallen back on cost nothing: who retries wants the real one.
        kept_as = step_type if context.recovered is None else replace(step_type, paid=False)
        return await self._conclude(run, context, kept_as, result, stored=False)

    async def _conclude(
        self, run: StepRun, context: Context, step_type: StepType, result: str, *, stored: bool
    ) -> _End | None:
        """Ask a person, complete through lane A, or checkpoint what was paid for and hand the result to lane B."""
        position, epoch = run.step.position, run.state.epoch
        raised, wanted = raised_now(run, context.issues), Wanted(run.run, context.follow_ups)
        if stored:
            parts = await self._loader.parts(run)
            raised, wanted = raised_from_parts(parts, run), wanted_from_parts(parts, run)
        elif raised.blocks or run.step.processor:
            await self._keep(run, context, raised)
        kept = None if stored else result
        if raised.blocks:
            asked = suspension(run, now=self.lane_a.now(), within=None, result=kept, paid=step_type.paid)
            return _End(asked, issues=raised.opened(run, corrects=True))
        issues = raised.opened(run, corrects=False)
        if not run.step.processor:
            event = Completed(position=position, epoch=epoch, result=kept, paid=step_type.paid, error=context.recovered)
            return _End(event, await self._follow_ups(run, wanted), issues)
        processor = await choose_processor(self._registry, self._loader, run, result)
        if step_type.paid and not stored:
            checkpoint = Checkpointed(position=position, epoch=epoch, result=result)
            if not await self._record(run, checkpoint, len(result)):
                raise errors.LeaseLost(f"Step {run.step.step_key} was taken over; its result is dropped.")
            failpoint("checkpoint.written")
            stored = True
        follow_ups = await self._follow_ups(run, wanted)
        apply = Apply(
            run=run,
            processor=processor,
            result=result,
            stored=stored,
            follow_ups=follow_ups,
            issues=issues,
            recovered=context.recovered,
            done=lambda: self._inflight.remove(run),
            failed=lambda error: self._apply_failed(run, error, result),
        )
        self.lane_b.put(apply)
        return None

    async def _keep(self, run: StepRun, context: Context, raised: Raised) -> None:
        """What a compute wants done with its result is not computed again once that is kept, so it is kept before."""
        # From the second claim on also if there is nothing: an earlier compute may have left something behind.
        if context.follow_ups or run.state.epoch > 1:
            await self.store_part(run, part_name(run), follow_ups_to_part(context.follow_ups))
        if raised.issues or run.state.epoch > 1:
            await self.store_part(run, raised.part_name, raised.to_part())

    def _apply_failed(self, run: StepRun, error: BaseException, result: str) -> None:
        """Lane B could not apply (called on its thread): a failed attempt that keeps its result."""
        self._send(run, self._failure(run, error, result=result))

    async def _follow_ups(self, run: StepRun, wanted: Wanted) -> tuple[NewJob, ...]:
        if not wanted.jobs:
            return ()
        return await self._loader.read(
            run.job.org_id, lambda connection: resolve_follow_ups(partial(newest_template, connection), run, wanted)
        )

    def _send(
        self,
        run: StepRun,
        event: StepEvent,
        follow_ups: tuple[NewJob, ...] = (),
        issues: tuple[NewIssue, ...] = (),
    ) -> None:
        """Hand the end of an attempt to lane A; the slot is free as soon as the lane takes it up."""
        if isinstance(event, Failed):
            self._slots.count_failure(run.queue)
        report = Report(job_id=run.job.id, event=event, follow_ups=follow_ups, issues=issues)
        self.lane_a.put(Item(report, run.queue, lambda good: self._inflight.remove(run), _size(event)))

    async def _record(self, run: StepRun, event: StepEvent, size: int) -> bool:
        """Hand something to lane A and wait until it is durable; the step goes on."""
        future: asyncio.Future[bool] = self._loop.create_future()
        report = Report(job_id=run.job.id, event=event)
        self.lane_a.put(Item(report, None, self._resolver(future), size))
        return await future

    def _resolver(self, future: "asyncio.Future[bool]") -> Callable[[bool], None]:
        def set_result(good: bool) -> None:
            if not future.done():
                future.set_result(good)

        def resolve(good: bool) -> None:
            self._loop.call_soon_threadsafe(set_result, good)

        return resolve

    def _interrupted(self, run: StepRun) -> StepEvent:
        position, epoch = run.step.position, run.state.epoch
        if run.key in self._timed_out:
            error = errors.RetryableError(f"The step took longer than its time-out of {run.step.timeout:g} s.")
            return self._failure(run, error, code="timed_out")
        task = asyncio.current_task()
        if task is not None and not task.cancelling():
            # Nobody cancelled us: the step let the cancellation of something of its own escape.
            return self._failure(run, errors.RetryableError("The step raised CancelledError by itself."))
        return Released(position=position, epoch=epoch)

    def _failure(
        self, run: StepRun, error: BaseException, *, code: str | None = None, result: str | None = None
    ) -> StepEvent:
        return failure(run, error, now=self.lane_a.now(), jitter=random(), code=code, result=result)

    # `context.Services`

    async def load_parts(self, run: StepRun) -> dict[str, object]:
        return await self._loader.parts(run)

    def check_lease(self, run: StepRun) -> None:
        if not self._lease.covers(run.state.worker):
            raise errors.LeaseLost(f"Step {run.step.step_key} may have been taken over; it ends here.")

    async def store_part(self, run: StepRun, name: str, value: str) -> None:
        future: asyncio.Future[bool] = self._loop.create_future()
        part = Part(job_id=run.job.id, position=run.step.position, epoch=run.state.epoch, name=name, value=value)
        self.lane_a.put(Item(part, None, self._resolver(future), len(value) + 100))
        if not await future:
            raise errors.LeaseLost(f"Step {run.step.step_key} was taken over; it ends here.")
        failpoint("part.recorded")

    async def load_resolutions(self, run: StepRun) -> Sequence[Resolution]:
        return await self._loader.resolutions(run)

    async def run_child(self, function: Callable[..., Any], arguments: tuple[object, ...], timeout: float) -> Any:
        return await self._children.run(function, arguments, timeout)

    async def generate(self, run: StepRun, request: Request, caller: Caller) -> Reply:
        if self._models is None:
            raise errors.PermanentError("This worker was started without a model gateway, so no step can ask a model.")
        return await self._models.generate(request, caller, partial(self.check_lease, run))


def _size(event: StepEvent) -> int:
    """About how many bytes the report adds to its batch."""
    result = getattr(event, "result", None)
    return 200 + (len(result) if result else 0)
