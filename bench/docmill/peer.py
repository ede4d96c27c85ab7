"""The roles Docmill plays in processes of its own: preparing, submitting, working, counting."""

import asyncio
import logging
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import func, select, text

from bench import flow
from bench.docmill import templates
from bench.docmill.plugin import CREATE_TABLE
from bench.peers import role
from bench.settings import Kind, Settings
from docmill.bootstrap import App, open_app
from docmill.db.tables import job_steps
from docmill.engine.batch import NewJob
from docmill.model.ids import DEFAULT_ORG
from docmill.model.statuses import StepKind, StepStatus
from docmill.settings import load_settings
from docmill.templates.compile import compile_template

BATCH = 1000
PLUGIN = "bench.docmill.plugin"


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One of the ways Docmill is measured."""

    sqlite: bool
    processed: bool


VARIANTS: Mapping[str, Variant] = {
    "postgres": Variant(sqlite=False, processed=False),
    "processor": Variant(sqlite=False, processed=True),
    "sqlite": Variant(sqlite=True, processed=False),
}


@contextmanager
def opened(settings: Settings, variant: Variant, *, check_schema: bool = True) -> Iterator[App]:
    """An installation for one measurement: home in its folder, the same number of slots for every kind of step."""
    docmill = load_settings(
        home=Path(settings.folder),
        database_url=None if variant.sqlite else settings.database_url,
        plugins=(PLUGIN,),
        pools={kind.value: {"capacity": settings.concurrency} for kind in StepKind},
    )
    with open_app(docmill, check_schema=check_schema) as app:
        yield app


def flow_jobs(template_id: str, numbers: Sequence[int]) -> list[NewJob]:
    """Jobs as an intake would submit them, the workflow's number for an entity."""
    return [
        NewJob(
            template_id=template_id,
            org_id=DEFAULT_ORG,
            entity_type=templates.ENTITY_TYPE,
            entity_id=str(number),
            title=f"Document {number}",
        )
        for number in numbers
    ]


class DocmillPeer:
    """Docmill behind the protocol that the peers' processes follow."""

    def __init__(self, settings: Settings, variant: Variant) -> None:
        self._settings = settings
        self._variant = variant

    def prepare(self) -> None:
        """Make the schema and register the templates, compiled from their YAML."""
        with opened(self._settings, self._variant, check_schema=False) as app:
            app.upgrade()
            register(app)
            if self._variant.processed:
                with app.database.write() as connection:
                    connection.execute(text(CREATE_TABLE))

    def submit(self, kind: Kind, count: int) -> float:
        """Submit in batches; the seconds it took on an open connection."""
        waits, processed = self._settings.wait_s > 0, self._variant.processed
        with opened(self._settings, self._variant) as app:
            template = app.templates.find(templates.template_for(kind, waits=waits, processed=processed))
            began = time.perf_counter()
            for begin in range(0, count, BATCH):
                app.jobs.submit(flow_jobs(template.id, range(begin, min(count, begin + BATCH))))
            return time.perf_counter() - began

    def probe(self, count: int, gap_s: float) -> None:
        """Submit one job at a time."""
        with opened(self._settings, self._variant) as app:
            template = app.templates.find(templates.PROBE)
            for number in range(count):
                job = NewJob(
                    template_id=template.id,
                    org_id=DEFAULT_ORG,
                    entity_type=templates.ENTITY_TYPE,
                    entity_id=str(number),
                    metadata={"sent_at": time.monotonic()},
                )
                app.jobs.submit([job])
                time.sleep(gap_s)

    def stored(self, kind: Kind) -> int:
        """Results in `processing_job_steps`; with processors, not more than rows in their own table."""
        keys = flow.STEPS if kind is Kind.FLOW else (templates.NOOP,)
        query = select(func.count()).select_from(job_steps).where(job_steps.c.step_key.in_(keys))
        query = query.where(job_steps.c.status == StepStatus.COMPLETED.value, job_steps.c.result.is_not(None))
        with opened(self._settings, self._variant) as app, app.database.read() as connection:
            stored = connection.execute(query).scalar_one()
            if self._variant.processed:
                applied = connection.execute(text("select count(*) from bench_results")).scalar_one()
                stored = min(stored, applied)
            return stored

    def work(self, index: int) -> None:
        """Be a worker process; its log is shown when it ends before its time."""
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(name)s %(message)s")
        with opened(self._settings, self._variant) as app:
            asyncio.run(app.worker().run())


def register(app: App) -> None:
    """Compile and register all templates."""
    for name, source in templates.SOURCES.items():
        app.templates.register(compile_template(source, catalogue=app.catalogue, source=name))


if __name__ == "__main__":
    name, *words = sys.argv[1:]
    role.play(DocmillPeer(Settings.from_environment(), VARIANTS[name]), *words)
