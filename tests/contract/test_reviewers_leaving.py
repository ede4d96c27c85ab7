"""Work is given to those who may do it, and of those who leave it waits for anybody."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from docmill.db.tables import review_items
from docmill.model.errors import NotFound
from docmill.model.people import Permission, Principal, Role
from docmill.testing.waiting import until
from tests.contract.desk import Desk
from tests.contract.test_people import waiting
from tests.contract.town import Town


def test_work_is_given_to_those_who_may_do_it(town: Town) -> None:
    reviewer, viewer = town.member(Role.REVIEWER), town.member(Role.VIEWER, "Vic")
    key, _ = town.keys.create(town.ann, "robot", role=Role.REVIEWER)
    for known in (reviewer.id, town.ann.id, key.id):
        looked_at(town, known)
    writer, _ = town.keys.create(town.ann, "writer", role=Role.SERVICE)
    reader, _ = town.keys.create(town.ann, "reader", role=Role.REVIEWER, scopes=[Permission.REVIEW_READ])
    for nobody in (viewer.id, town.theo.id, "mia", "x" * 36, writer.id, reader.id):
        with pytest.raises(NotFound, match="who may review"):
            looked_at(town, nobody)
    town.people.remove(town.ann, reviewer.id)
    town.keys.revoke(town.ann, key.id)
    for gone in (reviewer.id, key.id):
        with pytest.raises(NotFound):
            looked_at(town, gone)


def looked_at(town: Town, who: str) -> None:
    """As whoever gives work to somebody looks at them."""
    with town.database.write() as connection:
        town.people.hold_reviewer(town.ann, who, connection)


@pytest.mark.parametrize("kind", ["member", "key"])
def test_what_is_given_to_somebody_who_leaves_at_that_moment_waits_for_anybody(
    town: Town, tmp_path: Path, kind: str
) -> None:
    desk = Desk(town.database, tmp_path)
    (item,) = desk.put(1)
    leave: Callable[[Principal, str], object] = town.people.remove
    if kind == "member":
        leaving = town.member(Role.REVIEWER).id
    else:
        leaving, leave = town.keys.create(town.ann, "robot", role=Role.REVIEWER)[0].id, town.keys.revoke
    with ThreadPoolExecutor(1) as threads:
        left: list[Future[object]] = []

        def check(connection: Connection) -> None:
            town.people.hold_reviewer(town.ann, leaving, connection)
            left.append(threads.submit(leave, town.ann, leaving))
            if town.database.kind == "postgresql":
                until(lambda: waiting(town), 60, what="whoever leaves to wait for the item")

        assert desk.review.assign(town.ann, item, to=leaving, check=check).assigned_to == leaving
        left[0].result(60)
    with town.database.read() as connection:
        assert connection.execute(select(review_items.c.assigned_to)).scalar_one() == ""
    desk.close()


def test_what_waits_for_a_member_who_leaves_waits_for_anybody(town: Town, tmp_path: Path) -> None:
    desk = Desk(town.database, tmp_path)
    mia = town.member(Role.REVIEWER)
    (item,) = desk.put(1)
    desk.review.assign(town.ann, item, to=mia.id)
    town.people.remove(town.ann, mia.id)
    with town.database.read() as connection:
        assert connection.execute(select(review_items.c.assigned_to)).scalar_one() == ""
    desk.close()
