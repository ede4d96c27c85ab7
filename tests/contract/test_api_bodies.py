"""Bodies: what may be left out, and what comes back."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.desk import Desk
from tests.contract.served import Served
from tests.contract.test_api_manners import API, JSON, NOWHERE, problem


@pytest.fixture
def desk(served: Served, tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(served.app.database, tmp_path / "desk")
    yield desk
    desk.close()


def test_a_body_in_which_nothing_must_be_said_may_be_left_out(served: Served) -> None:
    document = served.send("GET", f"{API}/openapi.json").json()
    without = set()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            said = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            schema = document["components"]["schemas"].get(said.get("$ref", "").rpartition("/")[2])
            if method != "post" or schema is None or schema.get("required"):
                continue
            without.add(path)
            assert not operation["requestBody"].get("required")
            for content in (b"", b"{}"):
                where = re.sub(r"\{\w+\}", NOWHERE, path)
                headers = JSON | {"If-Match": "*"}
                problem(served.send("POST", where, content=content, headers=headers), 404, "not_found")
    assert {f"{API}/documents/{{document_id}}/reprocess", f"{API}/jobs/{{job_id}}/retry"} < without


def test_whoever_asks_is_told_the_id_by_which_claims_name_them(served: Served, desk: Desk) -> None:
    desk.put(1)
    me = served.send("GET", f"{API}/me", token="reviewer").json()
    claimed = served.send("POST", f"{API}/review/next/claim", token="reviewer").json()
    assert (me["principal"], me["name"], me["kind"]) == (claimed["claimed_by"], "reviewer", "user")


def test_a_callback_that_is_not_taken_is_a_problem_that_says_what_every_answer_says(served: Served) -> None:
    body = {"jobId": NOWHERE, "stepKey": "a", "status": "COMPLETED", "token": "dmt1.x"}
    told = problem(served.send("POST", f"{API}/callbacks", token=None, json=body), 404, "unknown_job")
    assert (told["success"], told["skipped"], told["outcome"]) == (False, False, "unknown")
    assert told["message"] == told["detail"]
