"""What a worker says on stderr, for people and for whatever collects it."""

import logging
import sys

FORMAT = "%(asctime)s %(levelname)-7s %(message)s"


def log_to_stderr(*, verbose: bool) -> None:
    """One line per message, time first; plug-ins that use `logging` are heard too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(FORMAT, datefmt="%Y-%m-%d %H:%M:%S"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.getLogger("docmill").setLevel(logging.DEBUG if verbose else logging.INFO)
    # Migrations and HTTP clients tell more than an operator wants to know.
    for name in ("alembic", "asyncio", "httpx", "sqlalchemy"):
        logging.getLogger(name).setLevel(logging.WARNING)
