"""Whether and when a failed attempt is tried again, and with which model. Pure."""

from collections.abc import Mapping

from docmill.templates.plan import PlanStep

LONGEST_DELAY = 7 * 24 * 3600.0
"""Seconds. A provider may send any Retry-After and a template may allow any number of attempts: neither may park a step
for good, nor carry the due time beyond what a date can hold."""


def retry_delay(
    step: PlanStep, *, failures: int, permanent: bool, retry_after: float | None, jitter: float
) -> float | None:
    """Seconds until the next attempt after the given number of failures, or None when there is none.

    The delay before retry n (from 0) is backoff * 2**n plus up to half of it; a provider's Retry-After overrides it;
    neither is longer than LONGEST_DELAY.
    """
    if permanent or failures >= step.max_attempts:
        return None
    if retry_after is not None:
        return min(LONGEST_DELAY, max(0.0, retry_after))
    # Doubling stops long after the longest delay is passed and long before a float overflows.
    delay = step.backoff * 2.0 ** min(failures - 1, 100)
    return min(LONGEST_DELAY, delay + jitter * delay / 2)


def attempt_settings(step: PlanStep, *, failures: int) -> Mapping[str, object]:
    """Model settings of the attempt that follows this many failures.

    `switch_models` cycles through its list and then the original model; `raise_max_tokens_by` adds once per retry.
    """
    settings = dict(step.model)
    action = step.on_retry
    if action.switch_models and failures:
        cycle = (*action.switch_models, settings.get("model"))
        settings["model"] = cycle[(failures - 1) % len(cycle)]
    tokens = settings.get("max_tokens")
    if action.raise_max_tokens_by and failures and isinstance(tokens, int):
        settings["max_tokens"] = tokens + failures * action.raise_max_tokens_by
    return settings
