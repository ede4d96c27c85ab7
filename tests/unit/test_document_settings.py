"""What is set about documents reaches whoever does the work, and what makes no sense is refused with its remedy."""

from dataclasses import asdict
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from docmill.bootstrap import (
    document_work,
    extraction_options,
    model_rules,
    output_settings,
    retry_policy,
    schema_overrides,
)
from docmill.documents.limits import Limits
from docmill.outputs.places import OutputFormat
from docmill.settings import DocumentSection, Settings, SettingsInvalid, load_settings
from docmill.settings.origins import MASK, Origin, settings_now


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without the developer's own settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCMILL_HOME", str(tmp_path / "home"))
    return tmp_path


def loaded(folder: Path, text: str) -> Settings:
    (folder / "docmill.yaml").write_text(text)
    return load_settings()


MISTAKES = {
    "output: {json_path: '../{id}.json'}": "output.json_path: '../{id}.json' must be a path below output.root",
    "output: {json_path: '/srv/{id}.json'}": "output.json_path: '/srv/{id}.json' must be a path below output.root",
    "output: {parquet_path: 'a/{yyyy}.parquet'}": "must hold {id}, or documents would overwrite each other's files",
    "output: {parquet_path: 'a/{name}{id}'}": "may hold {id}, {org}, {yyyy}, {mm}, {dd} and no other braces",
    "output: {parquet_path: 'a/{id'}": "may hold {id}, {org}, {yyyy}, {mm}, {dd} and no other braces",
    "output: {parquet_path: '*/{id}'}": "must not hold *, ? or brackets",
    "output: {json_path: 'x/{id}', parquet_path: 'x/{id}'}": "json_path and parquet_path are the same",
    "output: {formats: [xml]}": "output.formats.0: 'xml' is not known here; write 'json' or 'parquet'.",
    "output: {parquet_compression: lz5}": "write 'none', 'gzip', 'snappy' or 'zstd'.",
    "idempotency: {hash_algorithm: md5}": "idempotency.hash_algorithm: 'md5' is not known here; write 'sha256'.",
    "idempotency: {cache_ttl: soon}": "idempotency.cache_ttl: 'soon' is not a length of time such as 90d or 12h.",
    "processing: {retry: {max_retries: -1}}": "processing.retry.max_retries: -1 is out of range; write at least 0.",
    "processing: {circuit_braker: {}}": "there is no such setting. Did you mean processing.circuit_breaker?",
    "fields: {invoice: {total: {treshold: 1}}}": "Did you mean fields.invoice.total.threshold?",
    "fields: {invoice: {total: {threshold: 1.5}}}": "total.threshold: 1.5 is out of range; write at most 1",
    "fields: {invoice: {total: {minimum: 5, maximum: 4}}}": "the minimum (5) is above the maximum (4)",
    "validation: {tolerance: much}": "validation.tolerance: 'much' is not a number.",
    "documents: {max_bytes: 0}": "documents.max_bytes: 0 is out of range; write at least 1.",
    "review: {duplicates: drop}": "review.duplicates: 'drop' is not known here; write 'link' or 'create'.",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_told_with_its_place_and_remedy(alone: Path, text: str) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        loaded(alone, text)
    assert MISTAKES[text] in caught.value.message


@pytest.mark.parametrize(("text", "told"), [("- a", "a list"), ("just text", "'just text'"), ("1: 2", "1 is no name")])
def test_a_file_that_is_no_mapping_is_told_so(alone: Path, text: str, told: str) -> None:
    with pytest.raises(SettingsInvalid, match="cannot be read as a YAML mapping") as caught:
        loaded(alone, text)
    assert told in caught.value.message


def test_an_empty_file_sets_nothing(alone: Path) -> None:
    assert loaded(alone, "# nothing yet\n") == load_settings()


def test_the_limits_of_documents_are_those_of_the_reader() -> None:
    assert DocumentSection().model_dump() == asdict(Limits())


def test_what_is_set_reaches_the_steps(alone: Path) -> None:
    settings = loaded(
        alone,
        """
documents: {max_pages: 3}
idempotency: {cache_ttl: 30d, preserve_fields: false}
schemas: [mine]
output: {root: elsewhere, formats: [parquet], parquet_compression: zstd, atomic: false}
processing:
  retry: {max_retries: 1, base_delay_seconds: 2}
  circuit_breaker: {failure_threshold: 2, recovery_timeout_seconds: 9}
fields: {invoice: {total: {threshold: 0.95, required: false}}}
validation: {tolerance: 0.5, rules: {lines_add_up: false}}
""",
    )
    work = document_work(settings, lambda: pytest.fail("nothing is opened"))
    assert work.limits.max_pages == 3
    assert (work.cache_ttl, work.preserve_locked) == (timedelta(days=30), False)
    outputs = output_settings(settings)
    assert work.outputs == outputs
    assert (outputs.root, outputs.formats, outputs.atomic) == (Path("elsewhere"), (OutputFormat.PARQUET,), False)
    assert outputs.schema_folders == (Path("mine"), alone / "home" / "schemas")
    assert extraction_options(settings)["schemas"] == ["mine", str(alone / "home" / "schemas")]
    rules = model_rules(settings)
    assert (rules.failure_threshold, rules.recovery_seconds) == (2, 9.0)
    assert (retry_policy(settings).max_retries, retry_policy(settings).base_delay_seconds) == (1, 2.0)
    overrides = schema_overrides(settings)
    assert overrides.fields["invoice"]["total"].given() == {"threshold": 0.95, "required": False}
    assert (overrides.tolerance, overrides.rules) == (Decimal("0.5"), {"lines_add_up": False})


def test_everything_can_be_set_by_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        "FIELDS__INVOICE__TOTAL__THRESHOLD": "0.9",
        "FIELDS__INVOICE__CURRENCY__ENUM": "EUR,USD",
        "OUTPUT__FORMATS": "json",
        "SCHEMAS": "one, two",
        "PROCESSING__RETRY__MAX_RETRIES": "7",
        "VALIDATION__RULES": '{"lines_add_up": false}',
        "IDEMPOTENCY__CACHE_TTL": "12h",
    }
    for name, value in variables.items():
        monkeypatch.setenv(f"DOCMILL_{name}", value)
    settings = load_settings()
    assert settings.fields["invoice"]["total"].threshold == 0.9
    assert settings.fields["invoice"]["currency"].enum == ("EUR", "USD")
    assert settings.output.formats == ("json",)
    assert settings.schemas == (Path("one"), Path("two"))
    assert settings.processing.retry.max_retries == 7
    assert settings.validation.rules == {"lines_add_up": False}
    assert settings.idempotency.cache_ttl == timedelta(hours=12)


def test_it_can_be_seen_where_each_value_comes_from(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMILL_LEASE__DURATION", "50")
    monkeypatch.setenv("DOCMILL_AI__PROVIDERS__OPENAI__KEY", "sk-very-secret")
    settings = loaded(
        alone,
        "lease: {duration: 40, heartbeat: 5}\ndatabase_url: 'postgresql://me:hidden@db/x'\n"
        "fields: {invoice: {total: {threshold: 0.9}}}",
    )
    found = {one.name: one for one in settings_now(settings)}
    assert (found["lease.duration"].value, found["lease.duration"].origin) == (50.0, Origin.ENVIRONMENT)
    assert (found["lease.heartbeat"].value, found["lease.heartbeat"].origin) == (5.0, Origin.FILE)
    assert (found["lease.sweep"].value, found["lease.sweep"].origin) == (1.0, Origin.DEFAULT)
    assert found["fields.invoice.total.threshold"].origin is Origin.FILE
    assert found["database_url"].value == f"postgresql://me:{MASK}@db/x"
    assert found["ai.providers.openai.key"].value == MASK
    assert "secret" not in repr([one for one in found.values() if one.name.startswith("ai.providers")]).replace(
        "secret_key", ""
    )
