"""Docmill as a `System`: PostgreSQL, PostgreSQL with a processor on every step, SQLite."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import func, select

from bench.docmill.peer import VARIANTS, DocmillPeer
from bench.peers.system import answer_of
from bench.plan import DOCMILL_POSTGRES, DOCMILL_PROCESSOR, DOCMILL_SQLITE
from bench.results import Work
from bench.settings import Kind, Settings
from bench.workload import Tuning
from docmill.db.database import Database
from docmill.db.tables import jobs
from docmill.model.statuses import FINISHED_JOBS
from docmill.settings import load_settings


def _tuning(processes: int, concurrency: int) -> Tuning:
    plural = "es" if processes > 1 else ""
    return Tuning(
        processes=processes, concurrency=concurrency, note=f"{processes} process{plural} × {concurrency:,} slots"
    )


@dataclass(frozen=True, kw_only=True)
class DocmillSystem:
    """One variant of Docmill; what is measured happens in processes of its own."""

    name: str
    title: str
    variant: str
    usual: Tuning
    special: Mapping[Work, Tuning] = field(default_factory=dict)
    durable: bool = True

    def tuning(self, work: Work) -> Tuning:
        """The set-up for a workload."""
        return self.special.get(work, self.usual)

    def prepare(self, settings: Settings) -> None:
        """Make the schema, register the templates."""
        self._peer(settings).prepare()

    def submit(self, settings: Settings, kind: Kind, count: int) -> float:
        """Submit jobs in batches of 1,000; the seconds it took, the producer's start excluded."""
        return self._play(settings, "submit", kind.value, str(count))["seconds"]

    def probe(self, settings: Settings, count: int, gap_s: float) -> None:
        """Submit latency probes."""
        self._play(settings, "probe", str(count), str(gap_s))

    def stored(self, settings: Settings, kind: Kind) -> int:
        """Count results in `processing_job_steps`."""
        return self._peer(settings).stored(kind)

    def finished(self, settings: Settings) -> int | None:
        """Count finished jobs: step f is Docmill's own finish step, so no code of ours runs in it."""
        return finished_jobs(self.url(settings))

    def url(self, settings: Settings) -> str:
        """Where this variant keeps its data."""
        if VARIANTS[self.variant].sqlite:
            return load_settings(home=Path(settings.folder), database_url=None).url
        return settings.database_url

    def worker_command(self, index: int) -> Sequence[str]:
        """The command line of one worker process."""
        return self._command("work", str(index))

    def _peer(self, settings: Settings) -> DocmillPeer:
        """For what is not measured: in the driver itself, since starting a process takes longer."""
        return DocmillPeer(settings, VARIANTS[self.variant])

    def _command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "bench.docmill.peer", self.variant, *words]

    def _play(self, settings: Settings, *words: str) -> dict[str, float]:
        return answer_of(self._command(*words), settings, f"{self.title} failed to {words[0]}")


def finished_jobs(url: str) -> int:
    """How many jobs have come to their end."""
    database = Database(url)
    ended = jobs.c.status.in_([status.value for status in FINISHED_JOBS])
    try:
        with database.read() as connection:
            return connection.execute(select(func.count()).select_from(jobs).where(ended)).scalar_one()
    finally:
        database.close()


POSTGRES = DocmillSystem(
    name=DOCMILL_POSTGRES,
    title="Docmill (PostgreSQL)",
    variant="postgres",
    usual=_tuning(2, 500),
    special={Work.W3: _tuning(2, 3000), Work.W4: _tuning(2, 100), Work.W5: _tuning(2, 100)},
)
PROCESSOR = DocmillSystem(
    name=DOCMILL_PROCESSOR,
    title="Docmill (PostgreSQL, a processor on every step)",
    variant="processor",
    usual=_tuning(2, 500),
)
SQLITE = DocmillSystem(
    name=DOCMILL_SQLITE,
    title="Docmill (SQLite)",
    variant="sqlite",
    usual=_tuning(1, 500),
    special={Work.W3: _tuning(1, 3000), Work.W4: _tuning(1, 100), Work.W5: _tuning(1, 100)},
)
ALL = (POSTGRES, PROCESSOR, SQLITE)
