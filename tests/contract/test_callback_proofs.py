"""What a callback must prove and be: the token of its attempt, the signature of its executor, sense."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread

import pytest

from docmill.db.secrets import CALLBACK_TOKENS, installation_secret
from docmill.engine.batch import StepRun
from docmill.model.callbacks import CallbackOutcome as Outcome
from docmill.model.ids import new_id
from docmill.model.tokens import Tokens
from docmill.services.callback_payload import DEEPEST, MOST_BYTES, CallbackInvalid
from docmill.services.jobs import Jobs
from docmill.services.retrying import Retry
from docmill.testing.world import World
from docmill.webhooks.signatures import SignatureInvalid, signed_headers
from tests.contract.outside import KEY, Outside, asking, changed, outside


@pytest.fixture
def out(world: World) -> Iterator[Outside]:
    with outside(world, {"signing": KEY, "trusting": None}) as opened:
        yield opened


def cancelled(out: Outside, run: StepRun) -> None:
    jobs = Jobs(out.world.database, out.callbacks._bell)
    jobs.cancel(run.job.id)
    jobs.close()


def test_a_token_of_another_step_is_foreign(out: Outside) -> None:
    out.world.submit(asking("a", "b"))
    a, b = out.send_out()
    answer = out.receive(a, token=out.token(b))
    assert (answer.success, answer.outcome, answer.code) == (False, Outcome.REFUSED, "token_foreign")
    assert (out.status(a), out.status(b)) == ("WAITING", "WAITING")


def test_a_token_of_another_job_is_foreign(out: Outside) -> None:
    out.world.submit(asking("ask"))
    out.world.submit(asking("ask"))
    one, other = out.send_out()
    assert out.receive(one, token=out.token(other)).code == "token_foreign"


@pytest.mark.parametrize("token", [None, "", 5, "x" * 10_000, "dmt1.00.1.1.x", ["dmt1"]])
def test_what_is_no_token_is_malformed(out: Outside, token: object) -> None:
    run = out.one()
    answer = out.receive(run, token=token)
    assert (answer.outcome, answer.code) == (Outcome.REFUSED, "token_malformed")
    assert out.status(run) == "WAITING"


def test_a_token_of_another_installation_is_malformed(out: Outside) -> None:
    run = out.one()
    forged = Tokens(b"another secret").make(*run.key)
    assert out.receive(run, token=forged).code == "token_malformed"


def test_a_token_for_an_attempt_that_is_yet_to_come_opens_nothing(out: Outside) -> None:
    run = out.one()
    assert out.receive(run, token=out.tokens.make(run.job.id, 0, 7)).outcome is Outcome.LATE
    assert out.status(run) == "WAITING"


def test_after_the_deadline_a_new_attempt_has_a_new_token_and_the_old_one_is_spent(out: Outside) -> None:
    out.world.submit(asking("ask"))
    (run,) = out.send_out(within=-1.0)
    assert out.world.sweep().overdue == 1
    assert out.receive(run).code == "token_spent"
    (again,) = out.send_out()
    assert out.token(again) != out.token(run)
    assert out.receive(run).code == "token_spent"
    assert out.status(again) == "WAITING"
    assert out.receive(again).outcome is Outcome.APPLIED


def test_after_a_cancel_the_token_is_spent(out: Outside) -> None:
    run = out.one()
    cancelled(out, run)
    before = out.world.state(run.job.id)
    answer = out.receive(run)
    assert (answer.success, answer.outcome, answer.code) == (False, Outcome.LATE, "token_spent")
    assert out.world.state(run.job.id) == before


def test_after_a_rerun_the_token_is_spent(out: Outside) -> None:
    run = out.one()
    cancelled(out, run)
    jobs = Jobs(out.world.database, out.callbacks._bell)
    jobs.retry(run.job.id, Retry(everything=True))
    jobs.close()
    assert out.receive(run).code == "token_spent"
    (again,) = out.send_out()
    assert out.receive(run).code == "token_spent"
    assert out.receive(again).outcome is Outcome.APPLIED


def test_the_installation_has_one_secret_whoever_makes_it_first(world: World) -> None:
    barrier, found = Barrier(6), list[bytes]()

    def make() -> None:
        barrier.wait()
        found.append(installation_secret(world.database, CALLBACK_TOKENS, now=datetime.now(UTC)))

    threads = [Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(found) == 6
    assert len(found[0]) == 32


def signing_step(out: Outside, executor: str = "signing") -> StepRun:
    return out.one(changed(asking("ask"), executor=executor))


def body_of(out: Outside, run: StepRun) -> bytes:
    return json.dumps(out.payload(run)).encode()


def test_the_callback_of_an_executor_with_a_secret_must_be_signed(out: Outside) -> None:
    run = signing_step(out)
    body = body_of(out, run)
    now = datetime.now(UTC)
    bad = [
        None,
        {},
        signed_headers(b"z" * 32, message_id="m", body=body, now=now),
        signed_headers(KEY, message_id="m", body=body + b" ", now=now),
        signed_headers(KEY, message_id="m", body=body, now=now - timedelta(minutes=6)),
    ]
    for headers in bad:
        with pytest.raises(SignatureInvalid):
            out.callbacks.receive(body, now=now, headers=headers)
    assert (out.outcomes(), out.status(run)) == ([], "WAITING")
    good = signed_headers(KEY, message_id="msg_7", body=body, now=now)
    assert out.callbacks.receive(body, now=now, headers=good).outcome is Outcome.APPLIED
    assert out.callbacks.receive(body, now=now, headers=good).outcome is Outcome.DUPLICATE
    assert [row["message_id"] for row in out.stored()] == ["msg_7", "msg_7"]


def test_a_callback_is_judged_and_stored_by_the_time_it_is_told(out: Outside) -> None:
    run = signing_step(out)
    body = body_of(out, run)
    then = datetime(2021, 2, 3, 4, 5, 6, tzinfo=UTC)
    headers = signed_headers(KEY, message_id="msg_7", body=body, now=then)
    with pytest.raises(SignatureInvalid):
        out.callbacks.receive(body, now=then + timedelta(minutes=6), headers=headers)
    assert out.callbacks.receive(body, now=then, headers=headers).outcome is Outcome.APPLIED
    assert [view.received_at for view in out.callbacks.list(run.job.id)] == [then]


def test_the_callback_of_an_executor_without_a_secret_need_not_be_signed(out: Outside) -> None:
    run = signing_step(out, "trusting")
    assert out.callbacks.receive(body_of(out, run), now=datetime.now(UTC)).outcome is Outcome.APPLIED


def test_naming_another_executor_does_not_help(out: Outside) -> None:
    run = signing_step(out)
    with pytest.raises(SignatureInvalid):
        out.callbacks.receive(body_of(out, run), now=datetime.now(UTC), executor="trusting")


NONSENSE: dict[str, bytes] = {
    "nothing": b"",
    "no json": b"{",
    "not utf-8": b'{"jobId": "\xff"}',
    "a list": b"[]",
    "a number": b"5",
    "null": b"null",
    "empty": b"{}",
    "no status": b'{"jobId": "a", "stepKey": "b"}',
    "status unknown": b'{"jobId": "a", "stepKey": "b", "status": "DONE"}',
    "status no text": b'{"jobId": "a", "stepKey": "b", "status": ["COMPLETED"]}',
    "job no text": b'{"jobId": 5, "stepKey": "b", "status": "COMPLETED"}',
    "job endless": b'{"jobId": "' + b"a" * 300 + b'", "stepKey": "b", "status": "COMPLETED"}',
    "step empty": b'{"jobId": "a", "stepKey": "", "status": "COMPLETED"}',
    "error no text": b'{"jobId": "a", "stepKey": "b", "status": "FAILED", "errorMessage": {}}',
    "a NUL": b'{"jobId": "a", "stepKey": "b", "status": "COMPLETED", "resultData": "\\u0000"}',
    "a lone surrogate": b'{"jobId": "a", "stepKey": "b", "status": "COMPLETED", "resultData": "\\ud800"}',
    "too large": b'{"jobId": "' + b"a" * MOST_BYTES + b'"}',
    "too deep": b'{"jobId": "a", "stepKey": "b", "status": "COMPLETED", "resultData": '
    + b"[" * (DEEPEST + 1)
    + b"]" * (DEEPEST + 1)
    + b"}",
    "much too deep": b"[" * 100_000,
}


@pytest.mark.parametrize("body", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_refused_by_name_and_not_stored(out: Outside, body: bytes) -> None:
    with pytest.raises(CallbackInvalid):
        out.callbacks.receive(body, now=datetime.now(UTC))
    assert out.outcomes() == []


def test_a_mapping_that_is_no_json_is_refused_by_name(out: Outside) -> None:
    run = out.one()
    for odd in (object(), "\ud800", {1, 2}, new_id, b"bytes", 2**70):
        with pytest.raises(CallbackInvalid):
            out.receive(run, resultData={"odd": odd})
    assert out.status(run) == "WAITING"
