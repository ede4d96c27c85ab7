"""How the work goes: throughput, steps, fields, reliability of the confidence, cost."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query

from docmill.api.access import Acting, Guarded, allowed
from docmill.model.people import Permission
from docmill.services.analytics import MOST_DAYS, DayCount, FieldRates, Reliability, StepTimes
from docmill.services.models import Spend, SpendBy

routes = APIRouter(prefix="/analytics", tags=["analytics"], route_class=Guarded)

Days = Annotated[int, Query(ge=1, le=MOST_DAYS, description="Of UTC, today included.")]


@routes.get("/throughput")
@allowed(Permission.ANALYTICS_READ)
def throughput(call: Acting, days: Days = 30) -> Sequence[DayCount]:
    """Each day: documents that came, were completed, failed; jobs that ended, failed."""
    return call.org.analytics.throughput(days=days)


@routes.get("/steps")
@allowed(Permission.ANALYTICS_READ)
def steps(call: Acting, days: Days = 30) -> Sequence[StepTimes]:
    """Each step of each template: how often it ended well, and how long it took."""
    return call.org.analytics.steps(days=days)


@routes.get("/fields")
@allowed(Permission.ANALYTICS_READ)
def fields(call: Acting, days: Days = 30) -> Sequence[FieldRates]:
    """Each field: how often it needed a look, and how often a person changed it."""
    return call.org.analytics.fields(days=days)


@routes.get("/reliability")
@allowed(Permission.ANALYTICS_READ)
def reliability(call: Acting, days: Days = 30) -> Reliability:
    """Confidence against what people let stand."""
    return call.org.analytics.reliability(days=days)


@routes.get("/cost")
@allowed(Permission.ANALYTICS_READ)
def cost(call: Acting, by: SpendBy = SpendBy.MODEL, days: Days = 30) -> Sequence[Spend]:
    """What models cost, in billionths of a US dollar, by day, model or template."""
    return call.org.model_use.spend(by, days=days)
