"""A mistake in the settings is told as a person wants it: where, what, and what was probably meant."""

from datetime import timedelta
from pathlib import Path

import pytest

from docmill.settings import SettingsInvalid, load_settings
from docmill.settings.origins import Origin, settings_now


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without the developer's own settings."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


MISTAKES = {
    "leese: {duration: 60}": "leese: there is no such setting. Did you mean lease?",
    "lease: {duratoin: 60}": "lease.duratoin: there is no such setting. Did you mean lease.duration?",
    "pools: {ai: {capasity: 3}}": "pools.ai.capasity: there is no such setting. Did you mean pools.ai.capacity?",
    "colour: red": "colour: there is no such setting. Known here: home, ",
    "lease: {duration: soon}": "lease.duration: 'soon' is not a number.",
    "pools: {ai: {capacity: many}}": "pools.ai.capacity: 'many' is not a whole number.",
    "pools: {ai: {capacity: 0}}": "pools.ai.capacity: 0 is out of range; write at least 1.",
    "ai: {providers: {house: {base_url: 'http://gpu:'}}}": "ai.providers.house.base_url: 'http://gpu:' is no address",
    "lease: 30": "lease: 30 is not a mapping.",
    "retention: {jobs: soon}": "retention.jobs: 'soon' is not a length of time such as 90d or 12h.",
    "lease: {heartbeat: 20}": "lease: the heartbeat (20 s) must come at least twice in the duration (30 s).",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_told_with_its_place_and_remedy(alone: Path, text: str) -> None:
    (alone / "docmill.yaml").write_text(text)
    with pytest.raises(SettingsInvalid) as caught:
        load_settings()
    assert f"\n  {MISTAKES[text]}" in caught.value.message
    assert "Input should" not in caught.value.message


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("90d", timedelta(days=90)),
        ("12h", timedelta(hours=12)),
        ("30 m", timedelta(minutes=30)),
        ("3600", timedelta(hours=1)),
        ('"3600"', timedelta(hours=1)),
        ('"0.5"', timedelta(seconds=0.5)),
        ("P1D", timedelta(days=1)),
    ],
)
def test_a_retention_is_written_as_people_write_lengths_of_time(alone: Path, written: str, meant: timedelta) -> None:
    (alone / "docmill.yaml").write_text(f"retention: {{jobs: {written}}}")
    assert load_settings().retention.jobs == meant


def test_without_a_retention_jobs_are_kept_for_ever() -> None:
    assert load_settings().retention.jobs is None


def test_a_lease_of_thirty_minutes_renewed_every_five_is_within_reach(alone: Path) -> None:
    (alone / "docmill.yaml").write_text("lease: {duration: 1800, heartbeat: 300, sweep: 30}")
    lease = load_settings().lease
    assert (lease.duration, lease.heartbeat, lease.sweep) == (1800.0, 300.0, 30.0)


def test_ten_slots_per_pool_three_claims_a_round_and_an_order_of_pools_are_within_reach(alone: Path) -> None:
    text = "pools: {website: {priority: 2, claims_per_cycle: 3}, prompts: {priority: 1}, models: {capacity: 20}}"
    (alone / "docmill.yaml").write_text(text)
    pools = load_settings().pools
    assert {name: (pool.capacity, pool.priority, pool.claims_per_cycle) for name, pool in pools.items()} == {
        "website": (10, 2, 3),
        "prompts": (10, 1, None),
        "models": (20, 0, None),
    }


def test_a_provider_whose_name_no_shell_takes_is_set_by_a_variable_over_the_file(
    alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (alone / "docmill.yaml").write_text("ai: {providers: {openai-chat: {rate: 2, base_url: 'http://a/v1'}}}")
    monkeypatch.setenv("DOCMILL_AI__PROVIDERS__openai_chat__BASE_URL", "http://b/v1")
    settings = load_settings()
    (provider,) = settings.ai.providers.items()
    assert (provider[0], provider[1].rate, provider[1].base_url) == ("openai-chat", 2.0, "http://b/v1")
    now = {each.name: each for each in settings_now(settings)}
    address, rate = (now[f"ai.providers.openai-chat.{name}"] for name in ("base_url", "rate"))
    assert (address.origin, rate.origin) == (Origin.ENVIRONMENT, Origin.FILE)
    assert address.variable == "DOCMILL_AI__PROVIDERS__OPENAI_CHAT__BASE_URL"
