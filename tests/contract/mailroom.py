"""An installation that processes documents in this process: for tests of what `docmill process` promises."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from sqlalchemy import select

from docmill.bootstrap import App, open_app
from docmill.db.tables import documents, job_steps
from docmill.documents.intake import sources
from docmill.documents.records import DocumentRecord
from docmill.services.ordering import order_of, processing_template
from docmill.services.processing import Entry, Order
from docmill.settings import ChildSection, ReviewSection, Settings, StorageSection, WebhookSection
from docmill.testing.waiting import until
from docmill.workers.process import alongside

SCHEMA = """
name: slip
title: Slip
fields:
  number: {type: text, labels: [Invoice]}
  total: {type: amount, labels: [Total]}
"""


def letter(text: str) -> bytes:
    """A PDF of one page with these lines, written by hand: small, and the same bytes every time."""
    lines = " ".join(f"({line}) Tj 0 -20 Td" for line in text.splitlines())
    content = f"BT /F1 12 Tf 50 750 Td {lines} ET".encode()
    bodies = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >> stream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    pdf, places = b"%PDF-1.4\n", []
    for number, body in enumerate(bodies, 1):
        places.append(len(pdf))
        pdf += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return pdf + b"xref\n0 6\n0000000000 65535 f \n%strailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        table,
        len(pdf),
    )


class Mailroom:
    """Documents in, and how they ended."""

    def __init__(self, app: App, folder: Path, until_closed: ExitStack) -> None:
        self.app = app
        self._open = until_closed
        self._at_work = False
        self.folder = folder
        (folder / "slip.yaml").write_text(SCHEMA)
        self.template = processing_template(app.templates, app.catalogue)

    def order(self, **wishes: object) -> Order:
        order = order_of(
            schema=str(self.folder / "slip.yaml"), model=None, out=self.folder / "out", blobs=self.app.blobs
        )
        return replace(order, **wishes)  # type: ignore[arg-type]

    def put(self, name: str, content: bytes) -> str:
        """A file to be processed."""
        path = self.folder / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return str(path)

    def process(self, *paths: str, order: Order | None = None) -> list[DocumentRecord]:
        """Process these to their ends, as the command does; in the order of the inputs.

        The worker that does it stays until the mailroom closes.
        """
        self._work()
        order = order or self.order()
        run_id = self.app.processing.open_run(paths, order)
        inputs = list(sources(paths))
        entries = self.app.processing.run(run_id, inputs, order, self.template.id, watch=lambda progress: None)
        self.app.processing.close_run(run_id)
        return self.records(entries)

    def _work(self) -> None:
        if not self._at_work:
            self._open.enter_context(alongside(self.app.worker()))
            self._at_work = True

    def work_until(self, done: Callable[[], bool]) -> None:
        """Let the worker do what was submitted."""
        self._work()
        until(done, 60, what="the documents")

    def submit(self, *paths: str, order: Order | None = None) -> list[str]:
        """Take these in and submit their jobs, with nobody there to do them; the ids of the documents."""

        class Enough(Exception):
            pass

        def enough() -> None:
            raise Enough

        order = order or self.order()
        run_id = self.app.processing.open_run(paths, order)
        with suppress(Enough):
            self.app.processing.run(
                run_id, list(sources(paths)), order, self.template.id, watch=lambda progress: None, check=enough
            )
        with self.app.database.read() as connection:
            query = select(documents.c.id).where(documents.c.run_id == run_id).order_by(documents.c.source)
            return list(connection.execute(query).scalars())

    def records(self, entries: Sequence[Entry]) -> list[DocumentRecord]:
        found = self.app.documents.many([entry.document_id for entry in entries])
        return [found[entry.document_id] for entry in entries]

    def steps_done(self, step_key: str) -> int:
        """How many jobs have completed this step."""
        query = select(job_steps.c.job_id).where(job_steps.c.step_key == step_key, job_steps.c.status == "COMPLETED")
        with self.app.database.read() as connection:
            return len(connection.execute(query).all())

    def outputs(self) -> list[Path]:
        """All files that were written."""
        return sorted(path for path in (self.folder / "out").rglob("*") if path.is_file())


@contextmanager
def mailroom(
    url: str,
    folder: Path,
    *,
    expire: timedelta | None = None,
    storage: StorageSection | None = None,
    review: ReviewSection | None = None,
    webhooks: WebhookSection | None = None,
) -> Iterator[Mailroom]:
    """An installation on this database, its files below the folder."""
    # One child: to start a second costs more than all the work there is.
    settings = Settings(
        home=folder / "home",
        database_url=url,
        children=ChildSection(count=1),
        storage=storage or StorageSection(originals_expire_after=expire),
        review=review or ReviewSection(),
        webhooks=webhooks or WebhookSection(),
    )
    with open_app(settings, check_schema=False) as app, ExitStack() as until_closed:
        yield Mailroom(app, folder, until_closed)
