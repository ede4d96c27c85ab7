"""What the processing architecture says of the tables: which there are, what they hold, how they hang together."""

import pytest
from sqlalchemy import inspect, select

from docmill.db.database import Database
from docmill.db.tables import template_steps
from docmill.testing.world import World
from tests.contract.transactions import FINISH, HEAD, IMPORT, run

OPTIONAL, REQUIRED = True, False

CORE: dict[str, dict[str, bool]] = {
    "process_templates": {"service_name": OPTIONAL, "processable_type": REQUIRED},
    "process_template_steps": {"template_id": REQUIRED, "on_failure_action": REQUIRED, "prompt": OPTIONAL},
    "processing_jobs": {"template_id": REQUIRED, "created_by": OPTIONAL},
    "processing_job_steps": {"job_id": REQUIRED, "position": REQUIRED, "step_key": REQUIRED},
    "processing_issues": {
        "processable_type": REQUIRED,
        "processable_id": REQUIRED,
        "job_id": OPTIONAL,
        "step_key": OPTIONAL,
    },
    "ai_prompts": {"name": REQUIRED, "text": REQUIRED},
}


@pytest.mark.parametrize("table", CORE)
def test_the_core_tables_have_the_columns_that_the_architecture_names(database_url: str, table: str) -> None:
    database = Database(database_url)
    with database.read() as connection:
        columns = {column["name"]: column["nullable"] for column in inspect(connection).get_columns(table)}
    database.close()
    assert {name: columns.get(name) for name in CORE[table]} == CORE[table]


def test_a_template_has_many_steps_a_job_of_it_as_many_and_each_knows_its_template_step(world: World) -> None:
    """A job step has the position and the key of its template step, in the version that the job keeps."""
    ended = run(world, IMPORT)
    columns = template_steps.c.position, template_steps.c.step_key
    query = select(*columns).where(template_steps.c.template_id == world.job(ended.job_id).template_id)
    with world.looking() as connection:
        planned = connection.execute(query.order_by(template_steps.c.position)).all()
    assert [tuple(row) for row in planned] == [(row.position, key) for key, row in world.steps(ended.job_id).items()]


def test_service_name_and_processor_method_are_optional(world: World) -> None:
    head = HEAD.replace("service_name: transaction\n", "")
    finish = FINISH.replace(", processor_method: finishTransactionProcessing", "")
    assert run(world, head + "  - {step_key: ocr, type: look}\n" + finish).status == "COMPLETED"
