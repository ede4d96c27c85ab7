"""The rules of the house that no linter knows."""

import ast
import re
import tomllib
from collections.abc import Collection
from pathlib import Path

import grimp
import pytest

from docmill.db import tables

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


@pytest.mark.parametrize("module", [*MODULES, *TESTS], ids=place)
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


HOLD_TABLES = ("ai", "db", "documents", "engine", "people", "prompts", "review", "services", "steps/document_rows.py")
"""Who may build SQL (ADR 0057). All others get records, or ask these."""
LOOK_AT_TABLES = ("demo", "testing")
"""Who may look past all services at the rows themselves: it is their task to say what is really there."""

WRITERS = {
    "ai_breakers": {"ai/rows.py", "services/models.py"},
    "ai_buckets": {"ai/rows.py"},
    "ai_budgets": {"ai/rows.py"},
    "ai_calls": {"ai/rows.py"},
    "ai_responses": {"ai/responses.py"},
    "api_keys": {"services/keys.py"},
    "audit_heads": {"people/audit.py"},
    "audit_log": {"people/audit.py"},
    "batches": {"engine/sql/statements.py", "engine/pruning.py", "services/batches.py"},
    "callbacks": {"engine/sql/statements.py", "engine/pruning.py"},
    "document_runs": {"services/document_chores.py", "services/processing.py"},
    "document_words": {"services/search.py"},
    "documents": {
        *("documents/records.py", "steps/document_rows.py", "services/documents.py", "services/expiring.py"),
        *("services/rerunning.py", "services/review_decisions.py", "services/review_edits.py", "services/search.py"),
        *("services/discarding.py", "services/withdrawing.py"),
    },
    "extracted_fields": {"review/rows.py", "services/review_edits.py"},
    "field_history": {"services/review_edits.py"},
    "idempotency_keys": {"services/replies.py"},
    "invitations": {
        *("services/invitations.py", "services/people.py", "services/people_chores.py", "services/sessions.py"),
    },
    "issues": {"engine/sql/statements.py", "engine/pruning.py", "services/issues.py", "services/resolving.py"},
    "job_events": {"engine/sql/postgres.py", "engine/sql/sqlite.py", "engine/pruning.py"},
    "job_steps": {"engine/sql/postgres.py", "engine/sql/sqlite.py", "engine/sql/statements.py", "engine/pruning.py"},
    # Not the engine's alone: which model another run is to ask is noted in the metadata of a job that has ended.
    "jobs": {"engine/sql/postgres.py", "engine/sql/sqlite.py", "engine/pruning.py", "services/noting.py"},
    "leaving_blobs": {"services/expiring.py", "services/uploads.py"},
    "memberships": {"services/organisations.py", "services/people.py"},
    "organisations": {"services/organisations.py"},
    "processed_documents": {
        *(
            "documents/paper_claims.py",
            "services/discarding.py",
            "services/document_chores.py",
            "steps/document_rows.py",
        ),
    },
    "prompts": {"prompts/store.py"},
    "review_comments": {"services/review.py"},
    "review_items": {
        *("review/discharging.py", "review/queue.py", "review/rows.py", "review/superseding.py"),
        "services/review_base.py",
    },
    "review_settings": {"services/review_slas.py"},
    "reviewers": {"review/assignment.py", "review/discharging.py", "services/people.py", "services/review_roster.py"},
    "secrets": {"db/secrets.py"},
    "sessions": {"services/people.py", "services/people_chores.py", "services/sessions.py"},
    "sign_in_limits": {"people/limits.py", "services/people_chores.py"},
    "step_parts": {"engine/sql/postgres.py", "engine/sql/sqlite.py", "engine/sql/statements.py", "engine/pruning.py"},
    "template_steps": {"services/templates.py"},
    "templates": {"engine/sql/statements.py", "services/templates.py"},
    "users": {"services/organisations.py", "services/sessions.py"},
    "webhook_attempts": {"services/webhook_sending.py"},
    "webhook_deliveries": {
        *("services/webhook_events.py", "services/webhook_sending.py", "services/webhooks.py"),
    },
    "webhook_endpoints": {
        *("services/webhook_events.py", "services/webhook_sending.py", "services/webhooks.py"),
    },
    "workers": {"engine/lease.py", "engine/sweeper.py"},
}
"""Which modules change the rows of a table: where to look for every way a row can come to be as it is."""


def tables_of(node: ast.AST, module: ast.Module) -> list[str]:
    """Which tables an expression names: one by its name, or those that a loop goes through."""
    if not isinstance(node, ast.Name):
        return []
    if node.id in WRITERS:
        return [node.id]
    loops = [loop for loop in ast.walk(module) if isinstance(loop, ast.For)]
    through = [loop.iter for loop in loops if isinstance(loop.target, ast.Name) and loop.target.id == node.id]
    named = {each.id for names in through for each in ast.walk(names) if isinstance(each, ast.Name)}
    return sorted(named & set(WRITERS))


def writes(module: ast.Module) -> set[str]:
    """The tables that a module changes, in SQLAlchemy or in SQL."""
    found = set()
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Name(id="insert" | "update" | "delete"), args=[table, *_]):
                found |= set(tables_of(table, module))
            case ast.Call(func=ast.Attribute(attr="insert" | "update" | "delete", value=table), args=args):
                found |= {name for each in (table, *args[:1]) for name in tables_of(each, module)}
            case ast.Call(func=ast.Name(id="insert_into"), args=[_, table]):
                found |= set(tables_of(table, module))
            case ast.Constant(value=str(text)):
                found |= {BY_SQL_NAME[name] for name in SQL_WRITE.findall(text) if name in BY_SQL_NAME}
    return found


SQL_WRITE = re.compile(r"\b(?:insert into|update|delete from)\s+(\w+)", re.IGNORECASE)
BY_SQL_NAME = {getattr(tables, name).name: name for name in WRITERS}


def test_only_the_stores_of_a_domain_build_sql_on_tables() -> None:
    graph = grimp.build_graph("docmill", include_external_packages=True, cache_dir=None)
    reaching = {
        importer.removeprefix("docmill.").replace(".", "/")
        for module in graph.modules
        if module == "sqlalchemy" or module.startswith("docmill.db.tables")
        for importer in graph.find_modules_that_directly_import(module)
    }
    allowed = tuple(place.removesuffix(".py") for place in (*HOLD_TABLES, *LOOK_AT_TABLES))
    others = sorted(each for each in reaching if not each.startswith(allowed))
    assert not others, f"these know tables or SQL; let a service answer with records (ADR 0057): {others}"


def test_every_table_has_its_writers() -> None:
    every = {name for name in tables.__all__ if name != "metadata"}
    assert set(WRITERS) == every, "WRITERS names every table, and no other"


def test_a_table_is_written_by_the_modules_named_for_it() -> None:
    # What tests put there by hand, and what an upgrade does to every row, is no use of the product.
    ours = {str(path.relative_to(SOURCE)): path for path in MODULES}
    ours = {name: path for name, path in ours.items() if not name.startswith(("testing/", "db/migrations/"))}
    unnamed = [
        f"{name}: {table}" for name, path in ours.items() for table in writes(tree(path)) if name not in WRITERS[table]
    ]
    assert not unnamed, f"have these written by one of WRITERS, or name the module there: {unnamed}"


def test_the_writers_of_a_table_know_it() -> None:
    strangers = [
        f"{writer}: {table}"
        for table, writers in WRITERS.items()
        for writer in writers
        if not re.search(rf"\b({table}|{getattr(tables, table).name})\b", (SOURCE / writer).read_text())
    ]
    assert not strangers, f"these are named in WRITERS and do not know the table: {strangers}"


@pytest.mark.parametrize(
    "text",
    [
        *("update(jobs).where()", "insert(jobs)", "delete(jobs)", "jobs.insert()", "postgresql.insert(jobs)"),
        *("insert_into(connection, jobs)", "for table in (jobs, issues):\n    delete(table)"),
        *("text('insert into processing_jobs (id)')", "text('UPDATE  processing_jobs set')"),
    ],
)
def test_the_search_for_writes_finds_them(text: str) -> None:
    assert "jobs" in writes(ast.parse(text))


def rows_shown(service: ast.AST) -> list[str]:
    """Public functions and methods that take or return a row."""
    body = [service] if isinstance(service, ast.FunctionDef) else getattr(service, "body", [])
    return [
        each.name
        for each in body
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")
        for hint in [*(arg.annotation for arg in (*each.args.args, *each.args.kwonlyargs)), each.returns]
        if hint is not None and re.search(r"\b(Row|RowMapping)\b", ast.unparse(hint))
    ]


def test_rows_become_records_before_they_leave_the_services() -> None:
    edges = [path for path in MODULES if path.relative_to(SOURCE).parts[0] in {"api", "bootstrap", "cli", "workers"}]
    asked = {
        (node.module, name.name)
        for path in edges
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("docmill.services.")
        for name in node.names
    }
    assert asked
    shown = [
        f"{module}.{name}: {row}"
        for module, name in sorted(asked)
        for node in tree(SOURCE / "services" / f"{module.rpartition('.')[2]}.py").body
        if getattr(node, "name", None) == name
        for row in rows_shown(node)
    ]
    assert not shown, f"edges would see rows of the database: {shown}"


def test_the_search_for_rows_finds_them() -> None:
    text = "class Jobs:\n    def get(self) -> Row[Any] | None: ...\n    def _row(self) -> Row[Any]: ..."
    assert rows_shown(ast.parse(text).body[0]) == ["get"]


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
