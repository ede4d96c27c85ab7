"""Databases with a history: ten thousand and a million finished jobs, made once and kept between runs.

A hundred workflows are run for real; their rows (jobs, steps, events) are then copied under new ids, so the history has
the shape that this release writes. Only the hashes of the copied events do not chain.
"""

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import psycopg

from bench import servers
from bench.docmill.system import POSTGRES, finished_jobs
from bench.measure import ROOT
from bench.processes import BenchError, WorkerGroup
from bench.settings import Kind, Settings
from docmill.db import migrations, schema

SMALL = 10_000
LARGE = 1_000_000
_SAMPLE = 100
_SAMPLE_TIMEOUT_S = 60.0
_FORM = 2
"""Raise it when this module makes something else than before."""

_FAST = {
    "autovacuum": "off",
    "fsync": "off",
    "full_page_writes": "off",
    "maintenance_work_mem": "256MB",
    "max_wal_senders": "0",
    "synchronous_commit": "off",
    "wal_level": "minimal",
}
"""For making the history only; measurements run with the defaults."""

_TABLES = {"processing_jobs": "id", "processing_job_steps": "job_id", "processing_job_events": "job_id"}

# Time-ordered ids (UUIDv7), one a second, ending before today's.
_NEW_ID = """
(lpad(to_hex((extract(epoch from now() - interval '30 days') * 1000)::bigint + k * 1000), 12, '0')
 || '7' || substr(md5(k::text), 1, 3) || '8' || substr(md5(k::text), 4, 15))::uuid"""


def database_name(jobs: int) -> str:
    """The database with this many finished jobs."""
    return f"jobs_{jobs}"


def ensure(home: Path) -> Path:
    """The data directory with both databases, made if it is missing or of another schema."""
    folder = _folder(home)
    stamp = _stamp()
    kept = folder / "stamp.json"
    if kept.exists() and json.loads(kept.read_text()) == stamp:
        return folder / "data"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o755, parents=True)
    began = time.monotonic()
    _make(folder)
    kept.write_text(json.dumps(stamp))
    print(f"Made {folder} in {time.monotonic() - began:.0f} s.", file=sys.stderr, flush=True)
    return folder / "data"


def _folder(home: Path) -> Path:
    folder = home.resolve() / "growth"
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    return folder if servers.may_enter(folder) else Path(tempfile.gettempdir()) / f"docmill-bench-growth-{os.geteuid()}"


def _stamp() -> dict[str, object]:
    """What the history depends on."""
    digest = hashlib.sha256()
    for path in sorted(Path(next(iter(migrations.__path__))).rglob("*.py")):
        digest.update(path.read_bytes())
    return {
        "form": _FORM,
        "jobs": [SMALL, LARGE],
        "migrations": digest.hexdigest(),
        "postgres": servers.postgres_version(),
        "revision": schema.HEAD,
    }


def _make(folder: Path) -> None:
    print(f"Making databases with {SMALL:,} and {LARGE:,} finished jobs …", file=sys.stderr, flush=True)
    data = folder / "data"
    servers.make_cluster(data)
    small, large = database_name(SMALL), database_name(LARGE)
    with servers.postgres(data, log=folder / "postgres.log", **_FAST) as port:
        with psycopg.connect(servers.url(port, "postgres"), autocommit=True) as connection:
            connection.execute(f"create database {small}".encode())
        _run_sample(folder, servers.url(port, small))
        _copy(servers.url(port, small), _SAMPLE, SMALL)
        with psycopg.connect(servers.url(port, "postgres"), autocommit=True) as connection:
            connection.execute(f"create database {large} template {small}".encode())
        _copy(servers.url(port, large), SMALL, LARGE)
    os.sync()


def _run_sample(folder: Path, url: str) -> None:
    """Run a few workflows as in every measurement."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        settings = Settings(
            database_url=url,
            redis_url="",
            event_log=str(Path(scratch, "events.log")),
            folder=scratch,
            processes=1,
            concurrency=_SAMPLE,
        )
        POSTGRES.prepare(settings)
        POSTGRES.submit(settings, Kind.FLOW, _SAMPLE)
        command = POSTGRES.worker_command(0)
        with WorkerGroup([command], environment=settings.environment(), cwd=ROOT, log=folder / "sample.log") as workers:
            deadline = time.monotonic() + _SAMPLE_TIMEOUT_S
            while finished_jobs(url) < _SAMPLE:
                workers.check()
                if time.monotonic() > deadline:
                    raise BenchError(f"The sample workflows did not end; see {folder / 'sample.log'}.")
                time.sleep(0.1)


def _copy(url: str, begin: int, end: int) -> None:
    """Copies numbered from `begin` to `end` of the sample, row by row in order of their ids."""
    with psycopg.connect(url, autocommit=True) as connection:
        # Foreign keys hold by construction; checking six million of them would take longer than writing them.
        connection.execute("set session_replication_role = replica")
        connection.execute(
            "create temporary table sample as select id, row_number() over (order by id) - 1 as n "
            f"from (select id from processing_jobs order by id desc limit {_SAMPLE}) newest".encode()
        )
        connection.execute(
            f"create temporary table copies as select s.id, {_NEW_ID} as new_id "
            f"from generate_series({begin}, {end - 1}) k join sample s on s.n = k % {_SAMPLE} order by k".encode()
        )
        connection.execute("analyze sample, copies")
        for table, key in _TABLES.items():
            columns = connection.execute(
                "select column_name from information_schema.columns "
                "where table_schema = 'public' and table_name = %s order by ordinal_position",
                (table,),
            ).fetchall()
            names = [f'"{name}"' for (name,) in columns]
            values = ["c.new_id" if name == f'"{key}"' else f"t.{name}" for name in names]
            connection.execute(
                f"insert into {table} ({', '.join(names)}) select {', '.join(values)} "
                f"from copies c join (select t.* from sample s join {table} t on t.{key} = s.id) t "
                f"on t.{key} = c.id".encode()
            )
        connection.execute("vacuum (freeze, analyze)")
        connection.execute("checkpoint")
