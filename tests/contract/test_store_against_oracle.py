"""The stores and the oracle agree after every operation of random programs, on both databases.

The programs are those of tests/model; two stores take turns on one database. `DOCMILL_MODEL_SCALE` runs more of them.
"""

from collections import Counter

from hypothesis import HealthCheck, given, settings

from docmill.testing.driver import WORKERS, Driver
from docmill.testing.kinds import KINDS
from docmill.testing.plans import profile, programs
from docmill.testing.sequences import Program
from docmill.testing.stored import StoreSystem
from docmill.testing.stories import STORIES
from docmill.testing.world import World

EXAMPLES = {"sqlite": 50, "postgresql": 30}


def test_every_answer_and_every_state_is_the_oracles(world: World) -> None:
    done: Counter[str] = Counter()

    def drive(program: Program) -> None:
        driver = Driver(StoreSystem(world, WORKERS))
        driver.run(program)
        world.check()
        done.update(driver.done)

    # What so few random programs may miss.
    for story in STORIES:
        drive(story)

    @given(programs(max_choices=45))
    @settings(profile(EXAMPLES[world.database.kind]), suppress_health_check=list(HealthCheck))
    def run(program: Program) -> None:
        drive(program)

    run()
    assert KINDS - set(done) == set()
