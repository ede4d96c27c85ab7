"""The rules of the house that no linter knows."""

import ast
import re
import tomllib
from collections.abc import Collection
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "docmill"
MODULES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

LONGEST = 400
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "managers"}

PURE = (
    *("docmill.engine.decide", "docmill.engine.retry", "docmill.engine.state", "docmill.model", "docmill.templates"),
    *("docmill.prompts.difference", "docmill.prompts.files", "docmill.prompts.substitution"),
)
IMPURE = ("asyncio", "docmill.db", "psycopg", "sqlalchemy", "sqlite3")


def place(path: Path) -> str:
    """A path as a reader of the report wants it."""
    return str(path.relative_to(ROOT))


def tree(path: Path) -> ast.Module:
    """The parsed module."""
    return ast.parse(path.read_text(), filename=str(path))


@pytest.mark.parametrize("module", MODULES, ids=place)
def test_a_long_module_says_why_it_is_long(module: Path) -> None:
    lines = len(module.read_text().splitlines())
    opening = (ast.get_docstring(tree(module)) or "").splitlines()[:5]
    assert lines <= LONGEST or "Long because" in "\n".join(opening), (
        f"{place(module)} has {lines} lines (limit {LONGEST}): split it, or begin its docstring with 'Long because ...'"
    )


@pytest.mark.parametrize("module", MODULES, ids=place)
def test_every_module_opens_with_a_docstring(module: Path) -> None:
    assert ast.get_docstring(tree(module)), f"{place(module)} does not say what lives in it"


def test_every_directory_with_modules_is_a_package() -> None:
    # `migrations/versions` and the like are loaded by path, so only directories reached by import count.
    bare = {path.parent for path in MODULES if not (path.parent / "__init__.py").exists()}
    bare = {path for path in bare if "migrations" not in path.parts}
    assert not bare, f"no __init__.py (with a docstring: what lives here, what may not) in {sorted(map(place, bare))}"


def test_names_say_what_lives_in_a_module() -> None:
    vague = [place(path) for path in MODULES if {path.stem.strip("_"), path.parent.name} & VAGUE_NAMES]
    assert not vague, f"name these after what they hold: {vague}"


def sleeps(module: ast.Module, clocks: Collection[str] = ("time",)) -> list[int]:
    """Lines that sleep on the clock: `time.sleep(...)`, or `sleep` taken from `time`.

    To let others go first is not to sleep: `asyncio.sleep(0)`.
    """
    lines = []
    yields = set()
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="asyncio"), attr="sleep"), args=[ast.Constant(value=0)]):
                yields.add(node.func)
            case ast.Attribute(value=ast.Name(id=name), attr="sleep") if name in clocks and node not in yields:
                lines.append(node.lineno)
            case ast.ImportFrom(module=name, names=names) if name in clocks and any(n.name == "sleep" for n in names):
                lines.append(node.lineno)
    return lines


@pytest.mark.parametrize("module", [*MODULES, *TESTS], ids=place)
def test_nothing_sleeps(module: Path) -> None:
    found = sleeps(tree(module))
    assert not found, f"{place(module)} sleeps in lines {found}: wait on an event, or use docmill.testing.waiting.until"


@pytest.mark.parametrize("module", TESTS, ids=place)
def test_no_test_sleeps_on_an_event_loop(module: Path) -> None:
    found = sleeps(tree(module), ("asyncio",))
    assert not found, f"{place(module)} sleeps in lines {found}: wait on the event, or use waiting.until_true"


@pytest.mark.parametrize("clock", ["time", "asyncio"])
@pytest.mark.parametrize("text", ["import {0}\n{0}.sleep(1)", "from {0} import sleep", "wait = {0}.sleep"])
def test_the_search_for_sleep_finds_it(clock: str, text: str) -> None:
    assert sleeps(ast.parse(text.format(clock)), (clock,))


def test_letting_others_go_first_is_not_sleeping() -> None:
    assert not sleeps(ast.parse("async def wait() -> None:\n    await asyncio.sleep(0)"), ("time", "asyncio"))


CLOCKS = {
    "bootstrap/clock.py": "where commands, requests and wiring take the time",
    "db/clock.py": "asks the database; SQLite has no other time than the machine's",
    "ai/clock.py": "asks the database for this very moment, not that of its transaction; on SQLite the machine",
    "engine/sql/postgres.py": "the moment of a transaction is the database's, asked for with its first statement",
    "engine/sql/sqlite.py": "the moment of a transaction; SQLite has no other time than the machine's",
    "engine/lane_a.py": "knows the database's time without asking: the machine's, and how far apart they are",
    "model/ids.py": "an id of RFC 9562 holds the time it was made at; nothing is decided by it",
    "outputs/files.py": "compares with the time that the file system of this machine gave a file left behind",
    "review/queue.py": "the moment and whether anything is due are one way to the server instead of two",
}
"""Who looks at a clock, and why it is not told the time. Seconds that pass (`monotonic`) are not a time of day."""


def clocks(module: ast.Module) -> list[int]:
    """Lines that ask what time it is, in Python or in SQL."""
    lines = []
    for node in ast.walk(module):
        match node:
            case ast.Attribute(value=ast.Name(id="datetime" | "date"), attr="now" | "utcnow" | "today"):
                lines.append(node.lineno)
            case ast.Attribute(value=ast.Attribute(attr="datetime" | "date"), attr="now" | "utcnow" | "today"):
                lines.append(node.lineno)
            case ast.Attribute(value=ast.Name(id="time"), attr="time" | "time_ns" | "localtime" | "gmtime"):
                lines.append(node.lineno)
            case ast.ImportFrom(module="time", names=names) if {name.name for name in names} & {"time", "time_ns"}:
                lines.append(node.lineno)
            case ast.Attribute(value=ast.Name(id="func"), attr="now" | "current_timestamp" | "clock_timestamp"):
                lines.append(node.lineno)
            case ast.Constant(value=str(text)) if SQL_CLOCK.search(text):
                lines.append(node.lineno)
    return lines


SQL_CLOCK = re.compile(r"\b(now|clock_timestamp|statement_timestamp)\(\)|\bcurrent_timestamp\b|\('now'", re.IGNORECASE)


@pytest.mark.parametrize("module", MODULES, ids=place)
def test_now_is_a_parameter(module: Path) -> None:
    found = clocks(tree(module))
    known = str(module.relative_to(SOURCE)) in CLOCKS
    assert bool(found) == known, (
        f"{place(module)} looks at a clock in lines {found}: take `now` as a parameter"
        if found
        else f"{place(module)} no longer looks at a clock: take it from CLOCKS"
    )


@pytest.mark.parametrize(
    "text",
    [
        *("datetime.now(UTC)", "datetime.datetime.now()", "datetime.utcnow()", "date.today()", "f = datetime.now"),
        *("time.time()", "from time import time", "time.time_ns()", "func.now()", "text('select NOW()')"),
        *("text('current_timestamp')", "text('select clock_timestamp()')", "text(\"datetime('now')\")"),
    ],
)
def test_the_search_for_clocks_finds_them(text: str) -> None:
    assert clocks(ast.parse(text))


def test_pure_modules_reach_no_database_driver_or_event_loop() -> None:
    graph = grimp.build_graph("docmill", include_external_packages=True, cache_dir=None)
    chains = [
        chain
        for pure in PURE
        for impure in IMPURE
        if {pure, impure} <= graph.modules
        for chain in graph.find_shortest_chains(pure, impure)
    ]
    assert not chains, "\n".join(" -> ".join(chain) for chain in chains)


def test_the_lock_file_names_every_dependency_and_no_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked_for = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    asked_for += [extra for extras in project["project"].get("optional-dependencies", {}).values() for extra in extras]
    wanted = {re.split(r"[^\w.-]", entry)[0].lower().replace("_", "-") for entry in asked_for}
    lock = (ROOT / "requirements.lock").read_text()
    wanted.discard("docmill")  # The extra that is all the others.
    locked = set(re.findall(r"^([a-z0-9.-]+)==", lock, flags=re.MULTILINE))
    wanted -= {project["project"]["name"]}  # The extra of all extras names itself.
    assert wanted <= locked, f"run `make lock`: {sorted(wanted - locked)} not locked"
    assert "://" not in lock, "the lock file names a host: make it with `make lock`"
