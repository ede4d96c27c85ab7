"""`docmill process` on invoices with embedded text, measured from outside: time, CPU and memory.

Twice: many invoices of one page, where most of the work is that of a document, and fewer of three or four pages.

The command runs as a process of its own. While it runs, its memory and that of its children is looked at a few times a
second, and so is what each of them has used of the CPU: wall time says little on a machine that others use too.
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from bench import reading

_LOOK = 0.2
"""Seconds between two looks."""
_QUARTERS = (0.25, 0.5, 1.0)


PER_LONG = 4
"""One long invoice for so many short ones: about as many pages."""


def whole_product(folder: Path, documents: int) -> dict[str, float]:
    """Make the invoices, process them, and say what it took."""
    short = _measured(folder / "short", documents, long=False)
    long = _measured(folder / "long", max(1, documents // PER_LONG), long=True)
    return {f"product_{name}": value for name, value in short.items()} | {
        f"product_long_{name}": value for name, value in long.items()
    }


def _measured(folder: Path, documents: int, *, long: bool) -> dict[str, float]:
    papers = made(folder / "papers", documents, long=long)
    begin = time.process_time()
    pages = reading.pdfium_all([str(path) for path in papers])
    plain = time.process_time() - begin
    watched = _Watched()
    begin = time.perf_counter()
    command = [
        sys.executable,
        "-c",
        "from docmill.cli import main; main()",
        "process",
        str(folder / "papers"),
        "--json",
    ]
    environment = {**os.environ, "DOCMILL_HOME": str(folder / "home")}
    with (folder / "answer.json").open("wb") as answer:
        process = subprocess.Popen(command, env=environment, stdout=answer, stderr=subprocess.DEVNULL)
        usage = watched.until_its_end(process)
    spent = time.perf_counter() - begin
    if process.returncode:
        raise SystemExit(f"docmill process ended with {process.returncode}")
    children = watched.children_cpu
    figures = {
        "documents": float(documents),
        "pages": float(pages),
        "documents_s": round(documents / spent, 1),
        "pages_s": round(pages / spent, 1),
        "cores": round(usage / spent, 2),
        "cpu_ms": round(1000 * usage / documents, 1),
        "cpu_ms_parent": round(1000 * (usage - children) / documents, 1),
        "cpu_ms_children": round(1000 * children / documents, 1),
        "cpu_ms_per_page": round(1000 * usage / pages, 1),
        "pdfium_cpu_ms": round(1000 * plain / documents, 2),
    }
    for share in _QUARTERS:
        figures[f"peak_mb_at_{share * 100:.0f}"] = watched.peak(begin + share * spent)
    return figures


def told(found: dict[str, float]) -> str:
    """In a sentence or two for each kind."""
    return "\n".join(
        _told({name.removeprefix(start): value for name, value in found.items() if name.startswith(start)})
        for start in ("product_", "product_long_")
    )


def _told(found: dict[str, float]) -> str:
    peaks = " / ".join(f"{found[f'peak_mb_at_{share * 100:.0f}']:.0f}" for share in _QUARTERS)
    return (
        f"docmill process: {found['pages_s']} pages/s, {found['documents_s']} documents/s of "
        f"{found['documents']:.0f} with {found['pages']:.0f} pages; {found['cpu_ms']} ms CPU a document "
        f"({found['cpu_ms_parent']} worker, {found['cpu_ms_children']} children; bare PDFium text "
        f"{found['pdfium_cpu_ms']}), {found['cpu_ms_per_page']} a page, {found['cores']} cores busy; "
        f"peak memory {peaks} MB after a quarter, a half and all of the time"
    )


def made(folder: Path, count: int, *, long: bool = False) -> list[Path]:
    """So many different invoices."""
    folder.mkdir(parents=True)
    with ProcessPoolExecutor() as pool:
        return list(pool.map(_make, [str(folder)] * count, range(count), [long] * count, chunksize=20))


def _make(folder: str, seed: int, long: bool) -> Path:
    from docmill.testing.papers import invoice_pdf

    # Few enough items to fit on one page, whatever the layout; or enough for three or four.
    items = 75 + seed % 25 if long else 1 + seed % 8
    return invoice_pdf(seed, items=items).write(Path(folder))


@dataclass
class _Watched:
    """What was seen of a process and its children."""

    memory: list[tuple[float, float]] = field(default_factory=list)
    """When, and how much of it (MB) all of them had together."""
    cpu: dict[int, float] = field(default_factory=dict)

    def until_its_end(self, process: "subprocess.Popen[bytes]") -> float:
        """Look until it ends; the CPU seconds of all."""
        import psutil

        seen = psutil.Process(process.pid)
        while True:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                process.returncode = os.waitstatus_to_exitcode(status)
                return usage.ru_utime + usage.ru_stime
            total = 0.0
            try:
                for each in (seen, *seen.children(recursive=True)):
                    times = each.cpu_times()
                    total += each.memory_info().rss / 2**20
                    if each.pid != process.pid:
                        self.cpu[each.pid] = times.user + times.system
            except psutil.Error:
                pass  # Ended between two looks.
            else:
                self.memory.append((time.perf_counter(), total))
            time.sleep(_LOOK)

    @property
    def children_cpu(self) -> float:
        return sum(self.cpu.values())

    def peak(self, until: float) -> float:
        """The most that was seen up to then, in MB."""
        return round(max((memory for at, memory in self.memory if at <= until), default=0.0), 1)
