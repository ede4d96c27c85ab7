"""Every setting with its value and where it comes from."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr
from pydantic_settings import EnvSettingsSource

from docmill.settings.loading import PREFIX, Settings, file_values
from docmill.settings.models import WRITTEN
from docmill.settings.section import length_text

_SECRET = re.compile(r"(?i)(password|passwd|secret|token|api_?key|(?:^|_)key$)")
_CREDENTIALS = re.compile(r"(://[^:/@]*:)[^@]*@")
MASK = "********"


class Origin(StrEnum):
    """Where a value comes from; each goes over those before it."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingNow:
    """One setting."""

    name: str
    value: Any
    """As plain data; secrets are masked."""
    origin: Origin
    variable: str
    """The variable that sets it."""


def settings_now(settings: Settings) -> tuple[SettingNow, ...]:
    """All settings in the order of their documentation."""
    environment = EnvSettingsSource(type(settings))()
    file = file_values()
    found = []
    for path, value in _leaves(settings):
        origin = Origin.FILE if _holds(file, path) else Origin.DEFAULT
        if _holds(environment, path):
            origin = Origin.ENVIRONMENT
        found.append(
            SettingNow(
                name=".".join(path),
                value=_plain(path[-1], value),
                origin=origin,
                variable=PREFIX + "__".join(WRITTEN.get(part, part) for part in path).upper(),
            )
        )
    return tuple(found)


def _leaves(
    section: BaseModel | Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Values that are no sections; mappings of sections are gone into, by their names."""
    items = (
        section.items()
        if isinstance(section, Mapping)
        else ((name, getattr(section, name)) for name in _names(section))
    )
    for name, value in items:
        place = (*path, name)
        if isinstance(value, BaseModel) or (isinstance(value, Mapping) and _has_sections(value)):
            yield from _leaves(value, place)
        else:
            yield place, value


def _names(section: BaseModel) -> list[str]:
    return list(type(section).model_fields)


def _has_sections(value: Mapping[str, Any]) -> bool:
    return any(
        isinstance(part, BaseModel) or (isinstance(part, Mapping) and _has_sections(part)) for part in value.values()
    )


def _holds(values: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    """Whether nested values name this setting."""
    found: Any = values
    for part in path:
        if not isinstance(found, Mapping):
            return False
        names = {str(name).lower(): name for name in found}
        name = names.get(part.lower(), names.get(WRITTEN.get(part, part)))
        if name is None:
            return False
        found = found[name]
    return True


def _plain(name: str, value: Any) -> Any:
    match value:
        case SecretStr():
            return MASK
        case str():
            return MASK if _SECRET.search(name) else _CREDENTIALS.sub(rf"\1{MASK}@", value)
        case Mapping():
            return {str(key): _plain(str(key), part) for key, part in value.items()}
        case tuple() | list():
            return [_plain(name, part) for part in value]
        case timedelta():
            return length_text(value)
        case Path() | Decimal():
            return str(value)
        case _:
            return value
