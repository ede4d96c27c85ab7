"""What tokens cost: by the settings, else by the price list that comes with `genai-prices`. Nothing is fetched."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import orjson

from docmill.model.ai import ModelCall

log = logging.getLogger("docmill.ai")

_NANOS = Decimal(10) ** 9
_BYTES_PER_ATTACHED_TOKEN = 100
_LEAST_ATTACHED = 3000
"""Tokens of an attachment, however small: a page is a picture for most models, and its text besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens."""

    input: Decimal
    output: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """In nano-dollars; `known` is false if no price was found, and then it is 0."""

    nanos: int
    known: bool


class PriceList:
    """Prices by `provider:model`; own ones win, by that name or by the model's alone."""

    def __init__(self, own: Mapping[str, Price]) -> None:
        self._own = own
        self._missing: set[str] = set()
        self.loaded = False

    def load(self) -> None:
        """Make the list ready for use."""
        _listed("openai", "gpt-4o", 1, 1, datetime(2026, 1, 1, tzinfo=UTC))
        self.loaded = True

    def cost(
        self,
        provider: str,
        model: str,
        *,
        input_tokens: int,
        output_tokens: int,
        at: datetime,
        cached_tokens: int = 0,
    ) -> Cost:
        """What this many tokens cost at that time. Own prices make no difference for cached ones."""
        own = self._own.get(f"{provider}:{model}") or self._own.get(model)
        if own is not None:
            dollars = (own.input * input_tokens + own.output * output_tokens) / 1_000_000
        else:
            listed = _listed(provider, model, input_tokens, output_tokens, at, cached_tokens)
            if listed is None:
                self._miss(f"{provider}:{model}")
                return Cost(nanos=0, known=False)
            dollars = listed
        return Cost(nanos=int((dollars * _NANOS).to_integral_value()), known=True)

    def _miss(self, name: str) -> None:
        if name not in self._missing:
            self._missing.add(name)
            log.warning("no price is known for %s: its calls count as free; set ai.prices to keep a budget", name)


def most_input_tokens(call: ModelCall) -> int:
    """More tokens than the input can have: a token is at least a byte of text; of attachments it is an estimate."""
    text = len(call.prompt.encode()) + len(call.instructions.encode())
    if call.output_schema is not None:
        text += len(orjson.dumps(call.output_schema, default=str))
    sizes = (len(attached.data) for attached in call.attachments)
    return text + sum(_LEAST_ATTACHED + size // _BYTES_PER_ATTACHED_TOKEN for size in sizes)


def _listed(
    provider: str, model: str, input_tokens: int, output_tokens: int, at: datetime, cached_tokens: int = 0
) -> Decimal | None:
    from genai_prices import Usage, calc_price

    usage = Usage(
        input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=min(cached_tokens, input_tokens)
    )
    # A provider the list does not know (a proxy, a server of one's own) may still serve a model that it does.
    for provider_id in (provider, None):
        try:
            return calc_price(usage, model, provider_id=provider_id, genai_request_timestamp=at).total_price
        except LookupError:
            continue
    return None
