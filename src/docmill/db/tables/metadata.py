"""The one metadata all tables hang on, and the way a status enum becomes a CHECK constraint."""

from enum import StrEnum

from sqlalchemy import CheckConstraint, MetaData

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def one_of(column: str, values: type[StrEnum]) -> CheckConstraint:
    """The column holds a member of the enum; the enum is the only place where members are listed."""
    members = ", ".join(f"'{member}'" for member in values)
    return CheckConstraint(f"{column} IN ({members})", name=column)
