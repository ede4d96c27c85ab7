"""Table definitions, one module per domain, all on one metadata."""

from docmill.db.tables.jobs import job_events, job_steps, jobs, step_parts
from docmill.db.tables.metadata import metadata
from docmill.db.tables.templates import templates
from docmill.db.tables.workers import workers

__all__ = ["job_events", "job_steps", "jobs", "metadata", "step_parts", "templates", "workers"]
