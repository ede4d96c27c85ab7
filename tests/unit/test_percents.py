"""A share that is nearly whole is never shown as whole."""

import pytest

from docmill.model.percents import percent


@pytest.mark.parametrize(
    ("share", "digits", "told"),
    [
        (1.0, 0, "100%"),
        (0.995, 0, "99%"),
        (0.99999, 0, "99%"),
        (0.994, 0, "99%"),
        (0.876, 0, "88%"),
        (0.0, 0, "0%"),
        (1.0, 1, "100.0%"),
        (0.9999, 1, "99.9%"),
        (0.8765, 1, "87.6%"),
    ],
)
def test_only_what_is_certain_is_a_hundred_percent(share: float, digits: int, told: str) -> None:
    assert percent(share, digits) == told
