"""Whether data is what a JSON Schema asks for: models' answers, steps' results, people's resolutions.

References stay inside a schema: it never makes us fetch anything.
"""

from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

import orjson

from docmill.model.ai_errors import OutputInvalid
from docmill.model.errors import PermanentError

_SHOWN = 5
"""Broken rules that are named; who answers in another shape breaks them all."""


def check_output(schema: Mapping[str, object], value: object, what: str) -> None:
    """Raise OutputInvalid, naming place and rule, unless `value` (plain JSON data) satisfies the schema."""
    fault = schema_fault(schema)
    if fault is not None:
        raise PermanentError(
            f"{what} cannot be checked: its output_schema is no JSON Schema: {fault}. Correct the template."
        )
    broken = violations(schema, value)
    if broken:
        raise OutputInvalid(f"{what} does not satisfy its output_schema: {'; '.join(broken)}.")


def schema_fault(schema: Mapping[str, object]) -> str | None:
    """What is wrong with the schema itself; None: it can be used."""
    try:
        _validator(_key(schema))
    except ValueError as error:
        return str(error).splitlines()[0].rstrip(".")
    return None


def violations(schema: Mapping[str, object], value: object) -> list[str]:
    """The first few rules that the value breaks, each with its place; empty: it fits."""
    fault = schema_fault(schema)
    if fault is not None:
        return [f"the schema it must fit is no JSON Schema: {fault}"]
    found = list(islice(_validator(_key(schema)).iter_errors(value), _SHOWN + 1))
    named = [
        f"{_place(broken.instance_path)}: {_short(broken.message)} (rule {_rule(broken)})" for broken in found[:_SHOWN]
    ]
    return [*named, "and more"] if len(found) > _SHOWN else named


def _key(schema: Mapping[str, object]) -> str:
    return orjson.dumps(schema, option=orjson.OPT_SORT_KEYS).decode()


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    """Compiled once per schema; the library is loaded by the first."""
    import jsonschema_rs

    return jsonschema_rs.validator_for(orjson.loads(schema), offline=True)


def _place(path: list[str | int]) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def _rule(broken: Any) -> str:
    return "/".join(str(part) for part in broken.schema_path) or "false"


def _short(message: str) -> str:
    return message if len(message) <= 200 else f"{message[:197]}..."
