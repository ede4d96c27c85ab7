"""Docmill: documents in, reviewed data out.

Durable, template-driven workflows over documents. This package root holds only the version; everything a user
imports lives in `docmill.plugin` (write steps and processors) and `docmill.bootstrap` (wire an application).
"""

__version__ = "0.1.0"
