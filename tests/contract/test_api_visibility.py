"""Where members see their own jobs only, no other door leads to those of others."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from docmill.model.people import Permission, Role
from docmill.testing.papers import invoice_pdf
from tests.contract.served import Served, serving, somebody
from tests.contract.test_api_manners import API, problem
from tests.contract.test_api_tenancy import PLAIN


@pytest.fixture
def served(database_url: str, tmp_path: Path) -> Iterator[Served]:
    with serving(database_url, tmp_path / "home", jobs={"visibility": "own"}) as served:
        for name in ("mia", "max"):
            member = somebody(name, Role.ADMIN)
            # Everything but what lets somebody see all.
            served.people.tokens[name] = replace(member, scopes=member.scopes - {Permission.MEMBERS_MANAGE})
        yield served


@pytest.fixture
def hers(served: Served) -> dict[str, str]:
    """What Mia made."""
    with served.client("mia") as client:
        client.put_template("plain", PLAIN)
        job = client.call("POST", "/jobs", {"template": "plain", "entity": "document:a"})["job"]["id"]
        batch = client.call("POST", "/batches", {"template": "plain", "entities": ["document:b"]})["id"]
        issue = client.call("POST", "/issues", {"title": "Hers", "job_id": job})["id"]
        loose = client.call("POST", "/issues", {"title": "About a thing", "entity": "document:c"})["id"]
        document = client.upload(invoice_pdf(1).content, name="a.pdf")["id"]
    return {"job": job, "batch": batch, "issue": issue, "loose": loose, "document": document}


def doors(hers: dict[str, str]) -> list[tuple[str, str, dict[str, object] | None]]:
    job, batch, issue = f"/jobs/{hers['job']}", f"/batches/{hers['batch']}", f"/issues/{hers['issue']}"
    return [
        ("GET", job, None),
        ("GET", f"{job}/steps/finish/comparison", None),
        ("POST", f"{job}/steps/finish/rerun", {"model": "local:echo"}),
        ("GET", batch, None),
        ("GET", f"{batch}/results", None),
        ("PATCH", batch, {"limit": 1}),
        ("POST", f"{batch}/cancel", {}),
        ("POST", f"{batch}/retry", {}),
        ("GET", issue, None),
        ("POST", f"{issue}/assign", {"to": "max"}),
        ("POST", f"{issue}/resolve", {}),
        ("GET", f"/issues?job_id={hers['job']}", None),
        ("POST", "/issues", {"title": "Mine", "job_id": hers["job"]}),
        ("POST", f"/documents/{hers['document']}/reprocess", {}),
        ("GET", f"/issues/{hers['loose']}", None),
    ]


def test_what_another_member_made_is_not_there_by_any_door(served: Served, hers: dict[str, str]) -> None:
    for method, path, body in doors(hers):
        answer = served.send(method, API + path, token="max", **({} if body is None else {"json": body}))
        told = str(problem(answer, 404, "not_found")["detail"])
        # Not for another reason, such as that the step was not run again.
        assert told.startswith("There is no "), (path, told)
    for kind in ("jobs", "batches", "issues"):
        assert served.send("GET", f"{API}/{kind}", token="max").json()["items"] == [], kind
        assert served.send("GET", f"{API}/{kind}", token="mia").json()["items"], kind
        assert served.send("GET", f"{API}/{kind}").json()["items"], kind
    assert served.send("GET", f"{API}/batches/{hers['batch']}", token="mia").json()["limit"] == 10


def test_an_issue_that_is_assigned_to_somebody_is_theirs_to_resolve(served: Served, hers: dict[str, str]) -> None:
    issue = f"{API}/issues/{hers['issue']}"
    assert served.send("POST", f"{issue}/assign", token="mia", json={"to": "max"}).status_code == 200
    assert [each["id"] for each in served.send("GET", f"{API}/issues", token="max").json()["items"]] == [hers["issue"]]
    assert served.send("POST", f"{issue}/resolve", token="max", json={}).status_code == 200
    problem(served.send("GET", f"{API}/jobs/{hers['job']}", token="max"), 404, "not_found")
