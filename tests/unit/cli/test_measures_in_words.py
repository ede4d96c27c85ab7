"""What is measured is told in words with how far it can be trusted."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from docmill.cli.evaluating import _told
from docmill.cli.learning import _verdict


def summary(documents: int) -> Any:
    figures = {"micro": 0.99, "micro_visible": None, "failed": 0, "threshold_99": 0.34, "straight_through_99": 1.0}
    return SimpleNamespace(documents=documents, **figures)


@pytest.mark.parametrize(("documents", "few"), [(15, True), (99, True), (100, False)])
def test_of_few_documents_it_is_said_that_they_tell_little(documents: int, few: bool) -> None:
    told = _told(summary(documents))
    assert "100% of the documents could pass untouched" in told
    assert ("says little" in told) is few


@pytest.mark.parametrize(
    ("lessons", "worse", "said"),
    [
        (200, "the total is worse", "Without it nothing would be either: the total is worse."),
        (200, None, "would be installed."),
        (6, None, "would be installed. Of 6 documents that says little."),
    ],
)
def test_a_dry_run_ends_with_what_would_have_come_of_it(lessons: int, worse: str | None, said: str) -> None:
    assert _verdict(cast(Any, SimpleNamespace(lessons=lessons, worse=worse))).endswith(said)
