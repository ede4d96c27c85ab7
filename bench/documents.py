"""Reading documents, beside the libraries underneath in the same run: `python -m bench.documents` (`make bench-docs`).

Text: pages per second of the PDFs with embedded text, by `outline` in a warm process, beside opening the same files
with pypdfium2 and taking nothing but the text of every page. OCR: seconds per page of scanned documents, by `read_page`
in as many children as there are cores, beside RapidOCR with word boxes in as many processes, one thread each and
without the classifier of orientation: once with Docmill's settings (the detector's size, how far pieces are widened,
lines one by one), once at its defaults.

The whole product: pages and documents per second of `docmill process` on invoices made here, of one page and of
several, CPU and memory (`bench.product`).

Other documents come from the labelled data (`DOCMILL_DATA`, else `../shared/data`); without it they too are made
here. Ends with one line of JSON.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench import product, reading
from docmill.documents.limits import Limits
from docmill.engine.children import Children, ChildSettings

CORES = os.cpu_count() or 1
LIMITS = Limits()


def texts(files: list[Path], rounds: int) -> dict[str, float]:
    """Pages per second on one core, the best of several rounds: Docmill's outline and plain PDFium in turns."""
    paths = [str(path) for path in files]
    ours: list[float] = []
    theirs: list[float] = []
    pages = 0
    for _ in range(rounds):
        for function, times in ((reading.outline_all, ours), (reading.pdfium_all, theirs)):
            begin = time.process_time()
            pages = function(paths)
            times.append(time.process_time() - begin)
    return {
        "text_files": len(files),
        "text_pages": pages,
        "text_pages_s": round(pages / min(ours), 1),
        "text_ms_per_page": round(1000 * min(ours) / pages, 2),
        "pdfium_pages_s": round(pages / min(theirs), 1),
        "pdfium_ms_per_page": round(1000 * min(theirs) / pages, 2),
    }


async def scans(files: list[Path]) -> dict[str, float]:
    """Seconds per page with every core busy, models loaded before the clock starts."""
    figures: dict[str, float] = {"ocr_pages": len(files)}
    for name, warm, function in (
        ("ocr_s_per_page", reading.warm_ours, reading.read_ours),
        ("rapidocr_alike_s_per_page", reading.warm_alike, reading.read_alike),
        ("rapidocr_s_per_page", reading.warm_raw, reading.read_raw),
    ):
        children = Children(ChildSettings(count=CORES, tasks=10_000))
        try:
            await asyncio.gather(*(children.run(warm, (), 300.0) for _ in range(CORES)))
            begin = time.perf_counter()
            spent = await asyncio.gather(*(children.run(function, (str(path),), 300.0) for path in files))
            figures[name] = round((time.perf_counter() - begin) / len(files), 3)
            figures[name.replace("s_per_page", "cpu_s_per_page")] = round(sum(spent) / len(files), 3)
        finally:
            children.close()
    for name in ("rapidocr_alike", "rapidocr"):
        ratio = figures["ocr_cpu_s_per_page"] / figures[f"{name}_cpu_s_per_page"]
        figures["ocr_ratio_alike" if name == "rapidocr_alike" else "ocr_ratio"] = round(ratio, 3)
    return figures


def chosen(data: Path, made: Path, pages: int) -> tuple[list[Path], list[Path]]:
    """Text PDFs and scanned pages: of the labelled data, or made here."""
    if (data / "invoices").is_dir():
        pdfs = sorted([*(data / "einvoices/files").glob("*.pdf"), *(data / "invoices/files").glob("*.pdf")])
        text = [path for path in pdfs if reading.has_text(str(path))]
        pictures = sorted((data / "receipts/img").glob("*.jpg"))
        return text, pictures[:: max(1, len(pictures) // pages)][:pages]
    return reading.made_here(made, pages)


def main(say: Callable[[str], None] = print) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=12, help="scanned pages that are read")
    parser.add_argument("--rounds", type=int, default=3, help="times that all text is read")
    parser.add_argument("--documents", type=int, default=1000, help="invoices that `docmill process` works through")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(os.environ.get("DOCMILL_DATA", "../shared/data"))
        text_files, pictures = chosen(data, Path(folder), options.pages)
        found = texts(text_files, options.rounds)
        say(
            f"text: {found['text_pages_s']} pages/s of one core ({found['text_ms_per_page']} ms a page) in "
            f"{found['text_files']} PDFs; plain PDFium text {found['pdfium_pages_s']} pages/s"
        )
        seen = asyncio.run(scans(pictures))
        say(
            f"OCR: {seen['ocr_s_per_page']} s a page with {CORES} cores busy ({seen['ocr_cpu_s_per_page']} s CPU); "
            f"RapidOCR at the same settings {seen['rapidocr_alike_s_per_page']} s "
            f"({seen['rapidocr_alike_cpu_s_per_page']} s CPU, ours {seen['ocr_ratio_alike']} of it), at its defaults "
            f"{seen['rapidocr_s_per_page']} s ({seen['rapidocr_cpu_s_per_page']} s CPU, {seen['ocr_ratio']})"
        )
        whole = product.whole_product(Path(folder), options.documents)
        say(product.told(whole))
    say(json.dumps({"bench": "documents", "cores": CORES, **found, **seen, **whole}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
