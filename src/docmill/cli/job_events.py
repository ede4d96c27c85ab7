"""`docmill jobs events`: the chain of a job's events, from any position on."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from docmill.cli.board import job_change, step_changes
from docmill.cli.errors import EXIT_FAILED
from docmill.cli.job_text import error_text
from docmill.cli.options import JobId, Json
from docmill.cli.output import print_json, print_json_line, printable, record, when

if TYPE_CHECKING:
    from docmill.bootstrap import App as Installation
    from docmill.services.following import JobEvent


def events(
    job: JobId,
    /,
    *,
    after: Annotated[
        int,
        Parameter(metavar="N", help="Only what came after this position.", validator=validators.Number(gte=0)),
    ] = 0,
    follow: Annotated[bool, Parameter(negative="", help="Go on until the job has finished.")] = False,
    verify: Annotated[
        bool, Parameter(negative="", help="Also check that all events are there and as they were written.")
    ] = False,
    json: Json = False,
) -> int:
    """Print what happened to a job, each event with its position.

    Give the last position to --after and the list goes on where it ended. With --verify the exit code is 1 if an
    event is missing or was changed.
    """
    from docmill.cli.opening import opened

    with opened() as installation:
        job_id = installation.jobs.find_id(job)
        position = after
        told = []
        for event in _heard(installation, job_id, after, follow=follow):
            position = event.version
            if not json:
                _print(event)
            elif follow:
                print_json_line(event_record(event))
            else:
                told.append(event_record(event))
        if json and not follow:
            answer: dict[str, object] = {"job_id": job_id, "position": position, "events": told}
            faults = _faults(installation, job_id) if verify else []
            print_json(answer | ({"chain": {"holds": not faults, "faults": faults}} if verify else {}))
            return EXIT_FAILED if faults else 0
        return _tell_chain(installation, job_id, json=json) if verify else 0


def event_record(event: "JobEvent") -> dict[str, object]:
    """An event as JSON tells it."""
    change = job_change(event)
    return {
        "type": "event",
        "job_id": event.job_id,
        "version": event.version,
        "at": event.at,
        "job": {"before": change[0], "after": change[1]} if change else None,
        "steps": [record(step) for step in step_changes(event)],
        "errors": event.data.get("errors", {}),
    }


def _heard(installation: "Installation", job_id: str, after: int, *, follow: bool) -> "Iterator[JobEvent]":
    if follow:
        yield from (event for event in installation.jobs.watch({job_id: after}) if event is not None)
    else:
        yield from installation.jobs.events(job_id, after=after)


def _print(event: "JobEvent") -> None:
    lead = f"{event.version:>5}  {when(event.at)}"
    errors = event.data.get("errors", {})
    for step in step_changes(event):
        reason = f" ({step.reason})" if step.reason else ""
        why = f": {error_text(errors[step.step_key])}" if step.step_key in errors else ""
        print(printable(f"{lead}  {step.step_key} {step.before} → {step.after}{reason}{why}"), flush=True)
    if change := job_change(event):
        print(printable(f"{lead}  job {change[0]} → {change[1]}"), flush=True)


def _faults(installation: "Installation", job_id: str) -> list[dict[str, object]]:
    return [{"version": fault.version, "problem": fault.problem} for fault in installation.jobs.verify(job_id)]


def _tell_chain(installation: "Installation", job_id: str, *, json: bool) -> int:
    faults = _faults(installation, job_id)
    if json:
        print_json_line({"type": "chain", "holds": not faults, "faults": faults})
    else:
        for fault in faults:
            print(f"{fault['version']:>5}  {fault['problem']}")
        print("The chain does not hold." if faults else "The chain holds: no event is missing or changed.")
    return EXIT_FAILED if faults else 0
