"""Lane B: results that are to be applied share a transaction when nobody waits for them."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from docmill.engine import lane as lane_module
from docmill.engine.batch import StepRun
from docmill.engine.lane_b import Apply, LaneB
from docmill.engine.lease import Lease
from docmill.engine.pools import Slots
from docmill.testing.samples import single_step
from docmill.testing.world import World


def result_of(run: StepRun) -> Apply:
    return Apply(
        run=run,
        processor=lambda context, result: None,
        result="1",
        stored=False,
        follow_ups=(),
        issues=(),
        recovered=None,
        done=lambda: None,
        failed=lambda error: None,
    )


def test_while_the_children_have_enough_to_do_results_wait_for_each_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane_module, "GATHER", 3600.0)
    sated = [True]
    lane = LaneB(
        world.database,
        world.plans,
        lease=Lease(3600.0),
        slots=Slots([]),
        on_outcome=lambda outcome, doubtful: None,
        sated=lambda: sated[0],
    )
    for _ in range(3):
        world.submit(single_step())
    first, *others = world.claim(3)
    with ThreadPoolExecutor(1) as pool:
        lane.put(result_of(first))
        # Nothing was written before: it goes at once.
        assert [apply.run for apply in pool.submit(lane._next).result(30)] == [first]
        lane.put(result_of(others[0]))
        batch = pool.submit(lane._next)
        lane.put(result_of(others[1]))
        assert not batch.done()
        sated[0] = False
        lane.nudge()
        assert {apply.run.key for apply in batch.result(30)} == {run.key for run in others}
