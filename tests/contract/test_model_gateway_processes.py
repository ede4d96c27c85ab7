"""What several processes share of the gateway: four real ones on one database, counted by an outside witness."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import insert, select

from docmill.ai.bucket import LONGEST_WAIT
from docmill.db.database import Database
from docmill.db.tables import ai_breakers, ai_budgets, ai_calls
from docmill.model.ai import BreakerState
from docmill.testing.fleet import nursery
from docmill.testing.processes import tail
from docmill.testing.shared_clock import SharedClock
from docmill.testing.waiting import TimedOut, until
from docmill.testing.witness import VARIABLE, Note, Witness

PROCESSES = 4
START = datetime(2026, 11, 15, 12, tzinfo=UTC)
PRICES = '{"stand-in:model": {"input": "0", "output": "1000"}}'
"""A call of the stand-in costs a dollar, and is known to before."""


class Askers:
    """The processes, their witness and their clock."""

    def __init__(self, url: str, home: Path) -> None:
        self.database = Database(url)
        self.witness = Witness(home / "witness")
        self.clock = SharedClock(self.witness.directory / "clock", START)
        self.pids: list[int] = []
        self._log = home / "askers.log"
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("DOCMILL_")},
            "DOCMILL_HOME": str(home),
            "DOCMILL_DATABASE_URL": url,
            "DOCMILL_AI__PRICES": PRICES,
            VARIABLE: str(self.witness.directory),
        }

    def start(self, calls: int, **settings: object) -> None:
        """Start them all, let them go together once all are there."""
        environment = {**self._environment, **{f"DOCMILL_AI__{name.upper()}": str(v) for name, v in settings.items()}}
        for _ in range(PROCESSES):
            arguments = ("ask", str(calls))
            self.pids.append(nursery().spawn("docmill.testing.model_process", environment, self._log, arguments))
        self.wait_for("ready", PROCESSES)
        self.witness.open_gate("go")

    def wait_for(self, what: str, count: int) -> list[Note]:
        """Wait until the witness has seen so many."""
        try:
            return self.witness.wait_for(what, lambda notes: len(notes) >= count)
        except TimedOut as error:
            raise AssertionError(f"{error}\n{tail(self._log, 40)}") from error

    def wait_for_all(self) -> None:
        """Wait until every process has ended, and ended well."""
        until(lambda: all(nursery().exit_code(pid) is not None for pid in self.pids), 60.0, what="all to end")
        codes = Counter(nursery().exit_code(pid) for pid in self.pids)
        assert set(codes) <= {0, -signal.SIGKILL}, tail(self._log, 40)

    def close(self) -> None:
        for pid in self.pids:
            if nursery().exit_code(pid) is None:
                os.kill(pid, signal.SIGKILL)
        self.database.close()


@pytest.fixture
def askers(database_url: str, tmp_path: Path) -> Iterator[Askers]:
    made = Askers(database_url, tmp_path)
    try:
        yield made
    finally:
        made.close()


def opened(askers: Askers) -> None:
    """The model's breaker has been open for a minute."""
    with askers.database.write() as connection:
        values = {"name": "stand-in:model", "state": BreakerState.OPEN, "failures": 6, "opened_at": START}
        connection.execute(insert(ai_breakers).values(values))
    askers.clock.advance(60)


def breaker(askers: Askers) -> str:
    with askers.database.read() as connection:
        return str(connection.execute(select(ai_breakers.c.state)).scalar_one())


def test_exactly_one_process_probes_and_the_others_wait_for_what_it_finds(askers: Askers) -> None:
    opened(askers)
    askers.start(1, rate=1000)
    # The probe is held at the model; everybody else has been sent away meanwhile.
    askers.wait_for("deferred", PROCESSES - 1)
    assert askers.witness.count("asked") == 1
    assert breaker(askers) == "half_open"
    askers.witness.open_gate("answer")
    askers.wait_for("answered", 1)
    assert breaker(askers) == "closed"
    askers.witness.open_gate("round-1")
    askers.wait_for_all()
    assert askers.witness.count("answered") == PROCESSES


def test_a_probe_that_was_killed_blocks_nobody_for_ever(askers: Askers) -> None:
    opened(askers)
    askers.start(1, rate=1000, timeout=20)
    askers.wait_for("deferred", PROCESSES - 1)
    (probe,) = askers.witness.notes("asked")
    os.kill(probe.pid, signal.SIGKILL)
    # Longer than the probe can have taken: again one, and one only, of those who are left.
    askers.clock.advance(40)
    askers.witness.open_gate("round-1")
    askers.wait_for("deferred", PROCESSES - 1 + PROCESSES - 2)
    assert askers.witness.count("asked") == 2
    askers.witness.open_gate("answer")
    askers.wait_for("answered", 1)
    askers.witness.open_gate("round-2")
    askers.wait_for_all()
    assert askers.witness.count("answered") == PROCESSES - 1
    assert breaker(askers) == "closed"


def test_four_processes_together_get_the_rate_exactly(askers: Askers) -> None:
    rate, rounds, seconds = 20.0, 4, 5.0
    askers.witness.open_gate("answer")
    # Each asks until it is sent away; then time moves on by as many tokens as all may share.
    askers.start(10_000, rate=rate)
    granted = 1 + round(LONGEST_WAIT * rate)
    for number in range(1, rounds + 1):
        askers.wait_for("deferred", PROCESSES * number)
        assert askers.witness.count("asked") == granted
        askers.clock.advance(seconds)
        granted += round(seconds * rate)
        askers.witness.open_gate(f"round-{number}")
    askers.wait_for("deferred", PROCESSES * (rounds + 1))
    good = sorted(datetime.fromisoformat(note.detail) for note in askers.witness.notes("asked"))
    assert len(good) == granted
    assert len({note.pid for note in askers.witness.notes("asked")}) == PROCESSES
    # No token twice, none left unused: used by the set rate, neither 5 % less nor 2 % more at any time.
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(good)]
    assert min(gaps) >= 1 / rate - 1e-5
    assert max(gaps) <= 1 / rate + 1e-5
    span = (good[-1] - good[0]).total_seconds()
    assert 0.95 <= (len(good) - 1) / span / rate <= 1.02


def test_a_budget_holds_whoever_spends_it(askers: Askers) -> None:
    for number in range(1, 1000):
        # Those who wait for what others will have cost come back at once.
        askers.witness.open_gate(f"round-{number}")
    askers.witness.open_gate("answer")
    askers.start(1000, rate=1_000_000, burst=1000, budget_month=37.5, budget_day=1000)
    askers.wait_for_all()
    assert askers.witness.count("refused") == PROCESSES
    assert askers.witness.count("asked") == 37
    assert len({note.pid for note in askers.witness.notes("asked")}) > 1
    with askers.database.read() as connection:
        spent = {row.period: row.spent_nanos for row in connection.execute(select(ai_budgets))}
        costs = connection.execute(select(ai_calls.c.cost_nanos)).scalars().all()
    assert spent == {"2026-11": 37_000_000_000, "2026-11-15": 37_000_000_000}
    assert sum(costs) == 37_000_000_000


def test_the_clock_of_the_processes_is_the_tests(askers: Askers) -> None:
    askers.witness.open_gate("answer")
    askers.clock.advance(timedelta(days=365).total_seconds())
    askers.start(1, rate=1000)
    askers.wait_for_all()
    with askers.database.read() as connection:
        moments = connection.execute(select(ai_calls.c.created_at)).scalars().all()
    assert {moment.astimezone(UTC).year for moment in moments} == {2027}
