"""Whether an output is what its `output_schema` asks for. One checker for models' answers and steps' results."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson

from docmill.model.ai_errors import OutputInvalid
from docmill.model.errors import PermanentError

_SHOWN = 5
"""Violations named in a message; a model that answers in another shape breaks every rule at once."""


def check_output(schema: Mapping[str, object], value: object, what: str) -> None:
    """Raise OutputInvalid, naming place and rule, unless `value` (plain JSON data) satisfies the schema."""
    try:
        validator = _validator(orjson.dumps(schema, option=orjson.OPT_SORT_KEYS).decode())
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise PermanentError(
            f"{what} cannot be checked: its output_schema is no JSON Schema: {reason}. Correct the template."
        ) from error
    violations: list[str] = []
    for broken in validator.iter_errors(value):
        if len(violations) == _SHOWN:
            violations.append("and more")
            break
        rule = _rule(broken.schema_path)
        violations.append(f"{_place(broken.instance_path)}: {_short(broken.message)} (rule {rule})")
    if violations:
        raise OutputInvalid(f"{what} does not satisfy its output_schema: {'; '.join(violations)}.")


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    """Compiled once per schema."""
    import jsonschema_rs

    # Offline: a schema never makes us fetch anything.
    return jsonschema_rs.validator_for(orjson.loads(schema), offline=True)


def _place(path: list[str | int]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def _rule(path: list[str | int]) -> str:
    return "/".join(str(part) for part in path) or "false"


def _short(message: str) -> str:
    return message if len(message) <= 200 else f"{message[:197]}..."
