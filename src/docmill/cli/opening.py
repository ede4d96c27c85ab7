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
    from docmill.settings import load_settings

    settings = load_settings()
    see_plugins(settings)
    return settings


def see_plugins(settings: "Settings") -> None:
    """Plug-ins beside the settings file can be imported from now on."""
    from docmill.settings import config_file

    if settings.plugins:
        # At the end: what is installed wins over what happens to lie here.
        folder = str((config_file().parent if config_file().is_file() else Path()).resolve())
        if folder not in sys.path:
            sys.path.append(folder)


def check_demands(settings: "Settings", schema: str | None = None) -> None:
    """Whether what the settings ask of fields and rules fits the schemas: a mistake here would fail every document."""
    from docmill.bootstrap import schema_overrides
    from docmill.services.configuration import look_over
    from docmill.settings import SettingsInvalid

    mistakes = look_over(settings, schema_overrides(settings), asked=schema).mistakes
    if mistakes:
        listed = "\n".join(f"  {mistake}" for mistake in mistakes)
        raise SettingsInvalid(f"What is set does not fit; nothing was processed:\n{listed}", mistakes=mistakes)


def model_named(app: "App", name: str) -> str:
    """The model that a name means, as `provider:model`; an error if nobody here can ask it."""
    from docmill.bootstrap import askable
    from docmill.model.errors import DocmillError, InvalidInput

    try:
        target = askable(app.settings, name)
    except DocmillError as error:
        # Of a name, a key or a library that lacks: told before any work, as all that a person must write or add first.
        raise InvalidInput(error.message) from error
    known = app.registry.providers
    if target.provider not in known:
        raise InvalidInput(
            f"There is no provider {target.provider!r} for the model {name!r}. There are: {', '.join(sorted(known))}; "
            "ai.providers adds others."
        )
    return str(target)


@contextmanager
def opened(settings: "Settings | None" = None, *, check_schema: bool = True) -> Iterator["App"]:
    """The installation, its database at the schema of this release; `settings` if they were read before."""
    from docmill.bootstrap import open_app

    with open_app(settings or read_settings(), check_schema=check_schema) as app:
        yield app
