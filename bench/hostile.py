"""Hostile files through the limited children: each must end in a reading or a named error, soon and in bounded memory.

`python -m bench.hostile` reads the files of the labelled data (`DOCMILL_DATA`, else `../shared/data`), then damaged
copies of its ordinary documents: truncated, and with random bits turned over. `--damaged N` says how many of those.
Ends with one line of JSON, and with an error if a file hung or failed without a name.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from bench.reading import read_some
from docmill.documents.limits import Limits
from docmill.engine.children import ChildDied, Children, ChildSettings, ChildTimedOut
from docmill.model.errors import DocmillError, PermanentError

SLOW = 30.0
"""Seconds of CPU time that no file may take: wall time on a busy machine says little."""
PAGES = 2
"""Pages of a file that are read by OCR here: the others are read alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one file."""

    name: str
    category: str
    outcome: str
    named: bool
    seconds: float
    cpu_seconds: float
    peak_mb: int | None


def _cpu() -> float:
    """Of all children that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


async def run(files: list[tuple[Path, str]]) -> list[Outcome]:
    """All files, one after the other, each in a child of its own."""
    limits = Limits()
    outcomes = []
    for path, category in files:
        children = Children(ChildSettings(count=1, tasks=1, cpu_seconds=60))
        begin, used = time.perf_counter(), _cpu()
        named, peak = True, None
        try:
            said, peak = await children.run(read_some, (str(path), limits, PAGES), timeout=60.0)
        except (ChildDied, ChildTimedOut) as error:
            said = f"{error.code}: {error.message}"
        except DocmillError as error:
            said, named = f"{error.code}: {error.message}", isinstance(error, PermanentError)
        finally:
            children.close()
        seconds, cpu_seconds = time.perf_counter() - begin, _cpu() - used
        outcome = Outcome(
            name=path.name,
            category=category,
            outcome=said,
            named=named,
            seconds=seconds,
            cpu_seconds=cpu_seconds,
            peak_mb=peak,
        )
        outcomes.append(outcome)
        mark = "" if named else "! "
        print(
            f"{outcome.name[:44]:44} {category:10} {seconds:6.2f} s {cpu_seconds:6.2f} s CPU {peak or '-':>5} MB  "
            f"{mark}{said[:90]}",
            flush=True,
        )
    return outcomes


def damaged(data: Path, folder: Path, count: int) -> list[tuple[Path, str]]:
    """Copies of ordinary documents with their ends cut off or some of their bits turned over."""
    chance = random.Random(4)
    sources = sorted(
        path
        for name in ("einvoices/files", "invoices/files", "receipts/img", "books")
        for path in (data / name).glob("*")
        if path.stat().st_size < 2_000_000
    )
    made = []
    for index in range(count):
        source = chance.choice(sources)
        content = bytearray(source.read_bytes())
        kind = chance.choice(("cut", "bits"))
        if kind == "cut":
            content = content[: chance.randrange(1, len(content))]
        else:
            for _ in range(chance.choice((1, 10, 100, 1000))):
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        path = folder / f"{index:03}-{kind}-{source.name}"
        path.write_bytes(content)
        made.append((path, kind))
    return made


def main() -> int:
    """The table, then the sum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--damaged", type=int, default=40)
    chosen = parser.parse_args()
    data = Path(os.environ.get("DOCMILL_DATA", "../shared/data"))
    manifest = data / "hostile" / "manifest.jsonl"
    if not manifest.exists():
        print(f"There is no {manifest}: set DOCMILL_DATA to where the labelled data is.", file=sys.stderr)
        return 2
    listed = [json.loads(line) for line in manifest.read_text().splitlines()]
    files = [(data / "hostile" / entry["file"], entry["category"]) for entry in listed]
    with tempfile.TemporaryDirectory() as folder:
        files += damaged(data, Path(folder), chosen.damaged)
        outcomes = asyncio.run(run(files))
    slow = [outcome.name for outcome in outcomes if outcome.cpu_seconds > SLOW]
    nameless = [outcome.name for outcome in outcomes if not outcome.named]
    codes = Counter(outcome.outcome.split(":")[0] if ":" in outcome.outcome else "read" for outcome in outcomes)
    print(
        json.dumps(
            {
                "files": len(outcomes),
                "slowest_seconds": round(max(outcome.seconds for outcome in outcomes), 2),
                "most_cpu_seconds": round(max(outcome.cpu_seconds for outcome in outcomes), 2),
                "peak_mb": max(outcome.peak_mb or 0 for outcome in outcomes),
                "outcomes": dict(codes.most_common()),
                "slow": slow,
                "nameless": nameless,
            }
        )
    )
    return 1 if slow or nameless else 0


if __name__ == "__main__":
    sys.exit(main())
