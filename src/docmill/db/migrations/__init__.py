"""Alembic migrations for both databases, run by `docmill db upgrade`."""
