"""The section about the HTTP API."""

from typing import Annotated

from pydantic import Field
from pydantic_settings import NoDecode

from docmill.settings.section import Listed, Section


class ApiSection(Section):
    """Where the API listens, who may speak to it from a browser, and how much."""

    host: str = "127.0.0.1"
    port: int = Field(default=8400, ge=0, le=65535)
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
