"""The fast way of processors writes what the full way writes."""

import pytest

from docmill.engine.context import AppliedDatabase
from docmill.engine.write_only import WriteOnlyDatabase
from docmill.testing.samples import single_step
from docmill.testing.world import World

TITLES = ("'100%'", "'a %s and a %(name)s'", "'50%%'", "'ten' || ' to one'", "'x:y'")


@pytest.mark.parametrize("title", TITLES)
@pytest.mark.parametrize("parameters", [None, {}], ids=["none", "empty"])
def test_text_without_parameters_means_the_same_either_way(
    world: World, title: str, parameters: dict[str, object] | None
) -> None:
    statement = f"update processing_jobs set title = {title}"
    job_id = world.submit(single_step())
    session = world.store.session
    with session.write() as connection:
        AppliedDatabase(connection).execute(statement, parameters)
    full = world.job(job_id).title
    with session.write() as connection:
        AppliedDatabase(connection).execute("update processing_jobs set title = ''")
        fast = WriteOnlyDatabase(connection)
        with fast.together():
            fast.execute(statement, parameters)
    assert world.job(job_id).title == full
