"""Which model a name means, what its tokens cost, and what a budget lets through."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from docmill.ai.budget import Budget, Span, begins, check, period
from docmill.ai.prices import Cost, Price, PriceList, most_input_tokens
from docmill.ai.rules import ProviderRules, Rules, Target
from docmill.model.ai import Attachment, ModelCall
from docmill.model.ai_errors import BudgetExceeded, ModelUnknown
from docmill.model.errors import Deferred

NOW = datetime(2026, 11, 15, 23, 59, tzinfo=UTC)
DOLLAR = 1_000_000_000


@pytest.mark.parametrize(
    ("rules", "name", "expected"),
    [
        (Rules(), None, "local:echo"),
        (Rules(model="fast", models={"fast": "openai:gpt-4o-mini"}), None, "openai:gpt-4o-mini"),
        (Rules(), "openai:gpt-4-turbo", "openai:gpt-4-turbo"),
        (Rules(), "house:llama:70b", "house:llama:70b"),
        (Rules(), "gemini:gemini-2.5-flash", "google:gemini-2.5-flash"),
        (Rules(), "openai_chat:gpt-4o", "openai-chat:gpt-4o"),
        (Rules(providers={"gemini": ProviderRules()}), "gemini:gemini-2.5-flash", "gemini:gemini-2.5-flash"),
        (Rules(models={"gpt-4-turbo": "scripted:gpt-4-turbo"}), "gpt-4-turbo", "scripted:gpt-4-turbo"),
        (Rules(provider="scripted"), "claude-3-opus", "scripted:claude-3-opus"),
        (Rules(provider="scripted", models={"a": "local:echo"}), "a", "local:echo"),
    ],
)
def test_a_name_means_one_model(rules: Rules, name: str | None, expected: str) -> None:
    assert str(rules.resolve(name)) == expected


def test_a_model_may_have_colons_in_its_name() -> None:
    assert Rules().resolve("house:llama:70b") == Target(provider="house", model="llama:70b")


@pytest.mark.parametrize("name", ["gpt-4-turbo", ":x", "openai:"])
def test_a_name_that_nobody_knows_says_what_to_do(name: str) -> None:
    with pytest.raises(ModelUnknown, match=r"ai\.models"):
        Rules().resolve(name)


def cost(prices: PriceList, provider: str, model: str) -> Cost:
    return prices.cost(provider, model, input_tokens=1000, output_tokens=500, at=NOW)


def test_prices_come_from_the_list_that_is_shipped() -> None:
    # $10 and $30 for a million tokens.
    assert cost(PriceList({}), "openai", "gpt-4-turbo") == Cost(nanos=25_000_000, known=True)
    # A provider that the list does not know serves a model that it does.
    assert cost(PriceList({}), "scripted", "gpt-4-turbo") == Cost(nanos=25_000_000, known=True)


def test_prices_in_the_settings_go_before_the_shipped_ones() -> None:
    own = {
        "house:large": Price(input=Decimal("1.5"), output=Decimal(6)),
        "gpt-4-turbo": Price(input=Decimal(1), output=Decimal(1)),
    }
    assert cost(PriceList(own), "house", "large") == Cost(nanos=4_500_000, known=True)
    assert cost(PriceList(own), "openai", "gpt-4-turbo") == Cost(nanos=1_500_000, known=True)


def test_a_model_without_a_price_counts_as_free_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    prices = PriceList({})
    for _ in range(2):
        assert cost(prices, "house", "no such model") == Cost(nanos=0, known=False)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "ai.prices" in caplog.text


def test_the_bound_of_the_input_is_never_below_its_tokens() -> None:
    call = ModelCall(
        model="m",
        prompt="äöü",
        instructions="be brief",
        attachments=(Attachment(data=bytes(1000), media_type="image/png"),),
        output_schema=None,
        max_tokens=1,
        temperature=None,
        timeout=1.0,
        options={},
    )
    assert most_input_tokens(call) == 6 + 8 + 3010
    assert most_input_tokens(replace(call, output_schema={"type": "object"})) == 6 + 8 + 3010 + 17


def test_periods_are_those_of_utc() -> None:
    assert (period(Span.MONTH, NOW), period(Span.DAY, NOW)) == ("2026-11", "2026-11-15")
    elsewhere = datetime.fromisoformat("2026-12-01T05:00:00+09:00")
    assert (period(Span.MONTH, elsewhere), period(Span.DAY, elsewhere)) == ("2026-11", "2026-11-30")
    assert begins(Span.MONTH, elsewhere) == datetime(2026, 11, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("spent", "reserved", "expected"),
    [(0, 0, None), (9, 0, None), (0, 9, None), (10, 0, BudgetExceeded), (0, 10, Deferred), (5, 5, Deferred)],
)
def test_what_is_spent_refuses_for_good_and_what_is_reserved_for_a_while(
    spent: int, reserved: int, expected: type[Exception] | None
) -> None:
    budget = Budget(span=Span.MONTH, limit=10 * DOLLAR)
    amounts = {"spent": spent * DOLLAR, "reserved": reserved * DOLLAR, "most": DOLLAR}
    if expected is None:
        check(budget, **amounts, now=NOW)
    else:
        with pytest.raises(expected):
            check(budget, **amounts, now=NOW)


@pytest.mark.parametrize(("span", "until"), [(Span.MONTH, "2026-12-01"), (Span.DAY, "2026-11-16")])
def test_a_spent_budget_says_how_to_go_on(span: Span, until: str) -> None:
    with pytest.raises(BudgetExceeded) as caught:
        check(Budget(span=span, limit=DOLLAR), spent=DOLLAR, reserved=0, most=1, now=NOW)
    assert f"ai.budget_{span}" in caught.value.message
    assert until in caught.value.message
    assert "docmill jobs retry" in caught.value.message
