"""The base install is enough on a laptop: without the extras everything runs, and who needs one is told its name."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from docmill.testing import papers

EXTRAS = ("psycopg", "obstore", "pydantic_ai", "openai", "anthropic", "google.genai", "fastapi", "httpx")
DEVELOPERS = ("fpdf", "pikepdf", "pytest", "hypothesis")
BLOCKED = f"""
import sys
for name in {EXTRAS + DEVELOPERS!r}:
    sys.modules[name] = None
from docmill.cli import main
sys.argv[0] = "docmill"
sys.exit(main())
"""


def docmill(home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command in a process that cannot import what only the extras bring."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DOCMILL_")}
    return subprocess.run(
        [sys.executable, "-c", BLOCKED, *arguments],
        cwd=home,
        env=kept | {"DOCMILL_HOME": str(home / "state")} | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_doctor_says_which_extras_are_missing_and_that_all_is_well(tmp_path: Path) -> None:
    done = docmill(tmp_path, "doctor", "--json")
    assert done.returncode == 0, done.stderr
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    extras = "server,client,models,postgres,s3"
    assert f"pip install 'docmill[{extras}]', or '.[{extras}]' in a checkout" in checks["extras"]["found"]


def test_documents_are_processed_and_asked_without_extras(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    invoice = papers.ubl_xml(3)
    invoice.write(inbox)
    papers.invoice_pdf(1, layout="classic", language="de").write(inbox)
    done = docmill(tmp_path, "process", str(inbox), "--json")
    assert done.returncode == 0, done.stderr
    assert {row["status"] for row in json.loads(done.stdout)} == {"completed"}
    asked = docmill(tmp_path, "query", "SELECT total FROM invoices WHERE format = 'xml'", "--json")
    assert json.loads(asked.stdout)["rows"] == [{"total": invoice.fields["total"]}]


def test_postgresql_without_its_driver_names_the_extra(tmp_path: Path) -> None:
    done = docmill(tmp_path, "jobs", "list", DOCMILL_DATABASE_URL="postgresql://somebody@localhost/docmill")
    assert done.returncode == 1
    assert "pip install 'docmill[postgres]', or '.[postgres]' in a checkout" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_client_names_its_extra() -> None:
    probe = "import sys\nsys.modules['httpx'] = None\nimport docmill.client"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().endswith("pip install 'docmill[client]', or '.[client]' in a checkout.")


@pytest.mark.parametrize("command", ["--help", "config", "query --help"])
def test_no_command_loads_what_it_does_not_use(tmp_path: Path, command: str) -> None:
    heavy = ("duckdb", "numpy", "cv2", "onnxruntime", "rapidocr", "lxml", "pypdfium2", "PIL", "sqlalchemy")
    probe = BLOCKED.replace(
        "sys.exit(main())",
        f"try:\n    main()\nfinally:\n    loaded = [name for name in {heavy!r} if name in sys.modules]\n"
        "    print(loaded, file=sys.stderr)",
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, *command.split()], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1] == "[]"
