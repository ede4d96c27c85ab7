"""The demo told in lines: which news is worth a sentence, and what is measured on the way."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from docmill.demo.invoices import PAGES
from docmill.demo.watch import JobNow, News, Snapshot
from docmill.engine.retry import attempt_settings
from docmill.model.statuses import JobStatus, StepStatus
from docmill.templates.plan import Plan

Tone = Literal["plain", "good", "bad", "warn", "quiet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One sentence of the tale."""

    at: datetime
    tone: Tone
    sign: str
    subject: str
    text: str
    minor: bool = False
    """Left out where the grid shows the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """The moment a worker was killed, and what it held."""

    worker: str
    pid: int
    at: datetime
    held: tuple[tuple[str, str], ...]
    """(invoice, step) that it was running."""
    stored: frozenset[tuple[str, int]]
    """(invoice, page) whose answers were stored by then, of the steps it held."""


@dataclass(slots=True)
class Tale:
    """Grows with every look at the database."""

    plan: Plan
    began: datetime
    lines: list[Line] = field(default_factory=list)
    kill: Kill | None = None
    given_back: dict[tuple[str, str], datetime] = field(default_factory=dict)
    """When steps of the killed worker became ready again."""
    resumed: dict[tuple[str, str], datetime] = field(default_factory=dict)
    """When they ran again elsewhere."""
    steps_run: int = 0
    """Attempts begun, of all steps."""
    retries: int = 0

    def killed(self, kill: Kill) -> None:
        """A worker was just killed."""
        self.kill = kill
        held = ", ".join(sorted({invoice[:2] for invoice, _ in kill.held}))
        text = f"SIGKILL, in the middle of {held}"
        self.lines.append(Line(at=kill.at, tone="bad", sign="✖", subject=f"worker {kill.worker}", text=text))

    def take_in(self, snapshot: Snapshot) -> list[Line]:
        """Measure the news and return the lines that they add."""
        found = {job.invoice: job for job in snapshot.jobs}
        new = [line for news in snapshot.news for line in self._tell(news, found[news.invoice])]
        self.lines.extend(new)
        return new

    def _tell(self, news: News, job: JobNow) -> Iterator[Line]:
        if news.step is None:
            yield from self._tell_job(news)
            return
        key = (news.invoice, news.step)
        if news.after == StepStatus.IN_PROGRESS:
            self.steps_run += 1
            if key in self.given_back and key not in self.resumed:
                self.resumed[key] = news.at
                yield self._resumption(news, job)
        elif news.reason == "retry":
            self.retries += 1
            yield self._retry(news, job)
        elif news.reason == "crashed":
            self.given_back[key] = news.at
            yield self._line(news, "warn", "↺", f"{news.step} is given back: its worker is gone")
        elif news.after == StepStatus.FAILED:
            optional = self.plan.step(news.step).optional
            rest = " (optional)" if optional else ""
            yield self._line(news, "bad", "✗", f"{news.step} failed: {news.error}{rest}")
        elif news.after == StepStatus.SKIPPED:
            yield self._line(news, "quiet", "–", f"{news.step} is skipped: its condition does not hold", minor=True)

    def _tell_job(self, news: News) -> Iterator[Line]:
        status = JobStatus(news.after)
        if status.finished:
            tone: Tone = "good" if status is JobStatus.COMPLETED else "warn"
            sign = "✓" if status is JobStatus.COMPLETED else "◐"
            yield self._line(news, tone, sign, status.value, minor=True)

    def _resumption(self, news: News, job: JobNow) -> Line:
        step = job.steps[news.step or ""]
        where = f" in worker {step.worker}" if step.worker else ""
        page = f", at page {min(step.parts + 1, PAGES)}" if step.parts else ""
        return self._line(news, "good", "↪", f"{news.step} goes on{where}{page}")

    def _retry(self, news: News, job: JobNow) -> Line:
        step = self.plan.step(news.step or "")
        model = attempt_settings(step, failures=job.steps[step.step_key].failures).get("model")
        return self._line(news, "warn", "↻", f"{news.step}: {news.error} → {model}")

    @staticmethod
    def _line(news: News, tone: Tone, sign: str, text: str, *, minor: bool = False) -> Line:
        return Line(at=news.at, tone=tone, sign=sign, subject=news.invoice, text=text, minor=minor)

    def seconds(self, at: datetime) -> float:
        """Seconds since the beginning."""
        return max(0.0, (at - self.began).total_seconds())
