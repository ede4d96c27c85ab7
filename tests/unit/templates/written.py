"""Hypothesis strategies: valid templates as a person might write them, every key used now and then."""

from typing import Any

from hypothesis import strategies as st

from docmill.model.statuses import StepKind

# Printable, and beginning with a letter: the dumper quotes by YAML 1.1, we read by 1.2, so `1e3` would turn a number.
TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn", "Co")), max_size=20).map(lambda text: f"x{text}")
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63) + 1, 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXT,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
CONDITIONS = st.sampled_from(["entity.total > 5", "metadata.via in ['email', 'web']", "not entity.paid", True])
SECONDS = st.one_of(st.integers(1, 10_000), st.floats(0.001, 10_000), st.sampled_from(["5m", "30s", "1h30m", "250ms"]))
CHOICES = st.lists(
    st.fixed_dictionaries({"when": st.sampled_from(["result.ok", "result.n > 1"]), "method": NAMES}), max_size=2
)


def maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


FIELDS = maybe(
    display_name=TEXT,
    kind=st.sampled_from([kind.value for kind in StepKind]),
    pool=NAMES,
    order=st.integers(0, 3),
    condition=CONDITIONS,
    timeout=SECONDS,
    max_attempts=st.integers(1, 100),
    backoff=SECONDS,
    max_crashes=st.integers(1, 100),
    on_retry_action=maybe(switch_models=st.lists(TEXT, max_size=3), raise_max_tokens_by=st.integers(0, 9000)),
    prompt=st.one_of(TEXT, st.integers(1, 99)),
    model_config=st.dictionaries(NAMES, JSON, max_size=3),
    output_schema=st.sampled_from([{}, {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}]),
    processor_method=st.one_of(NAMES, st.tuples(CHOICES, NAMES).map(lambda t: [*t[0], {"method": t[1]}])),
    compensation_method=NAMES,
    recovery=NAMES,
    input=st.dictionaries(NAMES, st.sampled_from(["entity.a", "metadata.b[0]", 5, True, None]), max_size=2),
    not_before=st.sampled_from(["2026-01-31", "2026-01-31T08:00:00Z", "entity.due"]),
    delay=SECONDS,
    answer_within=SECONDS,
)
FAILURE: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {},
        {"optional": True},
        {"optional": True, "on_failure_action": "continue"},
        {"on_failure_action": "skip_dependents"},
        {"optional": False, "on_failure_action": "fail_job"},
    ]
)


ITEMS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {"for_each": st.sampled_from(["metadata.documents", "entity.lines"])},
        optional={"parallel": st.integers(1, 1000), "items_may_fail": st.booleans()},
    ),
)


@st.composite
def templates(draw_value: st.DrawFn) -> dict[str, Any]:
    """Valid templates as data: dependencies point upwards in the file, groups never fall."""
    keys = draw_value(st.lists(NAMES.filter(lambda key: key != "finish"), max_size=6, unique=True))
    steps: list[dict[str, Any]] = []
    group = 1
    grouped = draw_value(st.booleans())
    for index, key in enumerate(keys):
        step: dict[str, Any] = {"step_key": key, "type": draw_value(TEXT), **draw_value(FIELDS)}
        step |= draw_value(FAILURE) | draw_value(ITEMS)
        if step.get("kind") == StepKind.EXTERNAL.value and draw_value(st.booleans()):
            step["executor"] = draw_value(NAMES)
        if grouped:
            group += draw_value(st.integers(0, 2))
            step[draw_value(st.sampled_from(["group", "execution_group"]))] = group
        needs = draw_value(st.lists(st.sampled_from(keys[:index]), unique=True)) if index else []
        step["depends_on"] = draw_value(st.sampled_from([needs, "all_previous_steps", [*needs, "all_previous_steps"]]))
        steps.append(step)
    head = draw_value(maybe(description=TEXT, task_type=NAMES, compensate=st.booleans()))
    finish = {"step_key": "finish", "type": "FinishProcessing"}
    return {
        "name": draw_value(NAMES),
        "processable_type": "document",
        "service_name": "s",
        **head,
        "steps": [*steps, finish],
    }
