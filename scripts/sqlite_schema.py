#!/usr/bin/env python3
"""Write down what the migrations make of an empty SQLite database, as new ones are made from.

.venv/bin/python scripts/sqlite_schema.py
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from docmill.db import schema
from docmill.db.database import Database


def main() -> int:
    """Run all migrations and replace `sqlite.sql`."""
    with TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{folder}/led.db")
        with database.write() as connection:
            schema.upgrade(connection)
            found = schema.written_down(connection)
        database.close()
    Path(schema.__file__).with_name("sqlite.sql").write_text(found, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
