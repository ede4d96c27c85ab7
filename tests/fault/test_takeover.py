"""A killed worker's work goes on at once on the same host, long before its lease could run out."""

from docmill.testing.verdict import examine
from tests.fault.conftest import OpenFleet


def test_without_faults_everything_is_done_once(open_fleet: OpenFleet) -> None:
    with open_fleet() as fleet:
        fleet.start()
        fleet.submit("fault everything", 20)
        fleet.finish()
        assert examine(fleet.database, fleet.witness) == []
        assert set(fleet.witness.counts("asked").values()) == {1}
