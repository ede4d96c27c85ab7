"""The section about the HTTP API."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, field_validator
from pydantic_settings import NoDecode

from docmill.settings.section import Listed, Section, checked
from docmill.webhooks.posting import checked_url


class ApiSection(Section):
    """Where the API listens, who may speak to it from a browser, and how much."""

    host: str = "127.0.0.1"
    port: int = Field(default=8400, ge=0, le=65535)
    public_url: str | None = None
    """Where people reach the API from outside, behind a proxy that speaks TLS: `https://docmill.example`."""
    hosts: Annotated[tuple[str, ...], NoDecode, Listed] = ()
    """Names under which the API is reached, besides those of this machine itself."""
    origins: Annotated[tuple[str, ...], NoDecode, Listed] = ()
    """Web origins that may call it, besides its own: `https://review.example`."""
    rate: float = Field(default=100.0, gt=0)
    """Requests per second of one principal."""
    burst: int = Field(default=300, ge=1)
    """Requests that one principal may send at once."""
    max_body: int = Field(default=16 << 20, ge=1024)
    """Bytes of a body that is not a document."""
    max_streams: int = Field(default=100, ge=1)
    """Streams of events that one server keeps open at once; half of them for one organisation."""

    @field_validator("public_url")
    @classmethod
    def _plain(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(checked(checked_url, value))
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise ValueError("it is a scheme and a host, nothing after it: https://docmill.example")
        return f"{parts.scheme}://{parts.netloc}"
