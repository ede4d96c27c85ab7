"""Gemini: `POST /v1beta/models/MODEL:generateContent`."""

import re
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

_PATH = re.compile(r"/v1(?:beta|alpha)?/models/([^/:]+):generateContent")
_READS = (PDF, *IMAGES)
_ERRORS: Mapping[Fault, tuple[int, str, str]] = {
    Fault.KEY: (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    Fault.RATE_LIMIT: (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    Fault.QUOTA: (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing."),
    Fault.NO_SUCH_MODEL: (404, "NOT_FOUND", "The model is not found for API version v1beta."),
    Fault.TOO_LONG: (
        400,
        "INVALID_ARGUMENT",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ),
    Fault.BAD_REQUEST: (400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
    Fault.INTERNAL: (500, "INTERNAL", "An internal error has occurred. Please retry."),
    Fault.UNAVAILABLE: (503, "UNAVAILABLE", "The service is currently unavailable."),
    Fault.OVERLOADED: (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
}


class Gemini(Dialect):
    """As the Gemini API answers."""

    def key(self, headers: Mapping[str, str]) -> str | None:
        return headers.get("x-goog-api-key")

    def takes(self, path: str) -> bool:
        return _PATH.fullmatch(path) is not None

    def read(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> Asked:
        found = _PATH.fullmatch(path)
        assert found is not None
        (content,) = need(body, "contents", list)
        texts: list[str] = []
        documents: list[Document] = []
        for part in need(content, "parts", list):
            if "inlineData" in part:
                inline = part["inlineData"]
                # The API takes base64 with the letters for URLs as well; the client sends those.
                data = need(inline, "data", str).replace("-", "+").replace("_", "/")
                # So are both ways of writing a field, as everywhere where protocol buffers become JSON.
                named = {"mimeType": inline.get("mime_type"), **inline}
                documents.append(decoded(data, need(named, "mimeType", str), _READS))
            elif "text" in part:
                texts.append(part["text"])
            else:
                raise Misunderstood("Unable to submit request because it must have a text or inlineData part.")
        config = need(body, "generationConfig", dict)
        schema = config.get("responseJsonSchema", config.get("responseSchema"))
        if schema is not None and config.get("responseMimeType") != "application/json":
            raise Misunderstood("response_schema is only supported with response_mime_type application/json.")
        instructions = body.get("systemInstruction", {}).get("parts", [])
        return Asked(
            model=found[1],
            prompt="\n".join(texts),
            instructions="\n".join(part["text"] for part in instructions),
            documents=tuple(documents),
            schema=schema,
            tool=None,
            max_tokens=need(config, "maxOutputTokens", int),
            temperature=config.get("temperature"),
            body=body,
        )

    def answer(self, asked: Asked, reaction: Says | Truncates | Refuses) -> Response:
        usage: dict[str, Any] = {"promptTokenCount": 1000, "totalTokenCount": 1000}
        body: dict[str, Any] = {"modelVersion": asked.model, "responseId": "r-1", "usageMetadata": usage}
        match reaction:
            case Says():
                usage["promptTokenCount"] = reaction.input_tokens
                usage["candidatesTokenCount"] = reaction.output_tokens
                usage["totalTokenCount"] = reaction.input_tokens + reaction.output_tokens
                if reaction.cached_tokens:
                    usage["cachedContentTokenCount"] = reaction.cached_tokens
                body["candidates"] = [_candidate("STOP", reaction.text)]
            case Truncates():
                usage["candidatesTokenCount"] = asked.max_tokens
                usage["totalTokenCount"] = 1000 + asked.max_tokens
                body["candidates"] = [_candidate("MAX_TOKENS", reaction.text)]
            case Refuses(early=True):
                body["promptFeedback"] = {"blockReason": "PROHIBITED_CONTENT"}
            case Refuses():
                body["candidates"] = [_candidate("SAFETY", None)]
        return Response(status=200, body=body)

    def error(self, fault: Fault, message: str | None = None) -> Response:
        code, status, usual = _ERRORS[fault]
        error: dict[str, Any] = {"code": code, "message": message or usual, "status": status}
        if fault is Fault.KEY:
            kind = "type.googleapis.com/google.rpc.ErrorInfo"
            error["details"] = [{"@type": kind, "reason": "API_KEY_INVALID", "domain": "googleapis.com"}]
        return Response(status=code, body={"error": error})


def _candidate(finish: str, text: str | None) -> dict[str, Any]:
    content: dict[str, Any] = {"role": "model"} if text is None else {"role": "model", "parts": [{"text": text}]}
    return {"index": 0, "finishReason": finish, "content": content}
