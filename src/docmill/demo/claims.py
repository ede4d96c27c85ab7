"""What the demo claims at its end, each claim checked from the outside and against the papers it wrote itself."""

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from docmill.demo.evidence import Evidence
from docmill.demo.office import SENT
from docmill.demo.papers import BUDGETS, PAPERS
from docmill.demo.play import Played
from docmill.demo.tale import Tale
from docmill.demo.watch import JobNow
from docmill.model.ai import CallOutcome, FinishReason
from docmill.model.callbacks import CallbackOutcome
from docmill.model.statuses import JobStatus, StepStatus

SIDE_BY_SIDE = ("total_check", "budget_linking", "vendor_matching")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One promise, and whether it was kept."""

    name: str
    kept: bool
    text: str


def claims(played: Played, evidence: Evidence) -> Iterator[Claim]:
    """All of them, in the order of the story."""
    yield _finished(played)
    yield _groups(played, evidence)
    yield _condition(played)
    yield _switched(evidence)
    yield _raised(played, evidence)
    yield _optional(played)
    yield _issue(played, evidence)
    yield _callback(played, evidence)
    yield _taken_over(played)
    yield _checkpoints(played, evidence)
    yield _paid_once(played, evidence)
    yield _effects_once(played, evidence)


def since_kill(tale: Tale, times: Collection[datetime]) -> float | None:
    """Seconds from the kill to the last of these times."""
    return round((max(times) - tale.kill.at).total_seconds(), 2) if tale.kill and times else None


def _finished(played: Played) -> Claim:
    jobs = played.snapshot.jobs
    ended = sum(job.status in (JobStatus.COMPLETED, JobStatus.PARTIAL_SUCCESS) for job in jobs)
    return Claim(
        name="nothing_lost",
        kept=ended == len(PAPERS) == len(jobs),
        text=f"nothing lost: {ended} of {len(PAPERS)} jobs came to a good end",
    )


def _groups(played: Played, evidence: Evidence) -> Claim:
    side_by_side = [
        job.paper
        for job in played.snapshot.jobs
        if all(_status(job, key) is not StepStatus.SKIPPED for key in SIDE_BY_SIDE)
        and evidence.courses[job.paper].most_at_once >= len(SIDE_BY_SIDE)
    ]
    return Claim(
        name="groups",
        kept=bool(side_by_side) and all(course.in_order for course in evidence.courses.values()),
        text=f"groups: in order in all jobs; check, budget and vendor side by side in {len(side_by_side)}",
    )


def _condition(played: Played) -> Claim:
    skipped = {job.paper for job in played.snapshot.jobs if _status(job, "vendor_matching") is StepStatus.SKIPPED}
    return Claim(
        name="condition",
        kept=skipped == {paper.name for paper in PAPERS if paper.unsigned},
        text=f"condition: {_list(skipped)} names no vendor, so the vendor step was skipped",
    )


def _switched(evidence: Evidence) -> Claim:
    """The vendor's books: refused by one model, answered by the other."""
    refused = {
        (charge.transaction, charge.asked) for charge in evidence.charges if charge.finish is FinishReason.REFUSED
    }
    careful = {(charge.transaction, charge.asked) for charge in evidence.charges if charge.model == "careful-2"}
    papers = {paper for paper, _ in refused}
    return Claim(
        name="switched_model",
        kept=refused <= careful and papers == {paper.name for paper in PAPERS if paper.handwritten},
        text=f"retry: swift-1 refused the handwriting of {_list(papers)}, careful-2 read it",
    )


def _raised(played: Played, evidence: Evidence) -> Claim:
    papers = {job.id: job.paper for job in played.snapshot.jobs}
    extractions = [call for call in evidence.calls if call.step_key == "data_extraction"]
    cut = {call.job_id: call.output_tokens for call in extractions if call.error_code == "output_truncated"}
    whole = {call.job_id: call.output_tokens for call in extractions if call.outcome is CallOutcome.ANSWERED}
    found = {papers[job_id or ""] for job_id in cut}
    first = next(iter(cut)) if cut else None
    return Claim(
        name="raised_tokens",
        kept=all(whole.get(job_id, 0) > tokens for job_id, tokens in cut.items())
        and found == {paper.name for paper in PAPERS if paper.items > 2},
        text=f"retry: {_list(found)} was cut off at {cut.get(first)} tokens, allowed more, and done in "
        f"{whole.get(first)}",
    )


def _optional(played: Played) -> Claim:
    partial = {job.paper for job in played.snapshot.jobs if job.status is JobStatus.PARTIAL_SUCCESS}
    return Claim(
        name="optional",
        kept=partial == {paper.name for paper in PAPERS if paper.purpose not in BUDGETS},
        text=f"optional: no budget pays for {_list(partial)}, so its job is a PARTIAL_SUCCESS",
    )


def _issue(played: Played, evidence: Evidence) -> Claim:
    booked = {booking.paper: booking.cents for booking in evidence.bookings}
    resolved = {item.issue.entity_id: item.total for item in played.resolved}
    wrong = {paper.name: paper.misprint for paper in PAPERS if paper.misprint is not None}
    right = all(
        booked.get(paper) == round(total * 100) and evidence.told.get(paper) == frozenset({total})
        for paper, total in resolved.items()
    )
    stories = [
        f"{paper[:2]} says {wrong.get(paper, total):g}, a person typed {total:g}, and {total:g} was posted and booked"
        for paper, total in resolved.items()
    ]
    return Claim(
        name="issue",
        kept=right and resolved.keys() == wrong.keys(),
        text=f"issue: {'; '.join(stories) or 'nobody resolved one'}",
    )


def _callback(played: Played, evidence: Evidence) -> Claim:
    sent = sum(sum(outcomes.values()) for outcomes in evidence.callbacks.values())
    applied = [outcomes.get(CallbackOutcome.APPLIED, 0) for outcomes in evidence.callbacks.values()]
    outside = set(evidence.callers.values()) == {played.office_pid} and played.office_pid not in played.worker_pids
    return Claim(
        name="callback",
        kept=outside and applied == [1] * len(PAPERS) and sent >= SENT * len(PAPERS),
        text=f"callback: process {played.office_pid} outside called {sent} times, {sum(applied)} counted, one per job",
    )


def _taken_over(played: Played) -> Claim:
    tale = played.tale
    if tale.kill is None:
        text = "takeover: no worker was killed, none was ever in the middle of a paper"
        return Claim(name="takeover", kept=False, text=text)
    crashed = {(job.paper, key) for job in played.snapshot.jobs for key, step in job.steps.items() if step.crashes}
    steps, waited = _many(crashed, "step"), since_kill(tale, tale.resumed.values())
    return Claim(
        name="takeover",
        kept=set(tale.kill.held) <= crashed == set(tale.resumed),
        text=f"takeover: worker {tale.kill.worker} was killed, its {steps} ran elsewhere {waited} s later",
    )


def _checkpoints(played: Played, evidence: Evidence) -> Claim:
    stored = played.tale.kill.stored if played.tale.kill else frozenset()
    answers = (charge for charge in evidence.charges if charge.finish is FinishReason.STOP)
    paid = Counter((charge.transaction, charge.asked) for charge in answers)
    return Claim(
        name="checkpoints",
        kept=bool(stored) and all(paid[page] == 1 for page in stored),
        text=f"checkpoints: {_many(stored, 'page')} it had stored by then not paid for again",
    )


def _paid_once(played: Played, evidence: Evidence) -> Claim:
    """Nothing was asked twice, but for what the killed worker had asked and not stored: one question per step."""
    asked = Counter((entry.transaction, entry.asked, entry.model, entry.max_tokens) for entry in evidence.charges)
    again = {transaction for (transaction, *_), times in asked.items() if times > 1}
    held = played.tale.kill.held if played.tale.kill else ()
    died = len(evidence.calls) - len(asked)
    dollars = sum(call.cost_nanos for call in evidence.calls) / 1e9
    return Claim(
        name="paid_once",
        kept=again <= {paper for paper, _ in held}
        and 0 <= died <= len(held)
        and len(evidence.charges) <= len(evidence.calls)
        and dollars > 0,
        text=f"paid once: {len(asked)} calls, each once per attempt, for ${dollars:.4f}; {died} more died midway",
    )


def _effects_once(played: Played, evidence: Evidence) -> Claim:
    with_processor = {step.step_key for step in played.plan.steps if step.processor}
    expected = {
        (job.id, key)
        for job in played.snapshot.jobs
        for key, step in job.steps.items()
        if key in with_processor and step.status is StepStatus.COMPLETED
    }
    once = set(evidence.effects) == expected and set(evidence.effects.values()) == {1}
    total = sum(booking.cents for booking in evidence.bookings)
    right = Counter((booking.paper, booking.cents) for booking in evidence.bookings) == Counter(
        (paper.name, paper.cents) for paper in PAPERS
    )
    return Claim(
        name="exactly_once",
        kept=once and right,
        text=f"exactly once: {sum(evidence.effects.values())} effects of {len(expected)} steps; "
        f"{len(evidence.bookings)} bookings, {total / 100:,.2f} euro to the cent",
    )


def _status(job: JobNow, key: str) -> StepStatus:
    """Of a step that may not have been touched."""
    return job.steps[key].status if key in job.steps else StepStatus.PENDING


def _many(things: Collection[object], noun: str) -> str:
    return f"{len(things)} {noun}" + "s" * (len(things) != 1)


def _list(papers: Collection[str]) -> str:
    return " and ".join(sorted(paper[:2] for paper in papers)) or "no paper"
