"""Image files: how many frames they have, and one frame as pixels, upright as the camera noted it."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from PIL import Image, UnidentifiedImageError

from docmill.documents.faults import DamagedFile, NoSuchPage, TooManyPixels
from docmill.documents.limits import Limits
from docmill.documents.reading import Format

_PIL_NAMES = {
    Format.PNG: "PNG",
    Format.JPEG: "JPEG",
    Format.WEBP: "WEBP",
    Format.GIF: "GIF",
    Format.TIFF: "TIFF",
    Format.BMP: "BMP",
}
_SEVERAL = (Format.TIFF, Format.GIF, Format.WEBP)
_ORIENTATION = 0x0112
_EXIF_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_SWAPPING = (
    Image.Transpose.TRANSPOSE,
    Image.Transpose.ROTATE_270,
    Image.Transpose.TRANSVERSE,
    Image.Transpose.ROTATE_90,
)
_JPEG_SHRINKS = 4
"""A JPEG can be decoded at a fraction of its sides, so it may have this many times the pixels of another image."""


@contextmanager
def opened(data: bytes, kind: Format) -> Iterator[Any]:
    """The image by its header, not decoded yet."""
    usual = Image.MAX_IMAGE_PIXELS
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Only the header is read here; `check_size` comes before any pixel, and knows what a JPEG is allowed.
            Image.MAX_IMAGE_PIXELS = None
            image = Image.open(io.BytesIO(data), formats=[_PIL_NAMES[kind]])
            Image.MAX_IMAGE_PIXELS = usual
            with image:
                yield image
    except Image.DecompressionBombError:
        raise TooManyPixels("The image is larger than can be read safely. Save it with fewer pixels.") from None
    except (
        UnidentifiedImageError,
        OSError,
        SyntaxError,
        ValueError,
        EOFError,
        IndexError,
        KeyError,
        TypeError,
    ) as error:
        raise DamagedFile(f"The image is damaged ({error}). Scan or save it again.") from None
    finally:
        Image.MAX_IMAGE_PIXELS = usual


def count_frames(image: Any, kind: Format, limits: Limits) -> tuple[int, bool]:
    """How many frames are read, and whether there are more. Counting stops there: a file may declare endless ones."""
    if kind not in _SEVERAL:
        return 1, False
    frames = 1
    while frames <= limits.max_frames:
        try:
            image.seek(frames)
        except EOFError:
            return frames, False
        frames += 1
    return limits.max_frames, True


def check_size(image: Any, kind: Format, limits: Limits) -> None:
    """Refuse more pixels than the limit, by what the header says."""
    width, height = image.size
    most = limits.max_pixels * (_JPEG_SHRINKS if kind is Format.JPEG else 1)
    if width < 1 or height < 1:
        raise DamagedFile("The image has no size. Scan or save it again.")
    if width * height > most:
        raise TooManyPixels(
            f"The image has {width} x {height} pixels, more than {most:,} in all. Save it with fewer, or raise "
            "documents.max_pixels.",
            width=width,
            height=height,
        )


def frame(
    image: Any, kind: Format, number: int, limits: Limits, *, max_side: int | None = None, max_pixels: int | None = None
) -> tuple[Any, int, int]:
    """One frame in RGB, within these bounds, turned as its EXIF says; with its full width and height."""
    if number > limits.max_frames:
        raise NoSuchPage(f"Only the first {limits.max_frames} frames are read; there is no page {number}.")
    if number > 1:
        try:
            image.seek(number - 1)
        except EOFError:
            raise NoSuchPage(f"The image has no frame {number}.") from None
    check_size(image, kind, limits)
    full = image.size
    scale = min(
        1.0,
        max_side / max(full) if max_side else 1.0,
        ((max_pixels or limits.max_pixels) / (full[0] * full[1])) ** 0.5,
    )
    size = (max(1, round(full[0] * scale)), max(1, round(full[1] * scale)))
    if kind is Format.JPEG and scale < 1:
        # The decoder then works on a half, quarter or eighth of the sides, never below what is wanted.
        image.draft("RGB", size)
        if image.size[0] * image.size[1] > limits.max_pixels:
            raise TooManyPixels("The image is larger than can be read safely. Save it with fewer pixels.")
    image.load()
    # Asked for after loading: some decoders turn the image themselves, and take the note away.
    turn = _EXIF_TURNS.get(image.getexif().get(_ORIENTATION, 1))
    width, height = full if kind is Format.JPEG else image.size
    if turn in _SWAPPING:
        width, height = height, width
    plain = _eight_bits(image)
    if scale < 1 and plain.size != size:
        plain = plain.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)
    return _on_white(plain if turn is None else plain.transpose(turn)), width, height


def _eight_bits(image: Any) -> Any:
    """Without palettes and sixteen-bit greys, so that it can be scaled."""
    if image.mode.startswith("I;16") or image.mode in ("I", "F"):
        low, high = image.convert("F").getextrema()
        scale = 255.0 / max(high - low, 1.0)
        return image.convert("F").point(lambda value: value * scale - low * scale).convert("L")
    if image.mode == "1":
        return image.convert("L")
    if image.mode == "P":
        return image.convert("RGBA" if "transparency" in image.info else "RGB")
    return image


def _on_white(image: Any) -> Any:
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa"):
        image = image.convert("RGBA")
        paper = Image.new("RGB", image.size, "white")
        paper.paste(image, mask=image.getchannel("A"))
        return paper
    return image if image.mode == "RGB" else image.convert("RGB")
