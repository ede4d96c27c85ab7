"""One step once more by another model, and what must not happen on the way."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from docmill.bootstrap import App, open_app
from docmill.engine import failpoints
from docmill.model.errors import AlreadyActive, Conflict, DatabaseUnavailable
from docmill.services.jobs import Retry
from docmill.services.ordering import processing_template
from docmill.services.rerunning import Reruns
from docmill.services.submission import new_job
from docmill.services.templates import Templates, TemplateVersion
from docmill.settings import Settings
from tests.contract.audited import ANN, ASKING, compiled, log


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


class _Meanwhile(Templates):
    """Templates that let something happen between the look at a job and what is written about it."""

    def __init__(self, app: App, event: Callable[[], object]) -> None:
        super().__init__(app.database, app.org_id)
        self._event = event

    def find(self, name: str, version: int | None = None) -> TemplateVersion:
        self._event()
        return super().find(name, version)


def _reruns(app: App, event: Callable[[], object]) -> Reruns:
    org = app.for_org(app.org_id)
    return Reruns(app.database, app.jobs, _Meanwhile(app, event), org.documents, app.org_id).by(ANN)


def _finished(app: App, entity: str) -> str:
    job = new_job(processing_template(app.templates, app.catalogue), entity)
    app.jobs.submit([job])
    app.jobs.cancel(job.id)
    return job.id


def test_who_is_refused_has_written_nothing(app: App) -> None:
    """Its entity has another active job of the same template: known only when the new run would begin."""
    app.prompts.put("Ask", "What?")
    template = app.templates.register(compiled(app, ASKING))
    done, at_work = (new_job(template, "document:1") for _ in range(2))
    app.jobs.submit([done])
    app.jobs.cancel(done.id)
    app.jobs.submit([at_work])
    before = app.jobs.get(done.id)
    reruns = app.for_org(app.org_id).reruns.by(ANN)
    with pytest.raises(AlreadyActive):
        reruns.rerun(done.id, "ask", "local:two")
    assert app.jobs.get(done.id) == before
    assert _entries(app) == []


def test_a_job_that_somebody_else_began_again_after_the_look_keeps_its_model(app: App) -> None:
    job_id = _finished(app, "document:1")
    begun: list[str] = []

    def begin() -> None:
        if not begun:
            begun.append(job_id)
            app.jobs.retry(job_id, Retry(everything=True))

    with pytest.raises(Conflict, match="has moved on"):
        _reruns(app, begin).rerun(job_id, "ask", "local:two")
    found = app.jobs.get(job_id)
    assert (found.summary.run, found.metadata) == (2, {})
    assert _entries(app) == []


def test_of_two_who_ask_two_models_at_once_one_is_asked_and_the_other_is_told(app: App) -> None:
    job_id = _finished(app, "document:1")
    looked = Barrier(2)

    def ask(model: str) -> str | None:
        seen: list[str] = []

        def meet() -> None:
            if not seen:
                seen.append(model)
                looked.wait(30)

        try:
            _reruns(app, meet).rerun(job_id, "ask", model)
        except Conflict:
            return None
        return model

    with ThreadPoolExecutor(2) as both:
        asked = [model for model in both.map(ask, ("local:one", "local:two")) if model is not None]
    found = app.jobs.get(job_id)
    assert found.summary.run == 2
    assert [found.metadata["model"]] == asked
    assert found.metadata["step_models"] == {"ask": asked[0]}
    assert _entries(app) == ["job.model", "job.retry"]


def test_a_run_whose_answer_was_lost_began_once(app: App) -> None:
    job_id = _finished(app, "document:1")
    passed: list[str] = []

    def lose(point: str) -> None:
        passed.append(point)
        if passed.count("commit.after") == 1 and point == "commit.after":
            raise DatabaseUnavailable("The answer was lost.")

    failpoints.hook(lose)
    try:
        app.for_org(app.org_id).reruns.by(ANN).rerun(job_id, "ask", "local:two")
    finally:
        failpoints.hook(None)
    assert passed.count("commit.after") == 1, "the second attempt finds it done"
    found = app.jobs.get(job_id)
    assert (found.summary.run, found.metadata["model"]) == (2, "local:two")
    assert _entries(app) == ["job.model", "job.retry"]


def _entries(app: App) -> list[str]:
    return [entry.action for entry in log(app)]
