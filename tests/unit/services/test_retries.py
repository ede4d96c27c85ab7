"""The retry policy of the settings is part of the shipped template's version; a template of one's own is left alone."""

from dataclasses import replace

from docmill.services.processing import TEMPLATE
from docmill.services.retries import RetryPolicy, differ_in_policy_only, with_policy
from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.templates.shipped import shipped_text

SHIPPED = compile_template(shipped_text(TEMPLATE), catalogue=Catalogue.permissive())


def test_the_usual_policy_changes_nothing() -> None:
    assert with_policy(SHIPPED, RetryPolicy()).digest == SHIPPED.digest


def test_a_policy_holds_for_the_steps_that_say_nothing_of_their_own() -> None:
    steps = {step.step_key: step for step in SHIPPED.plan.steps}
    changed = with_policy(SHIPPED, RetryPolicy(max_retries=6, base_delay_seconds=0.5))
    for step in changed.plan.steps:
        before = steps[step.step_key]
        assert step.backoff == 0.5
        assert step.max_attempts == (7 if before.max_attempts == 4 else before.max_attempts)
    assert changed.digest != SHIPPED.digest


def test_what_somebody_changed_is_told_from_another_policy() -> None:
    other = with_policy(SHIPPED, RetryPolicy(max_retries=0)).plan
    assert differ_in_policy_only(SHIPPED.plan, other)
    first, *rest = SHIPPED.plan.steps
    assert not differ_in_policy_only(replace(SHIPPED.plan, steps=(replace(first, timeout=1.0), *rest)), other)
