"""What `docmill process` says in a pipe of a model that is away."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from docmill.cli.process_text import Waits
from docmill.services.outages import Outage

START = datetime(2026, 11, 18, 12, tzinfo=UTC)
AWAY = Outage(model="openai:gpt-5-mini", said="cannot be reached", message="", next_try=START, seconds=39.2, probes=0)


def test_each_try_is_told_once_however_many_documents_wait_for_it() -> None:
    waits = Waits()
    assert waits.line(None) == ""
    assert waits.line(AWAY) == "openai:gpt-5-mini cannot be reached; next try in 40 s"
    nearer = replace(AWAY, seconds=12.0)
    another = replace(AWAY, next_try=START + timedelta(seconds=4))
    under_way = replace(AWAY, seconds=0.0)
    assert [waits.line(each) for each in (nearer, another, under_way)] == ["", "", ""]
    assert waits.line(replace(AWAY, next_try=START + timedelta(seconds=60), seconds=60.0)).endswith("in 60 s")
