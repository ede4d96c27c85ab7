"""The queue of review on PostgreSQL at its defaults: `python -m bench.review` (`make bench-review`).

A hundred thousand open items in a few classes of time. Measured through the service, one reviewer at a time: looking at
the next item, and claiming it; then claims of many reviewers at once. Milliseconds, p50 and p99. Ends with one line of
JSON.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import insert, text

from bench.servers import running
from docmill.db import schema
from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import documents, review_items
from docmill.documents.records import DocumentRecord, row_of
from docmill.engine.bell import open_bell
from docmill.model.ids import DEFAULT_ORG, following_id, new_id
from docmill.model.people import system_principal
from docmill.review.priority import place_of, standing
from docmill.review.rows import deadlines
from docmill.services.review import Review
from docmill.services.review_base import Reading

HOME = Path(".bench")
_AT_ONCE = 5000
SLAS = (None, timedelta(hours=4), timedelta(hours=24), timedelta(days=7))


def filled(url: str, items: int) -> Database:
    """A database with so many pending items: ages, confidences and SLAs as chance has it, a tenth overdue or nearly."""
    database, chance = Database(url), random.Random(7)
    with database.write() as connection:
        schema.upgrade(connection)
        now = database_now(connection)
    for start in range(0, items, _AT_ONCE):
        rows = []
        for _ in range(min(_AT_ONCE, items - start)):
            document_id, sla = new_id(), chance.choice(SLAS)
            created = now - (sla or timedelta(days=3)) * chance.random() * 1.1
            parts = {name: chance.random() for name in ("confidence", "complexity", "value")}
            fixed = standing(**parts)
            queue_class, place = place_of(fixed, created, sla)
            rows.append(
                {
                    "id": following_id(document_id, "review", 1),
                    "org_id": DEFAULT_ORG,
                    "document_id": document_id,
                    "round": 1,
                    "schema_name": "invoice",
                    "schema_version": "1",
                    "extraction_key": "0" * 64,
                    "options": {},
                    "cut": [],
                    "status": "pending",
                    "version": 1,
                    "assigned_to": "",
                    "claimed_by": "",
                    **parts,
                    "standing": fixed,
                    "queue_class": queue_class,
                    "place": place,
                    "fields_total": 0,
                    "fields_to_review": 0,
                    **deadlines(created, sla),
                    "created_at": created,
                    "updated_at": created,
                    "automatic": False,
                }
            )
        with database.write() as connection:
            connection.execute(insert(documents), [_paper(row) for row in rows])
            connection.execute(insert(review_items), rows)
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("vacuum analyze"))
    return database


def _paper(row: dict[str, Any]) -> dict[str, Any]:
    record = DocumentRecord(
        id=row["document_id"], org_id=DEFAULT_ORG, file_name="bill.pdf", created_at=row["created_at"]
    )
    return row_of(record)


def timed(deed: Callable[[], object], times: int) -> list[float]:
    """Milliseconds of each call."""
    spent = []
    for _ in range(times):
        begin = time.perf_counter()
        assert deed()
        spent.append(1000 * (time.perf_counter() - begin))
    return spent


def told(name: str, spent: Sequence[float]) -> dict[str, float]:
    """p50 and p99."""
    ordered = sorted(spent)
    return {
        f"{name}_p50_ms": round(ordered[len(ordered) // 2], 2),
        f"{name}_p99_ms": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))], 2),
    }


def measure(database: Database, folder: Path, *, times: int, reviewers: int) -> dict[str, float]:
    """The figures."""
    bell = open_bell(database, folder)
    review = Review(database, bell, Reading(extraction=lambda key: None, schema=lambda name, file: None), lambda: "")
    begin = time.perf_counter()
    me = system_principal(DEFAULT_ORG, "me")
    assert review.next(me)
    figures = {"first_look_ms": round(1000 * (time.perf_counter() - begin), 2)}
    figures |= told("next", timed(lambda: review.next(me), times))
    figures |= told("claim_next", timed(lambda: review.claim_next(me), times))
    figures |= told("list_50", timed(lambda: review.list(me), times // 10))

    def work(number: int) -> list[float]:
        who = system_principal(DEFAULT_ORG, f"reviewer-{number}")
        return timed(lambda: review.claim_next(who), max(1, times // reviewers))

    begin = time.perf_counter()
    with ThreadPoolExecutor(reviewers) as pool:
        spent = [each for part in pool.map(work, range(reviewers)) for each in part]
    figures |= told(f"claim_next_{reviewers}_at_once", spent)
    figures["claims_s"] = round(len(spent) / (time.perf_counter() - begin), 1)
    review.close()
    bell.close()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=2000)
    parser.add_argument("--reviewers", type=int, default=20)
    wanted = parser.parse_args()
    with running(HOME) as servers:
        database = filled(servers.fresh_database("review"), wanted.items)
        try:
            figures = measure(database, servers.folder, times=wanted.times, reviewers=wanted.reviewers)
        finally:
            database.close()
    for name, value in figures.items():
        print(f"{name:<28} {value}", file=sys.stderr)
    print(json.dumps({"items": wanted.items, **figures}))


if __name__ == "__main__":
    main()
