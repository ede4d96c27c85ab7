"""What is submitted is there once, and is claimed in the right order by one worker at a time."""

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from docmill.engine.batch import Batch, QueueClaim, Report
from docmill.engine.events import Completed, Deferred, Released
from docmill.engine.sql.rows import HotSql, WrongCount
from docmill.engine.store import PlanSource
from docmill.model.errors import InvalidInput, NotFound
from docmill.model.ids import derived_id, new_id
from docmill.templates.plan import Plan
from docmill.testing.oracle import START
from docmill.testing.samples import Draft, chain, diamond, fan_out, make_plan, single_step
from docmill.testing.world import ANN, BOB, OTHER_ORG, Clock, World, lease, timed


def test_many_jobs_are_submitted_in_one_transaction(world: World) -> None:
    jobs = [world.new_job(single_step()) for _ in range(500)]
    assert world.commit(Batch(submissions=jobs)).submitted == 500
    assert world.count() == 500
    assert {run.job.id for run in world.claim(1000)} == {job.id for job in jobs}


def test_a_job_submitted_twice_is_there_once(world: World) -> None:
    job = world.new_job(single_step(), id=derived_id("mine", 1))
    assert world.commit(Batch(submissions=[job, job])).submitted == 1
    assert world.commit(Batch(submissions=[job])).submitted == 0
    assert len(world.events(job.id)) == 1
    (run,) = world.claim()
    assert run.job.id == job.id


def test_a_job_of_an_unknown_template_is_refused_and_takes_nothing_with_it(world: World) -> None:
    good = world.new_job(single_step())
    bad = type(good)(template_id=new_id(), org_id=good.org_id, entity_type="document", entity_id="d")
    with pytest.raises(NotFound):
        world.commit(Batch(submissions=[good, bad]))
    assert world.count() == 0


def test_what_a_job_carries_comes_back_letter_by_letter(world: World) -> None:
    title = 'Rechnung "7", {a,b} \\ NULL, ü, 発票'
    metadata = {"uploadedVia": title, "pages": [1, None, {"ü": True}]}
    carried = {"title": title, "metadata": metadata, "file_type": "application/pdf", "created_by": "ann"}
    job = replace(world.new_job(single_step()), **carried)  # type: ignore[arg-type]
    world.commit(Batch(submissions=[job]))
    head, row = world.claim_one().job, world.job(job.id)
    assert (head.title, head.metadata, head.file_type) == (title, metadata, "application/pdf")
    assert {name: getattr(row, name) for name in carried} == carried


def test_priority_goes_first_then_the_longest_due(world: World) -> None:
    clock = Clock(START)
    timed(world.store, clock)
    expected = []
    for priority in (0, 5, -3, 5, 0):
        expected.append((-priority, clock.now, world.submit(single_step(), priority=priority)))
        clock.advance(1)
    assert [run.job.id for run in world.claim()] == [job for _, _, job in sorted(expected)]


def test_a_step_is_claimed_once(world: World) -> None:
    world.submit(fan_out(3))
    other = world.new_store()
    first = world.claim(2)
    second = world.claim(10, worker=BOB, store=other)
    assert len({run.step.position for run in (*first, *second)}) == 3
    assert world.claim() == ()


def test_a_claim_takes_no_more_than_it_was_given_room_for(world: World) -> None:
    for _ in range(5):
        world.submit(fan_out(3))
    outcome = world.commit(Batch(claims=[QueueClaim(queue="system", limit=7)], worker=ANN))
    assert len(outcome.started) == 7
    assert outcome.exhausted == frozenset()
    rest = world.commit(Batch(claims=[QueueClaim(queue="system", limit=100)], worker=ANN))
    assert len(rest.started) == 8
    assert rest.exhausted == {"system"}


def test_a_claim_sees_only_its_own_queue(world: World) -> None:
    world.submit(make_plan([Draft(key="a", pool="ocr"), Draft(key="b", pool="ai")]))
    assert [run.step.step_key for run in world.claim(queue="ai")] == ["b"]
    assert [run.queue for run in world.claim(queue="ocr")] == ["ocr"]


def test_a_step_with_a_delay_is_due_when_it_has_passed(world: World) -> None:
    clock = Clock(START)
    timed(world.store, clock)
    job = world.new_job(make_plan([Draft(key="a", delay=16.0)]))
    outcome = world.commit(Batch(submissions=[job]))
    assert outcome.due == (("system", START + timedelta(seconds=16)),)
    assert outcome.left_ready == {}
    assert world.store.sql.next_due(["system"], clock.now) == START + timedelta(seconds=16)
    assert world.claim() == ()
    clock.advance(15.999)
    assert world.claim() == ()
    clock.advance(0.001)
    assert len(world.claim()) == 1


def test_a_deferred_step_waits_until_then_and_uses_no_attempt(world: World) -> None:
    clock = Clock(START)
    timed(world.store, clock)
    world.submit(single_step())
    run = world.claim_one()
    assert world.report(run.job.id, Deferred(**lease(run), until=START + timedelta(seconds=30))) == (True,)
    assert world.claim() == ()
    clock.advance(30)
    again = world.claim_one()
    assert (again.state.failures, again.state.epoch) == (0, run.state.epoch + 1)


def test_what_becomes_ready_is_claimed_on_the_spot_where_there_is_a_slot(world: World) -> None:
    world.submit(diamond())
    run = world.claim_one()
    slots = ["system"]

    def reserve(queue: str) -> bool:
        return queue in slots and slots.pop() == queue

    report = Report(job_id=run.job.id, event=Completed(**lease(run)))
    outcome = world.commit(Batch(reports=[report], worker=ANN, reserve=reserve))
    (started,) = outcome.started
    assert (started.on_the_spot, started.state.worker, started.state.epoch) == (True, ANN, 1)
    assert set(outcome.left_ready) == {"system"}
    assert len(world.claim()) == 1


def test_a_step_that_is_due_later_is_not_claimed_on_the_spot(world: World) -> None:
    world.submit(make_plan([Draft(key="a"), Draft(key="b", group=2, delay=60.0)]))
    run = world.claim_one()
    report = Report(job_id=run.job.id, event=Completed(**lease(run)))
    outcome = world.commit(Batch(reports=[report], worker=ANN, reserve=lambda queue: True))
    assert outcome.started == ()
    assert [queue for queue, _ in outcome.due] == ["system"]


def test_what_the_metadata_rules_out_is_skipped_on_the_spot_and_what_follows_is_claimed(world: World) -> None:
    asked = "exists(metadata.model) and exists(results.a)"
    steps = [Draft(key="a"), Draft(key="b", group=2, condition=asked), Draft(key="c", group=3, condition=asked)]
    job_id = world.submit(make_plan([*steps, Draft(key="d", group=4)]))
    run = world.claim_one()
    report = Report(job_id=job_id, event=Completed(**lease(run)))
    outcome = world.commit(Batch(reports=[report], worker=ANN, reserve=lambda queue: True))
    (started,) = outcome.started
    assert started.step.step_key == "d"
    found = world.steps(job_id)
    # As a worker would have done it: claimed once, under a lease of its own.
    assert [(found[key].status, found[key].epoch) for key in "abcd"] == [
        ("COMPLETED", 1),
        ("SKIPPED", 1),
        ("SKIPPED", 1),
        ("IN_PROGRESS", 1),
    ]


def test_a_condition_that_needs_more_than_the_metadata_is_left_to_whoever_claims_the_step(world: World) -> None:
    asked = "exists(results.a.hit) and exists(metadata.model)"
    job_id = world.submit(make_plan([Draft(key="a"), Draft(key="b", group=2, condition=asked)]))
    run = world.claim_one()
    report = Report(job_id=job_id, event=Completed(**lease(run)))
    outcome = world.commit(Batch(reports=[report], worker=ANN, reserve=lambda queue: True))
    assert [started.step.step_key for started in outcome.started] == ["b"]


def test_a_drained_step_is_ready_at_once_and_counts_no_crash(world: World) -> None:
    world.submit(single_step())
    run = world.claim_one()
    assert world.report(run.job.id, Released(**lease(run))) == (True,)
    again = world.claim_one(worker=BOB)
    assert (again.state.crashes, again.state.failures, again.state.worker) == (0, 0, BOB)


def test_a_claim_passes_over_a_job_that_somebody_holds(world: World) -> None:
    """On PostgreSQL it returns at once with the other job; on SQLite it waits its turn and takes both."""
    held, free = world.submit(single_step()), world.submit(single_step())
    other = world.new_store()
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.extend(run.job.id for run in world.claim(store=other)))
    with world.store.session.write():
        world.store.sql.begin([held], wait=True)
        thread.start()
        if world.database.kind == "postgresql":
            thread.join(10)
            assert found == [free]
    thread.join(10)
    assert set(found) == ({free} if world.database.kind == "postgresql" else {held, free})


def test_the_free_steps_of_a_job_that_is_reported_on_are_claimed_too(world: World) -> None:
    """A report and a claim in one transaction, as lane A does it: the slot that the report freed is used."""
    world.submit(fan_out(3))
    run = world.claim_one()
    batch = Batch(
        reports=[Report(job_id=run.job.id, event=Completed(**lease(run)))],
        claims=[QueueClaim(queue="system", limit=1)],
        worker=ANN,
    )
    outcome = world.commit(batch)
    assert len(outcome.started) == 1
    assert outcome.exhausted == frozenset()


def test_a_claim_takes_all_steps_of_one_job_in_several_shares(world: World) -> None:
    """Another organisation has only something that is due later: its share goes to the one that has work now."""
    world.submit(fan_out(4))
    world.submit(make_plan([Draft(key="a", delay=600.0)]), org_id=OTHER_ORG)
    assert len(world.claim(4)) == 4


def test_reports_and_claims_on_one_job_in_one_transaction_keep_both(world: World) -> None:
    job_id = world.submit(make_plan([Draft(key="a"), Draft(key="b"), Draft(key="c", pool="ai")]))
    run = world.claim_one()
    batch = Batch(
        reports=[Report(job_id=job_id, event=Completed(**lease(run), result="7"))],
        claims=[QueueClaim(queue="ai", limit=5), QueueClaim(queue="system", limit=5)],
        worker=ANN,
    )
    assert sorted(run.step.step_key for run in world.commit(batch).started) == ["b", "c"]
    assert world.statuses(job_id) == {"a": "COMPLETED", "b": "IN_PROGRESS", "c": "IN_PROGRESS"}
    assert world.steps(job_id)["a"].result == 7


def test_a_step_skipped_in_the_same_transaction_is_not_claimed(world: World) -> None:
    from docmill.engine.events import Failed

    job_id = world.submit(fan_out(3))
    run = world.claim_one()
    batch = Batch(
        reports=[Report(job_id=job_id, event=Failed(**lease(run), error="{}", permanent=True))],
        claims=[QueueClaim(queue="system", limit=5)],
        worker=ANN,
    )
    assert world.commit(batch).started == ()
    assert world.job(job_id).status == "FAILED"


def test_a_store_whose_last_commit_failed_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job_id = world.submit(chain(2))
    run = world.claim_one()
    insert = type(world.store.sql).insert_events

    def broken(self: object, rows: object, now: object) -> None:
        raise WrongCount("made up")

    monkeypatch.setattr(type(world.store.sql), "insert_events", broken)
    with pytest.raises(WrongCount, match="made up"):
        world.complete(run)
    monkeypatch.setattr(type(world.store.sql), "insert_events", insert)
    assert world.complete(run)
    assert world.statuses(job_id) == {"s0": "COMPLETED", "s1": "READY"}


def test_a_job_of_a_newer_release_is_passed_over_and_holds_nobody_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable, readable = world.submit(single_step()), world.submit(chain(2))
    newer = world.job(unreadable).template_id
    store = world.new_store()
    get = PlanSource.get

    def read(self: PlanSource, template_id: str, sql: HotSql) -> Plan:
        if template_id == newer:
            raise InvalidInput("This template is of a newer release.")
        return get(self, template_id, sql)

    with monkeypatch.context() as patch:
        patch.setattr(PlanSource, "get", read)
        assert [run.job.id for run in world.claim(store=store)] == [readable]
    assert [run.job.id for run in world.claim(store=store)] == [unreadable]
