"""Words of the model gateway: what is asked, what is answered, and how its limits stand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from docmill.model.ids import DEFAULT_ORG


class BreakerState(StrEnum):
    """`half_open`: one probe is on its way, everybody else waits for what it finds."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class CallOutcome(StrEnum):
    """How a call to a model ended. Failed calls may have cost money too."""

    ASKED = "asked"
    """On its way: what it may cost is reserved."""
    ANSWERED = "answered"
    FAILED = "failed"
    LOST = "lost"
    """Its process died before it could tell: counted with the most it can have cost."""
    CACHED = "cached"
    """Not asked at all: the same had been answered before."""


class FinishReason(StrEnum):
    """Why the model stopped writing."""

    STOP = "stop"
    """It had said all."""
    LENGTH = "length"
    """`max_tokens` were used up: the text is cut off."""
    REFUSED = "refused"
    """It, or a filter before it, would not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that goes along with the prompt."""

    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to ask a model. What is None comes from the settings."""

    prompt: str
    model: str | None = None
    """`provider:model`, or a bare name that the settings resolve."""
    instructions: str = ""
    attachments: tuple[Attachment, ...] = ()
    output_schema: Mapping[str, object] | None = None
    """JSON Schema of the answer; None: any text will do."""
    max_tokens: int | None = None
    temperature: float | None = None
    timeout: float | None = None
    """Seconds for the call itself, without the wait for a token of the rate limit."""
    cache: bool | None = None
    """Whether an earlier answer to the very same request will do, and this one may serve later ones."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Whatever else the template's `model_config` says, for the provider to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A request as the provider gets it: nothing is left open."""

    model: str
    """The model alone, without the provider."""
    prompt: str
    instructions: str
    attachments: tuple[Attachment, ...]
    output_schema: Mapping[str, object] | None
    max_tokens: int
    temperature: float | None
    timeout: float
    options: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a provider gives back: as it came, unchecked."""

    text: str
    input_tokens: int
    output_tokens: int
    finish: FinishReason = FinishReason.STOP
    cached_tokens: int = 0
    """Those of the input that the provider had read before and asks less for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer that was checked, paid for and recorded."""

    text: str
    data: object
    """The parsed answer if there was a schema, which it satisfies; None otherwise."""
    provider: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_nanos: int
    """In billionths of a US dollar."""
    finish: FinishReason
    cached: bool = False
    """Whether nobody had to be asked: the tokens are 0 then."""

    @property
    def cost(self) -> Decimal:
        """In US dollars."""
        return Decimal(self.cost_nanos).scaleb(-9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """On whose behalf a model is asked: the call is recorded against it."""

    org_id: str = DEFAULT_ORG
    job_id: str | None = None
    position: int | None = None
    step_key: str | None = None
    attempt: int | None = None
    prompt_id: str | None = None
