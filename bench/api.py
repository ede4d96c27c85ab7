"""The API on PostgreSQL at its defaults: `python -m bench.api` (`make bench-api`).

`docmill serve` in a process of its own over a hundred thousand documents with as many open review items. Measured over
HTTP from this process: lists and single documents, the next item to review, a hundred reviewers who claim ten thousand
items at once (each item once, none left over), and five hundred uploads of a megabyte at the same time with the memory
of the server before and at its highest. Milliseconds, p50 and p99. Ends with one line of JSON.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil

from bench.review import filled
from bench.servers import running
from docmill.db.database import Database
from docmill.model.ids import DEFAULT_ORG
from docmill.model.people import Role, system_principal
from docmill.services.keys import Keys
from docmill.services.organisations import Organisations

HOME = Path(".bench")
API = "/api/v1"
_MB = 1 << 20
_PATIENCE = 300.0


@contextmanager
def served(url: str, home: Path) -> Iterator[tuple[str, str, int]]:
    """A server over this database: its address, its token, its process."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("DOCMILL_")},
        "DOCMILL_HOME": str(home),
        "DOCMILL_DATABASE_URL": url,
        "DOCMILL_API__RATE": "1000000",
        "DOCMILL_API__BURST": "1000000",
    }
    command = [sys.executable, "-m", "docmill", "serve", "--port", "0", "--json"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            yield told["address"], Path(told["token_file"]).read_text().strip(), process.pid
        finally:
            process.terminate()
            process.wait(60)


def told(name: str, spent: Sequence[float]) -> dict[str, float]:
    """p50 and p99."""
    ordered = sorted(spent)
    return {
        f"{name}_p50_ms": round(ordered[len(ordered) // 2], 2),
        f"{name}_p99_ms": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))], 2),
    }


def cpu(server: int) -> float:
    """Milliseconds of CPU that the server has used; what others on the machine take does not count."""
    used = psutil.Process(server).cpu_times()
    return 1000 * float(used.user + used.system)


async def timed(name: str, server: int, deed: Callable[[], Awaitable[httpx.Response]], times: int) -> dict[str, float]:
    """Milliseconds of each request, one after the other, and of the server's CPU."""
    spent, before = [], cpu(server)
    for _ in range(times):
        begin = time.perf_counter()
        answer = await deed()
        spent.append(1000 * (time.perf_counter() - begin))
        assert answer.is_success, answer.text
    return told(name, spent) | {f"{name}_cpu_ms": round((cpu(server) - before) / times, 2)}


async def looks(client: httpx.AsyncClient, server: int, times: int) -> dict[str, float]:
    """Lists, single documents, the next item."""
    page = (await client.get(f"{API}/documents", params={"limit": 50})).json()
    deep = page["next_cursor"]
    ids = [document["id"] for document in page["items"]]
    following = {"cursor": deep}
    figures = await timed("list_50", server, lambda: client.get(f"{API}/documents"), times)
    figures |= await timed("list_on", server, lambda: client.get(f"{API}/documents", params=following), times)
    figures |= await timed("get", server, lambda: client.get(f"{API}/documents/{ids[0]}"), times)
    figures |= await timed("next_item", server, lambda: client.get(f"{API}/review/next"), times)
    figures |= await timed("claim_next", server, lambda: client.post(f"{API}/review/next/claim"), times // 4)
    return figures


async def claims(address: str, server: int, tokens: Sequence[str], items: int) -> dict[str, Any]:
    """All reviewers at once, until so many items are claimed: each once."""
    taken: list[str] = []
    spent: list[float] = []

    async def review(token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=address, headers=headers, timeout=_PATIENCE) as client:
            while len(taken) < items:
                begin = time.perf_counter()
                answer = await client.post(f"{API}/review/next/claim")
                spent.append(1000 * (time.perf_counter() - begin))
                assert answer.status_code == 200, answer.text
                taken.append(answer.json()["id"])

    begin, before = time.perf_counter(), cpu(server)
    await asyncio.gather(*(review(token) for token in tokens))
    seconds, used = time.perf_counter() - begin, cpu(server) - before
    assert len(set(taken)) == len(taken), "an item was given out twice"
    figures: dict[str, Any] = told(f"claim_{len(tokens)}_at_once", spent)
    figures["claim_cpu_ms"] = round(used / len(taken), 2)
    return figures | {"claimed": len(taken), "claims_s": round(len(taken) / seconds, 1)}


async def uploads(address: str, token: str, server: int, count: int) -> dict[str, Any]:
    """So many uploads of a megabyte at once; the memory of the server meanwhile."""
    process = psutil.Process(server)
    before = process.memory_info().rss
    highest, done = before, False

    async def watch() -> None:
        nonlocal highest
        while not done:
            highest = max(highest, process.memory_info().rss)
            await asyncio.sleep(0.05)

    limits = httpx.Limits(max_connections=count)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=_PATIENCE, limits=limits) as client:

        async def upload(number: int) -> int:
            content = b"%PDF-1.7\n" + number.to_bytes(8, "big") + bytes(_MB)
            answer = await client.post(f"{API}/documents", files={"file": (f"{number}.pdf", content)})
            return answer.status_code

        watching = asyncio.ensure_future(watch())
        begin = time.perf_counter()
        statuses = await asyncio.gather(*(upload(number) for number in range(count)))
        seconds = time.perf_counter() - begin
        done = True
        await watching
    wrong = [status for status in statuses if status != 201]
    return {
        "uploads": count,
        "uploads_failed": len(wrong),
        "uploads_s": round(count / seconds, 1),
        "memory_before_mb": round(before / _MB, 1),
        "memory_highest_mb": round(highest / _MB, 1),
    }


def keys_for(url: str, reviewers: int) -> list[str]:
    """A key for each reviewer."""
    database = Database(url)
    try:
        Organisations(database).found("Bench", "boss@bench.example", "Boss", another=False, by="bench")
        keys = Keys(database, DEFAULT_ORG)
        boss = system_principal(DEFAULT_ORG, "boss")
        return [keys.create(boss, f"reviewer-{number}", role=Role.REVIEWER)[1] for number in range(reviewers)]
    finally:
        database.close()


async def measure(address: str, token: str, server: int, tokens: Sequence[str], wanted: Any) -> dict[str, Any]:
    """All figures."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=_PATIENCE) as client:
        await looks(client, server, 20)
        figures: dict[str, Any] = await looks(client, server, wanted.times)
    figures |= await claims(address, server, tokens, wanted.claims)
    await uploads(address, token, server, 20)
    figures |= await uploads(address, token, server, wanted.uploads)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--reviewers", type=int, default=100)
    parser.add_argument("--claims", type=int, default=10_000)
    parser.add_argument("--uploads", type=int, default=500)
    wanted = parser.parse_args()
    with running(HOME) as servers:
        url = servers.fresh_database("api")
        filled(url, wanted.items).close()
        tokens = keys_for(url, wanted.reviewers)
        with served(url, servers.folder / "api-home") as (address, token, server):
            figures = asyncio.run(measure(address, token, server, tokens, wanted))
    for name, value in figures.items():
        print(f"{name:28} {value}")
    print(json.dumps({"bench": "api", "documents": wanted.items, **figures}))


if __name__ == "__main__":
    main()
