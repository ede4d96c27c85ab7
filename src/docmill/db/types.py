"""Column types that mean the same on both databases."""

from datetime import UTC, datetime

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


JsonText = JSON().with_variant(Text(), "sqlite")
"""JSON kept letter by letter (`json` on PostgreSQL): what is hashed must come back as it went in."""

JsonValue = JSON().with_variant(JSONB(), "postgresql")
"""JSON that people query."""
