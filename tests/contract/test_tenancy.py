"""No service of one organisation sees or touches what is another's: the same on SQLite and on PostgreSQL.

On SQLite the services ask for their own; on PostgreSQL the database sees to it as well, see `test_row_security`.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import func, select

from docmill.db.tables import documents, prompts, review_items, templates
from docmill.documents.blobs import FolderBlobs
from docmill.documents.links import Links
from docmill.engine.bell import SocketBell
from docmill.model.errors import DocmillError, NotFound
from docmill.model.ids import SHARED_ORG
from docmill.prompts.store import Prompts
from docmill.services.batches import Batches
from docmill.services.documents import Documents
from docmill.services.issues import Issues
from docmill.services.jobs import Jobs
from docmill.services.models import ModelUse
from docmill.services.templates import Templates
from docmill.testing.samples import single_step
from docmill.testing.world import OTHER_ORG as THEIRS
from docmill.testing.world import World
from tests.contract.desk import Desk


@pytest.fixture
def theirs(world: World, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Something of theirs of every kind."""
    job_id = world.submit(single_step(), org_id=THEIRS)
    desk = Desk(world.database, tmp_path)
    (item,) = desk.put(1)
    with closing(SocketBell(world.run_dir)) as bell, closing(Issues(world.database, bell, THEIRS)) as their_issues:
        issue = their_issues.open(title="Theirs", entity=("document", "1")).id
    with world.database.write() as connection:
        document = connection.execute(select(review_items.c.document_id)).scalar_one()
        connection.execute(review_items.update().values(org_id=THEIRS))
        connection.execute(documents.update().values(org_id=THEIRS))
    prompt = Prompts(world.database, THEIRS).put("Ask", "theirs").prompt.id
    yield {
        "job": job_id,
        "item": item,
        "issue": issue,
        "document": document,
        "template": world.template(single_step(), THEIRS),
        "prompt": prompt,
    }
    desk.review.close()
    desk._bell.close()


def test_what_is_theirs_is_not_found_by_any_service_of_ours(
    world: World, theirs: dict[str, str], tmp_path: Path
) -> None:
    desk = Desk(world.database, tmp_path / "again")
    with closing(SocketBell(world.run_dir)) as bell:
        jobs_, issues_ = Jobs(world.database, bell), Issues(world.database, bell)
        batches_ = Batches(world.database, bell)
        documents_ = Documents(world.database, lambda: FolderBlobs(tmp_path / "blobs", lambda: Links(b"secret")))
        attempts: list[Callable[[], object]] = [
            lambda: jobs_.get(theirs["job"]),
            lambda: jobs_.cancel(theirs["job"]),
            lambda: jobs_.retry(theirs["job"]),
            lambda: jobs_.events(theirs["job"]),
            lambda: jobs_.verify(theirs["job"]),
            lambda: jobs_.find_id(theirs["job"]),
            lambda: issues_.get(theirs["issue"]),
            lambda: issues_.assign(theirs["issue"], "me"),
            lambda: issues_.resolve(theirs["issue"], None, by="me"),
            lambda: issues_.open(title="t", job_id=theirs["job"]),
            lambda: documents_.get(theirs["document"]),
            lambda: documents_.find_id(theirs["document"]),
            lambda: Templates(world.database).plan(theirs["template"]),
            lambda: Prompts(world.database).get(theirs["prompt"]),
            lambda: desk.review.get(desk.system, theirs["item"]),
            lambda: desk.review.claim(desk.system, theirs["item"]),
            lambda: desk.review.find_id(desk.system, theirs["item"]),
            lambda: desk.review.comment(desk.system, theirs["item"], "hello"),
        ]
        for attempt in attempts:
            with pytest.raises(NotFound):
                attempt()
        assert jobs_.list() == []
        assert jobs_.positions([theirs["job"]]) == {}
        assert issues_.list() == []
        assert documents_.list() == []
        assert documents_.many([theirs["document"]]) == {}
        assert documents_.ended([theirs["document"]]) == {}
        assert batches_.list() == []
        assert ModelUse(world.database).calls(limit=10) == []
        assert desk.review.list(desk.system) == []
        assert desk.review.claim_next(desk.system) is None
        jobs_.close()
        issues_.close()
        batches_.close()
    desk.review.close()
    desk._bell.close()


def test_a_job_of_ours_cannot_be_of_a_template_of_theirs(world: World, theirs: dict[str, str]) -> None:
    stolen = replace(world.new_job(single_step()), template_id=theirs["template"])
    with closing(SocketBell(world.run_dir)) as bell, closing(Jobs(world.database, bell)) as service:
        with pytest.raises(DocmillError):
            service.submit([stolen])
        assert service.list() == []


def test_shared_prompts_are_seen_by_all_and_changed_by_none_but_their_owner(world: World) -> None:
    Prompts(world.database).shared.put("Everybodys", "shared")
    assert Prompts(world.database, THEIRS).get("Everybodys").text == "shared"
    if world.database.kind == "postgresql":
        with world.database.scoped(THEIRS).write() as connection:
            assert connection.execute(prompts.update().values(text="mine")).rowcount == 0
    Prompts(world.database, THEIRS).put("Everybodys", "theirs")
    with world.looking() as connection:
        stored = {row.org_id: row.text for row in connection.execute(select(prompts))}
    assert stored == {SHARED_ORG: "shared", THEIRS: "theirs"}


def test_with_own_visibility_a_member_sees_the_jobs_they_created(world: World) -> None:
    mine = replace(world.new_job(single_step()), created_by="mia")
    others = replace(world.new_job(single_step()), created_by="ann")
    with closing(SocketBell(world.run_dir)) as bell, closing(Jobs(world.database, bell, seen_by="mia")) as service:
        service.submit([mine, others])
        assert [job.id for job in service.list()] == [mine.id]
        assert service.get(mine.id)
        assert set(service.positions([mine.id, others.id])) == {mine.id}
        for attempt in (service.get, service.cancel, service.events, service.find_id):
            with pytest.raises(NotFound):
                attempt(others.id)


def test_templates_of_the_same_name_live_side_by_side(world: World) -> None:
    world.template(single_step())
    world.template(single_step(), THEIRS)
    with world.looking() as connection:
        assert connection.execute(select(func.count()).select_from(templates)).scalar_one() == 2
