"""`docmill process` is killed at random, with all its children, and run again: every file once, nothing paid twice."""

import json
import os
import random
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

from docmill.testing.waiting import until
from tests.acceptance.mill import PATIENCE, Mill, Running, environment
from tests.contract.mailroom import SCHEMA, letter
from tests.fault.conftest import volume

DOCUMENTS = 20


class Books:
    """How far the installation has come, by what it has written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def count(self, query: str) -> int:
        file = self.folder / "home" / "docmill.db"
        if not file.exists():
            return 0
        connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        try:
            return int(connection.execute(query).fetchone()[0])
        except sqlite3.OperationalError:
            return 0  # Before its first table.
        finally:
            connection.close()

    def taken_in(self) -> int:
        return self.count("select count(*) from documents")

    def read(self) -> int:
        return self.count("select count(*) from processing_job_steps where step_key = 'read' and status = 'COMPLETED'")

    def answered(self) -> int:
        return self.count("select count(*) from ai_calls where outcome = 'answered'")

    def most_answers_of_a_job(self) -> int:
        each = "select count(*) as n from ai_calls where outcome = 'answered' group by job_id"
        return self.count(f"select max(n) from ({each})")

    def written(self) -> int:
        return len(self.files())

    def files(self) -> list[Path]:
        return sorted(path for path in (self.folder / "out").rglob("*") if path.is_file())


def kill_when(reached: Callable[[], int], goal: int, running: Running) -> None:
    """Kill the command and its children once so much is done."""
    ended = running.process.poll
    until(lambda: reached() >= goal or ended() is not None, PATIENCE, interval=0.002, what="some progress")
    assert ended() is None, running.err
    os.killpg(running.process.pid, signal.SIGKILL)
    running.process.wait(PATIENCE)


def test_every_file_is_processed_once_and_nothing_is_paid_twice(tmp_path: Path) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    for number in range(DOCUMENTS):
        (papers / f"{number:02}.pdf").write_bytes(letter(f"Invoice {number}\nTotal {number}.50"))
    (tmp_path / "slip.yaml").write_text(SCHEMA)
    variables = {"DOCMILL_PLUGINS": "counting_model", "COUNTED": str(tmp_path / "counted")}
    # Two at a time, or there would be little to hit.
    variables |= {"DOCMILL_AI__RATE": "1000", "DOCMILL_POOLS": '{"ai": {"capacity": 2}}'}
    mill = Mill(folder=tmp_path, environment=environment(tmp_path, **variables))
    command = ("process", "papers", "--schema", "slip.yaml", "--model", "counting:one", "--out", "out")
    books, dice = Books(tmp_path), random.Random(4711)
    for number in range(volume(ci=4, full=30)):
        reached = [books.taken_in, books.read, books.answered, books.written][number % 4]
        most = 2 * DOCUMENTS if reached == books.written else DOCUMENTS
        goal = min(most - 2, reached() + dice.randint(1, 4))
        with mill.started(*command) as running:
            kill_when(reached, goal, running)

    last = mill(*command, "--json")
    assert last.code == 0, last
    rows = last.data
    assert [Path(row["file"]).name for row in rows] == sorted(path.name for path in papers.iterdir())
    assert {row["status"] for row in rows} == {"completed"}
    assert len({row["id"] for row in rows}) == DOCUMENTS
    listed = mill("documents", "list", "--all", "--json").data
    assert sorted(row["id"] for row in listed) == sorted(row["id"] for row in rows), "no document came in twice"
    files = books.files()
    assert sorted(path.stem for path in files) == sorted(2 * [row["id"] for row in rows]), "one JSON, one Parquet each"
    for row in rows:
        (saved,) = [path for path in files if path.name == f"{row['id']}.json"]
        assert json.loads(saved.read_text())["fields"] == row["fields"]
    # What a model answered was kept with the answer, so it was never asked for that again.
    assert books.answered() == DOCUMENTS
    assert books.most_answers_of_a_job() == 1
