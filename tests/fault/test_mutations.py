"""The suite is itself tested: with a safeguard taken out, the witness must report a violation."""

from collections.abc import Callable

import pytest

from docmill.testing.fleet import MUTATIONS, PLUGIN, Fleet
from docmill.testing.mutations import MUTATIONS as ALL
from tests.fault import scenarios, shelling
from tests.fault.conftest import OpenFleet


def late_report(fleet: Fleet) -> list[str]:
    return scenarios.zombie(fleet, "fault.ask", processor=False)


def late_apply(fleet: Fleet) -> list[str]:
    return scenarios.zombie(fleet, "fault.free", processor=True)


def killed_in_compute(fleet: Fleet, patience: float = 90.0) -> list[str]:
    return scenarios.killed_at(fleet, "compute.before", patience=patience)


def never_swept(fleet: Fleet) -> list[str]:
    # Three leases are enough for anybody who looks.
    return killed_in_compute(fleet, patience=6.0)


def killed_in_apply(fleet: Fleet) -> list[str]:
    return scenarios.killed_at(fleet, "apply.after")


def overcrowded(fleet: Fleet) -> list[str]:
    return shelling.shelled(fleet, jobs=60, patience=20.0)


CASES: list[tuple[str, Callable[[Fleet], list[str]], tuple[str, ...]]] = [
    ("report_fence", late_report, ("8:",)),
    ("apply_fence", late_apply, ("1:",)),
    ("fence", late_apply, ("8:",)),
    ("epoch_bump", killed_in_compute, ("8:",)),
    ("checkpoint", killed_in_apply, ("2:",)),
    ("fallback", scenarios.one_bad_apply, ("innocent",)),
    ("sweep", never_swept, ("3:",)),
    ("callback_dedupe", scenarios.answered_again, ("1:",)),
    # Either account of the limit proves it: which of the two gets to see the crowd is a matter of moments.
    ("batch_limit", overcrowded, ("at work at once", "jobs are active")),
]


@pytest.mark.parametrize(("mutation", "scenario", "signs"), CASES, ids=[case[0] for case in CASES])
def test_a_missing_safeguard_is_noticed(
    open_fleet: OpenFleet, mutation: str, scenario: Callable[[Fleet], list[str]], signs: tuple[str, ...]
) -> None:
    with open_fleet(DOCMILL_MUTATION=mutation, DOCMILL_PLUGINS=f"{PLUGIN},{MUTATIONS}") as fleet:
        violations = scenario(fleet)
        assert any(sign in violation for sign in signs for violation in violations), violations


def test_a_missing_job_lock_is_noticed(on_postgres: OpenFleet) -> None:
    with on_postgres(DOCMILL_MUTATION="job_lock", DOCMILL_PLUGINS=f"{PLUGIN},{MUTATIONS}") as fleet:
        assert scenarios.contention(fleet) != []


def test_a_missing_lock_of_the_batch_is_noticed(on_postgres: OpenFleet) -> None:
    with on_postgres(DOCMILL_MUTATION="batch_lock", DOCMILL_PLUGINS=f"{PLUGIN},{MUTATIONS}") as fleet:
        # All at once: every end is a change of the counter, and several workers make it at the same moments.
        violations = shelling.shelled(fleet, jobs=400, limit=400, workers=4, patience=20.0)
        assert any("its row says" in violation for violation in violations), violations


UNHARMED = [
    late_report,
    late_apply,
    killed_in_compute,
    killed_in_apply,
    scenarios.one_bad_apply,
    scenarios.contention,
    scenarios.answered_again,
    overcrowded,
]


@pytest.mark.parametrize("scenario", UNHARMED, ids=lambda scenario: scenario.__name__)
def test_the_same_without_mutation_violates_nothing(
    open_fleet: OpenFleet, scenario: Callable[[Fleet], list[str]]
) -> None:
    with open_fleet() as fleet:
        assert scenario(fleet) == []


def test_every_mutation_has_its_case() -> None:
    assert {case[0] for case in CASES} | {"job_lock", "batch_lock"} == set(ALL)
