"""What the document benchmarks run, partly inside of children, where `__main__` is another program."""

import resource
import time
from functools import cache
from pathlib import Path
from typing import Any

from docmill.documents.limits import Limits
from docmill.documents.parsing import assemble, outline, read_page

LIMITS = Limits()


def read_some(path: str, limits: Limits, pages: int) -> tuple[str, int]:
    """The file with at most so many pages by OCR, described, and the most memory (MB) that the child has used."""
    seen = outline(path, limits)
    whole = assemble(seen, [read_page(path, number, limits) for number in seen.needs_ocr[:pages]])
    said = f"{whole.format}, {seen.page_count} pages, {len(whole.text)} characters"
    return said, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def has_text(path: str) -> bool:
    """Whether a PDF needs no OCR."""
    return not outline(path, LIMITS).needs_ocr


def outline_all(paths: list[str]) -> int:
    """Read all text with its boxes; how many pages."""
    return sum(outline(path, LIMITS).page_count for path in paths)


def pdfium_all(paths: list[str]) -> int:
    """Take the bare text of every page by pypdfium2; how many pages."""
    import pypdfium2

    pages = 0
    for path in paths:
        with pypdfium2.PdfDocument(path) as document:
            for page in document:
                page.get_textpage().get_text_range()
                pages += 1
    return pages


def warm_ours() -> None:
    """Load the models."""
    from docmill.documents import ocr

    ocr.models()


def read_ours(path: str) -> float:
    """One page by Docmill; CPU seconds."""
    begin = time.process_time()
    read_page(path, 1, LIMITS)
    return time.process_time() - begin


@cache
def _rapidocr(alike: bool = False) -> Any:
    """One thread, no classifier of orientation (Docmill has none); `alike`: what else Docmill sets, set too."""
    from rapidocr import RapidOCR

    from docmill.documents.ocr import UNCLIP

    same = {"Det.unclip_ratio": UNCLIP, "Det.limit_side_len": 32, "Rec.rec_batch_num": 1, "Global.max_side_len": 4000}
    return RapidOCR(
        params={
            "Global.use_cls": False,
            "Global.return_word_box": True,
            "Global.log_level": "critical",
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            **(same if alike else {}),
        }
    )


def warm_raw() -> None:
    """Load the models of a plain RapidOCR."""
    import cv2
    import numpy

    cv2.setNumThreads(1)
    _rapidocr()(numpy.full((64, 320, 3), 255, dtype=numpy.uint8))


def read_raw(path: str) -> float:
    """One image by RapidOCR alone, as it comes; CPU seconds."""
    begin = time.process_time()
    _rapidocr()(path)
    return time.process_time() - begin


def warm_alike() -> None:
    """Load the models of a RapidOCR with Docmill's settings."""
    import cv2
    import numpy

    cv2.setNumThreads(1)
    _rapidocr(alike=True)(numpy.full((64, 320, 3), 255, dtype=numpy.uint8))


def read_alike(path: str) -> float:
    """One image by RapidOCR with Docmill's settings, on the very pixels that Docmill's detector looks at; CPU seconds.

    Its pipeline has one size for both models, so its lines are cut from the smaller picture.
    """
    import numpy

    from docmill.documents.ocr import for_detection
    from docmill.documents.pictures import picture

    begin = time.process_time()
    image, _, _ = picture(path, 1, LIMITS, max_pixels=LIMITS.ocr_side**2)
    pixels = numpy.ascontiguousarray(numpy.asarray(image)[:, :, ::-1])
    _rapidocr(alike=True)(for_detection(pixels))
    return time.process_time() - begin


def made_here(folder: Path, pages: int) -> tuple[list[Path], list[Path]]:
    """Papers for a machine without the labelled data: PDFs of text, and pictures of it."""
    from fpdf import FPDF
    from PIL import Image, ImageDraw, ImageFont

    lines = [
        f"{number}  Screws M{number} x 40, galvanised   {number * 3}   {number * 1.25:.2f}" for number in range(1, 41)
    ]
    texts, pictures = [], []
    for index in range(20):
        pdf = FPDF(unit="pt")
        pdf.set_font("helvetica", size=11)
        for _ in range(3):
            pdf.add_page()
            for row, line in enumerate(lines):
                pdf.text(50, 60 + row * 18, line)
        texts.append(folder / f"text-{index}.pdf")
        texts[-1].write_bytes(bytes(pdf.output()))
    font = ImageFont.load_default(size=24)
    for index in range(pages):
        picture = Image.new("RGB", (800, 1400), "white")
        draw = ImageDraw.Draw(picture)
        for row, line in enumerate(lines):
            draw.text((40, 30 + row * 33), line, fill="black", font=font)
        pictures.append(folder / f"scan-{index}.png")
        picture.save(pictures[-1])
    return texts, pictures
