"""Forms with a file, read piece by piece: the file goes to its place as it comes, and never into memory as a whole."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from email.message import Message as Headers
from typing import TYPE_CHECKING

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from docmill.model.errors import InvalidInput

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

_MOST_TEXT = 4096
"""Bytes of one text field."""
_MOST_HEADERS = 8192
_MOST_PARTS = 20


@dataclass(slots=True)
class Form:
    """What the form says besides its file."""

    fields: dict[str, str] = field(default_factory=dict)
    file_name: str | None = None
    """None: there was no file."""


class _Parts:
    """Takes a form apart. `file` is told of the bytes of the part called so."""

    def __init__(self, file: str, known: frozenset[str], write: Callable[[bytes], None]) -> None:
        self.form = Form()
        self.ended = False
        self._file = file
        self._known = known
        self._write = write
        self._headers: dict[str, str] = {}
        self._name, self._value = b"", b""
        self._field = ""
        self._text = bytearray()
        self._parts = 0
        self._size = 0

    def callbacks(self) -> "MultipartCallbacks":
        return {
            "on_part_begin": self._begin,
            "on_part_data": self._data,
            "on_part_end": self._end,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_finished,
            "on_end": self._finish,
        }

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise InvalidInput(f"The form has more than {_MOST_PARTS} parts.", field="body")
        self._headers, self._text, self._size = {}, bytearray(), 0

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]
        self._bound(end - start)

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        self._bound(end - start)

    def _bound(self, size: int) -> None:
        self._size += size
        if self._size > _MOST_HEADERS:
            raise InvalidInput("The headers of a part of the form are too long.", field="body")

    def _header_end(self) -> None:
        self._headers[self._name.decode("latin-1").lower()] = self._value.decode("utf-8", "replace")
        self._name, self._value = b"", b""

    def _headers_finished(self) -> None:
        kind, options = parse_options_header(self._headers.get("content-disposition", "").encode())
        self._field = options.get(b"name", b"").decode("utf-8", "replace")
        if kind != b"form-data" or self._field not in self._known | {self._file}:
            names = ", ".join(sorted(self._known))
            raise InvalidInput(
                f"The form has a part {self._field!r}; it has the document in {self._file!r}, and may have: {names}.",
                field=f"body.{self._field}",
            )
        if self._field == self._file:
            if self.form.file_name is not None:
                raise InvalidInput("The form has two files; send one form for each.", field=f"body.{self._file}")
            self.form.file_name = _file_name(self._headers.get("content-disposition", ""), options)
        elif self._field in self.form.fields:
            raise InvalidInput(f"The form says {self._field!r} twice.", field=f"body.{self._field}")

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._field == self._file:
            self._write(data[start:end])
            return
        self._text += data[start:end]
        if len(self._text) > _MOST_TEXT:
            raise InvalidInput(f"{self._field} is longer than {_MOST_TEXT} bytes.", field=f"body.{self._field}")

    def _end(self) -> None:
        if self._field != self._file:
            try:
                text = self._text.decode()
            except UnicodeDecodeError:
                raise InvalidInput(f"{self._field} is not UTF-8.", field=f"body.{self._field}") from None
            if "\0" in text:
                raise InvalidInput(f"{self._field} holds a NUL character.", field=f"body.{self._field}")
            self.form.fields[self._field] = text

    def _finish(self) -> None:
        self.ended = True


def _file_name(header: str, options: dict[bytes, bytes]) -> str:
    """What the sender calls the file; RFC 2231 and RFC 8187 forms included."""
    parsed = Headers()
    parsed["content-disposition"] = header
    try:
        found = parsed.get_filename()
    except (LookupError, UnicodeError, ValueError):
        found = None
    return found or options.get(b"filename", b"").decode("utf-8", "replace") or "document"


async def read_form(
    content_type: str,
    body: AsyncIterator[bytes],
    *,
    file: str,
    known: frozenset[str],
    write: Callable[[bytes], None],
) -> Form:
    """Read a form of `multipart/form-data`; InvalidInput names what is wrong with it."""
    kind, options = parse_options_header(content_type.encode("latin-1"))
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary or len(boundary) > 200:
        raise InvalidInput("Send multipart/form-data with a boundary, the file in the part 'file'.", field="body")
    parts = _Parts(file, known, write)
    parser = MultipartParser(boundary, parts.callbacks())
    try:
        async for chunk in body:
            parser.write(chunk)
    except MultipartParseError as error:
        raise InvalidInput(f"The form cannot be taken apart: {error}.", field="body") from None
    if not parts.ended:
        raise InvalidInput(
            "The form ends before its last boundary: the transfer was cut off. Send it again.", field="body"
        )
    if parts.form.file_name is None:
        raise InvalidInput("The form has no file; send it in the part 'file'.", field=f"body.{file}")
    return parts.form
