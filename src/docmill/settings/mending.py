"""Settings that have mistakes, looked at further: on which line each is, and what the rest would be without them."""

import os
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsError

from docmill.settings.loading import PREFIX, Settings, config_file, file_values

Location = Sequence[str | int]


def mended_settings() -> Settings | None:
    """The settings without what is wrong in their file, so that mistakes that show only later are found as well.

    None if the file cannot be read, or what is wrong comes from elsewhere.
    """
    try:
        values = dict(file_values())
        try:
            return _settings(values)
        except ValidationError as error:
            return _settings(_without(values, (fault["loc"] for fault in error.errors())))
    except (ValidationError, SettingsError, yaml.YAMLError, OSError, ValueError, TypeError):
        return None


def _settings(values: Mapping[str, Any]) -> Settings:
    class Mended(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return (env_settings, InitSettingsSource(settings_cls, dict(values)))

    return Mended()


def _without(values: Mapping[str, Any], locations: Iterable[Location]) -> dict[str, Any]:
    left: dict[str, Any] = deepcopy(dict(values))
    for location in locations:
        part: Any = left
        for depth, step in enumerate(location, start=1):
            if not isinstance(part, dict) or step not in part:
                break
            # What is wrong may be the whole of a section, or a value where a section should be.
            if depth == len(location) or not isinstance(part[step], dict):
                del part[step]
                break
            part = part[step]
    return left


def located(mistakes: Sequence[str]) -> tuple[str, ...]:
    """Mistakes that begin with the name of a setting, with the variable or the file and line that say so."""
    file = config_file()
    try:
        root = yaml.compose(file.read_text(encoding="utf-8"), Loader=yaml.SafeLoader) if file.is_file() else None
    except (yaml.YAMLError, OSError, ValueError):
        root = None
    variables = {name.upper(): name for name in os.environ}
    found = []
    for mistake in mistakes:
        place = mistake.partition(": ")[0]
        line = _line(root, place)
        # The environment goes over the file, so what is wrong there is not wrong in the file.
        name = "__".join(part for part in place.split(".") if not part.isdecimal())
        if variable := variables.get(PREFIX + name.upper()):
            found.append(f"{variable}: {mistake}")
        else:
            found.append(mistake if line is None else f"{file}:{line}: {mistake}")
    return tuple(found)


def _line(node: Any, place: str) -> int | None:
    """The line of the deepest part of a place that the file has; names may have dots in them."""
    found = None
    while isinstance(node, yaml.MappingNode) and place:
        inside = [
            (key.value, key, value)
            for key, value in node.value
            if place == key.value or place.startswith(f"{key.value}.")
        ]
        if not inside:
            break
        name, key, node = max(inside, key=lambda each: len(each[0]))
        place = place[len(name) + 1 :]
        found = key.start_mark.line + 1
    return found
