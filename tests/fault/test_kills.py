"""Killed at any boundary: every job finishes, every effect happens once, no paid call is repeated."""

import random
import re
from pathlib import Path

import pytest

import docmill
from docmill.engine.failpoints import NAMES
from docmill.testing.verdict import Verdict, examine
from tests.fault import campaign
from tests.fault.conftest import OpenFleet, volume

SOURCE = Path(docmill.__file__).parent
PER_RUN = max(30, len(campaign.EVERYTHING))


@pytest.mark.parametrize("seed", range(volume(1, 20)))
def test_jobs_survive_deaths_at_every_boundary(open_fleet: OpenFleet, seed: int) -> None:
    # On each database, so more than 50 in all; each run is judged on its own.
    with open_fleet() as fleet:
        planned = campaign.plan(PER_RUN, seed)
        expected = set(planned)
        run = campaign.Campaign(fleet, planned, random.Random(seed))
        run.run()
        assert examine(fleet.database, fleet.witness) == []
        assert expected <= set(run.deaths)
        assert run.deaths.total() >= PER_RUN
        # Steps were lost and given back: the campaign has hurt somebody.
        assert Verdict(fleet.database, fleet.witness).crashes > 0
        # Sagas are there to fail; nobody else does, least of all those who undo them.
        failed = "processing_jobs where status not in ('PARTIAL_SUCCESS', 'COMPLETED', 'CANCELLED')"
        sagas = "family = 'fault saga' and parent_job_id is null"
        assert fleet.scalar(f"select count(*) from {failed} and not ({sagas})") == 0
        assert fleet.scalar(f"select count(*) from {failed}") != 0


def test_a_run_of_the_campaign_covers_every_failpoint() -> None:
    assert set(NAMES) <= set(campaign.plan(PER_RUN, 0))


def test_every_named_failpoint_stands_in_the_code_and_no_other() -> None:
    used = {
        name
        for path in SOURCE.rglob("*.py")
        if "testing" not in path.parts
        for name in re.findall(r'\bfailpoint\("([a-z_.]+)"\)', path.read_text())
    }
    assert used == set(NAMES)
