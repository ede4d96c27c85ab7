"""Steps are ordered by group, then `order`, then place; groups left out follow from the dependencies."""

from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.templates.plan import Plan

HEAD = "name: t\nprocessable_type: document\nsteps:\n"
FINISH = "  - {step_key: finish, type: FinishProcessing}\n"


def plan_of(*steps: str, finish: str = FINISH) -> Plan:
    text = HEAD + "".join(f"  - {{type: Any, step_key: {step}}}\n" for step in steps) + finish
    return compile_template(text, catalogue=Catalogue.permissive()).plan


def keys(plan: Plan) -> list[str]:
    return [step.step_key for step in plan.steps]


def test_group_then_order_then_place_decides() -> None:
    plan = plan_of("d, group: 2", "c, group: 1, order: 5", "a, group: 1", "b, group: 1")
    assert keys(plan) == ["a", "b", "c", "d", "finish"]
    assert [step.position for step in plan.steps] == [0, 1, 2, 3, 4]


def test_positions_of_dependencies_follow_the_order() -> None:
    plan = plan_of("late, group: 2, depends_on: [b, a]", "b, group: 1, order: 2", "a, group: 1, order: 1")
    assert plan.step("late").depends_on == (plan.positions["a"], plan.positions["b"]) == (0, 1)


def test_a_step_without_group_follows_its_latest_dependency() -> None:
    plan = plan_of("a", "b, depends_on: [a]", "c, depends_on: [a, far]", "far, group: 5", "alone")
    assert {step.step_key: step.execution_group for step in plan.steps} == {
        "a": 1,
        "alone": 1,
        "b": 2,
        "far": 5,
        "c": 6,
        "finish": 7,
    }


def test_a_dependency_inside_a_group_is_allowed() -> None:
    plan = plan_of("b, group: 1, depends_on: [a]", "a, group: 1")
    assert plan.step("b").depends_on == (plan.positions["a"],)
    assert plan.groups == ((0, 1), (2,))


def test_one_dependency_needs_no_list() -> None:
    assert plan_of("a", "b, depends_on: a").step("b").depends_on == (0,)


def test_all_previous_steps_are_all_steps_of_earlier_groups() -> None:
    plan = plan_of("a", "b", "c, group: 2, depends_on: all_previous_steps", "d, group: 2")
    assert plan.step("c").depends_on == (0, 1)


def test_all_previous_steps_may_stand_in_a_list() -> None:
    plan = plan_of("a", "c, group: 2, depends_on: [all_previous_steps, d]", "d, group: 2")
    assert plan.step("c").depends_on == (plan.positions["a"], plan.positions["d"])


def test_all_previous_steps_without_group_come_after_everything_written_above() -> None:
    plan = plan_of("a", "b, depends_on: [a]", "c, depends_on: all_previous_steps", "d")
    assert plan.step("c").execution_group == 3
    assert plan.step("c").depends_on == tuple(plan.positions[key] for key in ("a", "d", "b"))


def test_the_finish_step_waits_for_all_and_is_alone_in_the_last_group() -> None:
    plan = plan_of("a, group: 3", "b, group: 9")
    finish = plan.steps[plan.finish]
    assert (finish.step_key, finish.finish, finish.execution_group, finish.depends_on) == ("finish", True, 10, (0, 1))
    assert plan.groups[-1] == (plan.finish,)


def test_the_finish_step_may_name_a_later_group_and_its_dependencies() -> None:
    finish = "  - {step_key: end, type: FinishProcessing, group: 99, depends_on: [all_previous_steps]}\n"
    plan = plan_of("a", "b", finish=finish)
    assert (plan.steps[-1].execution_group, plan.steps[-1].depends_on) == (99, (0, 1))


def test_a_template_may_be_a_finish_step_alone() -> None:
    plan = plan_of()
    assert (keys(plan), plan.finish, plan.steps[0].depends_on) == (["finish"], 0, ())


def test_dependents_mirror_dependencies() -> None:
    plan = plan_of("a", "b, depends_on: [a]", "c, depends_on: [a]")
    assert plan.dependents == ((1, 2, 3), (3,), (3,), ())


def test_a_result_of_an_earlier_group_or_a_dependency_may_be_read() -> None:
    plan = plan_of(
        "a",
        "b, group: 2, condition: results.a.ok",
        "c, group: 2, depends_on: [b], condition: results.b.ok",
        "d, group: 2, depends_on: [c], condition: results.b.ok",
    )
    assert plan.step("d").condition == "results.b.ok"
