"""`docmill ai`: calls, spending and breakers as the command line tells them."""

import asyncio
from pathlib import Path

import pytest

from docmill.bootstrap import open_app
from docmill.model.ai import Answer, Request
from docmill.model.ai_errors import ModelUnavailable
from docmill.settings import load_settings
from docmill.testing.scripted import Script, Scripted
from tests.acceptance.mill import Mill

ANSWER = Answer(text="yes", input_tokens=1000, output_tokens=500)


@pytest.fixture
def asked(either: Mill) -> Mill:
    """Two answers of a model that costs, one of a model nobody has a price for, and six failures of a third."""
    home, url = Path(either.environment["DOCMILL_HOME"]), either.environment.get("DOCMILL_DATABASE_URL")
    script: Script = {"gpt-4-turbo": [ANSWER], "house": [ANSWER], "ill": [ModelUnavailable("503")]}
    with open_app(load_settings(home=home, database_url=url, ai={"rate": 1000})) as app:
        app.registry.add(Scripted(script).provider())

        async def play() -> None:
            for name in ("gpt-4-turbo", "gpt-4-turbo", "house"):
                await app.models.generate(Request(prompt="well?", model=f"scripted:{name}"))
            for _ in range(6):
                with pytest.raises(ModelUnavailable):
                    await app.models.generate(Request(prompt="well?", model="scripted:ill"))

        asyncio.run(play())
    return either


def test_calls_are_listed_the_newest_first(asked: Mill) -> None:
    found = asked("ai", "calls", "--json").data["calls"]
    assert [(call["model"], call["outcome"]) for call in found] == [
        *[("ill", "failed")] * 6,
        ("house", "answered"),
        *[("gpt-4-turbo", "answered")] * 2,
    ]
    assert {call["error_code"] for call in found[:6]} == {"model_unavailable"}
    assert found[-1]["cost_nanos"] == 25_000_000
    assert [len(asked("ai", "calls", "--limit", "2", "--json").data["calls"])] == [2]
    text = asked("ai", "calls").out
    assert "scripted:gpt-4-turbo" in text
    assert "$0.025000" in text
    assert "unknown" in text


def test_spending_is_added_up_and_models_without_a_price_are_pointed_at(asked: Mill) -> None:
    by_model = asked("ai", "spend", "--by", "model", "--json").data
    assert {row["name"]: (row["calls"], row["failed"], row["cost_nanos"]) for row in by_model["spend"]} == {
        "scripted:gpt-4-turbo": (2, 0, 50_000_000),
        "scripted:house": (1, 0, 0),
        "scripted:ill": (6, 6, 0),
    }
    assert {budget["span"]: budget["spent_nanos"] for budget in by_model["budgets"]} == {
        "month": 50_000_000,
        "day": 50_000_000,
    }
    (day,) = asked("ai", "spend", "--json").data["spend"]
    assert (day["calls"], day["unpriced"], day["cost_nanos"]) == (9, 7, 50_000_000)
    (template,) = asked("ai", "spend", "--by", "template", "--json").data["spend"]
    assert template["name"] == "-"
    answer = asked.having(DOCMILL_AI__BUDGET_DAY="2")("ai", "spend")
    assert "today: $0.050000 (of $2.00)" in answer.out
    assert "this month: $0.050000 (no budget)" in answer.out
    assert "7 calls count as free" in answer.err


def test_a_breaker_is_shown_and_can_be_closed(asked: Mill) -> None:
    (found,) = asked("ai", "breakers", "--json").data["breakers"]
    assert (found["name"], found["state"], found["failures"]) == ("scripted:ill", "open", 6)
    assert "open" in asked("ai", "breakers").out
    assert asked("ai", "breakers", "reset", "scripted:ill").out == "The breaker of scripted:ill is closed.\n"
    (found,) = asked("ai", "breakers", "--json").data["breakers"]
    assert (found["state"], found["failures"], found["opened_at"]) == ("closed", 0, None)


def test_where_nothing_happened_it_says_so(mill: Mill) -> None:
    assert "No model was asked yet" in mill("ai", "calls").err
    assert "No model has failed yet" in mill("ai", "breakers").err
    assert mill("ai", "spend", "--json").data["spend"] == []


def test_wrong_use_is_told(mill: Mill) -> None:
    assert mill("ai", "spend", "--by", "moon").code == 2
    answer = mill("ai", "breakers", "reset", "nobody:x", "--json")
    assert (answer.code, answer.error["code"]) == (2, "not_found")
