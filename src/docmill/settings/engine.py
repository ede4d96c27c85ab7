"""Sections about running steps: pools, leases, children, retention, outside executors; and about whoever looks on."""

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from docmill.settings.section import Length, Section, checked
from docmill.webhooks.posting import checked_url
from docmill.webhooks.signatures import read_secret


class PoolSection(Section):
    """One pool: how many of its steps a worker process runs at once."""

    capacity: int = Field(default=10, ge=1, le=100_000)
    priority: int = 0
    claims_per_cycle: int | None = Field(default=None, ge=1)


class LeaseSection(Section):
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


class ChildSection(Section):
    """Limits of the children that do CPU work."""

    count: int | None = Field(default=None, ge=1)
    memory_mb: int = Field(default=2048, ge=128)
    cpu_seconds: int = Field(default=600, ge=1)
    tasks: int = Field(default=2000, ge=1)


class RetentionSection(Section):
    """How long what is finished is kept."""

    jobs: Annotated[Length | None, Field(gt=timedelta(0))] = None


class JobSection(Section):
    """Who sees which jobs."""

    visibility: Literal["own", "organisation"] = "organisation"


class SessionSection(Section):
    """How long somebody stays signed in."""

    idle: Annotated[Length, Field(gt=timedelta(0), le=timedelta(days=30))] = timedelta(hours=12)
    absolute: Annotated[Length, Field(gt=timedelta(0), le=timedelta(days=365))] = timedelta(days=14)


class ExecutorSection(Section):
    """An outside executor: where external steps are sent that name it, and the secret that signs both ways."""

    url: str
    secret: SecretStr | None = None
    timeout: float = Field(default=30.0, gt=0, le=600)

    @field_validator("url")
    @classmethod
    def _postable(cls, value: str) -> str:
        return checked(checked_url, value)

    @field_validator("secret")
    @classmethod
    def _signs(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            checked(read_secret, value.get_secret_value())
        return value

    @property
    def key(self) -> bytes | None:
        """The signing key, if there is a secret."""
        return None if self.secret is None else read_secret(self.secret.get_secret_value())
