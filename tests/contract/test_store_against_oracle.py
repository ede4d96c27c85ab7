"""The stores and the oracle agree after every operation of random programs, on both databases.

The programs are those of tests/model; two stores take turns on one database. `DOCMILL_MODEL_SCALE` runs more of them.
"""

from collections import Counter

from hypothesis import HealthCheck, given, settings

from docmill.testing.driver import KINDS, WORKERS, Driver
from docmill.testing.plans import profile, programs
from docmill.testing.samples import receipt, single_step
from docmill.testing.sequences import Choice, Deed, Program
from docmill.testing.stored import StoreSystem
from docmill.testing.world import World

EXAMPLES = {"sqlite": 50, "postgresql": 30}

# What so few random programs may miss, told on purpose.
POISON = Program((single_step(),), (Choice(Deed.SUBMIT), *[Choice(Deed.CLAIM, 0, 1), Choice(Deed.SWEEP)] * 3))
FAILURES = Program(
    (single_step(),),
    (
        Choice(Deed.SUBMIT),
        *[c for detail in (2, 3, 1) for c in (*[Choice(Deed.CLAIM, 0, 1)] * 2, Choice(Deed.FAIL, 0, detail))],
    ),
)
ANSWERS = Program(
    (receipt(),),
    (
        Choice(Deed.SUBMIT),
        *[Choice(Deed.CLAIM, 0, 1), Choice(Deed.JOIN)] * 8,
        Choice(Deed.CLAIM, 0, 1),
        Choice(Deed.SUSPEND),
        Choice(Deed.ANSWER, 0, 1),
        *[Choice(Deed.CLAIM, 0, 1), Choice(Deed.COMPLETE)] * 2,
        Choice(Deed.RERUN, 0, 1),
        Choice(Deed.CANCEL),
        Choice(Deed.CANCEL),
        Choice(Deed.RERUN, 0, 2),
    ),
)


def test_every_answer_and_every_state_is_the_oracles(world: World) -> None:
    done: Counter[str] = Counter()

    def drive(program: Program) -> None:
        driver = Driver(StoreSystem(world, WORKERS))
        driver.run(program)
        world.check()
        done.update(driver.done)

    for story in (POISON, FAILURES, ANSWERS):
        drive(story)

    @given(programs(max_choices=45))
    @settings(profile(EXAMPLES[world.database.kind]), suppress_health_check=list(HealthCheck))
    def run(program: Program) -> None:
        drive(program)

    run()
    assert KINDS - set(done) == set()
