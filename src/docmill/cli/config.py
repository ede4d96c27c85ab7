"""`docmill config`: is what is set right, and what holds in the end."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from docmill.cli.errors import EXIT_WRONG_USE, WrongUse
from docmill.cli.options import Json
from docmill.cli.output import counted, print_json, print_table, printable

if TYPE_CHECKING:
    from docmill.settings import Settings

app = App(name="config", help="Check the settings, and show what holds.")

File = Annotated[
    Path | None,
    Parameter(name="FILE", show_default=False, help="A settings file; default: DOCMILL_CONFIG, or docmill.yaml here."),
]


@app.command
def check(file: File = None, /, *, json: Json = False) -> int:
    """Check the settings, the field schemas, whether they fit and what they name, and list every mistake.

    Each comes with its file and line where there is one. Exit code 2 if there is a mistake.
    """
    from docmill.bootstrap import schema_overrides
    from docmill.services.configuration import look_over
    from docmill.settings import SettingsInvalid, config_file, load_settings, unknown_variables
    from docmill.settings.mending import located, mended_settings

    _use(file)
    mistakes: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    settings: Settings | None
    try:
        settings = load_settings()
    except SettingsInvalid as error:
        mistakes = error.details.get("mistakes") or (error.message,)  # type: ignore[assignment]
        settings = mended_settings()
    if settings is not None:
        looked = look_over(settings, schema_overrides(settings))
        schemas, mistakes = looked.schemas, (*mistakes, *looked.mistakes, *_strangers(settings))
    mistakes = located(mistakes)
    place = config_file()
    source = str(place) if place.is_file() else None
    strange = unknown_variables()
    unready = [] if settings is None else list(_unready(settings))
    if json:
        found = {"file": source, "schemas": list(schemas), "mistakes": list(mistakes), "unknown_variables": strange}
        print_json({"ok": not mistakes, **found, "notes": unready})
        return EXIT_WRONG_USE if mistakes else 0
    for mistake in mistakes:
        print(mistake)
    for each in unready:
        print(f"note: {each}", file=sys.stderr)
    for name in strange:
        print(f"note: {name} sets nothing; correct the name, or unset it.", file=sys.stderr)
    read = source or "DOCMILL_* and defaults"
    if mistakes:
        print(f"\n{counted(len(mistakes), 'mistake')} in {read}.", file=sys.stderr)
        return EXIT_WRONG_USE
    print(f"{read}: all is well; {counted(len(schemas), 'field schema')} can be used: {', '.join(schemas)}.")
    return 0


def _strangers(settings: "Settings") -> Iterator[str]:
    """What the settings name and this installation has not: a kind of database, plug-ins, providers of models."""
    from docmill.bootstrap import load_registry, model_rules
    from docmill.cli.opening import see_plugins
    from docmill.db.database import Database
    from docmill.model.errors import DocmillError

    try:
        Database(settings.url)
    except DocmillError as error:
        yield f"database_url: {error.message}"
    see_plugins(settings)
    try:
        known = load_registry(settings.plugins, settings.executors, settings.ai.providers).providers
    except DocmillError as error:
        yield f"plugins: {error.message}"
        return
    rules = model_rules(settings)
    for place, name in _models(settings).items():
        try:
            target = rules.resolve(name)
        except DocmillError as error:
            yield f"{place}: {error.message}"
            continue
        if target.provider not in known:
            listed = ", ".join(sorted(known))
            yield f"{place}: there is no provider {target.provider!r}. There are: {listed}; ai.providers adds others."


def _models(settings: "Settings") -> dict[str, str]:
    """Models that the settings name, by the place where they do."""
    return {"ai.model": settings.ai.model, **{f"ai.models.{name}": name for name in settings.ai.models}}


def _unready(settings: "Settings") -> Iterator[str]:
    """Models that cannot be asked from here. No mistake: workers elsewhere may have the key, or the library."""
    from docmill.bootstrap import askable
    from docmill.model.errors import DocmillError, PermanentError

    for place, name in _models(settings).items():
        try:
            askable(settings, name)
        except PermanentError as error:
            yield f"{place}: {error.message}"
        except DocmillError:
            pass  # Listed as a mistake.


@app.command
def show(
    file: File = None,
    /,
    *,
    changed: Annotated[bool, Parameter(negative="", help="Only what somebody has set.")] = False,
    json: Json = False,
) -> int:
    """Show the settings that hold, and where each comes from: default, file or environment.

    Secrets are masked.
    """
    from docmill.settings import config_file, load_settings
    from docmill.settings.origins import Origin, settings_now

    _use(file)
    found = settings_now(load_settings())
    shown = [one for one in found if one.origin is not Origin.DEFAULT or not changed]
    if json:
        listed = [
            {"name": one.name, "value": one.value, "origin": one.origin.value, "variable": one.variable}
            for one in shown
        ]
        print_json({"file": str(config_file()) if config_file().is_file() else None, "settings": listed})
        return 0
    places = {Origin.FILE: str(config_file()), Origin.DEFAULT: "default"}
    if shown:
        rows = [(one.name, _text(one.value), places.get(one.origin, one.variable)) for one in shown]
        print_table(("SETTING", "VALUE", "FROM"), rows, give_way=("VALUE",))
    else:
        print("Nobody has set anything.", file=sys.stderr)
    return 0


def _use(file: Path | None) -> None:
    """From now on this file is the settings file."""
    if file is None:
        return
    if not file.is_file():
        raise WrongUse(f"There is no file {str(file)!r}.")
    os.environ["DOCMILL_CONFIG"] = str(file)


def _text(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, str):
        return printable(value)
    import orjson

    return printable(orjson.dumps(value).decode())
