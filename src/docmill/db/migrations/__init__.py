"""Alembic migrations for both databases, run by `docmill db upgrade`.

A revision spells out its tables and shares nothing with others, even where lines repeat: once released it never
changes, and what it shared would change under it.
"""
