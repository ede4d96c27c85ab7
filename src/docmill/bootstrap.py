"""The only place where parts are wired together. Imports no edge."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points

from docmill.db import schema
from docmill.db.database import Database
from docmill.engine.bell import Bell, open_bell
from docmill.engine.children import ChildSettings
from docmill.engine.lease import LeaseSettings
from docmill.engine.pools import PoolSettings
from docmill.engine.worker import Worker, WorkerSettings, default_pools
from docmill.model.errors import DocmillError
from docmill.plugin import PluginInvalid, Registry
from docmill.services.jobs import Jobs
from docmill.services.templates import Templates
from docmill.settings import Settings
from docmill.templates.catalogue import Catalogue, StepType

ENTRY_POINTS = "docmill.plugins"


class SchemaOutdated(DocmillError):
    """The database is not at the schema of this release."""

    code = "schema_outdated"


@dataclass(frozen=True)
class App:
    """An installation, opened."""

    settings: Settings
    database: Database

    @cached_property
    def registry(self) -> Registry:
        """Built-in step types, entry points, and the modules named in the settings."""
        return load_registry(self.settings.plugins)

    @cached_property
    def bell(self) -> Bell:
        return open_bell(self.database, self.settings.run_dir)

    @cached_property
    def templates(self) -> Templates:
        return Templates(self.database)

    @cached_property
    def jobs(self) -> Jobs:
        return Jobs(self.database, self.bell)

    @cached_property
    def catalogue(self) -> Catalogue:
        """What a template may name here."""
        processors: dict[str, set[str]] = {}
        for service, method in self.registry.processors:
            processors.setdefault(service, set()).add(method)
        return Catalogue(
            step_types={
                name: StepType(kind=spec.kind, recoveries=spec.recoveries) for name, spec in self.registry.steps.items()
            },
            processors={service: frozenset(methods) for service, methods in processors.items()},
        )

    def worker(self) -> Worker:
        """A worker with the pools of the settings; kinds not named there have their defaults."""
        settings = self.settings
        pools = {pool.name: pool for pool in default_pools()}
        for name, section in settings.pools.items():
            pools[name] = PoolSettings(name=name, **section.model_dump())
        children = settings.children.model_dump(exclude_none=True)
        return Worker(
            self.database,
            self.registry,
            WorkerSettings(
                run_dir=settings.run_dir,
                pools=tuple(pools.values()),
                lease=LeaseSettings(**settings.lease.model_dump()),
                children=ChildSettings(**children),
                drain_seconds=settings.drain_seconds,
            ),
        )

    def upgrade(self) -> str:
        """Bring the database to this release's schema."""
        with self.database.write() as connection:
            schema.upgrade(connection)
        return schema.HEAD

    def close(self) -> None:
        if "bell" in self.__dict__:
            self.bell.close()
        self.database.close()


@contextmanager
def open_app(settings: Settings, *, check_schema: bool = True) -> Iterator[App]:
    """Open the installation. A SQLite database is made or upgraded on the way; PostgreSQL is left to its owner."""
    settings.home.mkdir(parents=True, exist_ok=True)
    app = App(settings, Database(settings.url, patience=settings.lease.duration))
    try:
        if check_schema:
            _check_schema(app)
        yield app
    finally:
        app.close()


def _check_schema(app: App) -> None:
    with app.database.read() as connection:
        revision = schema.current_revision(connection)
    if revision == schema.HEAD:
        return
    if app.database.kind == "sqlite":
        app.upgrade()
        return
    found = f"is at revision {revision}" if revision else "has no Docmill schema"
    raise SchemaOutdated(
        f"The database {app.database} {found}, this release needs {schema.HEAD}. Run `docmill db upgrade`."
    )


def load_registry(modules: tuple[str, ...]) -> Registry:
    """All declared steps, processors and loaders."""
    registry = Registry()
    names = ["docmill.steps.finish", *(point.value for point in entry_points(group=ENTRY_POINTS)), *modules]
    for name in dict.fromkeys(names):
        try:
            module = import_module(name)
        except ImportError as error:
            raise PluginInvalid(
                f"The plug-in module {name!r} cannot be imported: {error}. Install it or correct `plugins`."
            ) from error
        registry.add_module(module)
    return registry
