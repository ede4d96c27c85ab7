"""Every claim of the demo can fail: held against a run in which one thing went wrong, it says so, and no other does."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from docmill.bootstrap import catalogue_of, load_registry
from docmill.demo.claims import claims
from docmill.demo.clerk import Resolved
from docmill.demo.evidence import Booking, Course, Evidence
from docmill.demo.installation import PLUGINS, compiled_template
from docmill.demo.model import Charge
from docmill.demo.papers import BUDGETS, PAPERS, Paper
from docmill.demo.play import Played
from docmill.demo.tale import Kill, Tale
from docmill.demo.watch import JobNow, Snapshot, StepNow
from docmill.model.ai import CallOutcome, FinishReason
from docmill.model.callbacks import CallbackOutcome
from docmill.model.issues import IssueSeverity, IssueStatus
from docmill.model.statuses import JobStatus, StepStatus
from docmill.services.issues import IssueView
from docmill.services.models import CallView

NOW = datetime(2026, 1, 31, tzinfo=UTC)
OFFICE = 4711
HELD = ((PAPERS[0].name, "ocr"), (PAPERS[1].name, "ocr"))
STORED = frozenset((paper, "page 1") for paper, _ in HELD)
WRONG = next(paper for paper in PAPERS if paper.misprint)


PLAN = compiled_template(catalogue_of(load_registry(PLUGINS))).plan


def step_now(paper: Paper, key: str) -> StepNow:
    status = StepStatus.COMPLETED
    if key == "vendor_matching" and paper.unsigned:
        status = StepStatus.SKIPPED
    if key == "budget_linking" and paper.purpose not in BUDGETS:
        status = StepStatus.FAILED
    return StepNow(status=status, worker=None, failures=0, crashes=int((paper.name, key) in HELD), parts=0)


def job_now(paper: Paper) -> JobNow:
    steps = {step.step_key: step_now(paper, step.step_key) for step in PLAN.steps}
    failed = any(step.status is StepStatus.FAILED for step in steps.values())
    status = JobStatus.PARTIAL_SUCCESS if failed else JobStatus.COMPLETED
    return JobNow(id=f"job {paper.number}", paper=paper.name, status=status, steps=steps)


def charge(paper: Paper, asked: str, **values: object) -> Charge:
    plain = Charge(
        transaction=paper.name, asked=asked, model="swift-1", max_tokens=4096, tokens=50, finish=FinishReason.STOP
    )
    return replace(plain, **values)  # type: ignore[arg-type]


def charges_of(paper: Paper) -> list[Charge]:
    """Page 2 is refused if it is written by hand, and the extraction cut off if there is too much to extract."""
    found = [charge(paper, f"page {number}") for number in (1, 2, 3)]
    if paper.handwritten:
        found.append(charge(paper, "page 2", model="careful-2"))
        found[1] = replace(found[1], finish=FinishReason.REFUSED)
    if paper.items > 2:
        found.append(charge(paper, "vendor", max_tokens=120, tokens=120, finish=FinishReason.LENGTH))
    return [*found, charge(paper, "vendor", max_tokens=520, tokens=130)]


def call_of(entry: Charge) -> CallView:
    paper = next(paper for paper in PAPERS if paper.name == entry.transaction)
    cut = entry.finish is FinishReason.LENGTH
    return CallView(
        id="",
        created_at=NOW,
        job_id=f"job {paper.number}",
        step_key="data_extraction" if entry.asked == "vendor" else "ocr",
        attempt=1,
        prompt_id=None,
        provider="standin",
        model=entry.model,
        outcome=CallOutcome.ANSWERED if entry.finish is FinishReason.STOP else CallOutcome.FAILED,
        error_code="output_truncated" if cut else None,
        input_tokens=1,
        output_tokens=entry.tokens,
        cost_nanos=1000,
        priced=True,
        duration_ms=1,
    )


def issue() -> IssueView:
    return IssueView(
        id="1",
        status=IssueStatus.RESOLVED,
        severity=IssueSeverity.ERROR,
        blocking=True,
        code="total_mismatch",
        title="",
        details={},
        answer_schema=None,
        corrects=True,
        entity_type="demo_transaction",
        entity_id=WRONG.name,
        job_id=None,
        step_key="total_check",
        assigned_to=None,
        created_by=None,
        created_at=NOW,
        action=None,
        data=None,
        note=None,
        resolved_by=None,
        resolved_at=NOW,
    )


def played() -> Played:
    tale = Tale(plan=PLAN, began=NOW, kill=Kill(worker="A", at=NOW, held=HELD, stored=STORED))
    tale.resumed = dict.fromkeys(HELD, NOW + timedelta(seconds=1))
    return Played(
        plan=PLAN,
        snapshot=Snapshot(jobs=tuple(job_now(paper) for paper in PAPERS)),
        tale=tale,
        resolved=(Resolved(issue=issue(), command="docmill issues resolve 1", total=WRONG.total),),
        office_pid=OFFICE,
        worker_pids=frozenset({1, 2, 3}),
        began=0.0,
    )


def evidence() -> Evidence:
    charged = tuple(entry for paper in PAPERS for entry in charges_of(paper))
    with_processor = [step.step_key for step in PLAN.steps if step.processor]
    return Evidence(
        effects={
            (f"job {paper.number}", key): 1
            for paper in PAPERS
            for key in with_processor
            if step_now(paper, key).status is StepStatus.COMPLETED
        },
        bookings=tuple(
            Booking(job_id=f"job {paper.number}", paper=paper.name, reference="", cents=paper.cents) for paper in PAPERS
        ),
        calls=tuple(call_of(entry) for entry in charged),
        charges=charged,
        callbacks={paper.name: {CallbackOutcome.APPLIED: 1, CallbackOutcome.DUPLICATE: 1} for paper in PAPERS},
        callers={paper.name: OFFICE for paper in PAPERS},
        told={paper.name: frozenset({paper.total}) for paper in PAPERS},
        courses={paper.name: Course(in_order=True, most_at_once=3) for paper in PAPERS},
    )


def broken(played: Played, evidence: Evidence) -> set[str]:
    return {claim.name for claim in claims(played, evidence) if not claim.kept}


def with_job(run: Played, number: int, **values: object) -> Played:
    jobs = list(run.snapshot.jobs)
    jobs[number] = replace(jobs[number], **values)  # type: ignore[arg-type]
    return replace(run, snapshot=replace(run.snapshot, jobs=tuple(jobs)))


def without_resumption(run: Played) -> Played:
    run.tale.resumed.popitem()
    return run


def with_charge(found: Evidence, entry: Charge) -> Evidence:
    return replace(found, charges=(*found.charges, entry), calls=(*found.calls, call_of(entry)))


def accepted(entries: tuple[Charge, ...]) -> tuple[Charge, ...]:
    """As if nothing had been refused."""
    return tuple(
        replace(entry, finish=FinishReason.STOP) if entry.finish is FinishReason.REFUSED else entry for entry in entries
    )


Wrong = Callable[[Played, Evidence], tuple[Played, Evidence]]
WRONG_RUNS: dict[str, Wrong] = {
    "nothing_lost": lambda run, found: (with_job(run, 0, status=JobStatus.FAILED), found),
    "groups": lambda run, found: (
        run,
        replace(found, courses={**found.courses, PAPERS[0].name: Course(in_order=False, most_at_once=3)}),
    ),
    "condition": lambda run, found: (
        with_job(
            run, 8, steps={**run.snapshot.jobs[8].steps, "vendor_matching": step_now(PAPERS[5], "budget_linking")}
        ),
        found,
    ),
    "switched_model": lambda run, found: (
        run,
        replace(found, charges=accepted(found.charges)),
    ),
    "raised_tokens": lambda run, found: (
        run,
        replace(found, calls=tuple(replace(call, error_code=None) for call in found.calls)),
    ),
    "optional": lambda run, found: (with_job(run, 5, status=JobStatus.COMPLETED), found),
    "issue": lambda run, found: (replace(run, resolved=()), found),
    "callback": lambda run, found: (
        run,
        replace(found, callbacks={**found.callbacks, PAPERS[0].name: {CallbackOutcome.APPLIED: 2}}),
    ),
    "takeover": lambda run, found: (without_resumption(run), found),
    "checkpoints": lambda run, found: (run, with_charge(found, charge(PAPERS[0], "page 1"))),
    "paid_once": lambda run, found: (run, with_charge(found, charge(PAPERS[2], "page 1"))),
    "exactly_once": lambda run, found: (run, replace(found, effects={**found.effects, ("job 1", "ocr"): 2})),
}


def test_all_claims_of_a_good_run_are_kept() -> None:
    assert broken(played(), evidence()) == set()


@pytest.mark.parametrize("name", WRONG_RUNS)
def test_a_claim_that_does_not_hold_is_not_kept(name: str) -> None:
    assert broken(*WRONG_RUNS[name](played(), evidence())) == {name}


def test_every_claim_has_a_run_in_which_it_does_not_hold() -> None:
    assert Counter(claim.name for claim in claims(played(), evidence())) == Counter(list(WRONG_RUNS))


def test_a_callback_from_a_worker_is_not_one_from_outside() -> None:
    run, found = played(), evidence()
    assert broken(replace(run, worker_pids=frozenset({OFFICE})), found) == {"callback"}


def test_a_wrong_total_in_the_books_breaks_both_the_issue_and_the_bookings() -> None:
    found = evidence()
    books = [replace(entry, cents=19_100) if entry.paper == WRONG.name else entry for entry in found.bookings]
    assert broken(played(), replace(found, bookings=tuple(books))) == {"issue", "exactly_once"}


def test_what_the_killed_worker_had_asked_may_be_asked_again_once_for_each_of_its_steps() -> None:
    once = with_charge(evidence(), charge(PAPERS[0], "page 2"))
    assert broken(played(), once) == set()
    assert broken(
        played(), with_charge(with_charge(once, charge(PAPERS[0], "page 3")), charge(PAPERS[0], "page 3"))
    ) == {"paid_once"}
