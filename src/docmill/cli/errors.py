"""Errors as the command line tells them: a line on stderr, an exit code, never a traceback for what was foreseen."""

import json
import sys
import traceback

from docmill.model.errors import DocmillError, InvalidInput, NotFound

EXIT_FAILED = 1
EXIT_DIFFERENT = 1
"""Of the commands called `diff`, as the one of that name has it: 0 the same, 1 different, 2 trouble."""
EXIT_WRONG_USE = 2
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141

_WRONG_USE_CODES = frozenset({"settings_invalid", "template_invalid", "plugin_invalid", "schema_invalid"})
"""By code, not by class: importing the classes would import what they live with."""


class WrongUse(DocmillError):
    """The command line itself cannot be understood."""

    code = "wrong_use"


def exit_code(error: BaseException) -> int:
    """2 if the person must write something else, 1 if it was well asked and did not work."""
    wrong = isinstance(error, WrongUse | InvalidInput | NotFound)
    if wrong or (isinstance(error, DocmillError) and error.code in _WRONG_USE_CODES):
        return EXIT_WRONG_USE
    return EXIT_FAILED


def report(error: Exception, *, as_json: bool) -> None:
    """Tell it on stderr."""
    if not isinstance(error, DocmillError):
        error = _foreseen(error) or _unforeseen(error)
    if as_json:
        record = {"code": error.code, "message": error.message}
        if error.details:
            record["details"] = error.details  # type: ignore[assignment]
        print(json.dumps({"error": record}, default=str, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"error: {error.message}", file=sys.stderr)


def _foreseen(error: Exception) -> DocmillError | None:
    """Errors of the database and the file system say enough by themselves."""
    # Whoever raises it has imported it; looking it up costs nothing where it cannot have been raised.
    exceptions = sys.modules.get("sqlalchemy.exc")
    if exceptions is not None and isinstance(error, exceptions.DBAPIError):
        reason = str(error.orig).strip().splitlines()[0]
        return DatabaseRefused(f"The database refused: {reason}. `docmill doctor` looks at it.")
    if isinstance(error, OSError) and error.filename is not None:
        return FileTrouble(f"{error.filename}: {error.strerror}.")
    return None


def _unforeseen(error: Exception) -> DocmillError:
    traceback.print_exception(error)
    return DocmillError(f"This is a bug in Docmill: {type(error).__name__}: {error}. Please report the lines above.")


class DatabaseRefused(DocmillError):
    """The database answered with an error of its own."""

    code = "database_error"


class FileTrouble(DocmillError):
    """The operating system refused a file."""

    code = "file_error"
