"""Sections about documents: what is taken in, how fields are judged, what is written where, when it is done again."""

import re
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import NoDecode

from docmill.settings.section import Length, Listed, Section

_MB = 1 << 20
PLACES = ("id", "org", "yyyy", "mm", "dd")
"""What stands in braces in a path of the outputs. All stay the same when a document is processed again."""


class DocumentSection(Section):
    """How much of a document is taken on; the limits of a child stand behind these."""

    max_bytes: int = Field(default=50 * _MB, ge=1)
    max_pages: int = Field(default=2000, ge=1)
    max_frames: int = Field(default=100, ge=1)
    max_pixels: int = Field(default=100_000_000, ge=1)
    render_pixels: int = Field(default=12_000_000, ge=10_000)
    max_characters: int = Field(default=20_000_000, ge=1)
    page_characters: int = Field(default=400_000, ge=1)
    max_xml_bytes: int = Field(default=20 * _MB, ge=1)
    max_xml_elements: int = Field(default=1_000_000, ge=1)
    max_xml_depth: int = Field(default=256, ge=1, le=256)
    max_attachments: int = Field(default=50, ge=0)
    archive_entries: int = Field(default=10_000, ge=1)
    archive_bytes: int = Field(default=200 * _MB, ge=1)
    archive_entry_bytes: int = Field(default=50 * _MB, ge=1)
    archive_ratio: int = Field(default=200, ge=1)
    ocr_side: int = Field(default=2000, ge=100, le=20_000)
    dpi: int = Field(default=200, ge=36, le=1200)
    cpu_seconds: int = Field(default=25, ge=1)
    outline_seconds: float = Field(default=300.0, gt=0)
    page_seconds: float = Field(default=300.0, gt=0)


class FieldSection(Section):
    """What is asked of one field here, instead of what its schema asks."""

    threshold: float | None = Field(default=None, ge=0, le=1)
    required: bool | None = None
    pattern: str | None = None
    enum: Annotated[tuple[str, ...] | None, NoDecode, Listed] = None
    minimum: Decimal | None = None
    maximum: Decimal | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise ValueError(f"the minimum ({self.minimum}) is above the maximum ({self.maximum})")
        return self


class ValidationSection(Section):
    """Rules between fields."""

    tolerance: Decimal | None = Field(default=None, ge=0)
    rules: dict[str, bool] = Field(default_factory=dict)


class IdempotencySection(Section):
    """When a document counts as processed before, and what of it is kept."""

    hash_algorithm: Literal["sha256"] = "sha256"
    cache_ttl: Annotated[Length | None, Field(gt=timedelta(0))] = None
    preserve_fields: bool = True


class RetrySection(Section):
    """How often a step of document processing is tried again: after base, 2·base, 4·base… seconds, plus jitter."""

    max_retries: int = Field(default=3, ge=0, le=99)
    base_delay_seconds: float = Field(default=10.0, gt=0, le=3600)


class BreakerSection(Section):
    """When a model that fails is left alone."""

    failure_threshold: int = Field(default=5, ge=1, le=10_000)
    recovery_timeout_seconds: float = Field(default=60.0, gt=0, le=86_400)


class ProcessingSection(Section):
    """How documents are worked through."""

    concurrency: int = Field(default=200, ge=1, le=10_000)
    retry: RetrySection = RetrySection()
    circuit_breaker: BreakerSection = BreakerSection()


class ReviewSection(Section):
    """What people are asked to look at."""

    duplicates: Literal["link", "create"] = "link"
    auto_approve: bool = False
    assign: bool = False
    sla: Annotated[Length | None, Field(gt=timedelta(0))] = timedelta(hours=24)
    claim_for: Annotated[Length, Field(gt=timedelta(0), le=timedelta(days=30))] = timedelta(minutes=30)


class OutputSection(Section):
    """Which files are written for each document, and where."""

    root: Path | None = None
    formats: Annotated[tuple[Literal["json", "parquet"], ...], NoDecode, Listed] = ("json", "parquet")
    json_path: str = "json/{yyyy}/{mm}/{dd}/{id}.json"
    parquet_path: str = "parquet/{yyyy}/{mm}/{dd}/{id}.parquet"
    json_compression: Literal["none", "gzip"] = "none"
    parquet_compression: Literal["none", "gzip", "snappy", "zstd"] = "none"
    atomic: bool = True

    @field_validator("root")
    @classmethod
    def _expand(cls, value: Path | None) -> Path | None:
        return None if value is None else value.expanduser()

    @field_validator("json_path", "parquet_path")
    @classmethod
    def _inside(cls, value: str) -> str:
        parts = value.split("/")
        if value.startswith("/") or any(part in ("", ".", "..") for part in parts) or "\\" in value or "\0" in value:
            raise ValueError(f"{value!r} must be a path below output.root, with / and without . or .. in it")
        unknown = sorted(set(re.findall(r"\{([^{}]*)\}", value)) - set(PLACES))
        if unknown or re.sub(r"\{[^{}]*\}", "", value).strip("/") != re.sub(r"\{[^{}]*\}|[{}]", "", value).strip("/"):
            known = ", ".join(f"{{{place}}}" for place in PLACES)
            raise ValueError(f"{value!r} may hold {known} and no other braces")
        if "{id}" not in value:
            raise ValueError(f"{value!r} must hold {{id}}, or documents would overwrite each other's files")
        if re.search(r"[*?\[\]]", value):
            raise ValueError(f"{value!r} must not hold *, ? or brackets: all files are found by such a pattern")
        return value

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.json_path == self.parquet_path:
            raise ValueError("json_path and parquet_path are the same, so one file would overwrite the other")
        return self
