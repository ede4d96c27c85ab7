"""Settings, database and doctor: what is wrong with an installation is named, with its remedy."""

import json
import sqlite3
from typing import Any

import pytest

from docmill.db.schema import HEAD
from tests.acceptance.conftest import Worker
from tests.acceptance.mill import Mill

UNREACHABLE = "postgresql://nobody:secret@127.0.0.1:1/nothing"


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"DOCMILL_CONFIG": "missing.yaml"}, "DOCMILL_CONFIG names 'missing.yaml', which is not a file."),
        ({"DOCMILL_CONFIG": "broken.yaml"}, "The settings file broken.yaml is no YAML: expected the node content"),
        ({"DOCMILL_CONFIG": "list.yaml"}, "The settings file list.yaml cannot be read"),
        ({"DOCMILL_CONFIG": "unknown.yaml"}, "colour: there is no such setting."),
        ({"DOCMILL_LEASE__DURATION": "soon"}, "lease.duration: 'soon' is not a number."),
        ({"DOCMILL_LEASE__DURATION": "15"}, "must come at least twice in the duration (15 s)"),
        ({"DOCMILL_POOLS": "many"}, 'error parsing value for field "pools"'),
        ({"DOCMILL_DATABASE_URL": "mysql://x/y"}, "Database URLs start with sqlite:/// or postgresql://"),
        ({"DOCMILL_DATABASE_URL": "nonsense"}, "The database URL cannot be read"),
        ({"DOCMILL_DATABASE_URL": "sqlite://"}, "name a file"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_named_and_is_wrong_use(bare: Mill, variables: dict[str, str], says: str) -> None:
    bare.write("broken.yaml", "pools: [")
    bare.write("list.yaml", "- a\n- b\n")
    bare.write("unknown.yaml", "colour: red\n")
    answer = bare.having(**variables)("jobs", "list")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: ")
    assert says in answer.err
    assert "Traceback" not in answer.err


def test_an_unknown_plug_in_is_named(mill: Mill) -> None:
    mill.write("explosive.py", "raise RuntimeError('boom')\n")
    for name, why in (("no_such_module", "No module named"), ("explosive", "RuntimeError: boom")):
        answer = mill.having(DOCMILL_PLUGINS=name)("templates", "validate", "plain.yaml")
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.startswith(f"error: The plug-in module {name!r} cannot be imported")
        assert why in answer.err
        assert answer.err.count("\n") == 1


def test_a_plug_in_beside_the_settings_file_is_found(mill: Mill) -> None:
    mill.write("docmill.yaml", "plugins: [my_steps]\n")
    mill.write("my_steps.py", "from docmill.plugin import step\n\n@step('my.own')\ndef own(ctx):\n    return {}\n")
    own = mill.having(DOCMILL_PLUGINS=None)
    template = "name: own\nprocessable_type: document\nsteps:\n  - {step_key: a, type: my.own}\n"
    template += "  - {step_key: finish, type: FinishProcessing}\n"
    mill.write("own.yaml", template)
    assert own("templates", "validate", "own.yaml").code == 0


def test_an_unreachable_database_is_told_without_its_password(bare: Mill) -> None:
    away = bare.having(DOCMILL_DATABASE_URL=UNREACHABLE)
    for command in (("jobs", "list"), ("worker",), ("db", "current"), ("db", "upgrade")):
        answer = away(*command)
        assert (answer.code, answer.out) == (1, "")
        assert answer.err.startswith("error: Cannot reach the database postgresql")
        assert "docmill doctor" in answer.err
        assert "secret" not in answer.err
        assert answer.err.count("\n") == 1
    assert away("jobs", "list", "--json").error["code"] == "database_unavailable"


def test_a_home_is_made_for_its_owner_alone(bare: Mill) -> None:
    home = bare.folder / "new home"
    assert bare.having(DOCMILL_HOME=str(home))("documents", "list").code == 0
    assert home.stat().st_mode & 0o077 == 0


def test_a_home_that_cannot_be_made_is_told(bare: Mill) -> None:
    bare.write("occupied", "")
    answer = bare.having(DOCMILL_HOME=str(bare.folder / "occupied" / "home"))("jobs", "list")
    assert (answer.code, answer.out) == (1, "")
    assert "Set DOCMILL_HOME" in answer.err


def test_a_file_that_is_no_database_is_told(bare: Mill) -> None:
    (bare.folder / "home").mkdir()
    (bare.folder / "home" / "docmill.db").write_bytes(b"this is not a database " * 100)
    answer = bare("jobs", "list")
    assert (answer.code, answer.out) == (1, "")
    assert answer.err == "error: The database refused: file is not a database. `docmill doctor` looks at it.\n"


def test_postgresql_is_upgraded_by_hand(bare: Mill, postgres_url: str) -> None:
    mill = bare.having(DOCMILL_DATABASE_URL=postgres_url)
    before = mill("jobs", "list")
    assert (before.code, before.out) == (1, "")
    assert "has no Docmill schema" in before.err
    assert "docmill db upgrade" in before.err
    current = mill("db", "current", "--json")
    assert current.code == 1
    assert (current.data["kind"], current.data["revision"], current.data["up_to_date"]) == ("postgresql", None, False)
    upgraded = mill("db", "upgrade", "--json")
    assert upgraded.code == 0
    assert (upgraded.data["before"], upgraded.data["revision"], upgraded.data["changed"]) == (None, HEAD, True)
    assert mill("db", "upgrade", "--json").data["changed"] is False
    assert mill("db", "current").code == 0
    assert mill("jobs", "list").code == 0


def test_sqlite_is_made_by_the_first_command_and_looking_makes_nothing(bare: Mill) -> None:
    database = bare.folder / "home" / "docmill.db"
    assert bare("db", "current").code == 1
    assert bare("doctor").code == 0
    assert not database.exists()
    assert bare("jobs", "list").code == 0
    assert bare("db", "current").out.endswith(f"revision {HEAD}\n")


def test_a_database_of_a_newer_release_is_left_alone(mill: Mill) -> None:
    connection = sqlite3.connect(mill.folder / "home" / "docmill.db")
    with connection:
        connection.execute("update alembic_version set version_num = '9999'")
    connection.close()
    for command in (("jobs", "list"), ("db", "upgrade")):
        answer = mill(*command)
        assert (answer.code, answer.out) == (1, "")
        assert "made by a newer release" in answer.err
        assert "Upgrade Docmill" in answer.err


def checks(mill: Mill, code: int) -> dict[str, Any]:
    """What doctor says, by name of the check."""
    answer = mill("doctor", "--json")
    assert (answer.code, answer.err) == (code, "")
    assert answer.data["ok"] is (code == 0)
    found = answer.data["checks"]
    assert all(check.keys() == {"name", "health", "found", "remedy"} for check in found)
    assert all((check["remedy"] is None) == (check["health"] == "ok") for check in found)
    return {check["name"]: check for check in found}


def test_doctor_finds_a_sound_installation_sound(either: Mill, worker: Worker) -> None:
    idle = checks(either, 0)
    assert idle["workers"]["health"] == "warn"
    assert "docmill worker" in idle["workers"]["remedy"]
    worker(either)
    busy = checks(either, 0)
    assert busy["workers"]["found"].startswith("1 alive")
    assert busy["database"]["found"].startswith(("sqlite 3", "postgresql 1"))
    assert busy["schema"]["found"] == f"revision {HEAD}"
    assert "mill.echo" in busy["step types"]["found"]
    assert {"python", "settings", "home", "disk", "fsync", "plug-ins"} <= busy.keys()


def test_doctor_is_readable(mill: Mill) -> None:
    answer = mill("doctor")
    assert (answer.code, answer.err) == (0, "")
    assert "ok    schema      revision" in answer.out
    assert "warn  workers     none alive, so jobs wait\n                  → Start one: `docmill worker`." in answer.out
    assert "`docmill process` needs none" in answer.out


@pytest.mark.parametrize(
    ("variables", "check", "says"),
    [
        ({"DOCMILL_DATABASE_URL": UNREACHABLE}, "database", "Cannot reach the database"),
        ({"DOCMILL_DATABASE_URL": "nonsense"}, "database", "cannot be read"),
        ({"DOCMILL_PLUGINS": "no_such_module"}, "plug-ins", "no_such_module"),
        ({"DOCMILL_LEASE__DURATION": "soon"}, "settings", "lease.duration"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_doctor_names_what_fails(bare: Mill, variables: dict[str, str], check: str, says: str) -> None:
    found = checks(bare.having(**variables), 1)[check]
    assert found["health"] == "fail"
    assert says in found["found"]
    assert "secret" not in json.dumps(found)


def test_doctor_notices_a_misspelt_variable(bare: Mill) -> None:
    found = checks(bare.having(DOCMILL_DATABSE_URL="x"), 0)["settings"]
    assert found["health"] == "warn"
    assert "DOCMILL_DATABSE_URL" in found["found"]


def test_doctor_sends_an_empty_postgresql_to_upgrade(bare: Mill, postgres_url: str) -> None:
    found = checks(bare.having(DOCMILL_DATABASE_URL=postgres_url), 1)["schema"]
    assert found["remedy"] == "Run `docmill db upgrade`."


def test_doctor_notices_a_home_that_cannot_be_made(bare: Mill) -> None:
    # Beneath a file: there even root can make no folder, whose rights would pass over a locked one.
    (bare.folder / "file").touch()
    assert checks(bare.having(DOCMILL_HOME=str(bare.folder / "file" / "home")), 1)["home"]["health"] == "fail"
