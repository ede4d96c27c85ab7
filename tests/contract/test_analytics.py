"""How the work goes is added up the same on both databases, and for one organisation alone."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import update

from docmill.db.clock import database_now
from docmill.db.tables import documents, extracted_fields, job_steps, jobs, review_items
from docmill.engine.events import Failed
from docmill.model.errors import InvalidInput
from docmill.services.analytics import Analytics
from docmill.testing.samples import single_step
from docmill.testing.world import OTHER_ORG, World, lease
from tests.contract.desk import ANN, Desk, extraction, value

ERROR = '{"code":"broken","message":"It is broken."}'


def test_every_day_is_there_with_what_came_and_what_ended(world: World) -> None:
    world.submit(single_step())
    world.run_to_end()
    bad = world.submit(single_step())
    world.report(bad, Failed(**lease(world.claim_one()), error=ERROR, permanent=True))
    world.submit(single_step(), org_id=OTHER_ORG)
    world.run_to_end()
    with world.database.write() as connection:
        now = database_now(connection)
        yesterday = now - timedelta(days=1)
        connection.execute(update(jobs).where(jobs.c.id == bad).values(finished_at=yesterday))
    found = Analytics(world.database).throughput(days=3)
    days = [now.date() - timedelta(days=back) for back in (2, 1, 0)]
    assert [each.day for each in found] == [day.isoformat() for day in days]
    assert [(each.jobs_finished, each.jobs_failed) for each in found] == [(0, 0), (1, 1), (1, 0)]


def test_documents_are_counted_when_they_came_and_when_they_ended(desk: Desk) -> None:
    desk.put(3)
    with desk.database.write() as connection:
        now = database_now(connection)
        connection.execute(update(documents).values(status="completed", finished_at=now))
    (today,) = Analytics(desk.database).throughput(days=1)
    assert (today.documents, today.documents_completed, today.documents_failed) == (3, 3, 0)
    (elsewhere,) = Analytics(desk.database, OTHER_ORG).throughput(days=1)
    assert elsewhere.documents == 0


def test_steps_have_their_median_and_their_slowest(world: World) -> None:
    ids = [world.submit(single_step()) for _ in range(20)]
    world.run_to_end()
    with world.database.write() as connection:
        now = database_now(connection)
        for seconds, job_id in enumerate(ids, 1):
            took = timedelta(seconds=seconds)
            write = update(job_steps).where(job_steps.c.job_id == job_id, job_steps.c.step_key == "a")
            connection.execute(write.values(started_at=now - took, finished_at=now))
        failed = update(job_steps).where(job_steps.c.job_id == ids[0], job_steps.c.step_key == "a")
        connection.execute(failed.values(status="FAILED"))
    (step,) = (each for each in Analytics(world.database).steps(days=1) if each.step_key == "a")
    assert (step.count, step.failed, step.success_rate) == (20, 1, 0.95)
    assert step.p50 == pytest.approx(10, abs=0.01)
    assert step.p95 == pytest.approx(19, abs=0.01)
    assert Analytics(world.database, OTHER_ORG).steps(days=1) == []
    with world.database.write() as connection:
        # So that the world is sound again.
        connection.execute(failed.values(status="COMPLETED"))


def test_fields_tell_how_often_they_are_looked_at_and_changed(desk: Desk) -> None:
    for total in ("5.00", "6.00", "7.00", "8.00"):
        item = desk.slip(extraction([{"description": "Tea", "amount": total}], number="1", total=total))
        desk.review.claim(ANN, item)
        if total == "5.00":
            desk.review.correct(ANN, item, "total", "5.50")
            desk.review.correct(ANN, item, "line_items[0].amount", "5.50")
        desk.review.approve(ANN, item)
    desk.slip(extraction(number="1", total="9.00"))  # Not decided: nobody knows yet.
    found = {each.field: each for each in Analytics(desk.database).fields(days=1)}
    assert (found["total"].count, found["total"].corrected_rate) == (4, 0.25)
    assert found["line_items.amount"].corrected_rate == 0.25
    assert (found["number"].corrected_rate, found["number"].reviewed_rate) == (0.0, 0.0)
    assert {each.schema for each in found.values()} == {"slip"}
    assert Analytics(desk.database, OTHER_ORG).fields(days=1) == []


def test_a_field_that_needed_a_look_counts_also_when_a_person_has_decided_it(desk: Desk) -> None:
    def unsure(total: str) -> str:
        found = extraction(number="1", total=total)
        return desk.slip(replace(found, fields={**found.fields, "total": value(total, 0.3)}))

    for number, item in enumerate([unsure("5.00"), unsure("6.00"), unsure("7.00"), desk.slip(extraction(number="1"))]):
        desk.review.claim(ANN, item)
        if number == 0:
            desk.review.confirm(ANN, item)
        elif number == 1:
            desk.review.correct(ANN, item, "total", "6.50")
        elif number == 3:
            desk.review.add(ANN, item, "total", "8.00")
        desk.review.approve(ANN, item)
    rates = {each.field: (each.reviewed_rate, each.corrected_rate) for each in Analytics(desk.database).fields(days=1)}
    assert rates == {"total": (1.0, 0.5), "number": (0.0, 0.0)}


def test_confidence_is_held_against_what_people_let_stand(desk: Desk) -> None:
    for number, right in enumerate([True, True, True, False]):
        item = desk.slip(extraction(number="1", total="5.00"))
        desk.review.claim(ANN, item)
        if not right:
            desk.review.correct(ANN, item, "total", "5.50")
        desk.review.approve(ANN, item)
        sure = 0.85 if number else 1.0
        with desk.database.write() as connection:
            write = update(extracted_fields).where(extracted_fields.c.item_id == item)
            connection.execute(write.where(extracted_fields.c.path == "total").values(confidence=sure))
            connection.execute(write.where(extracted_fields.c.path != "total").values(confidence=None))
    found = Analytics(desk.database).reliability(days=1)
    assert [(each.low, each.high, each.n) for each in found.slices] == [(0.8, 0.9, 3), (0.9, 1.0, 1)]
    assert found.slices[0].stated == pytest.approx(0.85)
    assert found.slices[0].right == pytest.approx(2 / 3)
    assert found.values == 4
    assert found.calibration_error == pytest.approx(3 / 4 * (0.85 - 2 / 3))
    with desk.database.write() as connection:
        connection.execute(update(review_items).values(automatic=True))
    assert Analytics(desk.database).reliability(days=1).calibration_error is None


@pytest.mark.parametrize("days", [0, -1, 367])
def test_a_time_that_is_none_is_refused(world: World, days: int) -> None:
    with pytest.raises(InvalidInput, match="Days are 1 to 366"):
        Analytics(world.database).throughput(days=days)
