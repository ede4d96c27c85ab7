"""Docmill and its peers, measured side by side on one machine: see README.md in this folder.

Everything that a peer's own virtual environment imports (this file, `flow`, `meter`, `settings`, `peers`) uses the
standard library only.
"""
