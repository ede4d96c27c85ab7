"""What holds for every command: streams, exit codes, errors, help, start-up."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from cyclopts import App

import docmill
from docmill.cli.program import build
from tests.acceptance.mill import DOCMILL, PATIENCE, Mill


def commands(app: App, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command and group of commands below this one, by its words."""
    for name in app:
        if not name.startswith("-"):
            yield (*above, name)
            yield from commands(app[name], (*above, name))


COMMANDS = list(commands(build()))
HEAVY = ("alembic", "asyncio", "orjson", "psycopg", "pydantic", "pydantic_settings", "sqlalchemy", "sqlite3", "yaml")


def imported_by(bare: Mill, *arguments: str) -> set[str]:
    """The modules a command has imported by its end."""
    script = (
        "import sys; from docmill.cli import main; main(sys.argv[1:]); print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=bare.environment,
        cwd=bare.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--help",),
        ("jobs", "submit", "--help"),
        ("batch", "--help"),
        ("prompts", "set", "--help"),
        ("worker", "--help"),
    ],
)
def test_help_imports_nothing_heavy(bare: Mill, arguments: tuple[str, ...]) -> None:
    assert imported_by(bare, *arguments).isdisjoint(HEAVY)


def test_the_version_needs_no_command_tree(bare: Mill) -> None:
    assert imported_by(bare, "--version").isdisjoint({*HEAVY, "cyclopts", "rich"})


def test_looking_at_jobs_imports_neither_worker_nor_migrations_nor_another_driver(mill: Mill) -> None:
    modules = imported_by(mill, "jobs", "list")
    assert modules.isdisjoint(
        {"alembic", "psycopg", "docmill.engine.worker", "docmill.engine.lane_a", "multiprocessing"}
    )


def test_checking_a_template_imports_no_database_library(mill: Mill) -> None:
    assert imported_by(mill, "templates", "validate", "plain.yaml").isdisjoint({"sqlalchemy", "psycopg", "alembic"})


def test_rendering_a_file_imports_no_database_library(bare: Mill) -> None:
    bare.write("draft.txt", "Hello.")
    assert imported_by(bare, "prompts", "render", "draft.txt").isdisjoint({"sqlalchemy", "psycopg", "alembic"})


def test_version_and_help_go_to_stdout(bare: Mill) -> None:
    version = bare.fresh("--version")
    assert (version.code, version.out, version.err) == (0, f"docmill {docmill.__version__}\n", "")
    assert bare("--version", "--json").data == {"version": docmill.__version__}
    help_text = bare("--help")
    assert help_text.code == 0
    assert help_text.err == ""
    for word in ("templates", "prompts", "jobs", "worker", "db", "doctor", "Examples:", "Exit codes: 0 done"):
        assert word in help_text.out


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself_within_80_columns(bare: Mill, command: tuple[str, ...]) -> None:
    answer = bare(*command, "--help")
    assert answer.code == 0
    assert answer.out.startswith(f"Usage: docmill {' '.join(command)}")
    assert max(len(line) for line in answer.out.splitlines()) <= 80
    if "Commands:" not in answer.out:
        assert "--json" in answer.out


def test_python_dash_m_is_the_same_command(bare: Mill) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "docmill", "--version"], env=bare.environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"docmill {docmill.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("jbos",), 'Unknown command "jbos". Did you mean "jobs"?'),
        (("jobs", "lits"), 'Did you mean "list"?'),
        (("--frobnicate",), "--frobnicate"),
        (("jobs", "list", "--frobnicate"), "Unknown option: --frobnicate. See `docmill jobs list --help`."),
        (("jobs", "list", "--limit", "many"), "--limit"),
        (("jobs", "list", "--limit", "0"), "--limit"),
        (("jobs", "list", "--status", "happy"), "--status"),
        (("jobs", "submit", "plain"), "ENTITY"),
        (("jobs", "submit", "plain", "document:1", "--priority", "high"), "--priority"),
        (("jobs", "show"), "JOB"),
        (("jobs", "watch"), "JOB"),
        (("templates", "validate"), "FILE"),
        (("templates", "import"), "--shipped NAME"),
        (("templates", "diff"), "NAME"),
        (("templates", "uses"), "--prompt"),
        (("prompts", "set", "a"), "as FILE (- for stdin) or with --text"),
        (("prompts", "set", "a", "a.txt", "--text", "a"), "as FILE (- for stdin) or with --text"),
        (("prompts", "set", "a b", "--text", "a"), "'a b' cannot be the name of a prompt"),
        (("prompts", "show", "a@b"), "'b' is not a version"),
        (("prompts", "diff", "a", "b"), "'b' is not a version"),
        (("prompts", "import"), "FILE"),
        (("prompts", "import", "-"), "docmill prompts set NAME -"),
        (("worker", "--pool", "ai"), "NAME=CAPACITY"),
        (("worker", "--pool", "ai=0"), "NAME=CAPACITY"),
        (("worker", "--pool", "ai=1", "--pool", "ai=2"), "twice"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_wrong_use_is_one_line_on_stderr_and_exit_code_2(bare: Mill, arguments: tuple[str, ...], says: str) -> None:
    answer = bare(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    assert says in answer.err


def test_with_json_an_error_is_an_object_with_a_code(bare: Mill) -> None:
    answer = bare("jobs", "list", "--frobnicate", "--json")
    assert answer.code == 2
    assert answer.out == ""
    assert answer.error["code"] == "wrong_use"
    assert "--frobnicate" in answer.error["message"]


def test_colour_only_for_terminals_that_want_it(mill: Mill) -> None:
    mill.submit("plain")
    assert "\x1b" not in mill("jobs", "list").out
    assert "\x1b" in terminal(mill, "jobs", "list")
    assert "\x1b[3" not in terminal(mill.having(NO_COLOR="1"), "jobs", "list")


def terminal(mill: Mill, *arguments: str) -> str:
    """What a command prints when stdout is a terminal."""
    master, slave = os.openpty()
    with os.fdopen(master, "rb", buffering=0) as screen:
        process = subprocess.Popen(
            [DOCMILL, *arguments],
            cwd=mill.folder,
            env=mill.environment | {"TERM": "xterm-256color"},
            stdin=subprocess.DEVNULL,
            stdout=slave,
            stderr=subprocess.DEVNULL,
        )
        os.close(slave)
        seen = b""
        try:
            while chunk := screen.read(4096):
                seen += chunk
        except OSError:
            pass  # EIO: the other end was closed.
        assert process.wait(PATIENCE) == 0
    return seen.decode()


def test_a_title_cannot_move_the_cursor_of_whoever_lists_it(mill: Mill) -> None:
    mill.submit("plain", "--title", "harmless\x1b[2Jgone")
    assert "\x1b[2J" not in mill("jobs", "list").out


def test_nobody_reading_is_no_reason_to_complain(mill: Mill) -> None:
    mill.submit("plain")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as nowhere:
        done = subprocess.run(
            [DOCMILL, "jobs", "list"], cwd=mill.folder, env=mill.environment, stdout=nowhere, stderr=subprocess.PIPE
        )
    assert done.returncode == 141
    assert done.stderr == b""


def test_ctrl_c_is_quiet(mill: Mill) -> None:
    job = mill.submit("plain")
    with mill.started("jobs", "watch", job) as watching:
        watching.says("no worker is alive")
        watching.signal(signal.SIGINT)
        answer = watching.end()
    assert answer.code == 130
    assert "Traceback" not in answer.err
    assert answer.out == ""


def test_a_port_that_is_taken_is_named(mill: Mill) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        answer = mill("serve", "--port", port)
    assert (answer.code, f"port {port}" in answer.err, "Another Docmill may be running" in answer.err) == (
        2,
        True,
        True,
    )
