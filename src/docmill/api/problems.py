"""Errors as problem documents (RFC 9457): a stable code, what is wrong, where, and what to do about it."""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from docmill.api import storable
from docmill.documents.blobs import BlobMissing, StorageUnavailable
from docmill.documents.faults import DocumentFault, FileTooLarge, UnsupportedFile
from docmill.documents.links import LinkRefused
from docmill.model.errors import (
    Conflict,
    DatabaseUnavailable,
    DocmillError,
    ExtraMissing,
    Forbidden,
    InvalidInput,
    NotFound,
)
from docmill.model.review import VersionConflict
from docmill.outputs.gathering import NothingYet
from docmill.webhooks.signatures import SignatureInvalid

log = logging.getLogger("docmill.api")

MEDIA = "application/problem+json"
_PREFIX = "urn:docmill:problem:"


class Unauthenticated(DocmillError):
    """Nobody is known by what was shown."""

    code = "unauthenticated"


class KeyExpired(Unauthenticated):
    """The key was right, and its time is over."""

    code = "key_expired"


class KeyRevoked(Unauthenticated):
    """The key was right, and somebody has revoked it."""

    code = "key_revoked"


class OriginRefused(DocmillError):
    """A page of another site asks, or the request names a host that is not ours."""

    code = "origin_refused"


class TooManyRequests(DocmillError):
    """More requests than one principal may send; `retry_after` seconds from now there is room again."""

    code = "too_many_requests"

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TooManyStreams(TooManyRequests):
    """As many streams are open as there may be."""

    code = "too_many_streams"


class PreconditionMissing(DocmillError):
    """A change must name what it was made from."""

    code = "precondition_required"


class PreconditionFailed(DocmillError):
    """What the change was made from is not what is there now."""

    code = "precondition_failed"


STATUSES: Mapping[type[DocmillError], int] = {
    Unauthenticated: 401,
    SignatureInvalid: 401,
    Forbidden: 403,
    OriginRefused: 403,
    LinkRefused: 403,
    BlobMissing: 404,
    NothingYet: 404,
    NotFound: 404,
    VersionConflict: 412,
    PreconditionFailed: 412,
    PreconditionMissing: 428,
    Conflict: 409,
    FileTooLarge: 413,
    UnsupportedFile: 415,
    DocumentFault: 422,
    InvalidInput: 422,
    TooManyRequests: 429,
    ExtraMissing: 501,
    DatabaseUnavailable: 503,
    StorageUnavailable: 503,
}
"""By class; the most special one that an error is counts."""
_BY_CODE = {"template_invalid": 422, "prompt_invalid": 422, "schema_invalid": 422, "unauthenticated": 401}
_BY_CODE |= {"sign_in_failed": 401, "invitation_invalid": 403, "sign_in_limited": 429}
# What a file does to the process that looks into it: the same file does it again.
_BY_CODE |= {"child_timed_out": 422, "child_died": 422}
_BY_CODE |= {"identity_refused": 401, "identity_provider_unreachable": 503}
"""Where importing the class would import more than its name."""


class FieldFault(BaseModel):
    """What is wrong with one field."""

    field: str = Field(description="Where: `body.title`, `query.limit`, `path.job_id`, `header.if-match`.")
    message: str
    remedy: str


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable; to be compared by programs.")
    instance: str
    errors: list[FieldFault] = []
    details: dict[str, Any] = {}


def status_of(error: DocmillError) -> int:
    """The status of HTTP that says the same."""
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    for kind in type(error).__mro__:
        if kind in STATUSES:
            return STATUSES[kind]
    return 500


def problem(
    request_path: str,
    status: int,
    code: str,
    detail: str,
    *,
    errors: Sequence[FieldFault] = (),
    details: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
    also: Mapping[str, object] | None = None,
) -> Response:
    """A problem document; `also`: members of its own, as RFC 9457 allows them."""
    body = Problem(
        type=_PREFIX + code,
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        code=code,
        instance=request_path,
        errors=list(errors),
        details=dict(details or {}),
    )
    data = orjson.dumps({**(also or {}), **body.model_dump()}, default=str)
    return Response(data, status_code=status, media_type=MEDIA, headers=dict(headers or {}))


def answer_to(path: str, error: DocmillError, route: object = None) -> Response:
    """The problem document of an error of ours, on its way through this route."""
    status = status_of(error)
    details = dict(error.details)
    headers: dict[str, str] = {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="docmill"'
    waiting = getattr(error, "retry_after", None)
    if waiting is not None:
        headers["Retry-After"] = str(max(1, round(waiting)))
    if status == 503:
        headers["Retry-After"] = "1"
    if status >= 500:
        log.error("%s: %s", error.code, error.message)
        # Where the database is and what its server says is for the log, not for whoever asks.
        message = error.message if status == 501 else "Something the API stands on is not there now. Try again."
        return problem(path, status, error.code, message, headers=headers)
    where = details.pop("field", "" if status in _SAY_WHERE else None)
    errors = () if where is None else [_told(str(where), error.message, route)]
    return problem(path, status, error.code, error.message, errors=errors, details=details, headers=headers)


def _told(name: str, message: str, route: object) -> FieldFault:
    """Services know a field by its name; where in the request that stands, the route knows. No name: all of it."""
    first = name.partition(".")[0]
    if first not in _PLACES and isinstance(route, APIRoute):
        taken = route.dependant
        query = {each.alias for each in taken.query_params}
        path = {each.alias for each in taken.path_params}
        rest = "body" if (route.methods or set()) - {"GET", "HEAD", "DELETE"} else "query"
        place = "query" if first in query else "path" if first in path else rest
        name = f"{place}.{name}" if name else place
    return FieldFault(field=name or "request", message=message, remedy=message)


_SAY_WHERE = frozenset({400, 413, 415, 422})
_PLACES = frozenset({"body", "query", "path", "header"})
_MOMENT = "Write a moment with its zone, as 2026-05-14T09:30:00Z."
_REMEDIES = {
    "missing": "Give this field.",
    "extra_forbidden": "Leave this field out; it cannot be set.",
    "json_invalid": "Send well-formed JSON.",
    "string_type": "Write text in quotes.",
    "int_type": "Write a whole number, without quotes.",
    "float_type": "Write a number, without quotes.",
    "bool_type": "Write true or false.",
    "list_type": "Write a list.",
    "dict_type": "Write an object.",
    "model_attributes_type": "Send a JSON object, with Content-Type: application/json.",
    "int_parsing": "Write a whole number.",
    "bool_parsing": "Write true or false.",
    "greater_than_equal": "Write {ge} or more.",
    "greater_than": "Write more than {gt}.",
    "less_than_equal": "Write {le} or less.",
    "less_than": "Write less than {lt}.",
    "string_too_short": "Make it at least {min_length} long.",
    "string_too_long": "Make it at most {max_length} long.",
    "too_long": "Give {max_length} or fewer.",
    "too_short": "Give {min_length} or more.",
    "string_pattern_mismatch": "Write it as the pattern {pattern} asks.",
    "datetime_type": _MOMENT,
    "datetime_object_invalid": _MOMENT,
    "datetime_from_date_parsing": _MOMENT,
    "datetime_parsing": _MOMENT,
    "timezone_aware": _MOMENT,
    "date_from_datetime_parsing": "Write a day, as 2026-05-14.",
    **storable.REMEDIES,
}
"""By what is wrong; in braces, what the field allows."""


_OF_THE_BODY = frozenset({"malformed", "body_too_large"})


def _fault(found: Mapping[str, Any]) -> FieldFault:
    context = found.get("ctx") or {}
    expected = context.get("expected")
    known = _REMEDIES.get(found["type"], f"Write {expected}." if expected else "Correct the value.")
    remedy = known.format_map(context) if found["type"] in _REMEDIES else known
    where = ".".join(str(part) for part in found["loc"])
    return FieldFault(field=where, message=str(found["msg"]), remedy=remedy)


def install(app: FastAPI) -> None:
    """Whatever goes wrong in a route is told so."""

    async def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, DocmillError)
        return answer_to(request.url.path, error, request.scope.get("route"))

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        faults = [_fault(each) for each in error.errors()]
        told = "; ".join(f"{each.field}: {each.message}" for each in faults[:5])
        return problem(request.url.path, 422, "invalid_input", f"The request is not right: {told}.", errors=faults)

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        codes = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large", 400: "malformed"}
        details = {
            404: "There is nothing at this path; /api/v1/openapi.json lists what there is.",
            405: "This path does not take this method; Allow names those it takes.",
            400: "The body cannot be read; send well-formed JSON in UTF-8.",
        }
        code = codes.get(error.status_code, "http_error")
        detail = details.get(error.status_code, str(error.detail))
        errors = [FieldFault(field="body", message=detail, remedy=detail)] if code in _OF_THE_BODY else []
        headers = error.headers or {}
        return problem(request.url.path, error.status_code, code, detail, errors=errors, headers=headers)

    async def unforeseen(request: Request, error: Exception) -> Response:
        # The route, not the path: paths of uploads and files hold secrets.
        route = getattr(request.scope.get("route"), "path", "(no route)")
        log.exception("%s %s", request.method, route, exc_info=error)
        return problem(request.url.path, 500, "internal", "This is a bug in Docmill; its log says more.")

    app.add_exception_handler(DocmillError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, unforeseen)
