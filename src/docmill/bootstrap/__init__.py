"""The only place where parts are wired together. Imports no edge. `meanings` says what settings mean to each part.

What only some commands need is imported where it is made: checking a template must not cost the import of a database
library, nor looking at jobs that of the worker.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from docmill.bootstrap.meanings import (
    askable,
    document_work,
    extraction_options,
    model_accesses,
    model_rules,
    no_blobs,
    open_blobs,
    output_settings,
    retry_policy,
    review_reading,
    schema_overrides,
)
from docmill.model.errors import DocmillError
from docmill.model.ids import DEFAULT_ORG
from docmill.settings import ExecutorSection, ProviderSection, Settings

if TYPE_CHECKING:
    from docmill.ai.gateway import Gateway
    from docmill.bootstrap.organisation import Organisation
    from docmill.db.database import Database
    from docmill.documents.blobs import Blobs
    from docmill.engine.bell import Bell
    from docmill.engine.children import Children
    from docmill.engine.store_pool import StorePool
    from docmill.engine.worker import Worker
    from docmill.plugin import Registry
    from docmill.prompts.store import Prompts
    from docmill.services.batches import Batches
    from docmill.services.callbacks import Callbacks
    from docmill.services.documents import Documents
    from docmill.services.issues import Issues
    from docmill.services.jobs import Jobs
    from docmill.services.models import ModelUse
    from docmill.services.processing import Processing
    from docmill.services.review import Review
    from docmill.services.templates import Templates
    from docmill.services.upload_slots import Slots
    from docmill.steps.document_work import DocumentWork
    from docmill.templates.catalogue import Catalogue

__all__ = [
    "App",
    "HomeUnusable",
    "SchemaOutdated",
    "askable",
    "catalogue_of",
    "document_work",
    "extraction_options",
    "is_newer",
    "load_registry",
    "model_accesses",
    "model_rules",
    "open_app",
    "open_blobs",
    "output_settings",
    "plugin_modules",
    "retry_policy",
    "review_reading",
    "schema_overrides",
]

ENTRY_POINTS = "docmill.plugins"
BUILT_IN = (
    "docmill.steps.check",
    "docmill.steps.finish",
    "docmill.steps.generate",
    "docmill.steps.human",
    "docmill.steps.undo",
    "docmill.ai.local",
)
"""Modules that declare what every installation has."""


class SchemaOutdated(DocmillError):
    """The database is not at the schema of this release."""

    code = "schema_outdated"


class HomeUnusable(DocmillError):
    """The folder for the installation's state cannot be used."""

    code = "home_unusable"


@dataclass(frozen=True)
class App:
    """An installation, opened."""

    settings: Settings
    database: "Database"

    @cached_property
    def registry(self) -> "Registry":
        """Built-in step types, entry points, and the modules named in the settings."""
        return load_registry(
            self.settings.plugins, self.settings.executors, self.settings.ai.providers, self.document_work
        )

    @cached_property
    def blobs(self) -> "Blobs":
        """Where bytes are kept."""
        return open_blobs(self.settings, self.database)

    @property
    def document_work(self) -> "DocumentWork":
        """What the steps of document processing work with."""
        return document_work(self.settings, lambda: self.blobs)

    @cached_property
    def bell(self) -> "Bell":
        from docmill.engine.bell import open_bell

        return open_bell(self.database, self.settings.run_dir)

    @cached_property
    def children(self) -> "Children":
        """Where the edges have pages rendered: files of strangers are opened in no process that matters."""
        from docmill.engine.children import Children, ChildSettings

        return Children(ChildSettings(**self.settings.children.model_dump(exclude_none=True)))

    @cached_property
    def slots(self) -> "Slots":
        """Uploads by signed links."""
        from datetime import UTC, datetime
        from functools import cache

        from docmill.db.secrets import UPLOAD_SLOTS, installation_secret
        from docmill.services.upload_slots import Slots

        return Slots(cache(lambda: installation_secret(self.database, UPLOAD_SLOTS, now=datetime.now(UTC))))

    @cached_property
    def stores(self) -> "StorePool":
        """Connections on which services commit what moves jobs; shared by the services of all organisations."""
        from docmill.engine.store import PlanSource
        from docmill.engine.store_pool import StorePool

        return StorePool(self.database, PlanSource())

    @cached_property
    def _organisations(self) -> "dict[str, Organisation]":
        return {}

    def for_org(self, org_id: str) -> "Organisation":
        """The services of one organisation."""
        from docmill.bootstrap.organisation import Organisation

        found = self._organisations.get(org_id)
        # Two threads may make it at the same moment: then the first one's stands.
        return found or self._organisations.setdefault(org_id, Organisation(self, org_id))

    @property
    def documents(self) -> "Documents":
        return self.for_org(DEFAULT_ORG).documents

    @property
    def processing(self) -> "Processing":
        return self.for_org(DEFAULT_ORG).processing

    @property
    def templates(self) -> "Templates":
        return self.for_org(DEFAULT_ORG).templates

    @property
    def prompts(self) -> "Prompts":
        return self.for_org(DEFAULT_ORG).prompts

    @property
    def jobs(self) -> "Jobs":
        return self.for_org(DEFAULT_ORG).jobs

    @property
    def batches(self) -> "Batches":
        return self.for_org(DEFAULT_ORG).batches

    @property
    def issues(self) -> "Issues":
        return self.for_org(DEFAULT_ORG).issues

    @property
    def review(self) -> "Review":
        return self.for_org(DEFAULT_ORG).review

    @property
    def catalogue(self) -> "Catalogue":
        return self.for_org(DEFAULT_ORG).catalogue

    @cached_property
    def callbacks(self) -> "Callbacks":
        """Where answers of outside executors come in."""
        from docmill.services.callbacks import Callbacks

        keys = {name: section.key for name, section in self.settings.executors.items()}
        return Callbacks(self.database, self.bell, keys, stores=self.stores)

    @cached_property
    def model_use(self) -> "ModelUse":
        """What models were asked and what it cost."""
        from docmill.services.models import ModelUse

        return ModelUse(self.database)

    @cached_property
    def models(self) -> "Gateway":
        """The way to models, under the limits of the settings."""
        from docmill.ai.gateway import Gateway
        from docmill.engine.failpoints import failpoint

        return Gateway(self.database, self.registry.providers, model_rules(self.settings), failpoint=failpoint)

    def worker(self, only: Mapping[str, int] | None = None) -> "Worker":
        """A worker with the pools of the settings; kinds not named there have their defaults.

        `only` (pool -> capacity) makes it serve just these, with this capacity.
        """
        from docmill.engine.children import ChildSettings
        from docmill.engine.lease import LeaseSettings
        from docmill.engine.pools import PoolSettings
        from docmill.engine.worker import Worker, WorkerSettings, default_pools
        from docmill.prompts.store import resolve
        from docmill.services.document_chores import document_chores
        from docmill.services.review_chores import ReviewChores

        settings = self.settings
        pools = {pool.name: pool for pool in default_pools()}
        for name, section in settings.pools.items():
            pools[name] = PoolSettings(name=name, **section.model_dump())
        if only is not None:
            unnamed = PoolSettings(name="")
            pools = {
                name: replace(pools.get(name, unnamed), name=name, capacity=capacity) for name, capacity in only.items()
            }
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
                retention=settings.retention.jobs,
                chores=(*document_chores(self.database, lambda: self.blobs), ReviewChores(self.database)),
            ),
            resolve,
            models=self.models,
        )

    def revision(self) -> str | None:
        """The schema the database is at; None for one that Docmill has never touched."""
        from docmill.db import schema

        path = self.database.path
        if path is not None and not path.exists():
            return None  # Asking SQLite would create the file.
        with self.database.read() as connection:
            return schema.current_revision(connection)

    def upgrade(self) -> str:
        """Bring the database to this release's schema."""
        from docmill.db import schema

        if is_newer(self.revision()):
            raise _outdated(self, self.revision())
        with self.database.write() as connection:
            schema.upgrade(connection)
        return schema.HEAD

    def close(self) -> None:
        for name in ("models", "children", "stores", "bell"):
            if name in self.__dict__:
                getattr(self, name).close()
        self.database.close()


@contextmanager
def open_app(settings: Settings, *, check_schema: bool = True) -> Iterator[App]:
    """Open the installation. A SQLite database is made or upgraded on the way; PostgreSQL is left to its owner."""
    from docmill.db.database import Database

    try:
        # What documents say, and the secrets that sign links, are nobody else's. A folder that is there stays as it is.
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise HomeUnusable(
            f"The folder {settings.home} cannot be created: {error.strerror}. Set DOCMILL_HOME to one you may write to."
        ) from error
    app = App(settings, Database(settings.url, patience=settings.lease.duration))
    try:
        if check_schema:
            _check_schema(app)
        yield app
    finally:
        app.close()


def _check_schema(app: App) -> None:
    from docmill.db import schema

    revision = app.revision()
    if revision == schema.HEAD:
        return
    if app.database.kind == "sqlite" and not is_newer(revision):
        app.upgrade()
        return
    raise _outdated(app, revision)


def is_newer(revision: str | None) -> bool:
    """Whether a newer release wrote this revision; they are numbered in order."""
    from docmill.db import schema

    return revision is not None and revision > schema.HEAD


def _outdated(app: App, revision: str | None) -> SchemaOutdated:
    from docmill.db import schema

    if is_newer(revision):
        return SchemaOutdated(
            f"The database {app.database} is at revision {revision}, made by a newer release; this one knows "
            f"{schema.HEAD}. Upgrade Docmill."
        )
    found = f"is at revision {revision}" if revision else "has no Docmill schema"
    return SchemaOutdated(
        f"The database {app.database} {found}, this release needs {schema.HEAD}. Run `docmill db upgrade`."
    )


def plugin_modules(modules: tuple[str, ...]) -> tuple[str, ...]:
    """Where steps, processors and loaders are declared: built in, by entry point, and in these modules."""
    from importlib.metadata import entry_points

    names = [*BUILT_IN, *(point.module for point in entry_points(group=ENTRY_POINTS)), *modules]
    return tuple(dict.fromkeys(names))


def load_registry(
    modules: tuple[str, ...],
    executors: Mapping[str, ExecutorSection] | None = None,
    providers: Mapping[str, ProviderSection] | None = None,
    work: "DocumentWork | None" = None,
) -> "Registry":
    """All declared steps, processors and loaders; external steps go to these executors, models to these providers."""
    from datetime import UTC, datetime
    from importlib import import_module

    from docmill.ai.providers.asking import provider_of
    from docmill.plugin import EntityLoader, PluginInvalid, Registry
    from docmill.steps.documents import document_declarations
    from docmill.steps.external import Executor, external_call

    registry = Registry()
    for name in plugin_modules(modules):
        try:
            module = import_module(name)
        except DocmillError:
            raise
        except (
            Exception
        ) as error:  # A plug-in is somebody else's code: whatever it raises, the person must hear its name.
            raise PluginInvalid(
                f"The plug-in module {name!r} cannot be imported: {type(error).__name__}: {error}. "
                "Install it or correct `plugins`.",
                module=name,
            ) from error
        registry.add_module(module)
    known = {
        name: Executor(url=section.url, key=section.key, timeout=section.timeout)
        for name, section in (executors or {}).items()
    }
    registry.add(external_call(known, lambda: datetime.now(UTC)))
    for spec in document_declarations(work or document_work(Settings.model_construct(home=Path()), no_blobs)):
        # A plug-in of an earlier release may have documents of its own.
        if not (isinstance(spec, EntityLoader) and spec.entity_type in registry.loaders):
            registry.add(spec)
    for access in model_accesses(providers or {}).values():
        # A plug-in may bring a provider of its own under one of the names.
        if access.name not in registry.providers:
            registry.add(provider_of(access))
    return registry


def catalogue_of(registry: "Registry") -> "Catalogue":
    """What a template may name, given these declarations."""
    from docmill.templates.catalogue import Catalogue, StepType

    processors: dict[str, set[str]] = {}
    for service, method in registry.processors:
        processors.setdefault(service, set()).add(method)
    return Catalogue(
        step_types={
            name: StepType(kind=spec.kind, recoveries=frozenset(spec.recoveries), takes_item="item" in spec.needs)
            for name, spec in registry.steps.items()
        },
        processors={service: frozenset(methods) for service, methods in processors.items()},
    )
