"""The demo in figures, and whether its claims were kept."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from docmill.bootstrap import App
from docmill.demo.claims import Claim, claims, since_kill
from docmill.demo.evidence import Booking, gather
from docmill.demo.play import Played


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What was seen and verified."""

    seconds: float
    jobs: Mapping[str, int]
    """Status -> how many."""
    steps_run: int
    retries: int
    taken_over: int
    given_back_s: float | None
    """From the kill until the last step of the dead worker was ready again."""
    takeover_s: float | None
    """From the kill until the last of them ran again in another worker."""
    model_calls: int
    dollars: float
    commands: tuple[str, ...]
    """Typed to resolve issues."""
    office_pid: int
    bookings: tuple[Booking, ...]
    claims: tuple[Claim, ...]

    @property
    def kept(self) -> bool:
        return all(claim.kept for claim in self.claims)

    def document(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {**asdict(self), "kept": self.kept}


def sum_up(app: App, home: Path, played: Played) -> Summary:
    """Count and check."""
    jobs, tale = played.snapshot.jobs, played.tale
    evidence = gather(app, home, played.plan, jobs, played.snapshot.callers)
    return Summary(
        seconds=round(monotonic() - played.began, 1),
        jobs=dict(sorted(Counter(job.status.value for job in jobs).items())),
        steps_run=tale.steps_run,
        retries=tale.retries,
        taken_over=len(tale.resumed),
        given_back_s=since_kill(tale, tale.given_back.values()),
        takeover_s=since_kill(tale, tale.resumed.values()),
        model_calls=len(evidence.calls),
        dollars=sum(call.cost_nanos for call in evidence.calls) / 1e9,
        commands=tuple(item.command for item in played.resolved),
        office_pid=played.office_pid,
        bookings=evidence.bookings,
        claims=tuple(claims(played, evidence)),
    )
