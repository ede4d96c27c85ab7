"""What a job that comes over the API may not say of itself."""

from pathlib import Path
from typing import Any

import pytest

from docmill.api.submitting import RESERVED
from docmill.services.submission import new_job
from tests.contract.served import Served
from tests.contract.test_api_manners import API, problem
from tests.contract.test_api_tenancy import PLAIN


@pytest.fixture(autouse=True)
def plain(served: Served) -> None:
    with served.client() as client:
        client.put_template("plain", PLAIN)


def test_what_docmill_tells_its_own_steps_is_refused_in_the_metadata_of_jobs_and_batches(
    served: Served, tmp_path: Path
) -> None:
    assert {"out", "schema", "schema_file", "schema_set", "model", "step_models", "reruns"} == RESERVED
    for key in sorted(RESERVED):
        metadata = {key: str(tmp_path / "elsewhere"), "colour": "blue"}
        for path, body in (("jobs", {"entity": "document:a"}), ("batches", {"entities": ["document:a"]})):
            asked = {"template": "plain", "metadata": metadata, **body}
            told: Any = problem(served.send("POST", f"{API}/{path}", token="service", json=asked), 422, "invalid_input")
            assert told["errors"][0]["field"] == "body.metadata"
            assert key in told["detail"]
    assert served.app.jobs.list() == []
    assert served.app.batches.list() == []


def test_other_metadata_is_taken_and_the_command_line_may_say_all(served: Served) -> None:
    asked = {"template": "plain", "entity": "document:a", "metadata": {"outcome": 1}}
    assert served.send("POST", f"{API}/jobs", token="service", json=asked).status_code == 201
    job = new_job(served.app.templates.find("plain"), "document:b", metadata={"out": "/srv/out"})
    assert served.app.jobs.submit_one(job).new
