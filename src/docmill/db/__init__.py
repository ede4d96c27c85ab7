"""Connections, transactions, dialects, tables (a file per domain) and migrations, for SQLite and PostgreSQL.

Knows only `docmill.model`. Nothing here decides what a status becomes: that is `docmill.engine.decide`.
"""
