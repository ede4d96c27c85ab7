"""External steps from end to end: a worker sends execution groups to a stand-in hub, which answers by callback."""

import asyncio
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

import docmill.steps.finish
from docmill.engine.batch import Batch, NewJob
from docmill.engine.bell import Bell, open_bell
from docmill.engine.lease import LeaseSettings
from docmill.engine.pools import PoolSettings
from docmill.engine.worker import Worker, WorkerSettings, default_pools
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.plugin import ApplyContext, Database, Registry, StepContext, entity_loader, processor, step
from docmill.prompts.store import Prompts, resolve
from docmill.services.callbacks import CallbackAnswer, Callbacks
from docmill.services.jobs import Jobs
from docmill.services.templates import Templates
from docmill.steps.external import Executor, external_call
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.testing.hub import Callback, Dispatch, Hub, Manners, Script, completed, failed
from docmill.testing.waiting import until
from docmill.testing.world import World

LEASE = LeaseSettings(duration=60.0, heartbeat=0.2, sweep=0.1)
KEY = b"a key that is long enough for both"


@entity_loader("document")
def load(db: Database, entity_id: str) -> dict[str, object]:
    """What the notes say of the document."""
    rows = db.execute("select note from notes where id = :id order by note", {"id": entity_id})
    return {"id": entity_id, "notes": [row.note for row in rows]}


@processor("tests", "note")
def note(ctx: ApplyContext, result: Mapping[str, Any]) -> None:
    """Keeps the model's words."""
    ctx.db.execute("insert into notes (id, note) values (:id, :note)", {"id": ctx.entity_id, "note": result["message"]})


@step("echo")
async def echo(ctx: StepContext, input: Mapping[str, object]) -> Mapping[str, object]:
    """Gives back what it was given."""
    return input


@dataclass
class Bench:
    """A worker, a hub, and the short way to give them work."""

    world: World
    hub: Hub
    bell: Bell

    def submit(self, template: str, **metadata: object) -> str:
        compiled = compile_template(template, catalogue=Catalogue.permissive())
        template_id = Templates(self.world.database).register(compiled).id
        job = NewJob(
            id=new_id(),
            template_id=template_id,
            org_id=DEFAULT_ORG,
            entity_type="document",
            entity_id=new_id(),
            metadata=metadata,
            file_type="application/pdf",
        )
        self.world.store.commit(Batch(submissions=[job]))
        self.bell.ring(["external", "rule"])
        return job.id

    def finish(self, job_id: str) -> str:
        """Wait for its end; its status."""
        until(lambda: self.world.job(job_id).finished_at, 60.0, what="the job to end")
        return str(self.world.job(job_id).status)

    def dispatched(self, count: int) -> list[Dispatch]:
        """The messages, once there are so many."""
        until(lambda: len(self.hub.dispatches()) >= count, 60.0, what=f"{count} messages")
        return self.hub.dispatches()


@contextmanager
def serving(
    world: World, tmp_path: Path, *, script: Script | None = None, capacity: int = 10, key: bytes | None = KEY
) -> Iterator[Bench]:
    """A worker in a thread of its own, with a hub to talk to."""
    with world.database.write() as connection:
        connection.execute(text("create table notes (id text not null, note text not null)"))
    bell = open_bell(world.database, world.run_dir)
    callbacks = Callbacks(world.database, bell, {"hub": key})
    hub = Hub(
        tmp_path / "hub",
        deliver=lambda body, headers: callbacks.receive(body, now=datetime.now(UTC), headers=headers),
        script=script,
        key=key,
    )
    registry = Registry()
    for module in (sys.modules[__name__], docmill.steps.finish):
        registry.add_module(module)
    registry.add(external_call({"hub": Executor(url=hub.url, key=key, timeout=5.0)}, lambda: datetime.now(UTC)))
    pools = [pool for pool in default_pools() if pool.name != "external"]
    pools.append(PoolSettings(name="external", capacity=capacity))
    settings = WorkerSettings(run_dir=world.run_dir, lease=LEASE, drain_seconds=0.2, pools=pools)
    worker = Worker(world.database, registry, settings, resolve)
    with ThreadPoolExecutor(1) as thread:
        end = thread.submit(lambda: asyncio.run(worker.run()))
        try:
            worker.ready.wait(30.0)
            yield Bench(world, hub, bell)
        finally:
            worker.stop()
            end.result(60.0)
            hub.close()
            callbacks.close()
            bell.close()


def template(*steps: str, name: str = "outside") -> str:
    lines = "".join(f"  - {{{line}}}\n" for line in steps)
    return f"""
name: {name}
processable_type: document
task_type: DOCUMENT_PROCESS
service_name: tests
steps:
{lines}  - {{step_key: finish, type: FinishProcessing}}
"""


def call(key: str, more: str = "") -> str:
    return f"step_key: {key}, type: external.call, kind: external, executor: hub, backoff: 0.01{more}"


def keys(dispatch: Dispatch) -> list[str]:
    return [step["stepKey"] for step in dispatch.steps]


def test_a_group_goes_out_in_one_message_that_holds_exactly_its_steps(world: World, tmp_path: Path) -> None:
    with serving(world, tmp_path) as bench:
        job_id = bench.submit(
            template(
                call("ocr", ", group: 1, model_config: {model: fast, max_tokens: 100}, answer_within: 1h"),
                call("classify", ", group: 1, input: {pages: metadata.pages}, display_name: Classify it"),
                call("budget", ", group: 2"),
                "step_key: plain, type: echo, group: 2",
            ),
            pages=3,
        )
        assert bench.finish(job_id) == "COMPLETED"
        first, second = bench.hub.dispatches()
    job = world.job(job_id)
    assert (first.message["type"], first.message["entityId"]) == ("DOCUMENT_PROCESS", job.entity_id)
    assert first.message["metadata"]["jobId"] == job_id
    assert (first.message["metadata"]["job"], first.message["metadata"]["fileType"]) == (
        {"pages": 3},
        "application/pdf",
    )
    assert [first.message["metadata"]["executionGroup"], second.message["metadata"]["executionGroup"]] == [1, 2]
    assert (keys(first), keys(second)) == (["ocr", "classify"], ["budget"])
    ocr, classify = first.steps
    assert ocr["model"] == {"model": "fast", "max_tokens": 100}
    assert (classify["displayName"], classify["input"]) == ("Classify it", {"pages": 3})
    assert (ocr["attempt"], ocr["token"] != classify["token"]) == (1, True)
    within = datetime.fromisoformat(ocr["deadline"]) - datetime.now(UTC)
    assert timedelta(minutes=58) < within <= timedelta(hours=1)


def test_each_group_sees_what_the_one_before_it_wrote(world: World, tmp_path: Path) -> None:
    with serving(world, tmp_path) as bench:
        job_id = bench.submit(
            template(
                call("ocr", ", group: 1, processor_method: note"),
                call("classify", ", group: 2, processor_method: note"),
                call("match", ", group: 3"),
            )
        )
        assert bench.finish(job_id) == "COMPLETED"
        notes = [dispatch.message["entity"]["notes"] for dispatch in bench.hub.dispatches()]
    assert notes == [[], ["done: ocr"], ["done: classify", "done: ocr"]]


def test_at_first_only_the_first_group_is_sent_and_the_job_waits_for_it(world: World, tmp_path: Path) -> None:
    with serving(world, tmp_path, script=Manners(["silent"])) as bench:
        job_id = bench.submit(template(call("ocr", ", group: 1"), call("classify", ", group: 2")))
        until(lambda: world.job(job_id).status == "WAITING", 60.0, what="the job to wait")
        assert [keys(dispatch) for dispatch in bench.hub.dispatches()] == [["ocr"]]
    assert world.statuses(job_id) == {"ocr": "WAITING"}


def test_the_example_flow_of_four_groups(world: World, tmp_path: Path) -> None:
    """OCR, classification, extraction, then budget and vendor in parallel; each group is sent with the fresh entity."""
    groups = [["ocr"], ["classification"], ["extraction"], ["budget", "vendor"]]
    steps = [
        call(key, f", group: {number}, processor_method: note")
        for number, group in enumerate(groups, 1)
        for key in group
    ]
    with serving(world, tmp_path) as bench:
        job_id = bench.submit(template(*steps))
        assert bench.finish(job_id) == "COMPLETED"
        dispatches = bench.hub.dispatches()
    assert [keys(dispatch) for dispatch in dispatches] == groups, "one message per group, and none after the last"
    saw = [dispatch.message["entity"]["notes"] for dispatch in dispatches]
    assert saw == [
        [],
        ["done: ocr"],
        ["done: classification", "done: ocr"],
        ["done: classification", "done: extraction", "done: ocr"],
    ]


def test_prompts_are_sent_as_text_filled_in_with_the_fresh_entity(world: World, tmp_path: Path) -> None:
    Prompts(world.database).put("match", "Known so far: {!entity.notes}")
    with serving(world, tmp_path) as bench:
        job_id = bench.submit(
            template(call("ocr", ", group: 1, processor_method: note"), call("match", ", group: 2, prompt: match"))
        )
        assert bench.finish(job_id) == "COMPLETED"
        first, second = bench.hub.dispatches()
    assert first.steps[0]["prompt"] is None
    assert "done: ocr" in second.steps[0]["prompt"]


def test_a_group_larger_than_its_pool_is_not_split(world: World, tmp_path: Path) -> None:
    steps = [call(f"s{n}", ", group: 2") for n in range(7)]
    with serving(world, tmp_path, capacity=2) as bench:
        jobs = [
            bench.submit(template("step_key: before, type: echo, group: 1", *steps, name=f"wide-{n}")) for n in range(3)
        ]
        assert [bench.finish(job_id) for job_id in jobs] == ["COMPLETED"] * 3
        dispatches = bench.hub.dispatches()
    assert [keys(dispatch) for dispatch in dispatches] == [[f"s{n}" for n in range(7)]] * 3


def test_a_skipped_step_is_not_sent_and_holds_up_nobody(world: World, tmp_path: Path) -> None:
    with serving(world, tmp_path) as bench:
        job_id = bench.submit(
            template(
                call("a", ", group: 1"), call("b", ", group: 1, condition: metadata.never"), call("c", ", group: 1")
            )
        )
        assert bench.finish(job_id) == "COMPLETED"
        (dispatch,) = bench.hub.dispatches()
    assert keys(dispatch) == ["a", "c"]
    assert world.statuses(job_id)["b"] == "SKIPPED"


def test_a_retry_goes_out_alone_with_a_new_token(world: World, tmp_path: Path) -> None:
    def script(message: Mapping[str, Any]) -> list[Callback]:
        sent = message["metadata"]["steps"]
        moody = [one["stepKey"] == "b" and one["attempt"] == 1 for one in sent]
        return [(failed if bad else completed)(message, one) for one, bad in zip(sent, moody, strict=True)]

    retry = ", group: 1, model_config: {model: small}, on_retry_action: {switch_models: [large]}"
    with serving(world, tmp_path, script=script) as bench:
        job_id = bench.submit(template(call("a", ", group: 1"), call("b", retry)))
        assert bench.finish(job_id) == "COMPLETED"
        first, second = bench.hub.dispatches()
    assert (keys(first), keys(second)) == (["a", "b"], ["b"])
    assert (first.steps[1]["attempt"], second.steps[0]["attempt"]) == (1, 2)
    assert second.steps[0]["model"] == {"model": "large"}
    assert first.steps[1]["token"] != second.steps[0]["token"]
    assert first.steps[1]["effectKey"] == second.steps[0]["effectKey"]
    assert first.id != second.id


def test_without_an_answer_by_the_deadline_the_step_is_sent_again(world: World, tmp_path: Path) -> None:
    with serving(world, tmp_path, script=Manners(["late"])) as bench:
        job_id = bench.submit(template(call("slow", ", answer_within: 200ms")))
        first, second = bench.dispatched(2)[:2]
        until(lambda: len(bench.hub.answers) >= 1, 60.0)
        answer = bench.hub.answers[0]
        assert isinstance(answer, CallbackAnswer)
        assert answer.code == "token_spent"
    assert first.steps[0]["token"] != second.steps[0]["token"]
    assert world.steps(job_id)["slow"].failures >= 1


@pytest.mark.parametrize("words", [["doubled", "shuffled"], ["foreign", "progress", "doubled"], ["failed", "shuffled"]])
def test_whatever_the_manners_of_the_hub_each_step_is_answered_once(
    world: World, tmp_path: Path, words: list[str]
) -> None:
    with serving(world, tmp_path, script=Manners(words)) as bench:
        steps = [call(f"s{n}", ", group: 1, processor_method: note") for n in range(4)]
        job_id = bench.submit(template(*steps))
        assert bench.finish(job_id) == "COMPLETED"
    with world.looking() as connection:
        notes = [row.note for row in connection.execute(text("select note from notes order by note"))]
        applied = connection.execute(text("select count(*) from processing_callbacks where outcome = 'applied'"))
        assert applied.scalar_one() == (8 if "failed" in words else 4)
    assert notes == [f"done: s{n}" for n in range(4)]


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (429, {"retry-after": "0"}),
        (503, {"retry-after": format_datetime(datetime.now(UTC), usegmt=True)}),
        (500, {}),
        (408, {"retry-after": "nonsense"}),
    ],
)
def test_a_hub_that_is_busy_is_asked_again(world: World, tmp_path: Path, status: int, headers: dict[str, str]) -> None:
    with serving(world, tmp_path) as bench:
        bench.hub.refusals.append((status, headers))
        job_id = bench.submit(template(call("a"), call("b")))
        assert bench.finish(job_id) == "COMPLETED"
    assert [row.failures for key, row in world.steps(job_id).items() if key != "finish"] == [1, 1]


@pytest.mark.parametrize("status", [400, 404, 302])
def test_a_hub_that_refuses_fails_the_step_for_good(world: World, tmp_path: Path, status: int) -> None:
    with serving(world, tmp_path) as bench:
        bench.hub.refusals.append((status, {"location": "http://elsewhere/"}))
        job_id = bench.submit(template(call("a")))
        assert bench.finish(job_id) == "FAILED"
        assert bench.hub.dispatches() == []
    error = world.steps(job_id)["a"].error
    assert (error["code"], str(status) in error["message"]) == ("permanent", True)


def test_a_message_with_a_wrong_signature_is_not_taken(world: World, tmp_path: Path) -> None:
    with serving(world, tmp_path) as bench:
        bench.hub._key = b"another key, as long as the first one"
        job_id = bench.submit(template(call("a")))
        assert bench.finish(job_id) == "FAILED"
        assert bench.hub.dispatches() == []


def test_an_executor_that_the_settings_do_not_know_is_said_so(world: World, tmp_path: Path) -> None:
    with serving(world, tmp_path) as bench:
        job_id = bench.submit(template(call("a").replace("executor: hub", "executor: nobody")))
        assert bench.finish(job_id) == "FAILED"
    assert "there are: hub" in world.steps(job_id)["a"].error["message"]


def test_a_job_cancelled_while_the_hub_works_takes_no_answer(world: World, tmp_path: Path) -> None:
    with serving(world, tmp_path, script=Manners(["silent"])) as bench:
        job_id = bench.submit(template(call("a", ", processor_method: note")))
        (dispatch,) = bench.dispatched(1)
        until(lambda: world.statuses(job_id)["a"] == "WAITING", 60.0)
        jobs = Jobs(world.database, bench.bell)
        jobs.cancel(job_id)
        jobs.close()
        answer = bench.hub.send(completed(dispatch.message, dispatch.steps[0]))
        assert isinstance(answer, CallbackAnswer)
        assert answer.code == "token_spent"
    assert world.job(job_id).status == "CANCELLED"
    with world.looking() as connection:
        assert connection.execute(text("select count(*) from notes")).scalar_one() == 0
