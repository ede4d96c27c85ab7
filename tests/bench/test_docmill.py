"""Docmill's side of the benchmark runs the workflow that the peers run, through the same door as production."""

from pathlib import Path

import pytest

from bench import flow
from bench.docmill import templates
from bench.docmill.peer import VARIANTS
from bench.docmill.system import ALL, SQLITE, finished_jobs
from bench.measure import ROOT
from bench.plan import FULL, QUICK
from bench.processes import WorkerGroup
from bench.settings import Kind, Settings
from docmill.bootstrap import load_registry
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.templates.plan import Plan
from docmill.testing.waiting import until

FLOWS = (templates.FLOW, templates.FLOW_WAITING, templates.FLOW_PROCESSED)


def plan_of(name: str) -> Plan:
    return compile_template(templates.SOURCES[name], catalogue=Catalogue.permissive(), source=name).plan


@pytest.mark.parametrize("name", FLOWS)
def test_template_is_the_workflow_of_the_peers(name: str) -> None:
    plan = plan_of(name)
    keys = [step.step_key for step in plan.steps]
    assert tuple(keys) == flow.STEPS
    needs = {step.step_key: {keys[position] for position in step.depends_on} for step in plan.steps}
    for step in flow.STEPS:
        for successor in flow.successors(step):
            assert needs[successor] == {step}
    assert needs[flow.LAST] >= flow.JOINING
    assert plan.steps[-1].finish


def test_processed_workflow_has_a_processor_on_every_step() -> None:
    assert all(step.processor for step in plan_of(templates.FLOW_PROCESSED).steps)
    assert not any(step.processor for step in plan_of(templates.FLOW).steps)


def test_templates_name_only_what_the_plug_in_declares() -> None:
    registry = load_registry(("bench.docmill.plugin",))
    for name in templates.SOURCES:
        assert {step.step_type for step in plan_of(name).steps} <= registry.steps.keys()
    assert ("bench", "store") in registry.processors


def test_every_system_has_a_place_in_both_plans() -> None:
    for system in ALL:
        assert system.variant in VARIANTS
        assert system.name in QUICK.sizes
        assert system.name in FULL.sizes


def test_results_of_a_worker_process_are_counted_from_the_store(tmp_path: Path) -> None:
    log = tmp_path / "events.log"
    folder = tmp_path / "home"
    settings = Settings(
        database_url="", redis_url="", event_log=str(log), folder=str(folder), processes=1, concurrency=10
    )
    SQLITE.prepare(settings)
    assert SQLITE.submit(settings, Kind.FLOW, 3) > 0
    assert SQLITE.stored(settings, Kind.FLOW) == 0
    commands = [SQLITE.worker_command(0)]
    with WorkerGroup(commands, environment=settings.environment(), cwd=ROOT, log=tmp_path / "worker.log") as workers:

        def finished() -> bool:
            workers.check()
            return finished_jobs(SQLITE.url(settings)) == 3

        until(finished, timeout=60)
    assert SQLITE.stored(settings, Kind.FLOW) == 3 * len(flow.STEPS)
    # One start and five ends each: the finish step is Docmill's own.
    assert len(log.read_text().splitlines()) == 3 * len(flow.STEPS)
