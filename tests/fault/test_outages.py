"""PostgreSQL stopped at once, connections cut, answers lost: nothing is lost, nothing is doubled, workers survive."""

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from docmill.db.database import Database, is_transient
from docmill.db.types import iso
from docmill.engine.bell import PostgresBell
from docmill.testing import fault_steps
from docmill.testing import fleet as fleets
from docmill.testing.fleet import Fleet
from docmill.testing.proxy import Proxy
from docmill.testing.servers import PostgresServer
from docmill.testing.verdict import examine
from tests.fault.conftest import OpenFleet, prepared, volume


@pytest.fixture
def own_database(own_postgres_server: PostgresServer, tmp_path: Path) -> str:
    """A prepared database on a server that the test may stop."""
    url = own_postgres_server.create_database("outage")
    prepared(url, tmp_path / "preparing")
    return url


def check_nothing_failed(fleet: Fleet) -> None:
    """No step paid for the outage with one of its attempts: only the flaky one failed, once, and the vain wait."""
    allowed = "case when step_key in ('flaky', 'wait') then 1 else 0 end"
    assert fleet.scalar(f"select count(*) from processing_job_steps where failures > {allowed}") == 0
    assert examine(fleet.database, fleet.witness) == []


def test_postgres_stopped_at_once_under_load(
    own_postgres_server: PostgresServer, own_database: str, tmp_path: Path
) -> None:
    jobs, batch = volume(500, 20_000), 250
    with fleets.open_fleet(tmp_path / "home", own_database) as fleet:
        workers = [fleet.start(ready=True) for _ in range(2)]
        for submitted in range(0, jobs, batch):
            fleet.submit("fault everything", batch)
            goal = fleet.witness.count("asked") + batch // 2
            # In the middle of it.
            fleet.witness.wait_for("asked", lambda notes, goal=goal: len(notes) >= goal)  # type: ignore[misc]
            own_postgres_server.stop("immediate")
            own_postgres_server.start()
            if submitted % 1000 == 750:
                fleet.finish(600)
        fleet.finish(600)
        assert all(worker.running for worker in workers)
        check_nothing_failed(fleet)


def test_a_read_during_an_outage_waits_and_uses_no_attempt(
    own_postgres_server: PostgresServer, own_database: str, tmp_path: Path
) -> None:
    with fleets.open_fleet(tmp_path / "home", own_database) as fleet:
        fleet.register(fault_steps.single("reading", "fault.parts"))
        fleet.start()
        (job,) = fleet.submit("reading", gate="read")
        fleet.witness.wait_for("holding")
        own_postgres_server.stop("immediate")
        # The step asks for its stored parts while nobody answers.
        fleet.witness.open_gate("read")
        fleet.until(lambda: "trying again" in fleet.log.read_text(), "the worker to notice")
        own_postgres_server.start()
        fleet.finish()
        assert fleet.scalar("select max(failures) from processing_job_steps where job_id = :job", job=job) == 0
        assert examine(fleet.database, fleet.witness) == []


@pytest.fixture
def proxy(own_postgres_server: PostgresServer) -> Iterator[Proxy]:
    with Proxy(own_postgres_server.port) as made:
        yield made


def test_connections_cut_under_load(
    own_postgres_server: PostgresServer, own_database: str, proxy: Proxy, tmp_path: Path
) -> None:
    through = own_database.replace(f":{own_postgres_server.port}/", f":{proxy.port}/")
    with fleets.open_fleet(tmp_path / "home", own_database) as fleet:
        workers = [fleet.start(ready=True, DOCMILL_DATABASE_URL=through) for _ in range(2)]
        for _ in range(volume(8, 100)):
            fleet.submit("fault everything", 20)
            seen = proxy.seen
            proxy.drop()
            fleet.until(lambda seen=seen: proxy.seen > seen, "somebody to connect again")  # type: ignore[misc]
        fleet.finish()
        assert all(worker.running for worker in workers)
        check_nothing_failed(fleet)


@pytest.mark.parametrize("manner", ["stall", "half_open"])
def test_a_worker_whose_connections_hang_is_replaced_and_comes_back(
    own_postgres_server: PostgresServer, own_database: str, proxy: Proxy, tmp_path: Path, manner: str
) -> None:
    through = own_database.replace(f":{own_postgres_server.port}/", f":{proxy.port}/")
    with fleets.open_fleet(tmp_path / "home", own_database) as fleet:
        hanging = fleet.start(ready=True, DOCMILL_DATABASE_URL=through)
        fleet.submit("fault everything", 50)
        fleet.witness.wait_for("asked")
        getattr(proxy, manner)()
        replacement = fleet.start()
        fleet.finish()
        # What hung comes to an end at last: the answers arrive late, or the connections turn out to be dead.
        if manner == "half_open":
            proxy.drop()
        proxy.flow()
        alive = "select count(*) from workers where pid = :pid and status = 'alive'"
        fleet.until(lambda: fleet.scalar(alive, pid=hanging.pid), "the worker to register anew")
        replacement.kill()
        fleet.submit("fault everything", 5)
        fleet.finish()
        assert hanging.running
        assert examine(fleet.database, fleet.witness) == []


def test_a_server_that_vanishes_without_a_word_is_noticed(postgres_url: str) -> None:
    database = Database(postgres_url)
    try:
        with closing(database.session()) as session:
            settings = session.raw.info.get_parameters()
        assert (settings["tcp_user_timeout"], settings["connect_timeout"]) == ("30000", "10")
        # Lane A waits for the bell, so it must not be deafer than the rest.
        with closing(PostgresBell(database).connect()) as connection:
            settings = connection.info.get_parameters()
        assert (settings["tcp_user_timeout"], settings["connect_timeout"]) == ("30000", "2")
    finally:
        database.close()


def test_a_cancelled_statement_is_no_lost_connection(postgres_url: str) -> None:
    # Tried again for as long as the connection is at fault, a processor that always runs into statement_timeout would
    # keep lane B for itself.
    database = Database(postgres_url)
    try:
        with database.read() as connection:
            connection.execute(text("set statement_timeout = 1"))
            with pytest.raises(DBAPIError) as caught:
                connection.execute(text("select pg_sleep(60)"))
        assert not is_transient(caught.value)
    finally:
        database.close()


@pytest.mark.parametrize("point", ["commit.inside:5%:raise", "commit.inside:5%:commit_then_raise"])
def test_five_percent_of_transactions_fail_and_every_effect_happens_once(open_fleet: OpenFleet, point: str) -> None:
    with open_fleet() as fleet:
        workers = [fleet.start(point) for _ in range(2)]
        fleet.submit("fault everything", volume(60, 2000))
        fleet.finish(600)
        assert all(worker.running for worker in workers)
        assert "trying again" in fleet.log.read_text()
        check_nothing_failed(fleet)


@pytest.mark.parametrize("point", ["heartbeat.renewed:2:raise", "sweep.batch:1:raise"])
def test_an_error_in_a_thread_at_the_side_does_not_leave_the_worker_half_alive(
    open_fleet: OpenFleet, point: str
) -> None:
    # It goes on, or it ends and is replaced; what it must not do is stand there and hold on to nothing.
    with open_fleet() as fleet:
        fleet.start(point)
        fleet.start("compute.before:5:kill")

        def done() -> bool:
            for _ in fleet.reap():
                fleet.start()
            return fleet.unfinished() == 0

        fleet.submit("fault everything", 20)
        fleet.until(done, "the jobs to finish")
        # After more than a lease, both still have theirs.
        expired = fleet.scalar("select max(expires_at) from workers")
        renewed = "select count(*) from workers where status = 'alive' and expires_at > :then"
        later = as_time(expired) + timedelta(seconds=fleets.Lease().duration)
        fleet.until(lambda: done() and fleet.scalar(renewed, then=bound(fleet, later)) == 2, "two leases renewed")
        assert examine(fleet.database, fleet.witness) == []


def as_time(value: object) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(str(value))


def bound(fleet: Fleet, value: datetime) -> object:
    """As the database wants it."""
    return iso(value) if fleet.database.kind == "sqlite" else value
