"""The section about signing in by an identity provider."""

from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import NoDecode

from docmill.settings.section import Listed, Section, checked
from docmill.webhooks.posting import checked_url


class OidcSection(Section):
    """The identity provider whose word counts; none: people sign in by password alone."""

    issuer: str | None = None
    client_id: str | None = None
    client_secret: SecretStr | None = None
    scopes: Annotated[tuple[str, ...], NoDecode, Listed, Field(min_length=1)] = ("openid", "email", "profile")

    @field_validator("issuer")
    @classmethod
    def _reachable(cls, value: str | None) -> str | None:
        if value is None:
            return None
        value, parts = checked(checked_url, value), urlsplit(value)
        if parts.scheme != "https" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise ValueError("what comes over plain http:// anybody on the way can change; use https://")
        return value

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.issuer is None) != (self.client_id is None):
            raise ValueError("an identity provider needs both issuer and client_id")
        return self
