"""The `docmill` command: a thin edge over `docmill.services` and `docmill.bootstrap`.

Data goes to stdout, progress to stderr. Heavy imports wait inside the commands, so that `--help` answers in a blink.
"""
