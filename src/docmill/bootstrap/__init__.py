"""The only place where parts are wired together. Imports no edge. `meanings` says what settings mean to each part.

What only some commands need is imported where it is made: checking a template must not cost the import of a database
library, nor looking at jobs that of the worker.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from docmill.bootstrap.declarations import catalogue_of, load_registry, plugin_modules
from docmill.bootstrap.meanings import (
    askable,
    blob_links,
    children_of,
    document_work,
    drain_seconds,
    extraction_options,
    identity_provider,
    model_accesses,
    model_rules,
    open_blobs,
    originals_of,
    output_settings,
    retry_policy,
    review_reading,
    schema_overrides,
    upload_slots,
    webhook_rules,
)
from docmill.bootstrap.once import made_once
from docmill.bootstrap.revisions import SchemaOutdated, is_newer, outdated
from docmill.model.errors import DocmillError
from docmill.model.ids import DEFAULT_ORG
from docmill.model.people import Permission
from docmill.settings import Settings

if TYPE_CHECKING:
    from docmill.ai.gateway import Gateway
    from docmill.bootstrap.organisation import Organisation
    from docmill.db.database import Database
    from docmill.documents.blobs import Blobs
    from docmill.documents.links import Links
    from docmill.engine.bell import Bell
    from docmill.engine.children import Children
    from docmill.engine.store_pool import StorePool
    from docmill.engine.worker import Worker
    from docmill.model.people import Principal
    from docmill.people.oidc import IdentityProvider
    from docmill.plugin import Registry
    from docmill.services.analytics import Analytics
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
    from docmill.services.prompts import Prompts
    from docmill.services.review import Review
    from docmill.services.sessions import Sessions
    from docmill.services.templates import Templates
    from docmill.services.upload_slots import Slots
    from docmill.services.webhooks import Webhooks
    from docmill.steps.document_work import DocumentWork
    from docmill.templates.catalogue import Catalogue

__all__ = [
    "App",
    "HomeUnusable",
    "SchemaOutdated",
    "askable",
    "catalogue_of",
    "children_of",
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
        shared = ("registry", "blobs", "bell", "stores", "_organisations")
        view.__dict__.update({name: getattr(self, name) for name in shared})
        return view

    @made_once
    def registry(self) -> "Registry":
        """Built-in step types, entry points, and the modules named in the settings."""
        settings, originals = self.settings, originals_of(self)
        return load_registry(settings.plugins, settings.executors, settings.ai.providers, self.document_work, originals)

    @made_once
    def blobs(self) -> "Blobs":
        """Where bytes are kept."""
        return open_blobs(self.settings, lambda: self.links)

    @made_once
    def links(self) -> "Links":
        """Links to blobs. Their secret is read once: to sign and to check must not cost a look at the database."""
        return blob_links(self.database)

    @property
    def document_work(self) -> "DocumentWork":
        """What the steps of document processing work with."""
        return document_work(self.settings, lambda: self.blobs, self.database)

    @made_once
    def bell(self) -> "Bell":
        from docmill.engine.bell import open_bell

        return open_bell(self.database, self.settings.run_dir)

    @made_once
    def children(self) -> "Children":
        """Where the edges have pages rendered: files of strangers are opened in no process that matters."""
        return children_of(self.settings)

    @made_once
    def slots(self) -> "Slots":
        """Uploads by signed links."""
        return upload_slots(self.database)

    @made_once
    def stores(self) -> "StorePool":
        """Connections on which services commit what moves jobs; shared by the services of all organisations."""
        from docmill.engine.store import PlanSource
        from docmill.engine.store_pool import StorePool

        return StorePool(self.database, PlanSource())

    @made_once
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
        return self.for_org(self.org_id).documents

    @property
    def processing(self) -> "Processing":
        return self.for_org(self.org_id).processing

    @property
    def templates(self) -> "Templates":
        return self.for_org(self.org_id).templates

    @property
    def prompts(self) -> "Prompts":
        return self.for_org(self.org_id).prompts

    @property
    def jobs(self) -> "Jobs":
        return self.for_org(self.org_id).jobs

    @property
    def batches(self) -> "Batches":
        return self.for_org(self.org_id).batches

    @property
    def issues(self) -> "Issues":
        return self.for_org(self.org_id).issues

    @property
    def review(self) -> "Review":
        return self.for_org(self.org_id).review

    @property
    def catalogue(self) -> "Catalogue":
        return self.for_org(self.org_id).catalogue

    @made_once
    def callbacks(self) -> "Callbacks":
        """Where answers of outside executors come in."""
        from docmill.services.callbacks import Callbacks

        keys = {name: section.key for name, section in self.settings.executors.items()}
        return Callbacks(self.database, self.bell, keys, stores=self.stores)

    def jobs_for(self, principal: "Principal") -> "Jobs":
        """The jobs that somebody sees: all, or where jobs.visibility says so their own."""
        from docmill.services.jobs import Jobs

        seen_by = self.sees_as(principal)
        return Jobs(self.database, self.bell, principal.org_id, self.stores, seen_by=seen_by).by(principal)

    def sees_as(self, principal: "Principal") -> str | None:
        """By whom the jobs, batches and issues that somebody sees must be; None: by anybody."""
        own = self.settings.jobs.visibility == "own" and not principal.may(Permission.MEMBERS_MANAGE)
        return principal.id if own else None

    @made_once
    def organisations(self) -> "Organisations":
        from docmill.services.organisations import Organisations

        return Organisations(self.database)

    @property
    def people(self) -> "People":
        return self.for_org(self.org_id).people

    @property
    def keys(self) -> "Keys":
        return self.for_org(self.org_id).keys

    @property
    def audit(self) -> "Audit":
        return self.for_org(self.org_id).audit

    @made_once
    def identity_provider(self) -> "IdentityProvider | None":
        """Whose word counts at the door, besides passwords."""
        return identity_provider(self.settings)

    @made_once
    def sessions(self) -> "Sessions":
        """Signing in and out."""
        from docmill.people.passwords import Argon2Passwords
        from docmill.services.sessions import Sessions

        times = self.settings.sessions
        return Sessions(self.database, Argon2Passwords(), idle=times.idle, absolute=times.absolute)

    @made_once
    def door(self) -> "Door":
        """Who comes with what: an API key, or the token of a session."""
        from docmill.services.keys import Door, KeyService

        return Door(KeyService(self.database), self.sessions)

    @property
    def webhooks(self) -> "Webhooks":
        return self.for_org(self.org_id).webhooks

    @property
    def analytics(self) -> "Analytics":
        return self.for_org(self.org_id).analytics

    @property
    def model_use(self) -> "ModelUse":
        return self.for_org(self.org_id).model_use

    @made_once
    def models(self) -> "Gateway":
        """The way to models, under the limits of the settings."""
        from docmill.ai.gateway import Gateway
        from docmill.engine.failpoints import failpoint

        return Gateway(self.database, self.registry.providers, model_rules(self.settings), failpoint=failpoint)

    def worker(
        self, only: Mapping[str, int] | None = None, *, staying: bool = False, children: "Children | None" = None
    ) -> "Worker":
        """A worker with the pools of the settings; kinds not named there have their defaults.

        `only` (pool -> capacity) makes it serve just these, with this capacity. One that is `staying`, unlike one for a
        few documents, also makes what has been done findable. `children` that were started before are its own.
        Of one that is not, somebody waits for the end: what takes longer than a moment to finish is given back.
        """
        from docmill.engine.children import ChildSettings
        from docmill.engine.lease import LeaseSettings
        from docmill.engine.pools import PoolSettings
        from docmill.engine.worker import Worker, WorkerSettings, default_pools
        from docmill.prompts.store import resolve
        from docmill.services.chores import chores

        settings = self.settings
        pools = {pool.name: pool for pool in default_pools()}
        for name, section in settings.pools.items():
            pools[name] = PoolSettings(name=name, **section.model_dump())
        if only is not None:
            unnamed = PoolSettings(name="")
            pools = {
                name: replace(pools.get(name, unnamed), name=name, capacity=capacity) for name, capacity in only.items()
            }
        return Worker(
            self.database,
            self.registry,
            WorkerSettings(
                run_dir=settings.run_dir,
                pools=tuple(pools.values()),
                lease=LeaseSettings(**settings.lease.model_dump()),
                children=ChildSettings(**settings.children.model_dump(exclude_none=True)),
                drain_seconds=drain_seconds(settings, staying=staying),
                retention=settings.retention.jobs,
                chores=chores(
                    self.database,
                    lambda: self.blobs,
                    webhook_rules(settings),
                    idle=settings.sessions.idle,
                    staying=staying,
                ),
            ),
            resolve,
            models=self.models,
            children=children,
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
            schema.bring_to_head(connection)
        return schema.HEAD

    def close(self) -> None:
        if self.whole is not None:
            return
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
    raise outdated(app.database, revision)
