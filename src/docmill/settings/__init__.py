"""Settings of an installation: `docmill.yaml` in the current folder (or DOCMILL_CONFIG), overridden by DOCMILL_*.

One module per part of Docmill that is set, `loading` for all of them together, `faults` for telling mistakes. Nothing
here knows what the values are used for: `docmill.bootstrap` hands them out.
"""

from docmill.settings.api import ApiSection
from docmill.settings.documents import (
    BreakerSection,
    DocumentSection,
    FieldSection,
    IdempotencySection,
    OutputSection,
    ProcessingSection,
    RetrySection,
    ReviewSection,
    ValidationSection,
)
from docmill.settings.engine import (
    ChildSection,
    ExecutorSection,
    JobSection,
    LeaseSection,
    PoolSection,
    RetentionSection,
    SessionSection,
)
from docmill.settings.loading import Settings, SettingsInvalid, config_file, load_settings, unknown_variables
from docmill.settings.models import ModelSection, PriceSection, ProviderSection
from docmill.settings.sign_in import OidcSection
from docmill.settings.storage import StorageSection
from docmill.settings.webhooks import WebhookSection

__all__ = [
    "ApiSection",
    "BreakerSection",
    "ChildSection",
    "DocumentSection",
    "ExecutorSection",
    "FieldSection",
    "IdempotencySection",
    "JobSection",
    "LeaseSection",
    "ModelSection",
    "OidcSection",
    "OutputSection",
    "PoolSection",
    "PriceSection",
    "ProcessingSection",
    "ProviderSection",
    "RetentionSection",
    "RetrySection",
    "ReviewSection",
    "SessionSection",
    "Settings",
    "SettingsInvalid",
    "StorageSection",
    "ValidationSection",
    "WebhookSection",
    "config_file",
    "load_settings",
    "unknown_variables",
]
