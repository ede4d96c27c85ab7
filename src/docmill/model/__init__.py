"""The words every other package shares: ids, statuses with their transitions, and errors.

Nothing here knows a database, a clock, a network or a third-party library; only the standard library is imported.
"""
