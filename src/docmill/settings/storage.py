"""The section about where bytes are kept."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from docmill.settings.section import Length, Section, checked
from docmill.webhooks.posting import checked_url


class StorageSection(Section):
    """Where the bytes of documents, readings and results are kept, and for how long."""

    kind: Literal["folder", "s3"] = "folder"
    path: Path | None = None
    bucket: str | None = None
    prefix: str | None = None
    endpoint: str | None = None
    region: str | None = None
    access_key: SecretStr | None = None
    secret_key: SecretStr | None = None
    quota_bytes: int | None = Field(default=None, ge=1)
    originals_expire_after: Annotated[Length | None, Field(gt=timedelta(0))] = None
    links_expire_after: Annotated[Length, Field(gt=timedelta(0))] = timedelta(minutes=15)

    @field_validator("path")
    @classmethod
    def _expand(cls, value: Path | None) -> Path | None:
        return None if value is None else value.expanduser()

    @field_validator("endpoint")
    @classmethod
    def _reachable(cls, value: str | None) -> str | None:
        return None if value is None else checked(checked_url, value)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind == "s3" and not self.bucket:
            raise ValueError("storage of kind s3 needs a bucket")
        return self
