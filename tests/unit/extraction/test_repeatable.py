"""The same document gives the same bytes in every process: results are known by their content."""

import os
import subprocess
import sys

_EXTRACT = """
import hashlib, tempfile
from pathlib import Path
from docmill.documents.limits import Limits
from docmill.documents.parsing import assemble, outline
from docmill.extraction.extracting import extract
from docmill.steps.document_children import pack
from docmill.testing.papers import invoice_pdf

with tempfile.TemporaryDirectory() as folder:
    for seed in range(2000, 2012):
        reading = assemble(outline(str(invoice_pdf(seed).write(Path(folder))), Limits()), ())
        for schema in ("invoice", "receipt"):
            print(seed, schema, hashlib.sha256(pack(extract(reading, schema).as_json())).hexdigest())
"""


def extracted(hash_seed: str) -> list[str]:
    """What a fresh process makes of a dozen papers, a line each."""
    made = subprocess.run(
        [sys.executable, "-c", _EXTRACT],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout.splitlines()


def test_the_order_of_sets_changes_nothing() -> None:
    one, other = extracted("1"), extracted("2")
    assert len(one) == 24
    assert one == other
