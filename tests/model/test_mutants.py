"""The comparison is itself tested: take one rule out of `decide` and it must find out.

Each mutant is the source of `docmill.engine.decide` with one small text replaced. If a text is no longer there, decide
was rewritten: write the mutant anew, do not drop it.
"""

import inspect
import types

import pytest
from hypothesis import given

from docmill.engine import decide as original
from docmill.testing.driver import Driver, Mismatch
from docmill.testing.plans import profile, programs
from docmill.testing.pure import Decide, PureSystem
from docmill.testing.sequences import Program
from docmill.testing.stories import STORIES

MUTANTS = {
    "no fence": ("if step.epoch != event.epoch:", "if False:"),
    "claim keeps the epoch": ("epoch=step.epoch + 1, worker=event.worker", "epoch=step.epoch, worker=event.worker"),
    "crash keeps the epoch": ("crashes=crashes, epoch=step.epoch + 1", "crashes=crashes, epoch=step.epoch"),
    "cancel keeps the epoch": ("CANCELLED)._replace(epoch=step.epoch + 1)", "CANCELLED)"),
    "rerun keeps the epoch": ("StepState(epoch=step.epoch + 1, ", "StepState(epoch=step.epoch, "),
    "rerun forgets checkpoints": (
        "keep = (event.keep_checkpoints or plan.undoes) and step.checkpointed",
        "keep = False",
    ),
    "rerun leaves dependents": ("again.add(dependent)\n", "pass\n"),
    "rerun leaves fatal failures": ("for planned in plan.steps if _fatal(fold, planned)}", "for planned in ()}"),
    "a settled step can be reported": (
        "return step.status is StepStatus.COMPLETED and isinstance(event, Completed)",
        "pass",
    ),
    "a repeated completion is lost": (
        "return step.status is StepStatus.COMPLETED and isinstance(event, Completed)",
        "return False",
    ),
    "a checkpoint is forgotten": ("fold.steps[position] = step._replace(checkpointed=True)", "pass"),
    "a due time is ignored": ("step.due_at > fold.now)", "False)"),
    "a deferral uses an attempt": (
        "_again(step, event.until)",
        "_again(step._replace(failures=step.failures + 1), event.until)",
    ),
    "a drain counts as a crash": (
        '_again(step, step.due_at or fold.now), "released"',
        '_again(step._replace(crashes=step.crashes + 1), step.due_at or fold.now), "released"',
    ),
    "an answer comes before its question": ("    elif isinstance(event, Answered | Reopened):", "    elif False:"),
    "an answer is not kept": ("    step = step._replace(checkpointed=True)\n    if fold", "    if fold"),
    "an answer is not applied": ("if fold.plan.steps[position].processor:", "if False:"),
    "an answer is applied without need": ("if fold.plan.steps[position].processor:", "if True:"),
    "a reopened step uses an attempt": (
        '_again(step, fold.now)._replace(checkpointed=False), "reopened"',
        '_again(step, fold.now)._replace(checkpointed=False, failures=step.failures + 1), "reopened"',
    ),
    "a reopened step keeps its result": (
        "_again(step, fold.now)._replace(checkpointed=False)",
        "_again(step, fold.now)",
    ),
    "what a question was about is forgotten": (
        "checkpointed=step.checkpointed or event.paid))",
        "checkpointed=False))",
    ),
    "a job that is held begins": ("if fold.job.finished or fold.held:", "if fold.job.finished:"),
    "a job is freed for good": ("    fold.held = event.held\n    fold.put_job", "    fold.put_job"),
    "any job can be freed": ("accepted, fold.held = fold.held, False", "accepted, fold.held = True, False"),
    "a cancelled job stays held": ("    fold.held = False\n    fold.put_job", "    fold.put_job"),
    "what was undone is not done again": ("if plan.compensate and fold.job in", "if False and fold.job in"),
    "what was never undone is done again": ("if plan.compensate and fold.job in", "if fold.job in"),
    "a crash too many": ("crashes >= fold.plan", "crashes > fold.plan"),
    "skips are not transitive": ("                frontier.append(position)\n", "                pass\n"),
    "the finish is skipped with dependents": ("and position != fold.plan.finish:", "and True:"),
    "a failed finish may be tolerated": (" or planned.position == fold.plan.finish", ""),
    "dependencies are ignored": ("for dependency in planned.depends_on)", "for dependency in ())"),
    "groups are ignored": (
        "                fold.put(position, step._replace(status=StepStatus.READY, due_at=due_at))\n        return",
        "                fold.put(position, step._replace(status=StepStatus.READY, due_at=due_at))\n",
    ),
    "condition-skips deny dependents": (
        "step.reason is SkipReason.DEPENDENCY_FAILED\n\n\ndef _make",
        "True\n\n\ndef _make",
    ),
    "an outside executor is cut off": (" and planned.kind is not StepKind.EXTERNAL", ""),
    "a partial success is a success": (
        "return JobStatus.PARTIAL_SUCCESS if achieved",
        "return JobStatus.COMPLETED if achieved",
    ),
    "nothing achieved is a partial success": (
        "if achieved else JobStatus.FAILED",
        "if achieved else JobStatus.PARTIAL_SUCCESS",
    ),
    "a finished job can be cancelled": ("    if fold.job.finished:\n        return False\n    for", "    for"),
    "a running job can be rerun": ("    if not fold.job.finished:\n        return False\n", ""),
    "the join happens at the end of the batch only": (
        "    accepted = tuple([_apply(fold, event) for event in events])",
        "    accepted = tuple([_report(fold, e) if isinstance(e, Completed) and len(events) > 1 else _apply(fold, e)"
        " for e in events])",
    ),
}


def mutant(old: str, new: str) -> Decide:
    """`decide` with one text replaced."""
    source = inspect.getsource(original)
    assert source.count(old) == 1, f"{old!r} is {source.count(old)} times in decide.py; write this mutant anew"
    module = types.ModuleType("docmill.engine.mutant")
    exec(compile(source.replace(old, new), "mutant", "exec"), module.__dict__)
    function: Decide = module.__dict__["decide"]
    return function


@pytest.mark.parametrize("name", MUTANTS)
def test_the_comparison_notices(name: str) -> None:
    broken = mutant(*MUTANTS[name])

    @given(programs())
    @profile(350, shrink=False)
    def run(program: Program) -> None:
        Driver(PureSystem(broken)).run(program)

    def run_all() -> None:
        for story in STORIES:
            Driver(PureSystem(broken)).run(story)
        run()

    with pytest.raises(Mismatch):
        run_all()
