"""What outside executors are given of a document: a link to its original that works as it stands, and expires."""

import hashlib
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import MetaData, select, update

from docmill.bootstrap import App, open_app
from docmill.db.tables import documents
from docmill.documents.handing_out import LONGEST, FileLink, Originals
from docmill.engine.batch import NewJob
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.settings import ExecutorSection, Settings
from docmill.steps.external import ANSWER_WITHIN, GRACE
from docmill.templates.compile import compile_template
from docmill.testing.hub import Callback, Dispatch, Hub, Script, completed
from docmill.testing.waiting import until
from docmill.workers.process import alongside
from tests.contract.audited import uploaded
from tests.contract.served import OTHER_ORG, Served, serving

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PUBLIC = "https://docmill.example"


@pytest.fixture
def app(database_url: str, tmp_path: Path) -> Iterator[App]:
    with open_app(Settings(home=tmp_path / "home", database_url=database_url)) as app:
        yield app


def originals(app: App, public_url: str | None = PUBLIC) -> Originals:
    return Originals(database=app.database, blobs=lambda: app.blobs, public_url=public_url)


def link(app: App, entity_id: str, within: timedelta = timedelta(hours=1), **more: Any) -> FileLink | None:
    asked = {"org_id": DEFAULT_ORG, "entity_type": "document", **more}
    return originals(app, asked.pop("public_url", PUBLIC)).link(**asked, entity_id=entity_id, within=within, now=NOW)


def test_a_link_opens_the_original_until_it_expires_and_nothing_of_it_is_stored(app: App) -> None:
    document = uploaded(app)
    found = link(app, document)
    assert found is not None
    assert found.expires_at == NOW + timedelta(hours=1)
    path = found.url.removeprefix(PUBLIC)
    key = app.documents.get(document).original_key
    assert app.links.check(path, method="GET", now=found.expires_at - timedelta(seconds=1)) == key
    with pytest.raises(Exception, match="expired"):
        app.links.check(path, method="GET", now=found.expires_at)
    signature = found.url.split("signature=")[1]
    stored = everything_stored(app)
    assert str(key) in stored, "all of it is looked at"
    assert signature not in stored
    assert signature not in repr(found)


def test_no_link_lives_longer_than_a_bucket_would_let_it(app: App) -> None:
    found = link(app, uploaded(app), timedelta(days=400))
    assert found is not None
    assert found.expires_at == NOW + LONGEST


def test_there_is_none_without_an_original_an_address_or_a_document_of_the_own_organisation(app: App) -> None:
    document = uploaded(app)
    assert link(app, document, public_url=None) is None
    assert link(app, document, entity_type="invoice") is None
    assert link(app, document, org_id=OTHER_ORG) is None
    assert link(app, "42") is None
    assert link(app, new_id()) is None
    key = app.documents.get(document).original_key
    assert key is not None
    app.blobs.delete(key)
    assert link(app, document) is None, "the row names bytes that are not there"
    other = uploaded(app, 2)
    with app.database.write() as connection:
        connection.execute(update(documents).where(documents.c.id == other).values(original_key=None))
    assert link(app, other) is None


def everything_stored(app: App) -> str:
    """Every value in every table, as text."""
    tables, told = MetaData(), []
    with app.database.read() as connection:
        tables.reflect(connection)
        for table in tables.sorted_tables:
            told += [repr(tuple(row)) for row in connection.execute(select(table))]
    return "\n".join(told)


@dataclass
class Bureau:
    """An installation that is served, works, and has an executor."""

    served: Served
    app: App
    hub: Hub

    def ask(self, entity_id: str, within: str = "") -> str:
        """A job about a document with one step for the executor, and what came of it."""
        text = f"""
name: outside-{new_id()}
processable_type: document
task_type: DOCUMENT_PROCESS
steps:
  - {{step_key: quick, type: external.call, kind: external, executor: hub, group: 1, answer_within: 1m}}
  - {{step_key: slow, type: external.call, kind: external, executor: hub, group: 1{within}}}
  - {{step_key: finish, type: FinishProcessing}}
"""
        template = self.app.templates.register(compile_template(text, catalogue=self.app.catalogue))
        job = NewJob(
            id=new_id(),
            template_id=template.id,
            org_id=DEFAULT_ORG,
            entity_type="document",
            entity_id=entity_id,
            file_type="pdf",
        )
        self.app.jobs.submit([job])
        until(lambda: self.app.jobs.get(job.id).summary.status.finished, 60, what="the job")
        return job.id

    @property
    def last(self) -> Dispatch:
        return self.hub.dispatches()[-1]


def fetching(fetched: list[bytes]) -> Script:
    """An executor that has nothing but its message, and looks at the file."""

    def script(message: Mapping[str, Any]) -> list[Callback]:
        url = message["metadata"]["fileUrl"]
        if url is not None:
            fetched.append(httpx.get(url, timeout=30, verify=False).raise_for_status().content)
        return [completed(message, step) for step in message["metadata"]["steps"]]

    return script


@contextmanager
def bureau(database_url: str, tmp_path: Path, *, script: Script, public: bool = True) -> Iterator[Bureau]:
    home = tmp_path / "home"
    with serving(database_url, home) as served:
        deliver = lambda body, headers: served.app.callbacks.receive(body, now=datetime.now(UTC), headers=headers)  # noqa: E731
        hub = Hub(tmp_path / "hub", deliver=deliver, script=script)
        settings = Settings.model_validate(
            {
                "home": home,
                "database_url": database_url,
                "api": {"public_url": served.address if public else None},
                "executors": {"hub": ExecutorSection(url=hub.url)},
            }
        )
        try:
            with open_app(settings) as app, alongside(app.worker()):
                yield Bureau(served, app, hub)
        finally:
            hub.close()


def test_an_executor_fetches_the_bytes_with_nothing_but_its_message(
    database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="docmill")
    fetched: list[bytes] = []
    with bureau(database_url, tmp_path, script=fetching(fetched)) as office:
        document = uploaded(office.app)
        job = office.ask(document, ", answer_within: 2h")
        assert office.app.jobs.get(job).summary.status == "COMPLETED"
        (content,) = fetched
        assert hashlib.sha256(content).hexdigest() == office.app.documents.get(document).sha256
        told = office.last.message["metadata"]
        slow = datetime.fromisoformat(told["steps"][1]["deadline"])
        assert datetime.fromisoformat(told["fileUrlExpiresAt"]) == slow + GRACE, "as long as the slowest may take"
        signature = told["fileUrl"].split("signature=")[1]
        assert signature not in everything_stored(office.app)
        assert signature not in caplog.text


def test_every_message_has_a_link_of_its_own_and_none_outlives_a_week(database_url: str, tmp_path: Path) -> None:
    with bureau(database_url, tmp_path, script=fetching([])) as office:
        document = uploaded(office.app)
        office.ask(document)
        usual = office.last.message["metadata"]
        office.ask(document, ", answer_within: 30d")
        long = office.last.message["metadata"]
        assert usual["fileUrl"] != long["fileUrl"]
        assert lasts(usual) == timedelta(seconds=ANSWER_WITHIN) + GRACE
        assert lasts(long) == LONGEST


def lasts(metadata: Mapping[str, Any]) -> timedelta:
    """How long the link lives from the moment of the message, which is a minute before the first deadline."""
    sent = datetime.fromisoformat(metadata["steps"][0]["deadline"]) - timedelta(minutes=1)
    return datetime.fromisoformat(metadata["fileUrlExpiresAt"]) - sent


def test_without_a_file_or_an_address_the_message_says_that_there_is_none(database_url: str, tmp_path: Path) -> None:
    with bureau(database_url, tmp_path, script=fetching([]), public=False) as office:
        office.ask(uploaded(office.app))
        told = office.last.message["metadata"]
        assert (told["fileUrl"], told["fileUrlExpiresAt"]) == (None, None)
