"""Endpoints as people manage them: who may, what is refused, and a secret that is told once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from docmill.model.errors import Conflict, Forbidden, InvalidInput, NotFound
from docmill.model.people import Role, system_principal
from docmill.model.review import VersionConflict
from docmill.model.webhooks import SUBSCRIBABLE
from docmill.services.webhooks import MOST_ENDPOINTS, Webhooks
from docmill.testing.world import OTHER_ORG
from tests.contract.desk import person
from tests.contract.post_office import BOSS, PostOffice


def test_the_secret_is_told_once_and_nothing_shows_it_again(office: PostOffice) -> None:
    endpoint, secret = office.webhooks.create(BOSS, "https://example.com/hook", description="Books")
    shown = repr(office.webhooks.list(BOSS)) + repr(endpoint)
    assert secret not in shown
    assert secret.removeprefix("whsec_") not in shown


@pytest.mark.parametrize(
    ("url", "events", "field"),
    [
        ("ftp://example.com", SUBSCRIBABLE, "address"),
        ("https://user:word@example.com/", SUBSCRIBABLE, "user name"),
        ("https://example.com/" + "x" * 2000, SUBSCRIBABLE, "characters"),
        ("https://example.com/", ["job.exploded"], "job.exploded"),
        ("https://example.com/", ["ping"], "ping"),
        ("https://example.com/", [], "hears nothing"),
    ],
)
def test_a_wrong_endpoint_is_refused(office: PostOffice, url: str, events: list[str], field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        office.webhooks.create(BOSS, url, events=events)
    assert office.webhooks.list(BOSS) == []


def test_of_several_that_make_the_last_endpoint_there_is_room_for_one_does(office: PostOffice) -> None:
    for number in range(MOST_ENDPOINTS - 1):
        office.webhooks.create(BOSS, f"https://example.com/{number}")
    at_once = Barrier(4)

    def make(number: int) -> bool:
        at_once.wait(30)
        try:
            office.webhooks.create(BOSS, f"https://example.com/last-{number}")
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(make, range(4))) == [False, False, False, True]
    assert len(office.webhooks.list(BOSS)) == MOST_ENDPOINTS


def test_only_who_may_manages_webhooks_and_nobody_those_of_others(office: PostOffice) -> None:
    endpoint, _ = office.webhooks.create(BOSS, "https://example.com/")
    for role in (Role.REVIEWER, Role.VIEWER, Role.SERVICE):
        with pytest.raises(Forbidden):
            office.webhooks.list(person("ann", role))
    theirs = Webhooks(office.database, OTHER_ORG)
    stranger = system_principal(OTHER_ORG)
    with pytest.raises(Forbidden):
        theirs.list(BOSS)
    office.webhooks.ping(BOSS, endpoint.id)
    for asked in (
        lambda: theirs.get(stranger, endpoint.id),
        lambda: theirs.change(stranger, endpoint.id, enabled=False),
        lambda: theirs.rotate(stranger, endpoint.id),
        lambda: theirs.remove(stranger, endpoint.id),
        lambda: theirs.ping(stranger, endpoint.id),
        lambda: theirs.deliveries(stranger, endpoint_id=endpoint.id),
        lambda: theirs.delivery(stranger, office.only().id),
        lambda: theirs.resend(stranger, office.only().id),
        lambda: theirs.get(stranger, "nonsense"),
    ):
        with pytest.raises(NotFound):
            asked()
    assert theirs.deliveries(stranger) == []


def test_of_two_who_change_an_endpoint_the_second_is_told(office: PostOffice) -> None:
    endpoint, _ = office.webhooks.create(BOSS, "https://example.com/")
    changed = office.webhooks.change(BOSS, endpoint.id, description="mine", version=endpoint.version)
    with pytest.raises(VersionConflict, match=f"version {changed.version}"):
        office.webhooks.change(BOSS, endpoint.id, description="no, mine", version=endpoint.version)
