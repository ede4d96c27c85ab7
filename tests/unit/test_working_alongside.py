"""A worker beside whatever else a process does: what ends it early is told as what it is."""

from threading import Thread
from typing import cast

import pytest

from docmill.engine.worker import Worker
from docmill.workers.process import alongside


@pytest.mark.parametrize("early", [RuntimeError("can't start new thread"), KeyboardInterrupt()], ids=str)
def test_a_worker_that_never_began_is_not_waited_for(early: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(thread: Thread) -> None:
        raise early

    monkeypatch.setattr(Thread, "start", start)
    with pytest.raises(type(early)) as told, alongside(cast("Worker", object())):
        pytest.fail("it did not begin")
    assert told.value is early
