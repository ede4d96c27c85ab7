"""`docmill ai`: what models were asked, what it cost, and how their breakers stand."""

import sys
from datetime import timedelta
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter, validators

from docmill.cli.acting import acting_for
from docmill.cli.options import Json, Limit
from docmill.cli.output import note_page, print_json, print_table, printable, record, took, when

app = App(name="ai", help="Look at calls to models, their cost, and their breakers.")
breakers = App(name="breakers", help="Show the breakers of models, or close one by hand.")
app.command(breakers)


@app.command
def calls(
    *,
    job: Annotated[str | None, Parameter(metavar="JOB", help="Only calls of this job.", show_default=False)] = None,
    limit: Limit = 50,
    json: Json = False,
) -> int:
    """List calls to models, the newest first."""
    from docmill.cli.opening import opened

    with opened() as installation:
        found = installation.model_use.calls(
            limit=limit, job_id=None if job is None else installation.jobs.find_id(job)
        )
    if json:
        print_json({"calls": [record(call) for call in found]})
    elif found:
        heads = ("ASKED", "MODEL", "OUTCOME", "TOKENS IN", "OUT", "COST", "TOOK", "JOB", "STEP")
        rows = [
            (
                when(call.created_at),
                f"{call.provider}:{call.model}",
                call.error_code or str(call.outcome),
                str(call.input_tokens),
                str(call.output_tokens),
                _cost(call.cost_nanos, known=call.priced),
                took(timedelta(milliseconds=call.duration_ms)),
                call.job_id or "",
                printable(call.step_key or ""),
            )
            for call in found
        ]
        print_table(heads, rows, give_way=("MODEL", "STEP"))
        note_page(len(found), limit)
    else:
        print("No model was asked yet." if job is None else "No model was asked for this job.", file=sys.stderr)
    return 0


@app.command
def spend(
    *,
    by: Annotated[Literal["day", "model", "template"], Parameter(metavar="WHAT", help="What to add up by.")] = "day",
    days: Annotated[
        int, Parameter(metavar="N", help="So many days back, today included.", validator=validators.Number(gte=1))
    ] = 30,
    json: Json = False,
) -> int:
    """Show what models cost, by day, model or template.

    Days and months are those of UTC. A call of a process that died counts with the most it can have cost.
    """
    from docmill.cli.opening import opened
    from docmill.services.models import SpendBy

    with opened() as installation:
        found = installation.model_use.spend(SpendBy(by), days=days)
        spent = installation.model_use.spent()
        section = installation.settings.ai
    budgets: list[dict[str, Any]] = [
        {"span": str(span), "spent_nanos": nanos, "limit_usd": getattr(section, f"budget_{span}")}
        for span, nanos in spent.items()
    ]
    if json:
        print_json({"by": by, "days": days, "spend": [record(row) for row in found], "budgets": budgets})
        return 0
    if found:
        heads = (by.upper(), "CALLS", "FAILED", "TOKENS IN", "OUT", "COST")
        rows = [
            (
                row.name,
                str(row.calls),
                str(row.failed),
                str(row.input_tokens),
                str(row.output_tokens),
                _cost(row.cost_nanos),
            )
            for row in found
        ]
        print_table(heads, rows, give_way=(by.upper(),))
    else:
        print(f"No model was asked in the last {days} days.", file=sys.stderr)
    for budget in budgets:
        limit = "no budget" if budget["limit_usd"] is None else f"of ${budget['limit_usd']:,.2f}"
        span = {"day": "today", "month": "this month"}[budget["span"]]
        print(f"{span}: {_cost(budget['spent_nanos'])} ({limit})")
    if unpriced := sum(row.unpriced for row in found):
        print(
            f"note: {unpriced} calls count as free, their models have no known price; set ai.prices.", file=sys.stderr
        )
    return 0


@breakers.default
def show_breakers(*, json: Json = False) -> int:
    """Show the breakers of models that have failed."""
    from docmill.cli.opening import opened

    with opened() as installation:
        found = installation.model_use.breakers()
    if json:
        print_json({"breakers": [record(breaker) for breaker in found]})
    elif found:
        heads = ("MODEL", "STATE", "FAILURES", "OPENED", "PROBE UNTIL")
        rows = [
            (
                breaker.name,
                str(breaker.state),
                str(breaker.failures),
                when(breaker.opened_at),
                when(breaker.probe_until),
            )
            for breaker in found
        ]
        print_table(heads, rows, give_way=("MODEL",))
    else:
        print("No model has failed yet.", file=sys.stderr)
    return 0


@breakers.command
def reset(
    model: Annotated[str, Parameter(name="MODEL", help="provider:model, as `docmill ai breakers` shows it.")],
    /,
    *,
    json: Json = False,
) -> int:
    """Close a breaker now, because the provider is well again."""
    with acting_for() as (installation, acting):
        installation.model_use.by(acting).reset_breaker(model)
        (found,) = (breaker for breaker in installation.model_use.breakers() if breaker.name == model)
    if json:
        print_json({"breaker": record(found)})
    else:
        print(f"The breaker of {model} is closed.")
    return 0


def _cost(nanos: int, *, known: bool = True) -> str:
    return f"${nanos / 1e9:.6f}" if known else "unknown"
