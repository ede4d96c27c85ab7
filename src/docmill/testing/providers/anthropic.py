"""Anthropic: `POST /v1/messages`."""

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
    decoded,
    need,
)

_ERRORS: Mapping[Fault, tuple[int, str, str]] = {
    Fault.KEY: (401, "authentication_error", "invalid x-api-key"),
    Fault.RATE_LIMIT: (
        429,
        "rate_limit_error",
        "This request would exceed your organization's rate limit of 50 requests per minute.",
    ),
    Fault.QUOTA: (
        400,
        "invalid_request_error",
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
    ),
    Fault.NO_SUCH_MODEL: (404, "not_found_error", "model: no-such-model"),
    Fault.TOO_LONG: (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    Fault.BAD_REQUEST: (400, "invalid_request_error", "messages: at least one message is required"),
    Fault.INTERNAL: (500, "api_error", "Internal server error"),
    Fault.UNAVAILABLE: (503, "api_error", "Service unavailable"),
    Fault.OVERLOADED: (529, "overloaded_error", "Overloaded"),
}


class Anthropic(Dialect):
    """The Messages API."""

    def key(self, headers: Mapping[str, str]) -> str | None:
        # Older versions of the API have it in the first, newer ones take both.
        return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ") or None

    def takes(self, path: str) -> bool:
        return path == "/v1/messages"

    def read(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> Asked:
        need(headers, "anthropic-version", str)
        if body.get("stream"):
            raise Misunderstood("stream: this stand-in answers in one piece.")
        (message,) = need(body, "messages", list)
        texts: list[str] = []
        documents: list[Document] = []
        content = message["content"]
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            match need(part, "type", str):
                case "text":
                    texts.append(part["text"])
                case "image" | "document" as kind:
                    source = need(part, "source", dict)
                    allowed = IMAGES if kind == "image" else (PDF,)
                    documents.append(decoded(need(source, "data", str), need(source, "media_type", str), allowed))
                case other:
                    raise Misunderstood(f"messages.0.content: Input tag '{other}' does not match any of the tags.")
        system = body.get("system") or ""
        schema, tool = _shape(body)
        return Asked(
            model=need(body, "model", str),
            prompt="\n".join(texts),
            instructions=system if isinstance(system, str) else "\n".join(part["text"] for part in system),
            documents=tuple(documents),
            schema=schema,
            tool=tool,
            max_tokens=need(body, "max_tokens", int),
            temperature=body.get("temperature"),
            body=body,
        )

    def answer(self, asked: Asked, reaction: Says | Truncates | Refuses) -> Response:
        content: list[dict[str, Any]] = []
        stop, used = "end_turn", (1000, 0, 20)
        match reaction:
            case Says() if asked.tool is not None and not isinstance(reaction.answer, str):
                stop = "tool_use"
                content = [{"type": "tool_use", "id": "toolu_1", "name": asked.tool, "input": reaction.answer}]
                used = (reaction.input_tokens, reaction.cached_tokens, reaction.output_tokens)
            case Says():
                content = [{"type": "text", "text": reaction.text, "citations": None}]
                used = (reaction.input_tokens, reaction.cached_tokens, reaction.output_tokens)
            case Truncates():
                content = [{"type": "text", "text": reaction.text, "citations": None}]
                stop, used = "max_tokens", (1000, 0, asked.max_tokens)
            case Refuses():
                stop = "refusal"
        body = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": asked.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {
                # What was cached is counted apart here.
                "input_tokens": used[0] - used[1],
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": used[1],
                "output_tokens": used[2],
                "service_tier": "standard",
            },
        }
        return Response(status=200, body=body)

    def error(self, fault: Fault, message: str | None = None) -> Response:
        status, kind, usual = _ERRORS[fault]
        body = {"type": "error", "error": {"type": kind, "message": message or usual}, "request_id": "req_1"}
        return Response(status=status, body=body)


def _shape(body: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, str | None]:
    """The schema of the answer and, if that is a tool's, the tool."""
    for holder in (body.get("output_config") or {}).get("format"), body.get("output_format"):
        if holder is not None:
            if holder.get("type") != "json_schema":
                raise Misunderstood("output_config.format.type: Input should be 'json_schema'.")
            return need(holder, "schema", dict), None
    for tool in body.get("tools") or []:
        return need(tool, "input_schema", dict), need(tool, "name", str)
    return None, None
