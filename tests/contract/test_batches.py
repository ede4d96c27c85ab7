"""Batches as people submit and look at them: many jobs in one call, one result of it all; every refusal has a name."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from docmill.engine.batch import NewJob
from docmill.model.errors import AlreadyActive, Conflict, InvalidInput, NotFound
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.model.statuses import JobStatus
from docmill.services.batch_views import BatchView, aggregate
from docmill.services.batches import Batches
from docmill.services.jobs import Jobs
from docmill.testing.samples import single_step
from docmill.testing.world import OTHER_ORG, World
from tests.contract.batching import by_entity, fail, named, some
from tests.contract.bells import CountingBell


def test_a_batch_is_one_call_and_begins_with_as_many_jobs_as_its_limit(
    world: World, batches: Batches, bell: CountingBell
) -> None:
    view = batches.submit(
        some(world, 25), limit=4, title="March", metadata={"source": "mail"}, created_by="ann@example.org"
    )
    assert (view.total, view.active, view.held, view.limit) == (25, 4, 21, 4)
    assert (view.status, view.progress, view.counts) == (JobStatus.PENDING, 0.0, {JobStatus.PENDING: 25})
    assert (view.title, view.metadata, view.created_by) == ("March", {"source": "mail"}, "ann@example.org")
    assert view.started_at is view.finished_at is None
    assert bell.rung == [{"system"}]
    assert sorted(by_entity(world)) == ["0", "1", "2", "3"]


def test_ten_at_a_time_unless_told_otherwise(world: World, batches: Batches) -> None:
    assert batches.submit(some(world, 12)).active == 10


def test_an_entity_given_twice_is_refused_by_name_and_nothing_is_stored(world: World, batches: Batches) -> None:
    with pytest.raises(InvalidInput, match=r"given more than once: document:a, document:b\. Give each once"):
        batches.submit(named(world, "a", "b", "a", "c", "b"))
    many = [str(n) for n in range(40)]
    with pytest.raises(InvalidInput, match=r"document:9 and 30 more\.") as caught:
        batches.submit(named(world, *many, *many))
    assert len(caught.value.details["entities"]) == 40  # type: ignore[arg-type]
    assert world.count() == 0


def test_entities_with_an_active_job_are_refused_by_name_and_nothing_is_stored(world: World, batches: Batches) -> None:
    first = batches.submit(named(world, "a", "b", "c"))
    with pytest.raises(
        AlreadyActive, match=r"2 entities have an active job .*: document b \(.*\), document c \("
    ) as caught:
        batches.submit(named(world, "b", "c", "d"))
    held = {result.job_id for result in batches.results(first.id) if result.entity_id in "bc"}
    assert set(caught.value.details["job_ids"]) == held  # type: ignore[call-overload]
    assert (world.count(), len(batches.list())) == (3, 1)


def test_entities_with_an_active_job_are_left_out_when_asked(world: World, batches: Batches) -> None:
    batches.submit(named(world, "a", "b"))
    second = batches.submit(named(world, "a", "b", "c", "d", "e"), limit=2, skip_active=True)
    # Those left out take nobody's place.
    assert (second.total, second.active, second.held) == (3, 2, 1)
    assert [result.entity_id for result in batches.results(second.id)] == ["c", "d", "e"]
    nothing = batches.submit(named(world, "a", "b"), skip_active=True)
    assert (nothing.total, nothing.status) == (0, JobStatus.COMPLETED)
    assert nothing.finished_at is not None


def test_the_same_call_with_the_same_id_is_one_batch(world: World, batches: Batches) -> None:
    own = new_id()
    first = batches.submit(named(world, "a", "b"), batch_id=own, title="t", metadata={"x": 1, "y": 2})
    again = batches.submit(named(world, "a", "b"), batch_id=own.upper(), title="t", metadata={"y": 2, "x": 1})
    assert first == again
    assert world.count() == 2
    world.run_to_end()
    assert batches.submit(named(world, "a", "b"), batch_id=own, title="t", metadata={"x": 1, "y": 2}).finished == 2
    assert world.count() == 2


@pytest.mark.parametrize(
    "other",
    [{"title": "u"}, {"limit": 3}, {"metadata": {"z": 1}}, {"names": ("a", "c")}, {"names": ("a", "b", "c")}],
    ids=str,
)
def test_other_content_under_the_same_id_is_a_conflict(
    world: World, batches: Batches, other: dict[str, object]
) -> None:
    own = new_id()
    batches.submit(named(world, "a", "b"), batch_id=own, title="t")
    said = {"title": "t", "names": ("a", "b"), **other}
    names = said.pop("names")
    with pytest.raises(Conflict, match="with other content"):
        batches.submit(named(world, *names), batch_id=own, **said)  # type: ignore[misc, arg-type]
    assert world.count() == 2


def test_the_same_call_made_by_several_at_once_is_one_batch(world: World, batches: Batches) -> None:
    own = new_id()
    calls = [named(world, *"abcdefgh") for _ in range(4)]
    together = Barrier(len(calls))

    def submit(new_jobs: list[NewJob]) -> BatchView:
        together.wait()
        return batches.submit(new_jobs, batch_id=own, limit=3)

    with ThreadPoolExecutor(len(calls)) as pool:
        views = list(pool.map(submit, calls))
    assert {view.id for view in views} == {own}
    assert world.count() == 8


def test_the_template_of_another_organisation_is_not_there(world: World, batches: Batches) -> None:
    (job,) = named(world, "a", org_id=OTHER_ORG)
    with pytest.raises(NotFound, match=job.template_id):
        batches.submit([replace(job, org_id=DEFAULT_ORG)])
    assert world.count() == 0


def test_a_job_cannot_join_a_batch_that_would_not_count_it(world: World, batches: Batches, bell: CountingBell) -> None:
    view = batches.submit(named(world, "a"))
    jobs = Jobs(world.database, bell)
    with pytest.raises(InvalidInput, match="with its batch"):
        jobs.submit([replace(job, batch_id=view.id) for job in named(world, "b")])
    jobs.close()


def test_a_batch_cannot_be_empty_boundless_or_another_organisations(world: World, batches: Batches) -> None:
    with pytest.raises(InvalidInput, match="1 to 100,000 jobs, not 0"):
        batches.submit([])
    for limit in (0, -1, 100_001):
        with pytest.raises(InvalidInput, match="not between 1 and 100,000"):
            batches.submit(some(world, 1), limit=limit)
    with pytest.raises(InvalidInput, match="another organisation"):
        batches.submit(named(world, "a", org_id=OTHER_ORG))
    with pytest.raises(InvalidInput, match="'x' is not a batch id; write a UUID"):
        batches.submit(some(world, 1), batch_id="x")


def test_a_view_counts_what_became_of_the_jobs_and_names_the_first_failures(world: World, batches: Batches) -> None:
    view = batches.submit(some(world, 8), limit=8)
    runs = by_entity(world)
    for name in "123456":
        fail(world, runs[name])
    world.complete(runs["0"])
    view = batches.get(view.id)
    assert view.status is JobStatus.IN_PROGRESS
    assert view.counts == {JobStatus.IN_PROGRESS: 2, JobStatus.FAILED: 6}
    # A failed job has all its three steps settled.
    assert view.progress == (6 * 3 + 1) / (8 * 3)
    started_at = view.started_at
    assert started_at is not None
    assert [failure.entity_id for failure in view.failures] == list("12345")
    assert view.failures[0].step == "s0"
    assert view.failures[0].error == {"code": "broken", "message": "It broke."}
    world.complete(runs["7"])
    world.run_to_end()
    view = batches.get(view.id)
    assert (view.status, view.progress, view.finished) == (JobStatus.PARTIAL_SUCCESS, 1.0, 8)
    assert view.finished_at is not None
    assert view.finished_at >= started_at


def test_one_status_stands_for_many() -> None:
    done, half, failed, cancelled = (
        JobStatus.COMPLETED,
        JobStatus.PARTIAL_SUCCESS,
        JobStatus.FAILED,
        JobStatus.CANCELLED,
    )
    pending, going, waiting = JobStatus.PENDING, JobStatus.IN_PROGRESS, JobStatus.WAITING
    for present, expected in [
        ([], done),
        ([done], done),
        ([failed], failed),
        ([cancelled], cancelled),
        ([half], half),
        ([done, failed], half),
        ([done, cancelled], half),
        ([half, failed, cancelled], half),
        ([failed, cancelled], failed),
        ([pending], pending),
        ([pending, done], going),
        ([going, failed], going),
        ([waiting], waiting),
        ([waiting, done], waiting),
        ([waiting, pending], going),
    ]:
        assert aggregate(dict.fromkeys(present, 1)) is expected, present
    assert aggregate({done: 3, failed: 0}) is done


def test_results_come_in_the_order_given_page_by_page(world: World, batches: Batches) -> None:
    view = batches.submit(some(world, 5))
    for name, run in by_entity(world).items():
        world.complete(run, f'{{"n": {name}}}')
    for run in by_entity(world).values():
        world.complete(run, '"second"')
    for run in by_entity(world).values():
        world.complete(run, '{"all": "well"}')
    page = batches.results(view.id, limit=2)
    rest = batches.results(view.id, limit=10, after=page[-1].job_id)
    assert [result.entity_id for result in [*page, *rest]] == list("01234")
    assert {str(result.result) for result in page} == {"{'all': 'well'}"}
    assert [result.result for result in batches.results(view.id, step="s0")] == [{"n": n} for n in range(5)]
    with pytest.raises(NotFound, match="no step nothing; their steps are s0, s1, finish"):
        batches.results(view.id, step="nothing")
    with pytest.raises(InvalidInput):
        batches.results(view.id, after="nonsense")


def test_results_can_be_asked_for_by_status(world: World, batches: Batches) -> None:
    view = batches.submit(some(world, 3))
    fail(world, by_entity(world)["1"])
    (only,) = batches.results(view.id, statuses=[JobStatus.FAILED])
    assert (only.entity_id, only.step, only.result) == ("1", "s0", None)


def test_batches_are_listed_newest_first_and_only_ones_own(world: World, batches: Batches, bell: CountingBell) -> None:
    ids = [batches.submit(named(world, name)).id for name in "abc"]
    assert [view.id for view in batches.list()] == ids[::-1]
    assert [view.id for view in batches.list(limit=1)] == [ids[2]]
    others = Batches(world.database, bell, OTHER_ORG)
    assert others.list() == []
    with pytest.raises(NotFound):
        others.get(ids[0])
    others.close()


@pytest.mark.parametrize("unknown", ["nonsense", "01a1e0e4-86a1-7f22-b51d-7d07fc8a27df"])
def test_an_unknown_batch_is_not_found(batches: Batches, unknown: str) -> None:
    for call in (batches.get, batches.cancel, batches.retry, batches.results):
        with pytest.raises(NotFound, match=f"There is no batch {unknown}. `docmill batch list`"):
            call(unknown)
    with pytest.raises(NotFound):
        batches.set_limit(unknown, 1)


def test_watching_tells_every_change_until_the_end(world: World, batches: Batches) -> None:
    view = batches.submit(some(world, 3), limit=1)
    told: list[BatchView] = []
    # Whoever waits for the next look lets the workers get on.
    for seen in batches.watch(view.id, pause=lambda _: world.run_to_end()):
        if seen is not None:
            told.append(seen)
    assert told[0] == view
    assert (told[-1].status, told[-1].finished) == (JobStatus.COMPLETED, 3)
    assert [seen.progress for seen in told] == sorted(seen.progress for seen in told)


def test_single_step_jobs_of_a_batch_of_one_template_begin_alike(world: World, batches: Batches) -> None:
    # Planned once for all: what is held has no steps, what begins has its first.
    view = batches.submit([world.new_job(single_step()) for _ in range(3)], limit=1)
    states = [world.state(result.job_id) for result in batches.results(view.id)]
    assert [sum(step.stored for step in state.steps) for state in states] == [1, 0, 0]
