"""A real worker on each database: items are kept over failures, and strategies decide what becomes of a failure."""

import asyncio
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from docmill.engine.batch import Batch
from docmill.engine.bell import SocketBell
from docmill.engine.worker import Worker, WorkerSettings
from docmill.model.errors import RetryableError
from docmill.plugin import ApplyContext, Fallback, GiveUp, Registry, Retry, StepContext, processor, step
from docmill.services.job_views import ItemsView
from docmill.services.jobs import Jobs, JobView
from docmill.steps import finish
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.testing.waiting import until
from docmill.testing.world import World

READ: list[str] = []
"""Documents that were read, in this process."""
APPLIED: list[object] = []


@step("read one", kind="rule")
async def read_one(ctx: StepContext, item: str) -> dict[str, object]:
    """Reads a document; the second one only at the second attempt."""
    READ.append(item)
    if item == "document:2" and ctx.attempt == 1:
        raise RetryableError("Not yet.", retry_after=0)
    return {"text": item.upper()}


def decide(ctx: StepContext, error: Exception) -> Any:
    """As the job's metadata says."""
    wanted = ctx.metadata["answer"]
    if wanted == "fallback":
        return Fallback({"total": 0})
    if wanted == "retry":
        return Retry(after=0, model={"model": "small"})
    return GiveUp()


@step("shaky", kind="ai", recoveries={"decide": decide}, recovery="decide")
async def shaky(ctx: StepContext) -> dict[str, object]:
    """Works only with the small model."""
    if ctx.model.get("model") != "small":
        raise RetryableError("The model rambles.")
    return {"model": ctx.model["model"], "attempt": ctx.attempt}


@processor("tests", "note")
def note(ctx: ApplyContext, result: object) -> None:
    """Remembers what was applied."""
    APPLIED.append(result)


@contextmanager
def serving(world: World) -> Iterator[Jobs]:
    registry = Registry()
    for module in (sys.modules[__name__], finish):
        registry.add_module(module)
    worker = Worker(world.database, registry, WorkerSettings(run_dir=world.run_dir, drain_seconds=0.2))
    with (
        closing(SocketBell(world.run_dir)) as bell,
        closing(Jobs(world.database, bell)) as jobs,
        ThreadPoolExecutor(1) as thread,
    ):
        end = thread.submit(lambda: asyncio.run(worker.run()))
        try:
            yield jobs
        finally:
            worker.stop()
            end.result(30)


def ended(world: World, fields: str, **metadata: object) -> JobView:
    """A job of one step, run to its end by a worker."""
    text = f"""
name: one
processable_type: document
service_name: tests
steps:
  - {{step_key: a, backoff: 0, max_attempts: 3, {fields}}}
  - {{step_key: finish, type: FinishProcessing}}
"""
    plan = compile_template(text, catalogue=Catalogue.permissive(), source="one").plan
    job = replace(world.new_job(plan), metadata=metadata)
    world.commit(Batch(submissions=[job]))
    with serving(world) as jobs:
        until(lambda: world.job(job.id).finished_at is not None, 60.0, what="the end of the job")
        return jobs.get(job.id)


def test_many_documents_in_one_job_and_a_retry_repeats_only_those_that_failed(world: World) -> None:
    READ.clear()
    documents = [f"document:{number}" for number in range(1, 6)]
    view = ended(world, "type: read one, for_each: metadata.documents, parallel: 2", documents=documents)
    read = view.steps[0]
    assert (read.status, read.attempt) == ("COMPLETED", 2)
    assert sorted(READ) == sorted([*documents, "document:2"])
    assert read.items == ItemsView(total=5, completed=5)
    assert isinstance(read.result, dict)
    assert (read.result["completed"], read.result["failed"]) == (5, 0)
    assert [item["result"]["text"] for item in read.result["items"]] == [name.upper() for name in documents]


def test_a_fallback_completes_the_step_and_the_failure_stays_visible(world: World) -> None:
    APPLIED.clear()
    view = ended(world, "type: shaky, processor_method: note", answer="fallback")
    step = view.steps[0]
    assert (view.summary.status, step.status, step.result) == ("COMPLETED", "COMPLETED", {"total": 0})
    assert APPLIED == [{"total": 0}]
    assert step.error is not None
    assert (step.error["code"], step.error["recovery"]) == ("retryable", {"strategy": "decide", "outcome": "fallback"})
    told = [event.data["errors"]["a"] for event in world.events(view.summary.id) if "errors" in event.data]
    assert told == [step.error]
    assert not world.steps(view.summary.id)["a"].checkpointed, "it cost nothing, so a retry computes it"


def test_a_fallback_without_a_processor_is_marked_as_well(world: World) -> None:
    view = ended(world, "type: shaky", answer="fallback")
    assert view.steps[0].status == "COMPLETED"
    assert view.steps[0].error is not None


def test_a_retry_has_the_model_that_the_strategy_asked_for(world: World) -> None:
    view = ended(world, "type: shaky", answer="retry")
    assert view.steps[0].result == {"model": "small", "attempt": 2}
    assert view.steps[0].error is None


def test_giving_up_leaves_the_other_attempts_unused(world: World) -> None:
    view = ended(world, "type: shaky", answer="give up")
    assert (view.summary.status, view.steps[0].attempt) == ("FAILED", 1)
