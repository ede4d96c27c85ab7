"""Docmill as a system under test, set up as production runs it."""
