"""All settings of an installation, and where they are read from."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from docmill.model.errors import DocmillError
from docmill.settings.api import ApiSection
from docmill.settings.documents import (
    DocumentSection,
    FieldSection,
    IdempotencySection,
    OutputSection,
    ProcessingSection,
    ReviewSection,
    ValidationSection,
)
from docmill.settings.engine import (
    ChildSection,
    ExecutorSection,
    JobSection,
    LeaseSection,
    PoolSection,
    RetentionSection,
    SessionSection,
)
from docmill.settings.faults import told
from docmill.settings.models import ModelSection
from docmill.settings.section import Listed
from docmill.settings.sign_in import OidcSection
from docmill.settings.storage import StorageSection
from docmill.settings.webhooks import WebhookSection

PREFIX = "DOCMILL_"


class SettingsInvalid(DocmillError):
    """A setting is unknown or has a wrong value; the message names each."""

    code = "settings_invalid"


class Settings(BaseSettings):
    """Everything that can be set. Nested values: DOCMILL_LEASE__DURATION=60."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
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
    plugins: Annotated[tuple[str, ...], NoDecode, Listed] = ()
    """Modules that declare steps, processors and loaders, besides those with entry points."""
    pools: dict[str, PoolSection] = Field(default_factory=dict)
    lease: LeaseSection = LeaseSection()
    children: ChildSection = ChildSection()
    ai: ModelSection = ModelSection()
    drain_seconds: float = Field(default=20.0, ge=0)
    retention: RetentionSection = RetentionSection()
    jobs: JobSection = JobSection()
    sessions: SessionSection = SessionSection()
    oidc: OidcSection = OidcSection()
    executors: dict[str, ExecutorSection] = Field(default_factory=dict)
    """Outside executors by the name that templates call them."""
    storage: StorageSection = StorageSection()
    documents: DocumentSection = DocumentSection()
    schemas: Annotated[tuple[Path, ...], NoDecode, Listed] = ()
    """Folders of field schemas, looked through before those shipped; besides them `schemas` under home."""
    fields: dict[str, dict[str, FieldSection]] = Field(default_factory=dict)
    """What is asked of fields here: by schema, then by field (`line_items.amount` for a column)."""
    validation: ValidationSection = ValidationSection()
    idempotency: IdempotencySection = IdempotencySection()
    processing: ProcessingSection = ProcessingSection()
    review: ReviewSection = ReviewSection()
    webhooks: WebhookSection = WebhookSection()
    output: OutputSection = OutputSection()
    api: ApiSection = ApiSection()

    @field_validator("home")
    @classmethod
    def _expand(cls, value: Path) -> Path:
        return value.expanduser()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings, env_settings, InitSettingsSource(settings_cls, dict(file_values())))

    @property
    def url(self) -> str:
        """Where the database is."""
        return self.database_url or f"sqlite:///{self.home / 'docmill.db'}"

    @property
    def run_dir(self) -> Path:
        """Lock files and sockets of the workers on this host."""
        return self.home / "run"

    @property
    def output_root(self) -> Path:
        """Where the files of the outputs are."""
        return self.output.root or self.home / "outputs"

    @property
    def schema_folders(self) -> tuple[Path, ...]:
        """Where field schemas are looked for, before those shipped. Relative ones lie beside the settings file."""
        beside = config_file().parent
        return (*(beside / folder.expanduser() for folder in self.schemas), self.home / "schemas")


def config_file() -> Path:
    """The configuration file: DOCMILL_CONFIG, or docmill.yaml in the current folder."""
    return Path(os.environ.get("DOCMILL_CONFIG") or "docmill.yaml")


def file_values() -> Mapping[str, Any]:
    """What the configuration file says; nothing if there is none."""
    file = config_file()
    if not file.is_file():
        return {}
    text = file.read_text(encoding="utf-8")
    found = yaml.safe_load(text)
    if found is None:
        return {}
    if not isinstance(found, dict):
        kind = "a list" if isinstance(found, list) else f"the single value {found!r}"
        raise TypeError(f"it holds {kind} instead of settings; write one per line, such as 'home: /srv/docmill'")
    strange = [key for key in found if not isinstance(key, str)]
    if strange:
        raise TypeError(f"{strange[0]!r} is no name of a setting")
    return found


def load_settings(**overrides: object) -> Settings:
    """Read file and environment; SettingsInvalid lists everything that is wrong."""
    file = config_file()
    if "DOCMILL_CONFIG" in os.environ and not file.is_file():
        raise SettingsInvalid(f"DOCMILL_CONFIG names {str(file)!r}, which is not a file. Correct or unset it.")
    try:
        return Settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as error:
        lines = tuple(told(fault, Settings) for fault in error.errors())
        raise SettingsInvalid(
            f"The settings ({file} and DOCMILL_*) have mistakes:\n" + "\n".join(f"  {line}" for line in lines),
            mistakes=lines,
        ) from error
    except SettingsError as error:
        raise SettingsInvalid(
            f"The settings have a mistake: {error}. Lists and mappings are written as JSON."
        ) from error
    except yaml.MarkedYAMLError as error:
        raise SettingsInvalid(f"The settings file {file} is no YAML: {_pointed_at(error)}") from error
    except (yaml.YAMLError, OSError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split()).removesuffix(".")
        raise SettingsInvalid(f"The settings file {file} cannot be read as a YAML mapping: {reason}.") from error


def _pointed_at(error: yaml.MarkedYAMLError) -> str:
    """What is wrong, where, and below it the line with a caret, which means nothing but on a line of its own."""
    mark, what = error.problem_mark, error.problem or error.context or "it cannot be understood"
    if mark is None:
        return f"{what}."
    line = (mark.get_snippet(indent=2) or "").rstrip()
    return f"{what}, line {mark.line + 1}, column {mark.column + 1}." + (f"\n{line}" if line else "")


def unknown_variables() -> list[str]:
    """DOCMILL_* variables that set nothing, most likely misspelt."""
    known = {"CONFIG", *(name.upper() for name in Settings.model_fields)}
    names = (name for name in os.environ if name.startswith(PREFIX))
    return sorted(name for name in names if name.removeprefix(PREFIX).split("__")[0].upper() not in known)
