"""The section about models: who is asked, at what price, within which limits."""

from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator

from docmill.settings.section import Length, Section, checked
from docmill.webhooks.posting import checked_url

WRITTEN = {"openai-chat": "openai_chat"}
"""Providers whose names no shell takes into the name of a variable, as variables write them."""


class PriceSection(Section):
    """What a model costs, in US dollars per million tokens."""

    input: Decimal = Field(default=Decimal(0), ge=0)
    output: Decimal = Field(default=Decimal(0), ge=0)


class ProviderSection(Section):
    """What is particular to one provider of models."""

    kind: Literal["google", "openai", "openai-chat", "anthropic", "compatible"] | None = None
    key: SecretStr | None = None
    base_url: str | None = None
    output: Literal["auto", "native", "tool", "prompted"] = "auto"
    takes: Literal["auto", "files", "pictures", "text"] = "auto"
    rate: float | None = Field(default=None, gt=0)
    burst: int | None = Field(default=None, ge=1)
    options: dict[str, str] = Field(default_factory=dict)

    @property
    def opens(self) -> dict[str, str | None]:
        """What opens it, the key in clear."""
        key = None if self.key is None else self.key.get_secret_value()
        return {"kind": self.kind, "key": key, "base_url": self.base_url, "output": self.output}

    @field_validator("base_url")
    @classmethod
    def _reachable(cls, value: str | None) -> str | None:
        return None if value is None else checked(checked_url, value)


class ModelSection(Section):
    """Which models are asked, and within which limits."""

    model: str = "local:echo"
    provider: str | None = None
    models: dict[str, str] = Field(default_factory=dict)
    max_tokens: int = Field(default=4096, ge=1)
    timeout: float = Field(default=120.0, gt=0)
    rate: float = Field(default=10.0, gt=0)
    burst: int = Field(default=1, ge=1)
    budget_month: Decimal | None = Field(default=None, ge=0)
    budget_day: Decimal | None = Field(default=None, ge=0)
    cache: bool = False
    cache_ttl: Annotated[Length | None, Field(gt=timedelta(0))] = timedelta(days=7)
    prices: dict[str, PriceSection] = Field(default_factory=dict)
    providers: dict[str, ProviderSection] = Field(default_factory=dict)

    @field_validator("providers", mode="before")
    @classmethod
    def _as_they_are_called(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        found = dict(value)
        for name, written in WRITTEN.items():
            own = found.pop(written, None)
            usual = found.get(name)
            if own is not None:
                # What a variable says goes over what the file says.
                found[name] = {**usual, **own} if isinstance(usual, dict) and isinstance(own, dict) else own
        return found
