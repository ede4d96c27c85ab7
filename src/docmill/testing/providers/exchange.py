"""What a stand-in is asked, and what it can do about it; the same for all providers.

What providers answer is spelled out in each dialect, alike or not: one may change its wire format without the others.
"""

import base64
import binascii
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file that came inline."""

    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, as it was understood."""

    model: str
    prompt: str
    instructions: str
    documents: tuple[Document, ...]
    schema: Mapping[str, Any] | None
    """What the answer is held to; None: any text."""
    tool: str | None
    """The tool that must be called with the answer, where the schema is that of a tool."""
    max_tokens: int
    temperature: float | None
    body: Mapping[str, Any]
    """All of it, as sent."""


class Fault(Enum):
    """What goes wrong at a provider; each says so in its own way."""

    KEY = auto()
    RATE_LIMIT = auto()
    QUOTA = auto()
    NO_SUCH_MODEL = auto()
    TOO_LONG = auto()
    BAD_REQUEST = auto()
    INTERNAL = auto()
    UNAVAILABLE = auto()
    OVERLOADED = auto()


@dataclass(frozen=True, slots=True)
class Says:
    """A good answer: text, or data that becomes JSON."""

    answer: object
    input_tokens: int = 1000
    output_tokens: int = 50
    cached_tokens: int = 0
    """Of the input."""

    @property
    def text(self) -> str:
        return self.answer if isinstance(self.answer, str) else json.dumps(self.answer)


@dataclass(frozen=True, slots=True)
class Truncates:
    """Stops in the middle, at `max_tokens`."""

    text: str = '{"total": "12'


@dataclass(frozen=True, slots=True)
class Refuses:
    """Will not answer; `early` is a filter that looks at the question, where the provider has one."""

    early: bool = False


@dataclass(frozen=True, slots=True)
class Fails:
    """An error of the provider."""

    fault: Fault
    retry_after: int | None = None


@dataclass(frozen=True, slots=True)
class Hangs:
    """Takes the request and never answers."""


@dataclass(frozen=True, slots=True)
class CutsOff:
    """Closes the connection in the middle of the answer."""


@dataclass(frozen=True, slots=True)
class Garbles:
    """Answers with something that is not its protocol, under status 200."""

    body: str = "<html>upstream connect error</html>"


Reaction = Says | Truncates | Refuses | Fails | Hangs | CutsOff | Garbles


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What goes over the wire."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


class Misunderstood(Exception):
    """The provider would answer 400: the message says why."""


class Dialect(ABC):
    """How one provider is spoken to."""

    @abstractmethod
    def key(self, headers: Mapping[str, str]) -> str | None:
        """The key that came along; names of headers are in lower case."""

    @abstractmethod
    def takes(self, path: str) -> bool:
        """Whether this is a path of the provider."""

    @abstractmethod
    def read(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> Asked:
        """What is asked; raises Misunderstood."""

    @abstractmethod
    def answer(self, asked: Asked, reaction: Says | Truncates | Refuses) -> Response:
        """An answer in the provider's form."""

    @abstractmethod
    def error(self, fault: Fault, message: str | None = None) -> Response:
        """An error in the provider's form."""

    def slow_down(self, seconds: int) -> Mapping[str, str]:
        """The headers of a rate limit."""
        return {"retry-after": str(seconds)}


def need(holder: Mapping[str, Any], name: str, kind: type[Any] | tuple[type[Any], ...]) -> Any:
    """A field that must be there, of this type."""
    value = holder.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        raise Misunderstood(f"Invalid or missing field '{name}'.")
    return value


def decoded(data: str, media_type: str, allowed: tuple[str, ...]) -> Document:
    """A document from base64; refused if it is of a type the provider does not read, or is not what it says."""
    if media_type not in allowed:
        raise Misunderstood(f"Unsupported media type '{media_type}'.")
    try:
        raw = base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise Misunderstood(f"Invalid base64 data: {error}.") from None
    if not raw.startswith(_OPENINGS[media_type]):
        raise Misunderstood(f"The data is not {media_type}.")
    return Document(data=raw, media_type=media_type)


def from_data_url(url: str, allowed: tuple[str, ...]) -> Document:
    """A document from `data:…;base64,…`."""
    head, comma, data = url.partition(";base64,")
    if not comma or not head.startswith("data:"):
        raise Misunderstood("Expected a base64-encoded data URL.")
    return decoded(data, head.removeprefix("data:"), allowed)


IMAGES = ("image/png", "image/jpeg", "image/webp")
PDF = "application/pdf"
_OPENINGS = {
    PDF: b"%PDF-",
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/webp": b"RIFF",
    "image/gif": b"GIF8",
}
