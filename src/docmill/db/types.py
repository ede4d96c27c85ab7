"""Column types that mean the same on both databases."""

from datetime import UTC, datetime
from typing import Any

import orjson
from sqlalchemy import JSON, DateTime, Dialect, String, Text, TypeDecorator, Uuid
from sqlalchemy.dialects.postgresql import JSONB

Id = Uuid(as_uuid=False)
"""Canonical UUID text in Python; native `uuid` on PostgreSQL."""


class IdType(TypeDecorator[str]):
    """Canonical UUID text in Python and on SQLite; native `uuid` on PostgreSQL."""

    impl = String(36)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect):  # type: ignore[no-untyped-def]  # TypeEngine[Any], which strict mode refuses
        return dialect.type_descriptor(Id if dialect.name == "postgresql" else String(36))


class UtcTime(TypeDecorator[datetime]):
    """An aware instant: `timestamptz` on PostgreSQL, sortable ISO 8601 text on SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect):  # type: ignore[no-untyped-def]  # as above
        return dialect.type_descriptor(DateTime(timezone=True) if dialect.name == "postgresql" else String(32))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | str | None:
        if value is None or dialect.name == "postgresql":
            return value
        return iso(value)

    def process_result_value(self, value: datetime | str | None, dialect: Dialect) -> datetime | None:
        return datetime.fromisoformat(value) if isinstance(value, str) else value


def iso(value: datetime) -> str:
    """Fixed-width UTC text, so that text order is time order."""
    return value.astimezone(UTC).isoformat(timespec="microseconds")


class _Json(TypeDecorator[Any]):
    """JSON: a native type on PostgreSQL, text on SQLite (whose JSON columns would turn "1" into a number)."""

    impl = JSON
    cache_ok = True

    def __init__(self, *, queryable: bool) -> None:
        super().__init__()
        self.queryable = queryable

    def load_dialect_impl(self, dialect: Dialect):  # type: ignore[no-untyped-def]  # as above
        if dialect.name != "postgresql":
            return dialect.type_descriptor(Text())
        native = JSONB(none_as_null=True) if self.queryable else JSON(none_as_null=True)
        return dialect.type_descriptor(native)

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return value if value is None or dialect.name == "postgresql" else orjson.dumps(value).decode()

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return value if value is None or dialect.name == "postgresql" else orjson.loads(value)


JsonText = _Json(queryable=False)
"""JSON kept letter by letter (`json` on PostgreSQL): what is hashed must come back as it went in."""

JsonValue = _Json(queryable=True)
"""JSON that people query (`jsonb` on PostgreSQL)."""
