"""`docmill doctor`: is all well here, and if not, what to do."""

import sys
from typing import TYPE_CHECKING

from docmill.cli.options import Json
from docmill.cli.output import counted, print_drawn, print_json, printable, record, styled

if TYPE_CHECKING:
    from docmill.db.database import Database
    from docmill.documents.blobs import Blobs
    from docmill.plugin import Registry
    from docmill.services.doctor import Check
    from docmill.settings import Settings


def doctor(*, json: Json = False) -> int:
    """Look the installation over and say what to mend.

    Python, settings, disk, plug-ins, database and workers: each line says ok, warn or fail, and what to do about it.
    Exit code 1 if something fails.
    """
    from docmill.cli.opening import read_settings
    from docmill.services.doctor import Health, examine

    checks = []
    for check in examine(read_settings, _database, _registry, _storage):
        checks.append(check)
        if not json:
            _print(check)
            sys.stdout.flush()
    failed = sum(check.health is Health.FAIL for check in checks)
    warned = sum(check.health is Health.WARN for check in checks)
    if json:
        print_json({"ok": not failed, "checks": [record(check) for check in checks]})
    else:
        verdict = f"{counted(failed, 'check')} failed" if failed else "Nothing fails"
        print(f"\n{verdict}, {counted(warned, 'warning')}." if warned else f"\n{verdict}.")
    return 1 if failed else 0


def _print(check: "Check") -> None:
    from rich.table import Table

    line = Table.grid(padding=(0, 2, 0, 0))
    line.add_column(width=4)
    line.add_column(width=10)
    line.add_column(overflow="fold")
    line.add_row(styled(check.health.value), check.name, printable(check.found))
    if check.remedy:
        line.add_row("", "", f"→ {printable(check.remedy)}")
    print_drawn(line)


def _database(settings: "Settings") -> "Database":
    from docmill.db.database import Database

    return Database(settings.url)


def _registry(settings: "Settings") -> "Registry":
    from docmill.bootstrap import load_registry

    return load_registry(settings.plugins)


def _storage(settings: "Settings") -> "Blobs":
    from docmill.bootstrap import open_blobs
    from docmill.bootstrap.meanings import blob_links

    return open_blobs(settings, lambda: blob_links(_database(settings)))
