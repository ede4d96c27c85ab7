"""Steps get the text of their prompt: as it is at this attempt, filled in with the entity as it is now."""

import asyncio
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import delete

import docmill.steps.finish
from docmill.db.tables import prompts as table
from docmill.engine.lease import LeaseSettings
from docmill.engine.loading import PromptResolver
from docmill.engine.worker import Worker, WorkerSettings
from docmill.model.ids import DEFAULT_ORG
from docmill.plugin import Database as PluginDatabase
from docmill.plugin import Registry, RetryableError, StepContext, entity_loader, step
from docmill.prompts.store import Prompts, resolve
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.templates.plan import Plan
from docmill.testing.waiting import until
from docmill.testing.world import OTHER_ORG, World

LEASE = LeaseSettings(duration=60.0, heartbeat=0.2, sweep=0.1)
SOURCE = """
name: asking
processable_type: document
steps:
  - {step_key: ask, type: STEP, prompt: PROMPT, CONDITION}
  - {step_key: finish, type: FinishProcessing}
"""

Asked = list[tuple[str | None, str | None]]
_asked: defaultdict[str, Asked] = defaultdict(list)
_meanwhile: dict[str, Callable[[], object]] = {}
"""What happens, by job, while its first attempt runs."""


@step("asks", kind="system")
def asks(ctx: StepContext) -> dict[str, object]:
    """Remembers what it was to ask; fails as long as something happens meanwhile."""
    _asked[ctx.job_id].append((ctx.prompt, ctx.prompt_id))
    if ctx.attempt == 1 and ctx.job_id in _meanwhile:
        _meanwhile.pop(ctx.job_id)()
        raise RetryableError("Once more.", retry_after=0.0)
    return {"prompt": ctx.prompt}


@entity_loader("document")
def load(db: PluginDatabase, entity_id: str) -> Mapping[str, object]:
    """A document that knows its id."""
    return {"code": f"D-{entity_id[-4:]}"}


def asking(prompt: str, *, step_type: str = "asks", condition: str = "optional: false") -> Plan:
    source = SOURCE.replace("STEP", step_type).replace("PROMPT", prompt).replace("CONDITION", condition)
    return compile_template(source, catalogue=Catalogue.permissive(), source="asking").plan


@pytest.fixture
def prompts(world: World) -> Prompts:
    return Prompts(world.database)


@contextmanager
def serving(world: World, resolver: PromptResolver | None = resolve) -> Iterator[None]:
    registry = Registry()
    for module in (sys.modules[__name__], docmill.steps.finish):
        registry.add_module(module)
    settings = WorkerSettings(run_dir=world.run_dir, lease=LEASE, drain_seconds=0.2)
    worker = Worker(world.database, registry, settings, resolver)
    with ThreadPoolExecutor(1) as thread:
        end = thread.submit(lambda: asyncio.run(worker.run()))
        try:
            yield
        finally:
            worker.stop()
            end.result(60)


def ended(world: World, *job_ids: str) -> list[str]:
    """How the jobs ended, once they all have."""
    until(lambda: all(world.job(job_id).finished_at for job_id in job_ids), 60.0, what="the end of the jobs")
    return [world.job(job_id).status for job_id in job_ids]


def error(world: World, job_id: str) -> Any:
    return world.steps(job_id)["ask"].error


def test_a_step_gets_its_prompt_by_name_or_by_id_filled_in(world: World, prompts: Prompts) -> None:
    old = prompts.put("Ask", "Old: {!entity.code}").prompt
    new = prompts.put("Ask", "New {!entityType} {!entityId}: {!entity.code}").prompt
    by_name, by_id = world.submit(asking("Ask")), world.submit(asking(old.id))
    with serving(world):
        assert ended(world, by_name, by_id) == ["COMPLETED", "COMPLETED"]
    assert _asked[by_name] == [(f"New document {by_name}: D-{by_name[-4:]}", new.id)]
    assert _asked[by_id] == [(f"Old: D-{by_id[-4:]}", old.id)]


def test_each_organisations_step_gets_its_own_prompt_before_the_shared_one(world: World, prompts: Prompts) -> None:
    prompts.shared.put("Ask", "shared")
    Prompts(world.database, OTHER_ORG).put("Ask", "theirs")
    mine, theirs = (world.submit(asking("Ask"), org_id=org_id) for org_id in (DEFAULT_ORG, OTHER_ORG))
    with serving(world):
        assert ended(world, mine, theirs) == ["COMPLETED", "COMPLETED"]
    assert [_asked[job_id][0][0] for job_id in (mine, theirs)] == ["shared", "theirs"]


def test_a_prompt_corrected_between_two_attempts_is_used_by_the_second(world: World, prompts: Prompts) -> None:
    first = prompts.put("Ask", "first").prompt
    job_id, pinned = world.submit(asking("Ask")), world.submit(asking(first.id))
    _meanwhile[job_id] = lambda: prompts.put("Ask", "second")
    _meanwhile[pinned] = lambda: until(lambda: len(_asked[job_id]) == 2, 60.0, what="the other's second attempt")
    with serving(world):
        assert ended(world, job_id, pinned) == ["COMPLETED", "COMPLETED"]
    assert _asked[job_id] == [("first", first.id), ("second", prompts.get("Ask").id)]
    assert _asked[pinned] == [("first", first.id), ("first", first.id)]


def test_a_prompt_that_vanished_fails_the_step_at_once(world: World, prompts: Prompts) -> None:
    prompts.put("Ask", "first")
    job_id, unknown = world.submit(asking("Ask")), world.submit(asking("Asks"))

    def vanish() -> None:
        with world.database.write() as connection:
            connection.execute(delete(table))

    _meanwhile[job_id] = vanish
    with serving(world):
        assert ended(world, job_id, unknown) == ["FAILED", "FAILED"]
    assert (error(world, job_id)["code"], error(world, job_id)["attempt"]) == ("unknown_prompt", 2)
    assert "There is no prompt 'Ask'" in error(world, job_id)["message"]
    assert (error(world, unknown)["code"], error(world, unknown)["attempt"]) == ("unknown_prompt", 1)
    assert len(_asked[job_id]) == 1
    assert _asked[unknown] == []


def test_the_prompt_of_another_organisation_fails_the_step(world: World, prompts: Prompts) -> None:
    theirs = Prompts(world.database, OTHER_ORG).put("Ask", "theirs").prompt
    job_id = world.submit(asking(theirs.id))
    with serving(world):
        assert ended(world, job_id) == ["FAILED"]
    assert error(world, job_id)["code"] == "unknown_prompt"


def test_a_step_skipped_by_its_condition_needs_no_prompt(world: World) -> None:
    job_id = world.submit(asking("Nowhere", condition="condition: entity.code == 'x'"))
    with serving(world):
        assert ended(world, job_id) == ["COMPLETED"]
    assert world.statuses(job_id)["ask"] == "SKIPPED"


def test_a_step_without_a_prompt_asks_nobody_for_one(world: World) -> None:
    def refuse(*arguments: object, **more: object) -> Any:
        raise AssertionError("asked for a prompt")

    job_id = world.submit(asking("null"))
    with serving(world, refuse):
        assert ended(world, job_id) == ["COMPLETED"]
    assert _asked[job_id] == [(None, None)]


def test_a_worker_made_without_prompts_says_so(world: World) -> None:
    job_id = world.submit(asking("Ask"))
    with serving(world, None):
        assert ended(world, job_id) == ["FAILED"]
    assert "made without prompts" in error(world, job_id)["message"]
