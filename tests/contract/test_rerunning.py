"""One step once more by another model, and what must not happen on the way."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from docmill.bootstrap import App, open_app
from docmill.model.errors import Conflict
from docmill.services.ordering import processing_template
from docmill.services.submission import new_job
from docmill.settings import Settings


@pytest.fixture
def app(database_url: str, tmp_path: Path) -> Iterator[App]:
    with open_app(Settings(home=tmp_path / "home", database_url=database_url)) as app:
        yield app


def test_another_model_is_not_noted_while_somebody_works_on_the_same_document(app: App) -> None:
    template = processing_template(app.templates, app.catalogue)
    done, at_work = (new_job(template, "document:1") for _ in range(2))
    app.jobs.submit([done])
    app.jobs.cancel(done.id)
    app.jobs.submit([at_work])
    before = app.jobs.get(done.id)
    with pytest.raises(Conflict, match=f"Job {at_work.id} is at work on the same document"):
        app.for_org(app.org_id).reruns.rerun(done.id, "ask", "local:two")
    assert app.jobs.get(done.id) == before
    app.jobs.cancel(at_work.id)
    assert app.for_org(app.org_id).reruns.rerun(done.id, "ask", "local:two").metadata["model"] == "local:two"
