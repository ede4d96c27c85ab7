"""Opening the installation that the settings describe."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docmill.bootstrap import App
    from docmill.settings import Settings


def read_settings() -> "Settings":
    """The settings; plug-ins beside the settings file can be imported from now on."""
    from docmill.settings import config_file, load_settings

    settings = load_settings()
    if settings.plugins:
        # At the end: what is installed wins over what happens to lie here.
        folder = str((config_file().parent if config_file().is_file() else Path()).resolve())
        if folder not in sys.path:
            sys.path.append(folder)
    return settings


@contextmanager
def opened(*, check_schema: bool = True) -> Iterator["App"]:
    """The installation, its database at the schema of this release."""
    from docmill.bootstrap import open_app

    with open_app(read_settings(), check_schema=check_schema) as app:
        yield app
