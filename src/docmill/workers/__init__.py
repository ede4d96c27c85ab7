"""Worker processes: a thin edge that runs the engine under a lease and drains when asked to stop.

Decisions and SQL belong to `docmill.engine`; nothing but the command line and the demo imports this package.
"""
