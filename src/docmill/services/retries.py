"""The retry policy of the settings, put into the shipped template for documents.

A job pins its template version, so the policy is written into a version of the template instead of being looked up at
run time: another policy is another version. A template that somebody has changed is left alone; it says itself how
often it tries.
"""

from dataclasses import dataclass, replace

from docmill.templates.compile import CompiledTemplate
from docmill.templates.document import digest, document_from_plan
from docmill.templates.plan import Plan, PlanStep


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often, and after how long."""

    max_retries: int = 3
    base_delay_seconds: float = 10.0


def with_policy(compiled: CompiledTemplate, policy: RetryPolicy) -> CompiledTemplate:
    """The template with the policy in every step that says nothing of its own."""
    plan = replace(compiled.plan, steps=tuple(_tried(step, policy) for step in compiled.plan.steps))
    document = document_from_plan(plan)
    return CompiledTemplate(plan=plan, document=document, digest=digest(document))


def _tried(step: PlanStep, policy: RetryPolicy) -> PlanStep:
    usual = PlanStep.__dataclass_fields__
    attempts, backoff = usual["max_attempts"].default, usual["backoff"].default
    return replace(
        step,
        max_attempts=policy.max_retries + 1 if step.max_attempts == attempts else step.max_attempts,
        backoff=policy.base_delay_seconds if step.backoff == backoff else step.backoff,
    )


def differ_in_policy_only(one: Plan, other: Plan) -> bool:
    """Whether two plans are the same but for how often they try."""
    return _without(one) == _without(other)


def _without(plan: Plan) -> Plan:
    return replace(plan, steps=tuple(replace(step, max_attempts=1, backoff=0.0) for step in plan.steps))
