"""One organisation of an installation: its services, each made when it is first asked for."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from docmill.bootstrap.meanings import output_settings, retry_policy, review_reading

if TYPE_CHECKING:
    from docmill.bootstrap import App
    from docmill.services.analytics import Analytics
    from docmill.services.audit import Audit
    from docmill.services.batches import Batches
    from docmill.services.documents import Documents
    from docmill.services.exports import Exports
    from docmill.services.feed import Feed
    from docmill.services.issues import Issues
    from docmill.services.jobs import Jobs
    from docmill.services.keys import Keys
    from docmill.services.models import ModelUse
    from docmill.services.people import People
    from docmill.services.processing import Order, Processing
    from docmill.services.prompts import Prompts
    from docmill.services.replies import Replies
    from docmill.services.reprocessing import Reprocessing
    from docmill.services.rerunning import Reruns
    from docmill.services.review import Review
    from docmill.services.search import Search
    from docmill.services.templates import Templates
    from docmill.services.uploads import Uploads
    from docmill.services.webhooks import Webhooks
    from docmill.templates.catalogue import Catalogue


@dataclass(frozen=True)
class Organisation:
    """What the edges do for one organisation. Services see no rows of another."""

    app: "App"
    id: str

    @cached_property
    def documents(self) -> "Documents":
        from docmill.services.documents import Documents

        return Documents(self.app.database, lambda: self.app.blobs, self.id)

    @cached_property
    def processing(self) -> "Processing":
        """Documents in, by whole folders."""
        from docmill.services.outages import Vigil
        from docmill.services.processing import Processing

        app = self.app
        database, pause = app.database.scoped(self.id), app.settings.processing.circuit_breaker.recovery_timeout_seconds
        return Processing(
            app.database,
            lambda: app.blobs,
            self.documents,
            self.jobs,
            app.document_work.limits,
            self.id,
            in_flight=app.settings.processing.concurrency,
            vigil=lambda model: Vigil(database, model, open_seconds=pause),
        )

    @cached_property
    def uploads(self) -> "Uploads":
        """Documents in, one by one."""
        from docmill.services.uploads import Uploads

        app = self.app
        return Uploads(
            app.database,
            app.bell,
            lambda: app.blobs,
            self.documents,
            self._processing_template,
            app.stores,
            org_id=self.id,
            limit=app.document_work.limits.max_bytes,
            quota=app.settings.storage.quota_bytes,
        )

    @cached_property
    def reprocessing(self) -> "Reprocessing":
        """Documents once more, for another question."""
        from docmill.services.reprocessing import Reprocessing

        app = self.app
        return Reprocessing(
            app.database,
            app.bell,
            lambda: app.blobs,
            self._processing_template,
            app.stores,
            org_id=self.id,
            quota=app.settings.storage.quota_bytes,
        )

    def order(self, schema: str | None, model: str | None) -> "Order":
        """What an upload asks for, made definite; InvalidInput if there is no such schema or model.

        A schema is named, never a file: what lies on this machine is nobody's business outside of it.
        """
        from docmill.bootstrap.meanings import ordered

        return ordered(self.app, schema, model)

    def _processing_template(self) -> str:
        """The version that new documents are processed by."""
        from docmill.services.ordering import processing_template
        from docmill.services.processing import TEMPLATE

        policy = retry_policy(self.app.settings)
        return self._chosen(TEMPLATE, lambda: processing_template(self.templates, self.catalogue, policy).id)

    def _outputs_template(self) -> str:
        """The version that writes the outputs of what was reviewed."""
        from docmill.services.ordering import outputs_template
        from docmill.services.review_decisions import OUTPUTS

        return self._chosen(OUTPUTS, lambda: outputs_template(self.templates, self.catalogue).id)

    def _chosen(self, name: str, choose: Callable[[], str]) -> str:
        """The version to take. Compiled again only when somebody stored another."""
        from docmill.model.errors import NotFound

        try:
            newest = self.templates.find(name).id
        except NotFound:
            newest = ""
        if (name, newest) not in self._chosen_templates:
            chosen = choose()
            self._chosen_templates[name, newest] = self._chosen_templates[name, chosen] = chosen
        return self._chosen_templates[name, newest]

    @cached_property
    def _chosen_templates(self) -> dict[tuple[str, str], str]:
        return {}

    @cached_property
    def replies(self) -> "Replies":
        """Answers under idempotency keys."""
        from docmill.services.replies import Replies

        return Replies(self.app.database, self.id)

    @cached_property
    def exports(self) -> "Exports":
        """Results as one file."""
        from docmill.services.exports import Exports

        app = self.app
        return Exports(
            app.database.scoped(self.id),
            output_settings(app.settings),
            app.settings.home / "cache" / "outputs",
            lambda: app.blobs.workshop,
            self.documents,
            self.id,
        )

    @cached_property
    def search(self) -> "Search":
        """Documents by what stands in them."""
        from docmill.services.search import Search

        return Search(self.app.database, self.documents, self.id)

    @cached_property
    def reruns(self) -> "Reruns":
        """Steps once more, by other models."""
        from docmill.services.rerunning import Reruns

        return Reruns(self.app.database, self.jobs, self.templates, self.documents, self.id)

    def model(self, name: str) -> str:
        """The model that a name means, as `provider:model`; InvalidInput if nobody here can ask it."""
        from docmill.bootstrap.meanings import known_model

        return known_model(self.app, name)

    @cached_property
    def people(self) -> "People":
        """The members."""
        from docmill.services.people import People

        return People(self.app.database, self.id)

    @cached_property
    def keys(self) -> "Keys":
        from docmill.services.keys import Keys

        return Keys(self.app.database, self.id)

    @cached_property
    def audit(self) -> "Audit":
        from docmill.services.audit import Audit

        return Audit(self.app.database, self.id)

    @cached_property
    def feed(self) -> "Feed":
        """What happens, as it happens."""
        from docmill.services.feed import Feed

        return Feed(self.app.database, self.id)

    @cached_property
    def templates(self) -> "Templates":
        from docmill.services.templates import Templates

        return Templates(self.app.database, self.id)

    @cached_property
    def prompts(self) -> "Prompts":
        from docmill.services.prompts import Prompts

        return Prompts(self.app.database, self.id)

    @cached_property
    def jobs(self) -> "Jobs":
        from docmill.services.jobs import Jobs

        return Jobs(self.app.database, self.app.bell, self.id, self.app.stores)

    @cached_property
    def batches(self) -> "Batches":
        from docmill.services.batches import Batches

        return Batches(self.app.database, self.app.bell, self.id, self.app.stores)

    @cached_property
    def issues(self) -> "Issues":
        from docmill.services.issues import Issues

        return Issues(self.app.database, self.app.bell, self.id, self.app.stores)

    @cached_property
    def review(self) -> "Review":
        """What people look at and decide."""
        from docmill.people.audit import AuditTrail
        from docmill.services.review import Review
        from docmill.services.webhook_events import Announcing

        return Review(
            self.app.database,
            self.app.bell,
            review_reading(self.app.settings, lambda: self.app.blobs),
            self._outputs_template,
            org_id=self.id,
            claim_for=self.app.settings.review.claim_for,
            recorder=Announcing(AuditTrail()),
            stores=self.app.stores,
        )

    @cached_property
    def webhooks(self) -> "Webhooks":
        """Whom to tell what happens."""
        from docmill.services.webhooks import Webhooks

        private = self.app.settings.webhooks.private_addresses
        return Webhooks(self.app.database, self.id, private_addresses=private)

    @cached_property
    def analytics(self) -> "Analytics":
        """How the work goes."""
        from docmill.services.analytics import Analytics

        return Analytics(self.app.database, self.id)

    @cached_property
    def model_use(self) -> "ModelUse":
        """What models were asked and what it cost."""
        from docmill.services.models import ModelUse

        return ModelUse(self.app.database, self.id)

    @property
    def catalogue(self) -> "Catalogue":
        """What a template may name here, the prompts that are stored now included."""
        from docmill.bootstrap import catalogue_of

        return replace(catalogue_of(self.app.registry), prompts=self.prompts.known())
