"""Private servers start fresh, come back with their data, and leave nothing behind."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import psycopg
import pytest

from docmill.testing import programs
from docmill.testing.processes import ServerFailed
from docmill.testing.servers import HOST, PostgresServer, RedisServer, StopMode
from docmill.testing.waiting import until
from tests.conftest import PostgresCopies


def ask_redis(server: RedisServer, *commands: str) -> list[str]:
    """Send inline commands and return the first line of each simple answer."""
    with socket.create_connection((HOST, server.port), timeout=5) as connection, connection.makefile("rwb") as stream:
        answers = []
        for command in commands:
            stream.write(f"{command}\r\n".encode())
            stream.flush()
            answers.append(stream.readline().decode().strip())
        return answers


class TestPostgres:
    @pytest.mark.parametrize("mode", ["immediate", "fast"])
    def test_committed_rows_survive_a_stop_and_the_address_stays(
        self, own_postgres_server: PostgresServer, mode: StopMode
    ) -> None:
        url = own_postgres_server.create_database("kept")
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE t AS SELECT 42 AS answer")
        own_postgres_server.stop(mode)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url, connect_timeout=2)
        own_postgres_server.start()
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT answer FROM t").fetchone() == (42,)

    def test_it_outlives_the_thread_that_restarted_it(self, own_postgres_server: PostgresServer) -> None:
        own_postgres_server.stop("immediate")
        restarting = threading.Thread(target=own_postgres_server.start)
        restarting.start()
        restarting.join()
        with psycopg.connect(own_postgres_server.url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)

    def test_a_killed_server_can_be_started_again(self, own_postgres_server: PostgresServer) -> None:
        own_postgres_server.send_signal(signal.SIGKILL)
        until(lambda: not own_postgres_server.running, what="the killed server to be gone")
        own_postgres_server.start()
        assert own_postgres_server.running

    def test_a_paused_server_can_still_be_stopped(self, own_postgres_server: PostgresServer) -> None:
        own_postgres_server.send_signal(signal.SIGSTOP)
        own_postgres_server.stop("immediate")
        assert not own_postgres_server.running

    def test_fsync_is_on_unless_told_otherwise_and_settings_reach_the_server(self) -> None:
        with (
            PostgresServer(settings={"max_connections": "17"}) as server,
            psycopg.connect(server.url) as connection,
        ):
            assert connection.execute("SHOW fsync").fetchone() == ("on",)
            assert connection.execute("SHOW max_connections").fetchone() == ("17",)

    def test_a_wrong_setting_is_reported_with_the_servers_own_words_and_nothing_is_left(self) -> None:
        server = PostgresServer(settings={"no_such_setting": "1"})
        with pytest.raises(ServerFailed, match="no_such_setting"):
            server.start()
        directory = server.directory
        server.close()
        assert not directory.exists()

    def test_two_servers_know_nothing_of_each_other(self, postgres_server: PostgresServer) -> None:
        with PostgresServer(fsync=False) as other:
            other.create_database("mine")
            with psycopg.connect(postgres_server.url) as connection:
                found = connection.execute("SELECT count(*) FROM pg_database WHERE datname = 'mine'").fetchone()
        assert found == (0,)

    def test_a_second_start_is_refused(self, postgres_server: PostgresServer) -> None:
        with pytest.raises(ServerFailed, match="already running"):
            postgres_server.start()

    @pytest.mark.parametrize("forking", [False, True], ids=["alone", "survived by a forked child"])
    def test_the_server_goes_with_its_directory_when_its_owner_is_killed(self, forking: bool) -> None:
        script = (
            "import os, sys\n"
            "from docmill.testing.servers import PostgresServer\n"
            "server = PostgresServer(fsync=False)\n"
            "server.start()\n"
            "if sys.argv[1] == 'True' and not os.fork():\n"
            "    sys.stdin.read()\n"
            "    os._exit(0)\n"
            "print(server.pid, server.directory, flush=True)\n"
            "sys.stdin.read()\n"
        )
        command = [sys.executable, "-c", script, str(forking)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
            assert owner.stdout is not None
            pid, directory = owner.stdout.readline().split()
            assert psutil.pid_exists(int(pid))
            assert Path(directory).exists()
            owner.kill()
            until(lambda: not psutil.pid_exists(int(pid)), what="the orphaned server to end")
            until(lambda: not Path(directory).exists(), what="its directory to be removed")

    def test_the_server_ends_when_its_tether_is_killed(self) -> None:
        server = PostgresServer(fsync=False)
        server.start()
        postmaster = psutil.Process(server.pid)
        tether = postmaster.parent()
        assert tether is not None
        assert tether.ppid() == os.getpid()
        tether.kill()
        postmaster.wait(10)
        assert not server.running
        server.close()


class TestDatabases:
    def test_each_test_gets_an_empty_database(self, postgres_url: str) -> None:
        with psycopg.connect(postgres_url) as connection:
            tables = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
        assert tables == (0,)

    def test_a_template_is_prepared_once_and_copied_thereafter(self, postgres_copy_of: PostgresCopies) -> None:
        prepared = []

        def prepare(url: str) -> None:
            prepared.append(url)
            with psycopg.connect(url) as connection:
                connection.execute("CREATE TABLE t AS SELECT 1 AS n")

        first, second = postgres_copy_of("copied", prepare), postgres_copy_of("copied", prepare)
        with psycopg.connect(first) as connection:
            connection.execute("UPDATE t SET n = 2")
        with psycopg.connect(second) as connection:
            assert connection.execute("SELECT n FROM t").fetchone() == (1,)
        assert len(prepared) == 1

    def test_a_connection_left_open_by_the_preparation_does_not_prevent_copies(
        self, postgres_copy_of: PostgresCopies
    ) -> None:
        lingering = []
        url = postgres_copy_of("lingering", lambda url: lingering.append(psycopg.connect(url)))
        with psycopg.connect(url) as copy:
            assert copy.execute("SELECT 1").fetchone() == (1,)
        lingering[0].close()

    def test_dropping_cuts_off_whoever_is_connected(self, postgres_server: PostgresServer) -> None:
        with psycopg.connect(postgres_server.create_database("in_use")) as connection:
            postgres_server.drop_database("in_use")
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")


class TestRedis:
    def test_it_answers(self, redis_server: RedisServer) -> None:
        assert ask_redis(redis_server, "SET greeting hello", "EXISTS greeting") == ["+OK", ":1"]

    @pytest.mark.parametrize("mode", ["immediate", "fast"])
    def test_it_comes_back_empty_on_the_same_port(self, own_redis_server: RedisServer, mode: StopMode) -> None:
        port = own_redis_server.port
        ask_redis(own_redis_server, "SET k 1")
        own_redis_server.stop(mode)
        own_redis_server.start()
        assert own_redis_server.port == port
        assert ask_redis(own_redis_server, "EXISTS k") == [":0"]

    def test_stopping_twice_is_no_error(self, own_redis_server: RedisServer) -> None:
        own_redis_server.stop()
        own_redis_server.stop()
        assert not own_redis_server.running


class TestPrograms:
    def test_the_environment_decides_where_to_look(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("DOCMILL_POSTGRES_BIN", str(tmp_path))
        monkeypatch.setenv("DOCMILL_REDIS_SERVER", str(tmp_path / "redis-server"))
        assert programs.missing() == ["postgresql", "redis"]

    def test_nothing_is_missing_once_set_up(self) -> None:
        assert programs.missing() == []
