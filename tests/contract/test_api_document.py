"""Whatever fits the OpenAPI document, and whatever does not, is answered: never by an error of the server."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi.routing import APIWebSocketRoute
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from docmill.api.access import Guarded, needs
from docmill.api.app import create_app, nouns
from docmill.testing.papers import invoice_pdf
from docmill.testing.world import migrate
from tests.conftest import PostgresCopies
from tests.contract.desk import Desk
from tests.contract.served import Served, serving

EXAMPLES = 8
"""For each operation, on each database."""
ENDLESS = {"/api/v1/events"}


def test_the_document_is_openapi_3_1_and_says_what_everything_needs(served: Served) -> None:
    found = served.send("GET", "/api/v1/openapi.json", token=None).json()
    assert found["openapi"].startswith("3.1")
    operations = [each for path in found["paths"].values() for each in path.values()]
    assert len(operations) >= 75
    ids = [each["operationId"] for each in operations]
    assert len(set(ids)) == len(ids)
    open_to_all = {each["operationId"] for each in operations if "x-permission" not in each}
    named = {needs(route.endpoint) for noun in nouns() for route in noun.routes if isinstance(route, Guarded)}
    assert len(named) > 10
    assert len(open_to_all) <= 12, open_to_all


def test_every_operation_is_in_the_reference(served: Served) -> None:
    page = Path("docs/reference/api.md").read_text()
    found = served.send("GET", "/api/v1/openapi.json", token=None).json()
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            row = f"| `{method.upper()} {path.removeprefix('/api/v1')}` |"
            assert row in page, row
            permission = operation.get("x-permission")
            line = page[page.index(row) :].split("\n", 1)[0]
            assert permission is None or f"`{permission}`" in line
    sockets = [route.path for noun in nouns() for route in noun.routes if isinstance(route, APIWebSocketRoute)]
    assert sockets
    for path in sockets:
        assert f"| `GET {path}` |" in page, path


@pytest.fixture
def both_served(migrated_file: Path, postgres_copy_of: PostgresCopies, tmp_path: Path) -> Iterator[list[Served]]:
    """The API over both databases at once."""
    shutil.copy(migrated_file, tmp_path / "docmill.db")
    with (
        serving(f"sqlite:///{tmp_path / 'docmill.db'}", tmp_path / "on_sqlite") as on_sqlite,
        serving(postgres_copy_of("migrated", migrate), tmp_path / "on_postgresql") as on_postgresql,
    ):
        yield [on_sqlite, on_postgresql]


def test_no_request_brings_the_server_down(both_served: list[Served]) -> None:
    """Thinking of a request takes longer than answering it, so what was thought of is asked on both databases."""
    document = both_served[0].send("GET", "/api/v1/openapi.json", token=None).json()
    for path in ENDLESS:
        document["paths"].pop(path)
    schema: Any = schemathesis.openapi.from_dict(document)
    known = {served.address: _things(served) for served in both_served}
    failures: list[str] = []
    for found in schema.get_all_operations():
        _try(found.ok(), known, failures)
    assert not failures, "\n\n".join(failures[:10])


def _things(served: Served) -> dict[str, str]:
    """Something of every kind, so that more is tried than what is not there."""
    document = served.send("POST", "/api/v1/documents", files={"file": ("a.pdf", invoice_pdf(1).content)}).json()
    about = {"template": "document-processing", "entities": ["document:1", "document:2"]}
    batch = served.send("POST", "/api/v1/batches", json=about).json()
    issue = served.send("POST", "/api/v1/issues", json={"title": "Odd", "entity": "document:1"}).json()
    asked = {"text": "Look at {!entity.name}"}
    stored = served.send("PUT", "/api/v1/prompts/Ask", json=asked, headers={"If-Match": "*"})
    assert stored.status_code == 200, stored.text
    desk = Desk(served.app.database, served.app.settings.home)
    item = desk.put(1)[0]
    desk.close()
    return {
        "document_id": document["id"],
        "job_id": document["job_id"],
        "batch_id": batch["id"],
        "issue_id": issue["id"],
        "item_id": item,
    }


def _try(operation: Any, known: dict[str, dict[str, str]], failures: list[str]) -> None:
    turn = 0
    for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
        try:
            strategy = operation.as_strategy(generation_mode=mode)
        except Exception:
            continue

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=strategy)
        def attempt(case: Any) -> None:
            nonlocal turn
            turn += 1
            checks = [
                not_a_server_error,
                content_type_conformance,
                response_schema_conformance,
                status_code_conformance,
            ]
            for address, things in known.items():
                for name in case.path_parameters or ():
                    if turn % 3 and name in things:
                        case.path_parameters[name] = things[name]
                answer = case.call(base_url=address, headers={"Authorization": "Bearer owner"})
                case.validate_response(answer, checks=checks)

        try:
            attempt()
        except Unsatisfiable:
            # There is no wrong way to ask for it.
            continue
        except (AssertionError, FailureGroup) as error:
            failures.append(f"{operation.label}: {error}")


def test_an_endpoint_that_says_nothing_of_permissions_does_not_start(served: Served) -> None:
    def unmarked() -> None: ...

    with pytest.raises(TypeError, match="says neither"):
        needs(unmarked)
    assert create_app(served.app, served.people)
