"""`rule.check`: a list of rules that must hold, written in the template.

Each entry of the step's `input` is a rule by its name: an expression that holds or does not. So a rule is checked with
the template, sees the freshly loaded entity, and needs no code.

    - step_key: check_totals
      type: rule.check
      depends_on: [extract]
      input:
        total_adds_up: round(entity.net + entity.tax, 2) == entity.total
        total_adds_up_message: "'Net and tax make ' + text(entity.net + entity.tax) + '.'"
        has_vendor: exists(entity.vendor)
        open_issues: "'warning'"
        blocking: true
"""

from collections.abc import Mapping, Sequence

from docmill.plugin import Issue, PermanentError, StepContext, step

MUST_HOLD = "must_hold"
"""The input that says whether a broken rule fails the step. Without it the result only reports."""
OPEN_ISSUES = "open_issues"
"""The input that says whether a broken rule opens an issue: its severity, or true for `error`."""
BLOCKING = "blocking"
"""The input that says whether the step waits until the issues are resolved."""
_OPTIONS = frozenset({MUST_HOLD, OPEN_ISSUES, BLOCKING})
MESSAGE = "_message"
"""An input of this ending is what to say when the rule before the ending is broken."""


class CheckFailed(PermanentError):
    """A rule that must hold is broken; the message names each."""

    code = "check_failed"


@step("rule.check", kind="rule")
async def check(ctx: StepContext, input: Mapping[str, object]) -> dict[str, object]:
    """`{"passed": bool, "checks": [{"name", "passed", "message"}]}`, in the order of the template."""
    checks = _checks(input)
    broken = [entry for entry in checks if not entry["passed"]]
    if broken and input.get(MUST_HOLD):
        messages = " ".join(str(entry["message"]) for entry in broken)
        raise CheckFailed(f"{len(broken)} of {len(checks)} checks do not hold: {messages}")
    _ask(ctx, input, broken)
    return {"passed": not broken, "checks": checks}


def _ask(ctx: StepContext, input: Mapping[str, object], broken: Sequence[Mapping[str, object]]) -> None:
    """Open an issue for each broken rule, under its name, if the template says so."""
    severity, blocking = input.get(OPEN_ISSUES), bool(input.get(BLOCKING))
    if blocking and not severity:
        raise PermanentError(f"`{BLOCKING}` without `{OPEN_ISSUES}` waits for an issue that nobody opens; say both.")
    for entry in broken if severity else ():
        ctx.issue(
            Issue(
                code=str(entry["name"]),
                title=str(entry["message"]),
                severity="error" if severity is True else str(severity),
                blocking=blocking,
            )
        )


def _checks(input: Mapping[str, object]) -> list[dict[str, object]]:
    rules = [name for name in input if name not in _OPTIONS and not name.endswith(MESSAGE)]
    if not rules:
        raise PermanentError("This step has no rules; write `name: expression` below its `input`.")
    for name in input:
        if name.endswith(MESSAGE) and name.removesuffix(MESSAGE) not in rules:
            raise PermanentError(f"`{name}` is the message of no rule; there is no `{name.removesuffix(MESSAGE)}`.")
    return [_check(name, input[name], input.get(name + MESSAGE)) for name in rules]


def _check(name: str, value: object, message: object) -> dict[str, object]:
    # As in a condition: null, false, zero and whatever is empty do not hold.
    passed = bool(value)
    return {"name": name, "passed": passed, "message": None if passed else str(message or f"{name} does not hold.")}
