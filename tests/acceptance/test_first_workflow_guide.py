"""docs/guides/first-workflow.md: what it tells people to write does what it says."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from docmill.bootstrap import App, open_app
from docmill.engine.batch import NewJob
from docmill.model.ids import DEFAULT_ORG
from docmill.model.statuses import JobStatus, StepStatus
from docmill.settings import Settings
from docmill.templates.compile import compile_template
from docmill.testing.waiting import until

GUIDE = (Path(__file__).parents[2] / "docs/guides/first-workflow.md").read_text()


def block(language: str) -> str:
    """The guide's first block of this language."""
    found = re.search(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    """An installation set up as the guide says."""
    (tmp_path / "filing.py").write_text(block("python"))
    monkeypatch.syspath_prepend(str(tmp_path))
    with open_app(Settings(home=tmp_path / "home", plugins=("filing",))) as app:
        with app.database.write() as connection:
            connection.execute(text("create table totals (invoice text, total int)"))
        yield app
    sys.modules.pop("filing", None)


def test_the_guide_leads_to_two_filed_invoices(app: App, tmp_path: Path) -> None:
    template = app.templates.register(compile_template(block("yaml"), catalogue=app.catalogue))
    high, low = (
        NewJob(
            template_id=template.id,
            org_id=DEFAULT_ORG,
            entity_type="invoice",
            entity_id=number,
            metadata={"lines": lines},
        )
        for number, lines in (("1", [400, 900]), ("2", [40, 90]))
    )
    app.jobs.submit([high, low])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DOCMILL_")}
    environment |= {"DOCMILL_HOME": str(tmp_path / "home"), "DOCMILL_PLUGINS": "filing", "PYTHONPATH": str(tmp_path)}
    with (tmp_path / "worker.log").open("wb") as log:
        command = [sys.executable, "-m", "docmill.demo.worker"]
        worker = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stderr=log, cwd=tmp_path)
    try:
        until(lambda: all(job.status.finished for job in app.jobs.list()), timeout=60, what="both jobs to end")
    finally:
        worker.terminate()
        worker.communicate(timeout=60)
    assert {job.status for job in app.jobs.list()} == {JobStatus.COMPLETED}
    approvals = [app.jobs.get(job.id).steps[1].status for job in (high, low)]
    assert approvals == [StepStatus.COMPLETED, StepStatus.SKIPPED]
    with app.database.read() as connection:
        rows = connection.execute(text("select invoice, total from totals order by invoice")).all()
    assert [tuple(row) for row in rows] == [("1", 1300), ("2", 130)]
    printed = re.search(r'"select \* from totals"\n(.*?)```', GUIDE, re.DOTALL)
    assert printed is not None
    assert printed[1].split() == ["1|1300", "2|130"]
