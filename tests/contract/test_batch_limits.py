"""The limit of a batch: raised, lowered, none at all, and never passed."""

import pytest

from docmill.engine.rooms import AT_ONCE, Rooms
from docmill.engine.sql.rows import WrongCount
from docmill.model.errors import InvalidInput
from docmill.services.batches import Batches
from docmill.testing.world import World
from tests.contract.batching import by_entity, fail, some
from tests.contract.bells import CountingBell


def test_raising_the_limit_lets_more_in_at_once_and_wakes_the_workers(
    world: World, batches: Batches, bell: CountingBell
) -> None:
    view = batches.submit(some(world, 9), limit=2)
    bell.rung.clear()
    view = batches.set_limit(view.id, 6)
    assert (view.limit, view.active, view.held) == (6, 6, 3)
    assert bell.rung == [{"system"}]
    assert len(by_entity(world)) == 6


def test_raising_the_limit_beyond_one_transaction_fills_it_all_the_same(world: World, batches: Batches) -> None:
    count = AT_ONCE + 30
    view = batches.submit(some(world, count), limit=1)
    assert batches.set_limit(view.id, count).active == count


def test_lowering_the_limit_ends_nothing_and_is_reached_as_jobs_end(world: World, batches: Batches) -> None:
    view = batches.submit(some(world, 8), limit=5)
    runs = by_entity(world)
    view = batches.set_limit(view.id, 2)
    assert (view.limit, view.active, view.held) == (2, 5, 3)
    for name, active, held in (("0", 4, 3), ("1", 3, 3), ("2", 2, 3), ("3", 2, 2)):
        fail(world, runs[name])
        view = batches.get(view.id)
        assert (view.active, view.held) == (active, held)


def test_a_limit_of_none_holds_everything_back_until_it_is_raised(world: World, batches: Batches) -> None:
    view = batches.submit(some(world, 3), limit=1)
    batches.set_limit(view.id, 0)
    fail(world, by_entity(world)["0"])
    world.sweep()
    assert by_entity(world) == {}
    batches.set_limit(view.id, 5)
    assert sorted(by_entity(world)) == ["1", "2"]
    with pytest.raises(InvalidInput, match="not between 0 and"):
        batches.set_limit(view.id, -1)


def test_a_finished_batch_keeps_its_time_whatever_its_limit_becomes(world: World, batches: Batches) -> None:
    view = batches.submit(some(world, 2))
    world.run_to_end()
    finished_at = batches.get(view.id).finished_at
    assert finished_at is not None
    assert batches.set_limit(view.id, 50).finished_at == finished_at
    world.sweep()
    assert batches.get(view.id).finished_at == finished_at


def test_the_database_itself_refuses_one_more_than_the_limit(world: World, batches: Batches) -> None:
    view = batches.submit(some(world, 4), limit=2)
    run = by_entity(world)["0"]
    with pytest.MonkeyPatch.context() as patched:
        # Planning gone wrong: one ends, and two are let in.
        patched.setattr(Rooms, "_free", lambda *_: 2)
        with pytest.raises(WrongCount, match="would have 3 active jobs, more than its limit"):
            fail(world, run)
    assert batches.get(view.id).active == 2
