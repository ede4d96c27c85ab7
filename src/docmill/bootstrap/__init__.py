"""The only place where parts are wired together. Imports no edge. `meanings` says what settings mean to each part.

What only some commands need is imported where it is made: checking a template must not cost the import of a database
library, nor looking at jobs that of the worker.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from docmill.bootstrap.declarations import catalogue_of, load_registry, plugin_modules
from docmill.bootstrap.meanings import (
    askable,
    document_work,
    extraction_options,
    model_accesses,
    model_rules,
    open_blobs,
    output_settings,
    retry_policy,
    review_reading,
    schema_overrides,
)
from docmill.bootstrap.revisions import SchemaOutdated, is_newer, outdated
from docmill.model.errors import DocmillError
from docmill.model.ids import DEFAULT_ORG
from docmill.model.people import Permission
from docmill.settings import Settings

if TYPE_CHECKING:
    from docmill.ai.gateway import Gateway
    from docmill.db.database import Database
    from docmill.documents.blobs import Blobs
    from docmill.engine.bell import Bell
    from docmill.engine.worker import Worker
    from docmill.model.people import Principal
    from docmill.plugin import Registry
    from docmill.prompts.store import Prompts
    from docmill.services.audit import Audit
    from docmill.services.batches import Batches
    from docmill.services.callbacks import Callbacks
    from docmill.services.documents import Documents
    from docmill.services.issues import Issues
    from docmill.services.jobs import Jobs
    from docmill.services.keys import Door, Keys
    from docmill.services.models import ModelUse
    from docmill.services.organisations import Organisations
    from docmill.services.people import People
    from docmill.services.processing import Processing
    from docmill.services.review import Review
    from docmill.services.sessions import Sessions
    from docmill.services.templates import Templates
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


class HomeUnusable(DocmillError):
    """The folder for the installation's state cannot be used."""

    code = "home_unusable"


@dataclass(frozen=True)
class App:
    """An installation, opened."""

    settings: Settings
    database: "Database"
    org_id: str = DEFAULT_ORG
    """For whom its services act; sign-in, the door, callbacks and workers are everybody's."""
    whole: "App | None" = None
    """The installation that this is a view of."""

    def of(self, org_id: str) -> "App":
        """The same installation for another organisation: to be closed by itself, before the whole."""
        view = replace(self, org_id=org_id, whole=self)
        # What is dear to make and no organisation's own is shared.
        view.__dict__.update(registry=self.registry, blobs=self.blobs, bell=self.bell)
        return view

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
        return document_work(self.settings, lambda: self.blobs, self.database)

    @cached_property
    def documents(self) -> "Documents":
        from docmill.services.documents import Documents

        return Documents(self.database, lambda: self.blobs, self.org_id)

    @cached_property
    def processing(self) -> "Processing":
        """Documents in, by whole folders."""
        from docmill.services.processing import Processing

        limits = self.document_work.limits
        concurrency = self.settings.processing.concurrency
        return Processing(
            self.database,
            lambda: self.blobs,
            self.documents,
            self.jobs,
            limits,
            org_id=self.org_id,
            in_flight=concurrency,
        )

    @cached_property
    def bell(self) -> "Bell":
        from docmill.engine.bell import open_bell

        return open_bell(self.database, self.settings.run_dir)

    @cached_property
    def templates(self) -> "Templates":
        from docmill.services.templates import Templates

        return Templates(self.database, self.org_id)

    @cached_property
    def prompts(self) -> "Prompts":
        from docmill.prompts.store import Prompts

        return Prompts(self.database, self.org_id)

    @cached_property
    def jobs(self) -> "Jobs":
        from docmill.services.jobs import Jobs

        return Jobs(self.database, self.bell, self.org_id)

    @cached_property
    def callbacks(self) -> "Callbacks":
        """Where answers of outside executors come in."""
        from docmill.services.callbacks import Callbacks

        keys = {name: section.key for name, section in self.settings.executors.items()}
        return Callbacks(self.database, self.bell, keys)

    @cached_property
    def batches(self) -> "Batches":
        from docmill.services.batches import Batches

        return Batches(self.database, self.bell, self.org_id)

    @cached_property
    def issues(self) -> "Issues":
        from docmill.services.issues import Issues

        return Issues(self.database, self.bell, self.org_id)

    @cached_property
    def review(self) -> "Review":
        """What people look at and decide."""
        from docmill.services.ordering import outputs_template
        from docmill.services.review import Review

        return Review(
            self.database,
            self.bell,
            review_reading(self.settings, lambda: self.blobs),
            lambda: outputs_template(self.templates, self.catalogue).id,
            org_id=self.org_id,
            claim_for=self.settings.review.claim_for,
        )

    def jobs_for(self, principal: "Principal") -> "Jobs":
        """The jobs that somebody sees: all, or where jobs.visibility says so their own. For the caller to close."""
        from docmill.services.jobs import Jobs

        own = self.settings.jobs.visibility == "own" and not principal.may(Permission.MEMBERS_MANAGE)
        return Jobs(self.database, self.bell, principal.org_id, seen_by=principal.id if own else None)

    @cached_property
    def organisations(self) -> "Organisations":
        from docmill.services.organisations import Organisations

        return Organisations(self.database)

    @cached_property
    def people(self) -> "People":
        """The members of the organisation."""
        from docmill.services.people import People

        return People(self.database, self.org_id)

    @cached_property
    def keys(self) -> "Keys":
        from docmill.services.keys import Keys

        return Keys(self.database, self.org_id)

    @cached_property
    def audit(self) -> "Audit":
        from docmill.services.audit import Audit

        return Audit(self.database, self.org_id)

    @cached_property
    def sessions(self) -> "Sessions":
        """Signing in and out."""
        from docmill.people.passwords import Argon2Passwords
        from docmill.services.sessions import Sessions

        times = self.settings.sessions
        return Sessions(self.database, Argon2Passwords(), idle=times.idle, absolute=times.absolute)

    @cached_property
    def door(self) -> "Door":
        """Who comes with what: an API key, or the token of a session."""
        from docmill.services.keys import Door, KeyService

        return Door(KeyService(self.database), self.sessions)

    @cached_property
    def model_use(self) -> "ModelUse":
        """What models were asked and what it cost."""
        from docmill.services.models import ModelUse

        return ModelUse(self.database, self.org_id)

    @property
    def catalogue(self) -> "Catalogue":
        """What a template may name here, the prompts that are stored now included."""
        return replace(catalogue_of(self.registry), prompts=self.prompts.known())

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
        from docmill.services.people_chores import people_chores
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
                chores=(
                    *document_chores(self.database, lambda: self.blobs),
                    ReviewChores(self.database),
                    people_chores(self.database, idle=settings.sessions.idle),
                ),
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
            raise outdated(self.database, self.revision())
        with self.database.write() as connection:
            schema.upgrade(connection)
        return schema.HEAD

    def close(self) -> None:
        for name in ("models", "jobs", "callbacks", "batches", "issues", "review"):
            if name in self.__dict__:
                getattr(self, name).close()
        if self.whole is None:
            if "bell" in self.__dict__:
                self.bell.close()
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
    raise outdated(app.database, revision)
