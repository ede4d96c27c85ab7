"""Stored templates: their steps in columns, their versions under contention, what uses what."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import Table, insert, select, text

from docmill.db import schema
from docmill.db.database import Database
from docmill.db.tables import template_steps, templates
from docmill.model.errors import NotFound
from docmill.model.ids import DEFAULT_ORG, new_id
from docmill.model.statuses import FailureAction
from docmill.services.templates import Templates
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import CompiledTemplate, compile_template
from docmill.testing.oracle import START
from docmill.testing.samples import SAMPLES, Draft, chain, make_plan, single_step
from docmill.testing.world import OTHER_ORG, World, compiled, migrate
from tests.conftest import PostgresCopies
from tests.contract.stories import Story

RECEIPT = """\
name: receipts
processable_type: transaction
service_name: transaction
steps:
  - {step_key: ocr, type: ai.generate, kind: ai, prompt: read-it}
  - step_key: extract
    display_name: Extract the data
    type: ai.generate
    kind: ai
    pool: gpu
    order: 3
    depends_on: [ocr]
    optional: true
    prompt: extract-it
    processor_method: [{when: result.total > 9, method: saveLarge}, {method: save}]
    compensation_method: forget
  - {step_key: finish, type: FinishProcessing, processor_method: finishTransaction}
"""


def template(text: str = RECEIPT) -> CompiledTemplate:
    return compile_template(text, catalogue=Catalogue.permissive())


def stored_steps(world: World, **where: str) -> list[dict[str, Any]]:
    """Rows of `process_template_steps` with the template they belong to, but for ids."""
    query = select(templates.c.name, templates.c.version, template_steps).join_from(templates, template_steps)
    query = query.order_by(templates.c.name, templates.c.version, template_steps.c.position)
    for column, value in where.items():
        query = query.where(templates.c[column] == value)
    with world.looking() as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
    return [{name: value for name, value in row.items() if name not in ("template_id", "org_id")} for row in rows]


def test_the_steps_of_a_template_are_stored_in_columns_with_it(world: World) -> None:
    Templates(world.database).register(template())
    ocr, extract, finish = stored_steps(world)
    assert (ocr["step_key"], ocr["kind"], ocr["prompt"], ocr["depends_on"]) == ("ocr", "ai", "read-it", [])
    assert extract == {
        "name": "receipts",
        "version": 1,
        "position": 1,
        "step_key": "extract",
        "display_name": "Extract the data",
        "kind": "ai",
        "step_type": "ai.generate",
        "pool": "gpu",
        "execution_group": 2,
        "step_order": 3,
        "depends_on": ["ocr"],
        "optional": True,
        "on_failure_action": FailureAction.SKIP_DEPENDENTS,
        "processor_method": [{"when": "result.total > 9", "method": "saveLarge"}, {"when": None, "method": "save"}],
        "compensation_method": "forget",
        "prompt": "extract-it",
    }
    assert finish["depends_on"] == ["all_previous_steps"]
    assert finish["processor_method"] == [{"when": None, "method": "finishTransaction"}]


def test_steps_and_template_are_stored_together_or_not_at_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(table: Table) -> Any:
        if table is template_steps:
            raise RuntimeError("The power is cut.")
        return insert(table)

    with monkeypatch.context() as patch:
        patch.setattr("docmill.services.templates.insert", refused)
        with pytest.raises(RuntimeError):
            Templates(world.database).register(template())
    assert Templates(world.database).list() == []
    assert Templates(world.database).register(template()).version == 1


def test_several_templates_are_stored_all_or_none(world: World) -> None:
    store = Templates(world.database)
    unstorable = replace(template(), digest="x" * 65, document={"format": object()})
    with pytest.raises(Exception, match="serializable"):
        store.add_all([compiled(single_step()), unstorable])
    assert store.list() == []
    added = store.add_all([template(), compiled(single_step())])
    assert [each.template.name for each in added] == ["receipts", "single-step"]


@pytest.fixture(params=["sqlite", "postgresql"])
def first_release(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database as the first release left it."""
    if request.param == "postgresql":
        copy_of: PostgresCopies = request.getfixturevalue("postgres_copy_of")
        url = copy_of("first_release", to_first_release)
    else:
        url = f"sqlite:///{tmp_path / 'old.db'}"
        to_first_release(url)
    database = Database(url)
    yield database
    database.close()


def to_first_release(url: str) -> None:
    database = Database(url)
    with database.write() as connection:
        schema.upgrade(connection, "0001")
    database.close()


def test_templates_of_the_first_release_get_their_steps_when_the_schema_is_upgraded(
    first_release: Database, tmp_path: Path
) -> None:
    """More of them than a page of the migration holds, each of its own."""
    many = [compiled(make_plan([Draft(key=f"s{n}")], name=f"template-{n}")) for n in range(120)]
    old = [template(), *map(compiled, SAMPLES), *many]
    rows = [
        {
            **{name: getattr(each.plan, name) for name in ("name", "processable_type", "task_type", "service_name")},
            "id": new_id(),
            "org_id": OTHER_ORG,
            "version": 7,
            "digest": each.digest,
            "definition": each.document,
            "created_at": START,
        }
        for each in old
    ]
    with first_release.write() as connection:
        connection.execute(insert(templates), rows)
    migrate(first_release.url.render_as_string(hide_password=False))

    world = World(first_release, tmp_path / "run")
    Templates(first_release).add_all(old)
    migrated, registered = (stored_steps(world, org_id=org_id) for org_id in (OTHER_ORG, DEFAULT_ORG))
    assert len(migrated) == sum(len(each.plan.steps) for each in old)
    assert migrated == [row | {"version": 7} for row in registered]
    assert Templates(first_release, OTHER_ORG).plan(rows[0]["id"]) == old[0].plan
    world.close()


def at_once(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Do the work that often at the same moment, each in a thread of its own."""
    barrier = Barrier(count)

    def one(number: int) -> Any:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(one, range(count)))


def register_apart(world: World, content: str) -> int:
    """Register over a connection of its own; the version."""
    database = Database(world.database.url.render_as_string(hide_password=False))
    try:
        plan = make_plan([Draft(key=content)], name="contended")
        return Templates(database).register(compiled(plan)).version
    finally:
        database.close()


def test_versions_count_up_without_gaps_whoever_registers_at_the_same_moment(world: World) -> None:
    found = at_once(6, lambda number: register_apart(world, f"s{number}"))
    assert sorted(found) == [1, 2, 3, 4, 5, 6]
    versions = Templates(world.database).versions("contended")
    assert [each.template.version for each in versions] == [6, 5, 4, 3, 2, 1]
    assert [each.steps for each in versions] == [2] * 6


def test_the_same_content_registered_by_many_at_once_is_one_version(world: World) -> None:
    assert at_once(6, lambda number: register_apart(world, "same")) == [1] * 6
    assert len(Templates(world.database).versions("contended")) == 1


def test_many_templates_stored_at_once_in_opposite_orders_neither_fail_nor_wait_for_ever(world: World) -> None:
    plans = [compiled(make_plan([Draft(key="a")], name=f"t{n}")) for n in range(10)]

    def store(number: int) -> list[int]:
        added = Templates(world.database).add_all(plans[:: -1 if number % 2 else 1])
        return [each.template.version for each in added]

    assert at_once(4, store) == [[1] * 10] * 4


def test_templates_are_listed_with_versions_steps_and_unfinished_jobs(world: World) -> None:
    store = Templates(world.database)
    assert store.list() == []
    world.submit(single_step())
    world.run_to_end()
    changed = make_plan([Draft(key="a"), Draft(key="b")], name="single-step")
    world.submit(single_step())
    world.submit(changed)
    world.submit(changed)
    world.template(chain(3))
    facts = [
        (each.template.name, each.template.version, each.versions, each.steps, each.active_jobs)
        for each in store.list()
    ]
    assert facts == [("chain-3", 1, 1, 4, 0), ("single-step", 2, 2, 3, 3)]
    assert [(each.template.version, each.steps, each.active_jobs) for each in store.versions("single-step")] == [
        (2, 3, 2),
        (1, 2, 1),
    ]
    with pytest.raises(NotFound, match="Did you mean 'chain-3'"):
        store.versions("chian-3")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"step_type": "ai.generate"}, ["receipts 2 ocr", "receipts 1 ocr", "receipts 1 extract"]),
        ({"prompt": "extract-it"}, ["receipts 1 extract"]),
        ({"processor": "save"}, ["receipts 1 extract"]),
        ({"processor": "saveLarge"}, ["receipts 1 extract"]),
        ({"processor": "forget"}, ["receipts 1 extract"]),
        ({"processor": "transaction.finishTransaction"}, ["receipts 2 finish", "receipts 1 finish"]),
        ({"processor": "other.finishTransaction"}, []),
        ({"step_type": "ai.generate", "prompt": "read-it"}, ["receipts 2 ocr", "receipts 1 ocr"]),
        ({"step_type": "echo"}, ["single-step 1 a"]),
        ({"prompt": "nothing"}, []),
    ],
    ids=str,
)
def test_who_uses_a_step_type_a_prompt_or_a_processor(world: World, asked: dict[str, str], found: list[str]) -> None:
    store = Templates(world.database)
    store.register(template())
    lines = RECEIPT.splitlines(keepends=True)
    store.register(template("".join([*lines[:5], lines[-1]])))
    store.register(compiled(single_step()))
    Templates(world.database, OTHER_ORG).register(template())
    uses = store.uses(**asked)
    assert [f"{use.name} {use.version} {use.step_key}" for use in uses] == found
    assert all(use.newest == (use.version == 2 or use.name == "single-step") for use in uses)


def test_steps_go_with_their_template(world: World) -> None:
    Templates(world.database).register(template())
    with world.database.write() as connection:
        connection.execute(text("delete from process_templates"))
    assert stored_steps(world) == []


UNDOABLE = """\
name: booking
processable_type: document
service_name: books
compensate: true
steps:
  - {step_key: book, type: T, compensation_method: unbook}
  - {step_key: check, type: T, depends_on: [book]}
  - {step_key: finish, type: FinishProcessing}
"""


def test_templates_that_docmill_makes_to_undo_jobs_are_not_among_those_of_people(world: World) -> None:
    story = Story(world, UNDOABLE)
    story.run("book")
    story.claim()
    story.fail("check")
    with world.looking() as connection:
        stored = sorted(connection.execute(select(templates.c.name)).scalars())
    assert stored == ["booking", "booking (undo)"]
    store = Templates(world.database)
    assert [each.template.name for each in store.list()] == ["booking"]
    assert {use.name for use in store.uses(processor="unbook")} == {"booking"}
    with pytest.raises(NotFound, match="Did you mean 'booking'"):
        store.find("booking (undo)")
