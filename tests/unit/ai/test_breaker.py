"""The breaker: more than five failures in a row open it, one probe decides, and nobody waits for a dead one."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from docmill.ai.breaker import FAILURES, OPEN_SECONDS, Admitted, Breaker, Health, Refused, admit, report
from docmill.model.ai import BreakerState

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
PROBE = 30.0

CLOSED = Breaker()
SHAKEN = Breaker(failures=FAILURES)
OPEN = Breaker(state=BreakerState.OPEN, failures=6, opened_at=NOW)
DUE = NOW + timedelta(seconds=OPEN_SECONDS)
PROBED_UNTIL = DUE + timedelta(seconds=PROBE)
HALF_OPEN = Breaker(state=BreakerState.HALF_OPEN, failures=6, opened_at=NOW, probe_until=PROBED_UNTIL)


@pytest.mark.parametrize(
    ("breaker", "now", "expected"),
    [
        (CLOSED, NOW, Admitted(breaker=CLOSED)),
        (SHAKEN, NOW, Admitted(breaker=SHAKEN)),
        (OPEN, NOW, Refused(delay=60.0)),
        (OPEN, DUE - timedelta(seconds=1), Refused(delay=1.0)),
        (OPEN, DUE, Admitted(breaker=HALF_OPEN, probe=PROBED_UNTIL)),
        (HALF_OPEN, DUE, Refused(delay=5.0)),
        (HALF_OPEN, PROBED_UNTIL - timedelta(seconds=2), Refused(delay=2.0)),
    ],
    ids=["closed", "shaken", "just opened", "nearly due", "due", "probe on its way", "probe nearly given up"],
)
def test_a_closed_breaker_lets_all_in_and_an_open_one_a_single_probe(
    breaker: Breaker, now: datetime, expected: Admitted | Refused
) -> None:
    assert admit(breaker, now=now, probe_for=PROBE) == expected


def test_a_probe_that_never_reports_is_followed_by_another() -> None:
    decision = admit(HALF_OPEN, now=PROBED_UNTIL, probe_for=PROBE)
    assert isinstance(decision, Admitted)
    assert decision.probe == PROBED_UNTIL + timedelta(seconds=PROBE)
    # The dead one speaks up after all: it is no longer the probe.
    assert report(decision.breaker, Health.WELL, now=PROBED_UNTIL, probe=PROBED_UNTIL) == decision.breaker


def test_a_clock_that_was_set_back_does_not_keep_it_open() -> None:
    long_ago = NOW - timedelta(days=1)
    assert isinstance(admit(OPEN, now=long_ago, probe_for=PROBE), Admitted)
    # A process that read its clock just before another opened the breaker is no sign of that.
    assert isinstance(admit(OPEN, now=NOW - timedelta(seconds=1), probe_for=PROBE), Refused)


@pytest.mark.parametrize(
    ("before", "health", "probe", "after"),
    [
        (CLOSED, Health.WELL, None, CLOSED),
        (SHAKEN, Health.WELL, None, CLOSED),
        (SHAKEN, Health.UNKNOWN, None, SHAKEN),
        (CLOSED, Health.ILL, None, Breaker(failures=1)),
        (Breaker(failures=4), Health.ILL, None, SHAKEN),
        (SHAKEN, Health.ILL, None, OPEN),
        (OPEN, Health.WELL, None, OPEN),
        (OPEN, Health.ILL, None, OPEN),
        (HALF_OPEN, Health.WELL, None, HALF_OPEN),
        (HALF_OPEN, Health.ILL, None, HALF_OPEN),
        (HALF_OPEN, Health.WELL, PROBED_UNTIL, CLOSED),
        (HALF_OPEN, Health.ILL, PROBED_UNTIL, Breaker(state=BreakerState.OPEN, failures=7, opened_at=NOW)),
    ],
)
def test_what_a_call_changes(before: Breaker, health: Health, probe: datetime | None, after: Breaker) -> None:
    assert report(before, health, now=NOW, probe=probe) == after


def test_a_probe_that_was_cancelled_hands_over_at_once() -> None:
    after = report(HALF_OPEN, Health.UNKNOWN, now=DUE, probe=PROBED_UNTIL)
    assert isinstance(admit(after, now=DUE, probe_for=PROBE), Admitted)


class BreakerMachine(RuleBasedStateMachine):
    """Calls come, go, fail and die in any order; beside the breaker runs an account of what was promised."""

    calls = Bundle("calls")

    def __init__(self) -> None:
        super().__init__()
        self.breaker = Breaker()
        self.now = NOW
        self.row = 0
        """Failures in a row since it last closed."""
        self.refuse_until: datetime | None = None
        """While open: nobody before then."""
        self.probe: tuple[datetime, datetime] | None = None
        """While half open: the probe and until when it may take."""

    @rule(seconds=st.sampled_from([0.5, 10.0, 31.0, 60.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(target=calls)
    def call(self) -> tuple[bool, datetime | None]:
        decision = admit(self.breaker, now=self.now, probe_for=PROBE)
        if self.probe is not None:
            expected = "probe" if self.now >= self.probe[1] else "refused"
        elif self.refuse_until is not None:
            expected = "probe" if self.now >= self.refuse_until else "refused"
        else:
            expected = "passed"
        if isinstance(decision, Refused):
            assert expected == "refused"
            assert decision.delay > 0
            return False, None
        assert expected == ("passed" if decision.probe is None else "probe")
        if decision.probe is not None:
            self.probe = (decision.probe, self.now + timedelta(seconds=PROBE))
            self.refuse_until = None
        self.breaker = decision.breaker
        return True, decision.probe

    @rule(call=calls, well=st.booleans())
    def end(self, call: tuple[bool, datetime | None], well: bool) -> None:
        let_in, probe = call
        if not let_in:
            return
        self.breaker = report(self.breaker, Health.WELL if well else Health.ILL, now=self.now, probe=probe)
        if self.probe is not None:
            if probe == self.probe[0]:
                self.probe, self.row = None, 0
                self.refuse_until = None if well else self.now + timedelta(seconds=60)
        elif self.refuse_until is None:
            self.row = 0 if well else self.row + 1
            if self.row > 5:
                self.row, self.refuse_until = 0, self.now + timedelta(seconds=60)

    @invariant()
    def states_agree(self) -> None:
        state = BreakerState.CLOSED
        if self.probe is not None:
            state = BreakerState.HALF_OPEN
        elif self.refuse_until is not None:
            state = BreakerState.OPEN
        assert self.breaker.state is state


TestBreakerAgainstItsPromises = BreakerMachine.TestCase
