"""`docmill doctor` says which models can be asked, and what the ones that are meant still need."""

import pytest

from docmill.ai.providers.access import VARIABLES
from docmill.services.doctor import Health, check_models
from docmill.settings import load_settings


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for names in VARIABLES.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)


def test_without_any_key_nothing_is_wrong() -> None:
    found = check_models(load_settings())
    assert (found.health, found.remedy) == (Health.OK, None)
    assert found.found.startswith("ready: local;")


def test_a_provider_that_is_meant_and_not_ready_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMILL_AI__MODEL", "google:gemini-2.5-flash")
    found = check_models(load_settings())
    assert (found.health, found.found) == (Health.WARN, "ready: local")
    assert "GEMINI_API_KEY" in str(found.remedy)
    monkeypatch.setenv("GEMINI_API_KEY", "AIza-secret")
    found = check_models(load_settings())
    assert found.health is Health.OK
    assert "google" in found.found
    assert "secret" not in found.found


def test_a_server_of_ones_own_is_ready_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMILL_AI__PROVIDERS__house__BASE_URL", "http://127.0.0.1:8000/v1")
    assert check_models(load_settings()).found.startswith("ready: local, house")
