"""Table definitions, one module per domain, all on one metadata."""

from docmill.db.tables.ai import ai_breakers, ai_buckets, ai_budgets, ai_calls, ai_responses
from docmill.db.tables.api import document_words, idempotency_keys
from docmill.db.tables.audit import audit_heads, audit_log
from docmill.db.tables.batches import batches
from docmill.db.tables.callbacks import callbacks, secrets
from docmill.db.tables.documents import document_runs, documents, leaving_blobs, processed_documents
from docmill.db.tables.issues import issues
from docmill.db.tables.jobs import job_events, job_steps, jobs, step_parts
from docmill.db.tables.metadata import metadata
from docmill.db.tables.people import (
    api_keys,
    invitations,
    memberships,
    organisations,
    sessions,
    sign_in_limits,
    users,
)
from docmill.db.tables.prompts import prompts
from docmill.db.tables.review import (
    extracted_fields,
    field_history,
    review_comments,
    review_items,
    review_settings,
    reviewers,
)
from docmill.db.tables.templates import template_steps, templates
from docmill.db.tables.webhooks import webhook_attempts, webhook_deliveries, webhook_endpoints
from docmill.db.tables.workers import workers

__all__ = [
    "ai_breakers",
    "ai_buckets",
    "ai_budgets",
    "ai_calls",
    "ai_responses",
    "api_keys",
    "audit_heads",
    "audit_log",
    "batches",
    "callbacks",
    "document_runs",
    "document_words",
    "documents",
    "extracted_fields",
    "field_history",
    "idempotency_keys",
    "invitations",
    "issues",
    "job_events",
    "job_steps",
    "jobs",
    "leaving_blobs",
    "memberships",
    "metadata",
    "organisations",
    "processed_documents",
    "prompts",
    "review_comments",
    "review_items",
    "review_settings",
    "reviewers",
    "secrets",
    "sessions",
    "sign_in_limits",
    "step_parts",
    "template_steps",
    "templates",
    "users",
    "webhook_attempts",
    "webhook_deliveries",
    "webhook_endpoints",
    "workers",
]
