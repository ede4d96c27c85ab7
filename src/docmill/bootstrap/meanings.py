"""What the settings mean to each part: limits, rules and places in the form in which those want them."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from docmill.bootstrap.clock import this_moment
from docmill.model.errors import DocmillError
from docmill.settings import ProviderSection, Settings

if TYPE_CHECKING:
    from docmill.ai.providers.access import Access
    from docmill.ai.rules import Rules, Target
    from docmill.bootstrap import App
    from docmill.db.database import Database
    from docmill.documents.blobs import Blobs
    from docmill.documents.handing_out import Originals
    from docmill.documents.links import Links
    from docmill.engine.children import Children
    from docmill.extraction.overrides import Overrides
    from docmill.outputs.places import OutputSettings
    from docmill.people.oidc import IdentityProvider
    from docmill.services.processing import Order
    from docmill.services.retries import RetryPolicy
    from docmill.services.review_base import Reading
    from docmill.services.upload_slots import Slots
    from docmill.services.webhook_sending import Sending
    from docmill.steps.document_work import DocumentWork


def open_blobs(settings: Settings, links: "Callable[[], Links]") -> "Blobs":
    """The blobs that the settings describe; those in a folder are linked to by these links."""
    section = settings.storage
    if section.kind == "s3":
        from docmill.documents.buckets import Bucket, BucketBlobs

        assert section.bucket is not None
        bucket = Bucket(
            name=section.bucket,
            prefix=section.prefix or "",
            endpoint=section.endpoint,
            region=section.region,
            access_key=None if section.access_key is None else section.access_key.get_secret_value(),
            secret_key=None if section.secret_key is None else section.secret_key.get_secret_value(),
        )
        return BucketBlobs(bucket, section.path or settings.home / "copies")
    from docmill.documents.blobs import FolderBlobs

    return FolderBlobs(section.path or settings.home / "blobs", links)


def blob_links(database: "Database") -> "Links":
    """The links to blobs of this installation."""

    from docmill.db.secrets import BLOB_LINKS, installation_secret
    from docmill.documents.links import Links

    return Links(installation_secret(database, BLOB_LINKS, now=this_moment()))


def originals_of(app: "App") -> "Originals":
    """The originals of this installation, as outside executors are given them."""
    from docmill.documents.handing_out import Originals

    return Originals(database=app.database, blobs=lambda: app.blobs, public_url=app.settings.api.public_url)


def upload_slots(database: "Database") -> "Slots":
    """The links by which documents are uploaded; their secret is read when it is first needed."""
    from functools import cache

    from docmill.db.secrets import UPLOAD_SLOTS, installation_secret
    from docmill.services.upload_slots import Slots

    return Slots(cache(lambda: installation_secret(database, UPLOAD_SLOTS, now=this_moment())))


def children_of(settings: Settings) -> "Children":
    """Children with the limits of the settings, none of them started: to be had before anything is opened."""
    from docmill.engine.children import Children, ChildSettings

    return Children(ChildSettings(**settings.children.model_dump(exclude_none=True)))


def document_work(
    settings: Settings, blobs: "Callable[[], Blobs]", database: "Database | None" = None
) -> "DocumentWork":
    """What the steps of document processing work with, by these settings; without a database nobody is asked."""

    from docmill.documents.limits import Limits
    from docmill.steps.document_work import DocumentWork, ReviewPolicy

    review = settings.review
    return DocumentWork(
        blobs=blobs,
        clock=this_moment,
        limits=Limits(**settings.documents.model_dump()),
        cache_ttl=settings.idempotency.cache_ttl,
        preserve_locked=settings.idempotency.preserve_fields,
        originals_expire_after=settings.storage.originals_expire_after,
        outputs=output_settings(settings),
        options=extraction_options(settings),
        takes=model_takes(settings.ai.providers),
        review=ReviewPolicy(
            of_duplicates=review.duplicates == "create",
            auto_approve=review.auto_approve,
            assign=review.assign,
            sla=review.sla,
        ),
        abreast=settings.children.count or os.cpu_count() or 1,
        earlier=None if database is None else partial(_earlier_paper, database),
    )


def _earlier_paper(
    database: "Database", org_id: str, against: Sequence[str], document_id: str
) -> tuple[str, str] | None:
    from docmill.documents.paper_claims import earlier

    with database.scoped(org_id).read() as connection:
        return earlier(connection, org_id=org_id, against=against, document_id=document_id)


def no_blobs() -> "Blobs":
    raise DocmillError("This was opened to look at templates, not to run them.")


def model_accesses(sections: Mapping[str, ProviderSection]) -> "dict[str, Access]":
    """What opens each provider of models, by the settings and the environment."""
    from docmill.ai.providers.access import accesses

    return accesses({name: section.opens for name, section in sections.items()})


def model_takes(sections: Mapping[str, ProviderSection]) -> dict[str, str]:
    """What the models of each provider in the settings can look at."""
    from docmill.ai.providers.access import Kind

    known = model_accesses(sections) if sections else {}
    usual = {name: "pictures" if access.kind is Kind.COMPATIBLE else "files" for name, access in known.items()}
    return {
        name: usual.get(name, "files") if section.takes == "auto" else section.takes
        for name, section in sections.items()
    }


def model_rules(settings: Settings) -> "Rules":
    """What the settings say about models, as the gateway wants it."""
    from docmill.ai.budget import Budget, Span
    from docmill.ai.prices import Price
    from docmill.ai.rules import ProviderRules, Rules

    section, breaker = settings.ai, settings.processing.circuit_breaker
    limits = {Span.MONTH: section.budget_month, Span.DAY: section.budget_day}
    return Rules(
        model=section.model,
        provider=section.provider,
        models=section.models,
        max_tokens=section.max_tokens,
        timeout=section.timeout,
        rate=section.rate,
        burst=section.burst,
        budgets=tuple(
            Budget(span=span, limit=int(limit * 1_000_000_000)) for span, limit in limits.items() if limit is not None
        ),
        failure_threshold=breaker.failure_threshold,
        recovery_seconds=breaker.recovery_timeout_seconds,
        cache=section.cache,
        cache_ttl=section.cache_ttl,
        prices={name: Price(input=price.input, output=price.output) for name, price in section.prices.items()},
        providers={
            name: ProviderRules(rate=part.rate, burst=part.burst, options=part.options)
            for name, part in section.providers.items()
        },
    )


def output_settings(settings: Settings) -> "OutputSettings":
    """Which output files are written, and where."""
    from docmill.outputs.places import OutputFormat, OutputSettings

    section = settings.output
    return OutputSettings(
        root=settings.output_root,
        formats=tuple(OutputFormat(name) for name in section.formats),
        json_path=section.json_path,
        parquet_path=section.parquet_path,
        json_compression=section.json_compression,
        parquet_compression=section.parquet_compression,
        atomic=section.atomic,
        schema_folders=settings.schema_folders,
    )


def schema_overrides(settings: Settings) -> "Overrides":
    """What the settings ask of fields and rules instead of what their schemas ask."""
    from docmill.extraction.overrides import FieldOverride, Overrides

    return Overrides(
        fields={
            schema: {name: FieldOverride(**part.model_dump()) for name, part in parts.items()}
            for schema, parts in settings.fields.items()
        },
        tolerance=settings.validation.tolerance,
        rules=settings.validation.rules,
    )


def retry_policy(settings: Settings) -> "RetryPolicy":
    """How often steps of document processing are tried again."""
    from docmill.services.retries import RetryPolicy

    return RetryPolicy(**settings.processing.retry.model_dump())


def review_reading(settings: Settings, blobs: "Callable[[], Blobs]") -> "Reading":
    """Where review finds extractions and schemas. A blob is what its key says, so what was read is kept."""
    import hashlib
    from functools import lru_cache

    from docmill.documents.blobs import BlobDamaged, BlobMissing
    from docmill.extraction.overrides import apply_overrides
    from docmill.extraction.result import Extraction
    from docmill.extraction.schema import FieldSchema, load_schema
    from docmill.extraction.schema_text import parse_schema
    from docmill.model.errors import NotFound
    from docmill.services.review_base import Reading
    from docmill.steps.document_children import unpack

    @lru_cache(maxsize=32)
    def extraction(key: str) -> Extraction | None:
        try:
            data = blobs().read(key)
        except BlobMissing:
            return None
        if hashlib.sha256(data).hexdigest() != key:
            raise BlobDamaged(
                f"What was read of the document is stored, and damaged ({key}). Process the file again, or restore it "
                "from a backup.",
                key=key,
            )
        return Extraction.from_json(unpack(data))

    @lru_cache(maxsize=64)
    def schema(name: str, file: str | None) -> FieldSchema | None:
        try:
            if file is None:
                found = load_schema(name, settings.schema_folders)
            else:
                text = blobs().read(file).decode("utf-8", errors="surrogateescape")
                found = parse_schema(text, source=name, name=name)
        except (NotFound, BlobMissing):
            return None
        return apply_overrides(found, schema_overrides(settings))

    return Reading(extraction=extraction, schema=schema)


def extraction_options(settings: Settings) -> dict[str, object]:
    """What the settings say about extraction, as it goes to children."""
    return {
        "schemas": [str(folder) for folder in settings.schema_folders],
        "overrides": schema_overrides(settings),
        "models": str(settings.home / "models"),
    }


def identity_provider(settings: Settings) -> "IdentityProvider | None":
    """Whose word counts at the door, if anybody's."""
    section = settings.oidc
    if section.issuer is None or section.client_id is None:
        return None
    from docmill.people.oidc import IdentityProvider

    secret = None if section.client_secret is None else section.client_secret.get_secret_value()
    return IdentityProvider(section.issuer, section.client_id, secret, scopes=section.scopes)


def webhook_rules(settings: Settings) -> "Sending":
    """How messages to other systems are sent."""
    from docmill.services.webhook_sending import Sending

    section = settings.webhooks
    return Sending(timeout=section.timeout, private=section.private_addresses, keep=section.keep)


_SOON = 5.0
"""Seconds that running steps may take to end where a person waits for it, who has pressed Ctrl-C."""


def drain_seconds(settings: Settings, *, staying: bool) -> float:
    """How long a worker may take to end; one that works for a command has somebody who waits for it."""
    return settings.drain_seconds if staying else min(settings.drain_seconds, _SOON)


def askable(settings: Settings, name: str) -> "Target":
    """The model that a name means; raises what would keep every step from asking it, before any is started."""
    from docmill.ai.providers.clients import check_ready

    target = model_rules(settings).resolve(name)
    access = model_accesses(settings.ai.providers).get(target.provider)
    if access is not None:
        check_ready(access)
    return target


def ordered(app: "App", schema: str | None, model: str | None) -> "Order":
    """What an upload asks for, made definite; InvalidInput if there is no such schema or model."""
    from docmill.extraction.models import fingerprint
    from docmill.extraction.schema import available
    from docmill.model.errors import InvalidInput
    from docmill.services.ordering import order_of

    settings = app.settings
    folders = settings.schema_folders
    if schema is not None and schema not in (known := available(folders)):
        raise InvalidInput(f"There is no schema {schema!r}. There are: {', '.join(known)}.", field="body.schema")
    return order_of(
        schema=schema,
        model=None if model is None else known_model(app, model),
        out=None,
        blobs=app.blobs,
        folders=folders,
        overrides=schema_overrides(settings),
        learned=fingerprint(settings.home / "models"),
    )


def known_model(app: "App", name: str) -> str:
    """The model that a name means, as `provider:model`; InvalidInput if nobody here can ask it."""
    from docmill.model.errors import InvalidInput

    try:
        target = askable(app.settings, name)
    except DocmillError as error:
        raise InvalidInput(error.message, field="body.model") from error
    if target.provider not in app.registry.providers:
        providers = ", ".join(sorted(app.registry.providers))
        raise InvalidInput(
            f"There is no provider {target.provider!r} for {name!r}. There are: {providers}.", field="body.model"
        )
    return str(target)
