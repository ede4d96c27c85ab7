"""A step whose result follows from what its job holds ends in the transaction that makes it ready."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import orjson
import pytest

from docmill.engine.at_once import StepsAtOnce
from docmill.engine.batch import Batch, NewBatch, Outcome, Report, StepRun
from docmill.engine.context import Context
from docmill.engine.events import Completed, Failed
from docmill.engine.known import KnownJobs
from docmill.engine.pools import PoolSettings, Slots
from docmill.engine.store import Store
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.model.tokens import Tokens
from docmill.plugin import Issue, PluginInvalid, Registry, StepContext, StepType, declared, step
from docmill.testing.samples import Draft, make_plan
from docmill.testing.world import ANN, World, lease


def at_once(function: Callable[..., Any], slots: Slots | None = None) -> StepsAtOnce:
    """What a worker asks that knows this type of step and no other."""
    registry = Registry()
    registry.add(declared(function, StepType))
    served = slots or Slots([PoolSettings(name="system")])
    return StepsAtOnce(registry, served, lambda run: Context(run, None, Tokens(b"")))  # type: ignore[arg-type]


@step("echo", kind="system", at_once=True)
def total(ctx: StepContext, results: Mapping[str, Any]) -> dict[str, object]:
    return {"total": results["a"]}


def reported(world: World, run: StepRun, ending: StepsAtOnce, result: str = "1") -> Outcome:
    report = Report(job_id=run.job.id, event=Completed(**lease(run), result=result))
    return world.commit(Batch(reports=[report], worker=ANN, reserve=lambda queue: True, at_once=ending))


def begun(world: World, *drafts: Draft) -> StepRun:
    """The first step of a new job, claimed; its finish step is done at once as well."""
    world.submit(make_plan([Draft(key="a"), *drafts], finish=Draft(key="finish")))
    return world.claim_one()


@pytest.mark.parametrize("remembers", [False, True])
def test_it_is_done_with_the_results_of_its_job_and_what_follows_is_claimed(world: World, remembers: bool) -> None:
    if remembers:
        world.store = Store(world.new_store().session, world.plans, KnownJobs())
    run = begun(world, Draft(key="b", group=2), Draft(key="c", group=3, pool="ai"))
    outcome = reported(world, run, at_once(total), "41")
    (started,) = outcome.started
    assert started.step.step_key == "c"
    rows = world.steps(run.job.id)
    # As a worker would have done it: claimed once, under a lease of its own, begun and ended.
    assert (rows["b"].status, rows["b"].epoch, rows["b"].result) == ("COMPLETED", 1, {"total": 41})
    assert rows["b"].started_at is not None
    assert rows["b"].started_at == rows["b"].finished_at
    if remembers:
        assert started.results is not None
        assert {key: orjson.loads(text or "") for key, text in started.results.items()} == {
            "a": 41,
            "b": {"total": 41},
        }


def test_the_job_may_come_to_its_end_with_it(world: World) -> None:
    run = begun(world, Draft(key="b", group=2))
    outcome = reported(world, run, at_once(total))
    assert (outcome.started, outcome.finished) == ((), (run.job.id,))


def test_a_job_that_ends_with_it_makes_room_for_the_next_of_its_batch(world: World) -> None:
    plan = make_plan([Draft(key="a")], finish=Draft(key="finish"))
    batch = NewBatch(id=new_id(), org_id=DEFAULT_ORG, max_active=1)
    jobs = [replace(world.new_job(plan), batch_id=batch.id) for _ in range(2)]
    world.commit(Batch(batches=[batch], submissions=jobs))
    run = world.claim_one()
    outcome = reported(world, run, at_once(total))
    assert outcome.finished == (run.job.id,)
    (next_run,) = outcome.started
    assert (next_run.step.step_key, next_run.job.id != run.job.id) == ("a", True)
    assert reported(world, next_run, at_once(total)).finished == (next_run.job.id,)


def test_its_condition_is_looked_at_before(world: World) -> None:
    run = begun(world, Draft(key="b", group=2, condition="results.a == 2"), Draft(key="c", group=3))
    reported(world, run, at_once(total))
    rows = world.steps(run.job.id)
    assert (rows["b"].status, rows["c"].result) == ("SKIPPED", {"total": 1})


@step("echo", kind="system", at_once=True)
def broken(ctx: StepContext) -> None:
    raise RuntimeError("out of order")


@step("echo", kind="system", at_once=True)
def asking(ctx: StepContext) -> None:
    ctx.issue(Issue(code="look", title="Look at this"))


@step("echo", kind="system", at_once=True)
def of_its_entity(ctx: StepContext, entity: Mapping[str, Any]) -> None:
    raise AssertionError("its entity would have to be loaded first")


@pytest.mark.parametrize("function", [broken, asking, of_its_entity])
def test_what_goes_wrong_or_needs_more_is_left_to_an_attempt_of_its_own(
    world: World, function: Callable[..., Any]
) -> None:
    outcome = reported(world, begun(world, Draft(key="b", group=2)), at_once(function))
    assert [(run.step.step_key, run.on_the_spot) for run in outcome.started] == [("b", True)]


def draining() -> Slots:
    slots = Slots([PoolSettings(name="system")])
    slots.close()
    return slots


@pytest.mark.parametrize("slots", [draining(), Slots([PoolSettings(name="ai")])], ids=["drains", "serves others"])
def test_a_worker_that_drains_or_does_not_serve_its_pool_leaves_it_alone(world: World, slots: Slots) -> None:
    outcome = reported(world, begun(world, Draft(key="b", group=2)), at_once(total, slots))
    assert [run.step.step_key for run in outcome.started] == ["b"]


def test_one_that_failed_before_is_tried_as_any_other(world: World) -> None:
    run = begun(world, Draft(key="b", group=2))
    (started,) = reported(world, run, at_once(broken)).started
    failed = Report(job_id=run.job.id, event=Failed(**lease(started), error='{"code": "x"}', retry_after=0))
    outcome = world.commit(Batch(reports=[failed], worker=ANN, reserve=lambda queue: True, at_once=at_once(total)))
    assert outcome.finished == ()


def test_only_plain_functions_that_cost_nothing_can_be_declared_so() -> None:
    def plain(ctx: StepContext) -> None: ...

    async def waiting(ctx: StepContext) -> None: ...

    with pytest.raises(PluginInvalid, match="plain `def`"):
        step("x", at_once=True)(waiting)
    with pytest.raises(PluginInvalid, match="rule or system"):
        step("x", kind="ai", at_once=True)(plain)
