"""Executors are checked when the settings are read, and their secrets are told to nobody."""

from pathlib import Path

import pytest

from docmill.settings import SettingsInvalid, load_settings
from docmill.webhooks.signatures import read_secret

SECRET = "whsec_" + "c3RhbmQtaW4g" * 3


def executors(home: Path, **fields: object) -> dict[str, object]:
    return {"home": home, "executors": {"hub": {"url": "https://hub.example.com/in", **fields}}}


def test_an_executor_has_an_address_and_a_key(tmp_path: Path) -> None:
    hub = load_settings(**executors(tmp_path, secret=SECRET)).executors["hub"]
    assert (hub.url, hub.key, hub.timeout) == ("https://hub.example.com/in", read_secret(SECRET), 30.0)
    assert load_settings(**executors(tmp_path)).executors["hub"].key is None


def test_they_can_be_given_by_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMILL_EXECUTORS__HUB__URL", "http://hub:8080/")
    monkeypatch.setenv("DOCMILL_EXECUTORS__HUB__SECRET", SECRET)
    assert load_settings(home=tmp_path).executors["hub"].key == read_secret(SECRET)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("url", "hub.example.com"),
        ("url", "https://user:pass@hub/"),
        ("secret", "c2hvcnQtc2VjcmV0"),
        ("timeout", 0),
        ("timeout", 1e9),
        ("token", "x"),
    ],
)
def test_a_wrong_field_is_named_and_its_value_not_repeated(tmp_path: Path, field: str, value: object) -> None:
    with pytest.raises(SettingsInvalid) as refused:
        load_settings(**executors(tmp_path, **{field: value}))
    assert f"executors.hub.{field}" in refused.value.message
    assert "c2hvcnQtc2VjcmV0" not in refused.value.message + repr(refused.value.__cause__)
    assert "pass@" not in refused.value.message


def test_a_secret_is_not_in_what_is_printed_of_the_settings(tmp_path: Path) -> None:
    settings = load_settings(**executors(tmp_path, secret=SECRET))
    assert SECRET not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
