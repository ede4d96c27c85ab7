"""Settings of an installation: `docmill.yaml` in the current folder (or DOCMILL_CONFIG), overridden by DOCMILL_*."""

import os
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    YamlConfigSettingsSource,
)

from docmill.model.errors import DocmillError, InvalidInput
from docmill.webhooks.posting import checked_url
from docmill.webhooks.signatures import read_secret

T = TypeVar("T")

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds", "": "seconds"}
_LENGTH = re.compile(r"\s*(\d{1,9}(?:\.\d{1,6})?)\s*([dhms]?)\s*", re.ASCII)
_SHOWN = 60
"""Characters of a wrong value that are repeated."""


class SettingsInvalid(DocmillError):
    """A setting is unknown or has a wrong value; the message names each."""

    code = "settings_invalid"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class PoolSection(_Section):
    """One pool: how many of its steps a worker process runs at once."""

    capacity: int = Field(default=10, ge=1, le=100_000)
    priority: int = 0
    claims_per_cycle: int | None = Field(default=None, ge=1)


class LeaseSection(_Section):
    """Lease times in seconds."""

    duration: float = Field(default=30.0, gt=0)
    heartbeat: float = Field(default=10.0, gt=0)
    sweep: float = Field(default=1.0, gt=0)

    @model_validator(mode="after")
    def _renewed_in_time(self) -> Self:
        if self.heartbeat > self.duration / 2:
            raise ValueError(
                f"the heartbeat ({self.heartbeat:g} s) must come at least twice in the duration ({self.duration:g} s)"
            )
        return self


class ChildSection(_Section):
    """Limits of the children that do CPU work."""

    count: int | None = Field(default=None, ge=1)
    memory_mb: int = Field(default=2048, ge=128)
    cpu_seconds: int = Field(default=600, ge=1)
    tasks: int = Field(default=100, ge=1)


class RetentionSection(_Section):
    """How long what is finished is kept."""

    jobs: timedelta | None = Field(default=None, gt=timedelta(0))

    @field_validator("jobs", mode="before")
    @classmethod
    def _written(cls, value: object) -> object:
        found = _LENGTH.fullmatch(value) if isinstance(value, str) else None
        return timedelta(**{_UNITS[found[2]]: float(found[1])}) if found else value


class ExecutorSection(_Section):
    """An outside executor: where external steps are sent that name it, and the secret that signs both ways."""

    url: str
    secret: SecretStr | None = None
    timeout: float = Field(default=30.0, gt=0, le=600)

    @field_validator("url")
    @classmethod
    def _postable(cls, value: str) -> str:
        return _valid(checked_url, value)

    @field_validator("secret")
    @classmethod
    def _signs(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            _valid(read_secret, value.get_secret_value())
        return value

    @property
    def key(self) -> bytes | None:
        """The signing key, if there is a secret."""
        return None if self.secret is None else read_secret(self.secret.get_secret_value())


def _valid(check: Callable[[str], T], value: str) -> T:
    try:
        return check(value)
    except InvalidInput as error:
        raise ValueError(error.message) from None


class PriceSection(_Section):
    """What a model costs, in US dollars per million tokens."""

    input: Decimal = Field(default=Decimal(0), ge=0)
    output: Decimal = Field(default=Decimal(0), ge=0)


class ProviderSection(_Section):
    """What is particular to one provider of models."""

    rate: float | None = Field(default=None, gt=0)
    burst: int | None = Field(default=None, ge=1)
    options: dict[str, str] = Field(default_factory=dict)


class ModelSection(_Section):
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
    prices: dict[str, PriceSection] = Field(default_factory=dict)
    providers: dict[str, ProviderSection] = Field(default_factory=dict)


class Settings(BaseSettings):
    """Everything that can be set. Nested values: DOCMILL_LEASE__DURATION=60."""

    model_config = SettingsConfigDict(
        env_prefix="DOCMILL_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        # What is wrong with a secret may be said, not the secret.
        hide_input_in_errors=True,
        nested_model_default_partial_update=True,
    )

    home: Path = Field(default_factory=lambda: Path.home() / ".docmill")
    """Where state lives: the SQLite database, run files, blobs."""
    database_url: str | None = None
    """`postgresql://…`, or nothing for SQLite under home."""
    plugins: Annotated[tuple[str, ...], NoDecode] = ()
    """Modules that declare steps, processors and loaders, besides those with entry points."""
    pools: dict[str, PoolSection] = Field(default_factory=dict)
    lease: LeaseSection = LeaseSection()
    children: ChildSection = ChildSection()
    ai: ModelSection = ModelSection()
    drain_seconds: float = Field(default=20.0, ge=0)
    retention: RetentionSection = RetentionSection()
    executors: dict[str, ExecutorSection] = Field(default_factory=dict)
    """Outside executors by the name that templates call them."""

    @field_validator("home")
    @classmethod
    def _expand(cls, value: Path) -> Path:
        return value.expanduser()

    @field_validator("plugins", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings, env_settings, YamlConfigSettingsSource(settings_cls, yaml_file=config_file()))

    @property
    def url(self) -> str:
        """Where the database is."""
        return self.database_url or f"sqlite:///{self.home / 'docmill.db'}"

    @property
    def run_dir(self) -> Path:
        """Lock files and sockets of the workers on this host."""
        return self.home / "run"


def config_file() -> Path:
    """The configuration file: DOCMILL_CONFIG, or docmill.yaml in the current folder."""
    return Path(os.environ.get("DOCMILL_CONFIG") or "docmill.yaml")


def load_settings(**overrides: object) -> Settings:
    """Read file and environment; SettingsInvalid lists everything that is wrong."""
    file = config_file()
    if "DOCMILL_CONFIG" in os.environ and not file.is_file():
        raise SettingsInvalid(f"DOCMILL_CONFIG names {str(file)!r}, which is not a file. Correct or unset it.")
    try:
        return Settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as error:
        lines = [f"  {_told(fault)}" for fault in error.errors()]
        raise SettingsInvalid(f"The settings ({file} and DOCMILL_*) have mistakes:\n" + "\n".join(lines)) from error
    except SettingsError as error:
        raise SettingsInvalid(
            f"The settings have a mistake: {error}. Lists and mappings are written as JSON."
        ) from error
    except (yaml.YAMLError, OSError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise SettingsInvalid(f"The settings file {file} cannot be read as a YAML mapping: {reason}.") from error


_LIMITS = {"greater_than": ("gt", "more than"), "greater_than_equal": ("ge", "at least")}
_LIMITS |= {"less_than": ("lt", "less than"), "less_than_equal": ("le", "at most")}
_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "string": "text", "path": "a path"}
_KINDS |= {"time_delta": "a length of time such as 90d or 12h", "model": "a mapping", "dict": "a mapping"}
_KINDS |= {"tuple": "a list", "model_attributes": "a mapping"}


def _told(fault: "ErrorDetails") -> str:
    """One mistake as a person wants it told: where, what, and what to write instead."""
    location = [str(part) for part in fault["loc"]]
    place = ".".join(location)
    kind = fault["type"]
    found = repr(fault["input"])
    shown = found if len(found) <= _SHOWN else found[:_SHOWN] + "…"
    if kind == "extra_forbidden":
        return f"{place}: there is no such setting.{_suggestion(location)}"
    if kind in _LIMITS:
        limit, word = _LIMITS[kind]
        return f"{place}: {shown} is out of range; write {word} {fault['ctx'][limit]}."
    if kind == "value_error":
        return f"{place}: {fault['msg'].removeprefix('Value error, ').removesuffix('.')}."
    wanted = next((what for name, what in _KINDS.items() if kind in (f"{name}_parsing", f"{name}_type")), None)
    return f"{place}: {shown} is not {wanted}." if wanted else f"{place}: {fault['msg']}."


def _suggestion(location: Sequence[str]) -> str:
    """The setting that was probably meant, among those of the same section."""
    section: type[BaseModel] = Settings
    for part in location[:-1]:
        field = section.model_fields.get(part)
        inner = [kind for kind in _annotated(field.annotation if field else PoolSection) if issubclass(kind, BaseModel)]
        section = inner[0] if inner else section
    close = get_close_matches(location[-1], section.model_fields, n=1)
    known = f" Known here: {', '.join(section.model_fields)}."
    return f" Did you mean {'.'.join([*location[:-1], close[0]])}?" if close else known


def _annotated(annotation: Any) -> list[type]:
    """The classes that an annotation speaks of."""
    parts = getattr(annotation, "__args__", (annotation,))
    return [part for part in parts if isinstance(part, type)]


def unknown_variables() -> list[str]:
    """DOCMILL_* variables that set nothing, most likely misspelt."""
    prefix = "DOCMILL_"
    known = {"CONFIG", *(name.upper() for name in Settings.model_fields)}
    names = (name for name in os.environ if name.startswith(prefix))
    return sorted(name for name in names if name.removeprefix(prefix).split("__")[0].upper() not in known)
