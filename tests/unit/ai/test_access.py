"""Which providers there are and what opens them: settings first, then the usual variables."""

import pytest

from docmill.ai.providers import access
from docmill.ai.providers.access import Kind, StructuredOutput, accesses, installed
from docmill.ai.providers.asking import _can_be_empty, _closed
from docmill.bootstrap import askable, model_accesses, model_rules
from docmill.model.ai_errors import ModelAuthentication, ModelUnknown
from docmill.settings import ProviderSection, Settings, SettingsInvalid, load_settings


def test_every_kind_is_there_under_its_own_name() -> None:
    assert {name: one.kind for name, one in accesses({}, {}).items()} == {str(kind): kind for kind in Kind}


def test_keys_come_from_the_settings_or_the_usual_variables() -> None:
    environment = {"GOOGLE_API_KEY": "g1", "OPENAI_API_KEY": "o1", "ANTHROPIC_API_KEY": ""}
    found = accesses({"openai": {"key": "o2"}}, environment)
    assert (found["google"].key, found["openai"].key, found["openai-chat"].key) == ("g1", "o2", "o1")
    assert found["anthropic"].key is None
    assert accesses({}, {**environment, "GEMINI_API_KEY": "g2"})["google"].key == "g2"


def test_a_server_of_ones_own_has_a_name_of_its_own() -> None:
    found = accesses(
        {"house": {"base_url": "http://127.0.0.1:8000/v1"}, "proxy": {"kind": "anthropic", "key": "k"}}, {}
    )
    assert (found["house"].kind, found["house"].key, found["house"].missing()) == (Kind.COMPATIBLE, None, None)
    assert (found["proxy"].kind, found["proxy"].key) == (Kind.ANTHROPIC, "k")


def test_what_is_set_for_gemini_is_for_google() -> None:
    found = accesses({"gemini": {"key": "k"}, "openai": {"key": None}}, {})
    assert (found["gemini"].kind, found["gemini"].key, found["gemini"].missing()) == (Kind.GOOGLE, "k", None)
    assert accesses({"gemini": {"base_url": "http://127.0.0.1:8000"}}, {})["gemini"].kind is Kind.GOOGLE


def test_a_plugins_provider_with_limits_of_its_own_is_left_to_the_plugin() -> None:
    assert "scripted" not in accesses({"scripted": {"kind": None, "base_url": None, "output": "auto"}}, {})


def test_a_key_is_never_shown() -> None:
    found = accesses({"openai": {"key": "sk-secret"}}, {})["openai"]
    assert "sk-secret" not in repr(found)
    section = ProviderSection(key="sk-secret")  # type: ignore[arg-type]
    assert "sk-secret" not in repr(section)
    assert model_accesses({"openai": section})["openai"].key == "sk-secret"


@pytest.mark.parametrize("kind", Kind, ids=str)
def test_what_is_missing_is_said_with_its_remedy(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = accesses({}, {})[str(kind)]
    assert installed(kind)
    assert f"ai.providers.{kind}." in str(bare.missing())
    monkeypatch.setattr(access, "find_spec", lambda name: None)
    assert "pip install 'docmill[models]', or '.[models]' in a checkout" in str(bare.missing())


def test_settings_name_keys_addresses_and_the_breakers_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMILL_AI__PROVIDERS__openai-chat__KEY", "sk-1")
    monkeypatch.setenv("DOCMILL_AI__PROVIDERS__house__BASE_URL", "http://localhost:8000/v1")
    monkeypatch.setenv("DOCMILL_AI__PROVIDERS__house__OUTPUT", "prompted")
    monkeypatch.setenv("DOCMILL_AI__CACHE_TTL", "12h")
    monkeypatch.setenv("DOCMILL_PROCESSING__CIRCUIT_BREAKER__FAILURE_THRESHOLD", "3")
    settings: Settings = load_settings()
    found = model_accesses(settings.ai.providers)
    assert found["openai-chat"].key == "sk-1"
    assert (found["house"].base_url, found["house"].output) == ("http://localhost:8000/v1", StructuredOutput.PROMPTED)
    assert settings.ai.cache_ttl is not None
    assert settings.ai.cache_ttl.total_seconds() == 12 * 3600
    assert model_rules(settings).failure_threshold == 3


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("google:gemini-2.5-flash", ModelAuthentication),
        ("compatible:qwen", ModelUnknown),
        ("nobody", ModelUnknown),
    ],
)
def test_a_model_that_cannot_be_asked_is_told_before_any_document_is_taken_in(
    monkeypatch: pytest.MonkeyPatch, name: str, error: type[Exception]
) -> None:
    for variable in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(error):
        askable(load_settings(), name)
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    assert str(askable(load_settings(), "google:gemini-2.5-flash")) == "google:gemini-2.5-flash"
    assert str(askable(load_settings(), "local:echo")) == "local:echo"


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/v1", "http://user:pw@host/v1"])
def test_an_address_is_checked_and_holds_no_password(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMILL_AI__PROVIDERS__house__BASE_URL", url)
    with pytest.raises(SettingsInvalid) as caught:
        load_settings()
    assert "pw" not in str(caught.value)


TEXT = {"type": "string", "description": "x"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "object", "properties": {"a": TEXT}}, True),
        ({"type": "object", "properties": {"a": {"type": "array", "items": TEXT}}}, True),
        ({"type": "object", "properties": {"a": {"type": "number"}}}, False),
        ({"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}, False),
        ({"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}}, False),
        ({"type": "object", "properties": {}}, False),
        ({"type": "object", "properties": {"a": TEXT}, "additionalProperties": True}, False),
        ({"type": "object"}, False),
    ],
)
def test_only_what_can_be_left_empty_is_demanded_of_a_model(schema: dict[str, object], expected: bool) -> None:
    assert _can_be_empty(schema) is expected


def test_a_closed_schema_demands_everything_and_allows_nothing_else() -> None:
    rows = {"type": "array", "items": {"type": "object", "properties": {"b": TEXT}}}
    closed = _closed({"type": "object", "properties": {"a": TEXT, "rows": rows}})
    assert (closed["required"], closed["additionalProperties"]) == (["a", "rows"], False)
    assert closed["properties"]["rows"]["items"]["required"] == ["b"]
