"""Where outside executors answer. Open to all: the token of the step and the signature say who may."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from starlette.concurrency import run_in_threadpool

from docmill.api.access import Acting, Guarded, Installation, allowed, public, roomy
from docmill.api.problems import problem
from docmill.api.shapes import Cursor, Id, Limit, Page, page_of
from docmill.bootstrap.clock import this_moment
from docmill.model.callbacks import CallbackOutcome, CallbackStatus
from docmill.model.people import Permission
from docmill.services.callbacks import CallbackAnswer, CallbackView

routes = APIRouter(tags=["callbacks"], route_class=Guarded)

_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["jobId", "stepKey", "status"],
                    "properties": {
                        "jobId": {"type": "string"},
                        "stepKey": {"type": "string"},
                        "status": {"enum": [*CallbackStatus]},
                        "token": {"type": "string"},
                        "resultData": {},
                        "errorMessage": {"type": ["string", "null"]},
                    },
                }
            }
        },
    }
}
_STATUSES = {CallbackOutcome.UNKNOWN: 404, CallbackOutcome.REFUSED: 403}
"""Of what is not taken. All else is 200: whoever gets it need not send it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of a callback."""

    success: bool
    skipped: bool
    outcome: CallbackOutcome
    message: str
    code: str | None


async def _receive(request: Request, app: Any, executor: str | None) -> Response | Answer:
    body = await request.body()
    headers = dict(request.headers)

    def work() -> CallbackAnswer:
        found: CallbackAnswer = app.callbacks.receive(body, now=this_moment(), headers=headers, executor=executor)
        return found

    told = await run_in_threadpool(work)
    answer = Answer(
        success=told.success, skipped=told.skipped, outcome=told.outcome, message=told.message, code=told.code
    )
    status = _STATUSES.get(told.outcome)
    if status is None:
        return answer
    # An executor finds in the problem what it finds in every answer.
    return problem(request.url.path, status, told.code or told.outcome.value, told.message, also=asdict(answer))


@routes.post("/callbacks", openapi_extra=_BODY, response_model=Answer)
@public
@roomy
async def callback(request: Request, app: Installation) -> Response | Answer:
    """Answer a step. Sent again, it is told `skipped: true`, and nothing happens twice."""
    return await _receive(request, app, None)


@routes.post("/callbacks/{executor}", openapi_extra=_BODY, response_model=Answer)
@public
@roomy
async def callback_of(
    executor: Annotated[str, Path(max_length=200)], request: Request, app: Installation
) -> Response | Answer:
    """The same, of an executor by the name that the settings call it."""
    return await _receive(request, app, executor)


@routes.get("/jobs/{job_id}/callbacks")
@allowed(Permission.JOBS_READ)
def list_callbacks(job_id: Id, call: Acting, cursor: Cursor = None, limit: Limit = 50) -> Page[CallbackView]:
    """What came for a job, the oldest first."""
    call.jobs.get(job_id)
    shown, following = page_of(
        "callback",
        cursor,
        limit,
        lambda after, most: call.app.callbacks.list(job_id, org_id=call.org.id, after=after, limit=most),
        lambda view: view.id,
    )
    return Page(items=shown, next_cursor=following)
