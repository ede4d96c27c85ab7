"""What the settings say about models: which one a name means, and the limits around each call."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from docmill.ai.breaker import FAILURES, OPEN_SECONDS
from docmill.ai.budget import Budget
from docmill.ai.prices import Price
from docmill.model.ai_errors import ModelUnknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A provider and one of its models."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRules:
    """What is particular to one provider. None: as for all."""

    rate: float | None = None
    burst: int | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    """For the provider itself to read: addresses, names of variables that hold keys."""


_ALSO_CALLED = {"gemini": "google", "openai_chat": "openai-chat"}
"""Providers by the name of their models, unless the settings have one of this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """All of it, with the defaults of the settings."""

    model: str = "local:echo"
    """What is asked when a step names no model."""
    provider: str | None = None
    """Whose model a bare name means that `models` does not list."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Bare name -> `provider:model`."""
    max_tokens: int = 4096
    timeout: float = 120.0
    rate: float = 10.0
    burst: int = 1
    budgets: tuple[Budget, ...] = ()
    """The month's before the day's: they are locked in this order."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    providers: Mapping[str, ProviderRules] = field(default_factory=dict)
    failure_threshold: int = FAILURES
    """More failures in a row than this open a model's breaker."""
    recovery_seconds: float = OPEN_SECONDS
    """How long it stays open before a probe."""
    cache: bool = False
    """Whether requests that do not say are answered from earlier ones."""
    cache_ttl: timedelta | None = timedelta(days=7)
    """How long answers are kept; None: not at all, whatever a request says."""

    def resolve(self, name: str | None) -> Target:
        """The provider and model that a name means."""
        name = name or self.model
        full = name if ":" in name else self.models.get(name, f"{self.provider}:{name}" if self.provider else name)
        provider, colon, model = full.partition(":")
        if provider not in self.providers:
            provider = _ALSO_CALLED.get(provider, provider)
        if not (provider and colon and model):
            raise ModelUnknown(
                f"Nobody knows whose model {name!r} is. Write provider:model, list the name under the setting "
                "ai.models, or set ai.provider.",
                model=name,
            )
        return Target(provider=provider, model=model)

    def of(self, provider: str) -> ProviderRules:
        """What is particular to this provider."""
        return self.providers.get(provider, ProviderRules())
