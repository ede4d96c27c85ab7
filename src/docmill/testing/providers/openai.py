"""OpenAI: `POST /v1/responses`, and `POST /v1/chat/completions`, which other servers speak as well."""

from collections.abc import Mapping
from typing import Any

from docmill.testing.providers.exchange import (
    IMAGES,
    PDF,
    Asked,
    Dialect,
    Document,
    Fault,
    Misunderstood,
    Refuses,
    Response,
    Says,
    Truncates,
    from_data_url,
    need,
)

_CREATED = 1_790_000_000
_SORRY = "I'm sorry, I can't assist with that request."
_READS = (PDF, *IMAGES)
_ERRORS: Mapping[Fault, tuple[int, str, str | None, str]] = {
    Fault.KEY: (
        401,
        "invalid_request_error",
        "invalid_api_key",
        "Incorrect API key provided: {key}. You can find your API key at the account page.",
    ),
    Fault.RATE_LIMIT: (
        429,
        "requests",
        "rate_limit_exceeded",
        "Rate limit reached on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s.",
    ),
    Fault.QUOTA: (
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    Fault.NO_SUCH_MODEL: (404, "invalid_request_error", "model_not_found", "The model does not exist."),
    Fault.TOO_LONG: (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    Fault.BAD_REQUEST: (400, "invalid_request_error", None, "Invalid request."),
    Fault.INTERNAL: (500, "server_error", None, "The server had an error while processing your request. Sorry!"),
    Fault.UNAVAILABLE: (503, "server_error", None, "The server is temporarily unable to handle the request."),
    Fault.OVERLOADED: (503, "server_error", None, "The engine is currently overloaded, please try again later."),
}


class _OpenAi(Dialect):
    """What both have in common."""

    def key(self, headers: Mapping[str, str]) -> str | None:
        return headers.get("authorization", "").removeprefix("Bearer ") or None

    def error(self, fault: Fault, message: str | None = None) -> Response:
        status, kind, code, usual = _ERRORS[fault]
        error = {"message": message or usual, "type": kind, "param": None, "code": code}
        return Response(status=status, body={"error": error})


class Responses(_OpenAi):
    """The Responses API."""

    def takes(self, path: str) -> bool:
        return path == "/v1/responses"

    def read(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> Asked:
        texts: list[str] = []
        documents: list[Document] = []
        instructions = [body.get("instructions") or ""]
        for message in need(body, "input", list):
            content = message["content"]
            parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
            for part in parts:
                match need(part, "type", str):
                    case "input_text":
                        (instructions if message["role"] in ("system", "developer") else texts).append(part["text"])
                    case "input_image":
                        documents.append(from_data_url(need(part, "image_url", str), IMAGES))
                    case "input_file":
                        need(part, "filename", str)
                        documents.append(from_data_url(need(part, "file_data", str), _READS))
                    case other:
                        raise Misunderstood(f"Invalid value: '{other}'.")
        form = body.get("text", {}).get("format", {"type": "text"})
        return Asked(
            model=need(body, "model", str),
            prompt="\n".join(texts),
            instructions="\n".join(part for part in instructions if part),
            documents=tuple(documents),
            schema=_shape(form) if form["type"] == "json_schema" else None,
            tool=None,
            max_tokens=need(body, "max_output_tokens", int),
            temperature=body.get("temperature"),
            body=body,
        )

    def answer(self, asked: Asked, reaction: Says | Truncates | Refuses) -> Response:
        status, details, used = "completed", None, (1000, 0, 20)
        part: dict[str, Any]
        match reaction:
            case Says():
                part = {"type": "output_text", "text": reaction.text, "annotations": [], "logprobs": []}
                used = (reaction.input_tokens, reaction.cached_tokens, reaction.output_tokens)
            case Truncates():
                part = {"type": "output_text", "text": reaction.text, "annotations": [], "logprobs": []}
                status, details, used = "incomplete", {"reason": "max_output_tokens"}, (1000, 0, asked.max_tokens)
            case Refuses():
                part = {"type": "refusal", "refusal": _SORRY}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "status": status, "content": [part]}
        body = {
            "id": "resp_1",
            "object": "response",
            "created_at": _CREATED,
            "status": status,
            "error": None,
            "incomplete_details": details,
            "instructions": None,
            "metadata": {},
            "model": asked.model,
            "output": [message],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": used[0],
                "input_tokens_details": {"cached_tokens": used[1], "cache_write_tokens": 0},
                "output_tokens": used[2],
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": used[0] + used[2],
            },
        }
        return Response(status=200, body=body)


class Chat(_OpenAi):
    """Chat Completions."""

    def takes(self, path: str) -> bool:
        return path == "/v1/chat/completions"

    def read(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> Asked:
        texts: list[str] = []
        documents: list[Document] = []
        instructions: list[str] = []
        for message in need(body, "messages", list):
            content = message["content"]
            parts: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
            for part in parts:
                match need(part, "type", str):
                    case "text":
                        (instructions if message["role"] in ("system", "developer") else texts).append(part["text"])
                    case "image_url":
                        documents.append(from_data_url(part["image_url"]["url"], IMAGES))
                    case "file":
                        documents.append(from_data_url(part["file"]["file_data"], _READS))
                    case other:
                        raise Misunderstood(f"Invalid value: '{other}'.")
        form: dict[str, Any] = body.get("response_format", {"type": "text"})
        schema = _shape(form["json_schema"]) if form["type"] == "json_schema" else None
        tool = None
        for offered in body.get("tools", []):
            tool, schema = offered["function"]["name"], offered["function"]["parameters"]
        limit = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
        return Asked(
            model=need(body, "model", str),
            prompt="\n".join(texts),
            instructions="\n".join(instructions),
            documents=tuple(documents),
            schema=schema,
            tool=tool,
            max_tokens=need(body, limit, int),
            temperature=body.get("temperature"),
            body=body,
        )

    def answer(self, asked: Asked, reaction: Says | Truncates | Refuses) -> Response:
        message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
        finish, used = "stop", (1000, 0, 20)
        match reaction:
            case Says():
                used = (reaction.input_tokens, reaction.cached_tokens, reaction.output_tokens)
                if asked.tool is None:
                    message["content"] = reaction.text
                else:
                    finish = "tool_calls"
                    function = {"name": asked.tool, "arguments": reaction.text}
                    message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
            case Truncates():
                message["content"] = reaction.text
                finish, used = "length", (1000, 0, asked.max_tokens)
            case Refuses(early=True):
                finish = "content_filter"
                message["content"] = ""
            case Refuses():
                message["refusal"] = _SORRY
        body = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": _CREATED,
            "model": asked.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
            "usage": {
                "prompt_tokens": used[0],
                "completion_tokens": used[2],
                "total_tokens": used[0] + used[2],
                "prompt_tokens_details": {"cached_tokens": used[1], "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 0},
            },
        }
        return Response(status=200, body=body)


def _shape(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema, if it keeps what `strict` demands of it."""
    need(form, "name", str)
    schema: Mapping[str, Any] = need(form, "schema", dict)
    if form.get("strict"):
        _strict(schema)
    return schema


def _strict(schema: Any) -> None:
    if isinstance(schema, list):
        for part in schema:
            _strict(part)
    if not isinstance(schema, dict):
        return
    if "properties" in schema:
        missing = set(schema["properties"]) - set(schema.get("required", ()))
        if schema.get("additionalProperties") is not False or missing:
            raise Misunderstood("Invalid schema for response_format: all properties must be required and no others.")
    for part in schema.values():
        _strict(part)
