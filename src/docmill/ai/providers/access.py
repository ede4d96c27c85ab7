"""Which providers an installation has, and what opens each: a key, an address."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.util import find_spec

from docmill.model.extras import to_install

EXTRA = to_install("models")


class Kind(StrEnum):
    """Whose protocol a provider speaks."""

    GOOGLE = "google"
    """Gemini's `generateContent`."""
    OPENAI = "openai"
    """OpenAI's Responses."""
    OPENAI_CHAT = "openai-chat"
    """OpenAI's older Chat Completions."""
    ANTHROPIC = "anthropic"
    """Anthropic's Messages."""
    COMPATIBLE = "compatible"
    """Chat Completions as other servers speak it: vLLM, Ollama, llama.cpp, gateways."""


class StructuredOutput(StrEnum):
    """How a model is held to a schema."""

    AUTO = "auto"
    """The best of those below that the library knows the model to have."""
    NATIVE = "native"
    """The provider keeps the model to the schema."""
    TOOL = "tool"
    """The schema is that of a tool the model must call."""
    PROMPTED = "prompted"
    """The schema is part of the instructions."""


VARIABLES: Mapping[Kind, tuple[str, ...]] = {
    Kind.GOOGLE: ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    Kind.OPENAI: ("OPENAI_API_KEY",),
    Kind.OPENAI_CHAT: ("OPENAI_API_KEY",),
    Kind.ANTHROPIC: ("ANTHROPIC_API_KEY",),
    Kind.COMPATIBLE: (),
}
"""Where a key is looked for that the settings do not give, first come first served."""

_LIBRARY: Mapping[Kind, str] = {
    Kind.GOOGLE: "google.genai",
    Kind.OPENAI: "openai",
    Kind.OPENAI_CHAT: "openai",
    Kind.ANTHROPIC: "anthropic",
    Kind.COMPATIBLE: "openai",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One provider under the name that `provider:model` uses."""

    name: str
    kind: Kind
    key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    """None: where the provider itself lives."""
    output: StructuredOutput = StructuredOutput.AUTO

    def missing(self) -> str | None:
        """What keeps it from being asked, as a sentence with its remedy; None if nothing does."""
        if not installed(self.kind):
            return f"The provider {self.name} needs a library that is not installed: {EXTRA}."
        setting = f"ai.providers.{self.name}"
        if self.kind is Kind.COMPATIBLE and self.base_url is None:
            return f"Nobody knows where {self.name} is. Set {setting}.base_url."
        if self.key is None and VARIABLES[self.kind]:
            variables = " or ".join(VARIABLES[self.kind])
            return f"There is no key for {self.name}. Set {variables}, or {setting}.key."
        return None


def installed(kind: Kind) -> bool:
    """Whether the libraries for it are there. Looks without importing: that takes seconds."""
    try:
        return all(find_spec(name) is not None for name in ("pydantic_ai", _LIBRARY[kind]))
    except ModuleNotFoundError:  # The package around it is missing.
        return False


def accesses(
    configured: Mapping[str, Mapping[str, object]], environment: Mapping[str, str] | None = None
) -> dict[str, Access]:
    """All providers by name: the built-in ones, and those that the settings add by naming a kind or an address.

    `configured` has, by name, any of `kind`, `key`, `base_url`, `output`; what is None is not set.
    """
    environment = os.environ if environment is None else environment
    found = {}
    for name in [*Kind, *configured]:
        section = {key: value for key, value in configured.get(name, {}).items() if value is not None}
        usual = Kind.GOOGLE if name == "gemini" else name if name in set(Kind) else None
        if usual is None and not section.keys() & {"kind", "base_url"}:
            continue  # A plug-in's own.
        kind = Kind(str(section.get("kind", usual or Kind.COMPATIBLE)))
        key = section.get("key") or next((environment[var] for var in VARIABLES[kind] if environment.get(var)), None)
        address = section.get("base_url")
        found[str(name)] = Access(
            name=str(name),
            kind=kind,
            key=None if key is None else str(key),
            base_url=None if address is None else str(address),
            output=StructuredOutput(str(section.get("output", StructuredOutput.AUTO))),
        )
    return found
