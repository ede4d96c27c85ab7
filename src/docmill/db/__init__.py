"""Connections, transactions, dialects, tables (a module per domain) and migrations, for SQLite and PostgreSQL.

What may not live here: decisions, and any knowledge of what the rows mean beyond their constraints.
"""
