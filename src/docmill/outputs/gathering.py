"""All Parquet files of the outputs as one table.

Opening a file of one row costs DuckDB 2 to 3 ms, however little is in it, and half a megabyte while many are open. So
files are read a few hundred at a time, and what was read is kept in larger files under home: the next look reads only
what is new or changed. Those are a copy: whoever deletes them loses time, nothing else.
"""

import glob
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from docmill.extraction.classification import DocumentType
from docmill.extraction.result import Extraction, Reader
from docmill.extraction.schema import load_schema, shipped
from docmill.model.documents import WITH_OUTPUTS, DocumentStatus
from docmill.model.errors import DocmillError
from docmill.outputs.counting import REVIEW, SAME_AS, note_twins
from docmill.outputs.duck import connect, named, quoted
from docmill.outputs.files import put
from docmill.outputs.layout import ADDED, FACTS, FIELDS, SIGNED_TOTAL, TOTAL, column_name, layout_of
from docmill.outputs.parquet import Column, ColumnType, write_rows
from docmill.outputs.places import OutputFormat, OutputSettings

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_AT_ONCE = 200
"""Files that are read together."""
_WORTH_KEEPING = 50
"""Fewer new files than this are read again next time."""
_MOST_PARTS = 40
"""More larger files than this are made one."""
_ROWS = 5000
"""Documents without outputs, or reviews, in one file."""
_TRIES = 3
_PATH, _STAMP = "__path", "__stamp"
DOCUMENTS = "documents"
_ERRORS = (Column("error_code"), Column("error_message"))
_REVIEWS = (Column("document_id"), Column("round", ColumnType.INTEGER), Column(REVIEW))
FIRST = (
    *("file_name", "status", REVIEW, "document_type", "current", "duplicate_of", SAME_AS),
    *("error_code", "error_message"),
)
"""Columns that come before the fields; what machines need comes behind them."""
_ASKED_LAST = (
    "max((created_at, id)) OVER (PARTITION BY org_id, coalesce(sha256, id), schema, coalesce(duplicate_of, id))"
)
_CURRENT = (
    f"status IN ({', '.join(quoted(status.value) for status in sorted(WITH_OUTPUTS))}) AND row_number() OVER "
    "(PARTITION BY org_id, coalesce(sha256, id), schema "
    f"ORDER BY status = {quoted(DocumentStatus.COMPLETED.value)} DESC, asked_last DESC, created_at DESC, id DESC) = 1"
)
"""Of the same bytes and schema, the result whose question was asked last, by itself or by a copy of it. A copy stands
for a result that lies in another folder."""
_AMOUNT = f"TRY_CAST({TOTAL} AS DECIMAL(18, 4))"
"""A schema of one's own may have a total that is text, and then the column is."""
_SIGNED_TOTAL = (
    f"CASE WHEN document_type = {quoted(DocumentType.CREDIT_NOTE.value)} THEN -abs({_AMOUNT}) ELSE {_AMOUNT} END"
)
"""What adds up: some credit notes print what they give back with a minus, and some without."""


def _nothing() -> Iterable[Mapping[str, object]]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the database says beside the outputs. Each may be asked again."""

    without: Callable[[], Iterable[Mapping[str, object]]] = _nothing
    """Documents, by the names of columns, that have a row even if they have no outputs."""
    reviews: Callable[[], Iterable[Mapping[str, object]]] = _nothing
    """Where review items stand at this moment: `document_id`, `round`, and as `review` the status, or None for an item
    that stands for nothing any more."""


NOTHING_KNOWN = Known()


class NothingYet(DocmillError):
    """There are no outputs to look at."""

    code = "no_outputs"


class OutputDamaged(DocmillError):
    """A file among the outputs cannot be read."""

    code = "output_damaged"


def gather(
    settings: OutputSettings,
    cache: Path | None,
    notice: Callable[[int], None] = lambda count: None,
    known: Known = NOTHING_KNOWN,
    *,
    org_id: str | None = None,
) -> "DuckDBPyConnection":
    """A database in memory whose table `documents` has a row for every Parquet file.

    `current` tells which of them count: each document once for each schema; `same_as` which of these show a paper that
    another shows. `review` is where its review stands now,
    as the database knows it. `notice` hears how many files are to be read when that takes a while. With an `org_id`
    only rows of that organisation are loaded. NothingYet if there is nothing at all.
    """
    for _ in range(_TRIES - 1):
        try:
            return _gathered(settings, cache, notice, known, org_id)
        except _Vanished:
            # Somebody else has just replaced a file, or put parts together: look again.
            continue
    return _gathered(settings, cache, notice, known, org_id)


class _Vanished(Exception):
    """A file that was listed is no longer there."""


def _gathered(
    settings: OutputSettings,
    cache: Path | None,
    notice: Callable[[int], None],
    known: Known,
    org_id: str | None,
) -> "DuckDBPyConnection":
    connection = connect()
    try:
        with tempfile.TemporaryDirectory(prefix="docmill-") as name:
            mine = (row for row in known.without() if org_id is None or row["org_id"] == org_id)
            listed, more = _listed(settings), _written(mine, (*FACTS, *_ERRORS), Path(name, "without"))
            if not listed and not more:
                raise NothingYet(
                    f"There are no outputs under {settings.root} yet. Process documents first: docmill process FILES.",
                    root=str(settings.root),
                )
            _fill(connection, settings, cache, listed, Path(name), notice, org_id)
            # Behind what takes long: where reviews stand is told as of now.
            _note_reviews(connection, known.reviews(), Path(name, "reviews"))
            _finish(connection, more, Path(name))
    except BaseException:
        connection.close()
        raise
    return connection


def _fill(
    connection: "DuckDBPyConnection",
    settings: OutputSettings,
    cache: Path | None,
    listed: dict[str, str],
    workshop: Path,
    notice: Callable[[int], None],
    org_id: str | None,
) -> None:
    from duckdb import IOException

    _note(connection, listed, workshop)
    kept = _folder(cache, settings, workshop)
    try:
        fresh = _fresh(connection, _parts(kept), listed)
        if len(fresh) > _AT_ONCE:
            notice(len(fresh))
        target = kept if len(fresh) >= _WORTH_KEEPING else workshop
        for start in range(0, len(fresh), _AT_ONCE):
            _pack(connection, fresh[start : start + _AT_ONCE], target)
        if len(_parts(kept)) > _MOST_PARTS:
            _merge(connection, kept)
        parts = [*_parts(kept), *(_parts(workshop) if target is workshop and kept != workshop else ())]
        _load(connection, [*parts, *_prototypes(workshop / "empty")], org_id)
    except IOException as error:
        raise _Vanished from error


def _listed(settings: OutputSettings) -> dict[str, str]:
    """Path -> what changes when the file does."""
    found = {}
    for path in sorted(glob.iglob(settings.pattern(OutputFormat.PARQUET))):
        try:
            seen = os.stat(path)
        except FileNotFoundError:
            continue
        found[path] = f"{seen.st_mtime_ns}-{seen.st_size}-{seen.st_ino}"
    return found


def _note(connection: "DuckDBPyConnection", listed: dict[str, str], workshop: Path) -> None:
    """The list as a table; as a file, because row by row takes DuckDB minutes."""
    rows = [{_PATH: path, _STAMP: stamp} for path, stamp in listed.items()]
    file = workshop / "listed"
    file.write_bytes(write_rows((Column(_PATH), Column(_STAMP)), rows))
    connection.execute(f"CREATE TEMP TABLE listed AS FROM read_parquet({quoted(str(file))})")


def _folder(cache: Path | None, settings: OutputSettings, workshop: Path) -> Path:
    """Where parts are kept: a folder for each root, or the workshop if none can be written."""
    if cache is None:
        return workshop
    folder = cache / hashlib.sha256(str(settings.root.resolve()).encode()).hexdigest()[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return workshop
    return folder if os.access(folder, os.W_OK) else workshop


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


def _read(files: Iterable[Path | str], *more: str) -> str:
    names = ", ".join(quoted(str(file)) for file in files)
    return f"read_parquet([{names}], {', '.join(['union_by_name = true', *more])})"


def _fresh(connection: "DuckDBPyConnection", parts: Sequence[Path], listed: dict[str, str]) -> list[str]:
    """The files that no part holds as they are now."""
    if not parts:
        return list(listed)
    query = f"SELECT {_PATH} FROM listed ANTI JOIN {_read(parts)} AS parts USING ({_PATH}, {_STAMP}) ORDER BY {_PATH}"
    return [path for (path,) in connection.execute(query).fetchall()]


def _pack(connection: "DuckDBPyConnection", files: Sequence[str], target: Path) -> None:
    """Many small files as a larger one, each row with the path and the stamp of the file it comes from."""
    from duckdb import Error

    source = _read(files, f"filename = {quoted(_PATH)}")
    query = f"SELECT found.*, listed.{_STAMP} FROM {source} AS found JOIN listed USING ({_PATH})"
    try:
        _copy(connection, query, target)
    except Error as error:
        damaged = _damaged(connection, files)
        if any(not os.path.exists(file) for file in files):
            raise _Vanished from error
        place = damaged or files[0]
        raise OutputDamaged(
            f"The output {place} cannot be read: {_reason(error)}. Delete it, or process its document again.",
            path=place,
        ) from error


def _copy(connection: "DuckDBPyConnection", query: str, target: Path) -> None:
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="docmill-") as name:
        file = Path(name, "part")
        connection.execute(f"COPY ({query}) TO {quoted(str(file))} (FORMAT parquet, COMPRESSION zstd)")
        content = file.read_bytes()
    # Named after its content: two that look at the same time keep one file.
    put([(target / f"{hashlib.sha256(content).hexdigest()[:24]}.parquet", content)])


def _damaged(connection: "DuckDBPyConnection", files: Sequence[str]) -> str | None:
    from duckdb import Error

    for file in files:
        try:
            connection.execute(f"SELECT count(*) FROM {_read([file])}")
        except Error:
            return file
    return None


def _reason(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")


def _merge(connection: "DuckDBPyConnection", kept: Path) -> None:
    """One part instead of many, without what is gone or has changed."""
    parts = _parts(kept)
    _copy(connection, _rows(parts), kept)
    for part in parts:
        part.unlink(missing_ok=True)


def _rows(parts: Sequence[Path], wanted: str = "true") -> str:
    """What the parts say about files that are there now, once each; other rows than the wanted are left there."""
    return (
        f"SELECT parts.* FROM (FROM {_read(parts)} WHERE {wanted}) AS parts SEMI JOIN listed USING ({_PATH}, {_STAMP}) "
        f"QUALIFY row_number() OVER (PARTITION BY {_PATH}) = 1"
    )


def _load(connection: "DuckDBPyConnection", parts: Sequence[Path], org_id: str | None) -> None:
    mine = "true" if org_id is None else f"org_id = {quoted(org_id)}"
    connection.execute(f"CREATE TABLE gathered AS SELECT * EXCLUDE ({_PATH}, {_STAMP}) FROM ({_rows(parts, mine)})")
    connection.execute("DROP TABLE listed")


def _written(found: Iterable[Mapping[str, object]], columns: tuple[Column, ...], folder: Path) -> list[Path]:
    """Rows as files, some at a time: there may be more of them than are good to hold."""
    folder.mkdir()
    rows = iter(found)
    files: list[Path] = []
    while some := list(islice(rows, _ROWS)):
        files.append(folder / str(len(files)))
        files[-1].write_bytes(write_rows(columns, some))
    return files


def _note_reviews(connection: "DuckDBPyConnection", found: Iterable[Mapping[str, object]], folder: Path) -> None:
    """The table `reviewed`: of each document with an item, where the last of them stands."""
    files = _written(found, _REVIEWS, folder)
    nobody = folder / "nobody"
    nobody.write_bytes(write_rows(_REVIEWS, []))
    connection.execute(
        f"CREATE TEMP TABLE reviewed AS SELECT document_id, {REVIEW} FROM {_read([nobody, *files])} "
        "QUALIFY row_number() OVER (PARTITION BY document_id ORDER BY round DESC) = 1"
    )


def _finish(connection: "DuckDBPyConnection", without: Sequence[Path], workshop: Path) -> None:
    """The table `documents`: all of them, once each, with what people look for first."""
    nobody = workshop / "nobody"
    nobody.write_bytes(write_rows((*FACTS, *_ERRORS), []))
    more = _read([nobody, *without])
    ours = _ours(connection)
    everything = f"SELECT {ours} FROM gathered UNION ALL BY NAME SELECT * FROM {more} ANTI JOIN gathered USING (id)"
    # A copy without an item of its own has that of its original.
    review = f"CASE WHEN mine.document_id IS NULL THEN original.{REVIEW} ELSE mine.{REVIEW} END AS {REVIEW}"
    everything = (
        f"SELECT each.*, {review}, {_SIGNED_TOTAL} AS {SIGNED_TOTAL} FROM ({everything}) AS each "
        "LEFT JOIN reviewed AS mine ON mine.document_id = each.id "
        "LEFT JOIN reviewed AS original ON original.document_id = each.duplicate_of"
    )
    machine = [column.name for column in FACTS if column.name not in FIRST]
    columns = f"{', '.join(FIRST)}, * EXCLUDE ({', '.join([*FIRST, *machine, FIELDS.name])})"
    connection.execute(
        f"CREATE TABLE {DOCUMENTS} AS SELECT {columns}, {', '.join([*machine, FIELDS.name])} "
        f"FROM (SELECT * EXCLUDE (asked_last), {_CURRENT} AS current, NULL::VARCHAR AS {SAME_AS} "
        f"FROM (SELECT *, {_ASKED_LAST} AS asked_last FROM ({everything}))) ORDER BY created_at, id"
    )
    connection.execute("DROP TABLE gathered")
    connection.execute("DROP TABLE reviewed")
    note_twins(connection, DOCUMENTS)


def _ours(connection: "DuckDBPyConnection") -> str:
    """The columns of files. A field that is called as a column which is added here has another name, also in files
    that were written before there was such a column."""
    rows = connection.execute("DESCRIBE gathered").fetchall()
    found = [name for name, *_ in rows]
    taken = [name for name in ADDED if name in found]
    if not taken:
        return "*"
    renamed = [f"{named(name)} AS {named(column_name(name))}" for name in taken if column_name(name) not in found]
    both = [name for name in taken if column_name(name) in found]
    merged = [f"coalesce({named(column_name(name))}, {named(name)}) AS {named(column_name(name))}" for name in both]
    gone = [*taken, *map(column_name, both)]
    return ", ".join([f"* EXCLUDE ({', '.join(map(named, gone))})", *renamed, *merged])


def _prototypes(folder: Path) -> list[Path]:
    """Files without rows that have the columns of the shipped schemas: these are there whatever was processed."""
    folder.mkdir()
    nothing = Extraction(schema="", schema_version="", reader=Reader.LOCAL, document_type="")
    # Where each row comes from is known also where there is none.
    files = [folder / _PATH]
    files[0].write_bytes(write_rows((Column(_PATH), Column(_STAMP)), []))
    for name in shipped():
        files.append(folder / name)
        files[-1].write_bytes(write_rows(layout_of(load_schema(name), nothing).columns, []))
    return files
