"""Which documents add up, and which of them are the same paper as another in other bytes.

The second is told while documents are read, too (`docmill.extraction.same_paper`), and asked anew here: what a person
corrected or rejected since, and what lies in this folder at all, decides what a sum over it must leave out.
"""

from typing import TYPE_CHECKING

from docmill.extraction.classification import PRECISE
from docmill.extraction.likeness import KINDS as LEARNED
from docmill.extraction.same_paper import INVOICE, RECEIPT
from docmill.extraction.several_documents import CHECK as SEVERAL
from docmill.model.review import ReviewStatus
from docmill.outputs.duck import quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

REVIEW = "review"
SAME_AS = "same_as"
"""The column that names the document whose paper this one shows as well."""
COUNTED = (
    f"current AND NOT (schema IN ({', '.join(map(quoted, sorted(LEARNED)))}) "
    f"AND document_type IN ({', '.join(quoted(kind.value) for kind in PRECISE)}))"
)
"""Which rows of `documents` add up: what is owed or paid, once. A schema of one's own may be for quotes."""
STANDS = f"{REVIEW} IS DISTINCT FROM {quoted(ReviewStatus.REJECTED.value)}"
"""What a person has rejected is no result; whoever asks for it by its status gets it."""


def _loose(column: str) -> str:
    """Letters and digits alone, as the readers compare; nothing is null."""
    text = f"lower(nfc_normalize(CAST({column} AS VARCHAR)))"
    return rf"nullif(regexp_replace({text}, '[^\p{{L}}\p{{N}}]', '', 'g'), '')"


def _failing(check: str) -> str:
    # A name that no column of a schema has, for it would be taken for the column.
    return f"len(list_filter(fields, lambda __found: coalesce(contains(__found.failed, {quoted(check)}), false))) > 0"


_KNOWN_BY = (
    f"CASE WHEN schema = 'receipt' THEN {_loose('company')} || '/' || CAST(date AS VARCHAR) || '/' || "
    f"CASE WHEN TRY_CAST(total AS DOUBLE) <> 0 THEN CAST(total AS VARCHAR) END ELSE {_loose('seller_name')} || '/' || "
    f"{_loose('invoice_number')} END"
)
_TABLE = "__gathered"
_AT = "CASE WHEN schema = 'receipt' THEN CAST(time AS VARCHAR)[1:5] END"
_KEYED = (
    f"SELECT org_id, id, schema, {_KNOWN_BY} AS known_by, {_AT} AS clock, row_number() OVER "
    # Whom a check accuses is the other; of receipts, one that says its time stands for one that does not.
    f"(ORDER BY schema = 'receipt' AND time IS NULL, {_failing(INVOICE)} OR {_failing(RECEIPT)}, created_at, id) "
    f"AS place FROM {_TABLE} WHERE {COUNTED} AND {STANDS} AND NOT {_failing(SEVERAL)}"
)
_OF_ANY_TIME = "first_value(id) OVER (PARTITION BY org_id, schema, known_by ORDER BY place)"
_OF_ITS_MINUTE = "first_value(id) OVER (PARTITION BY org_id, schema, known_by, clock ORDER BY place)"
_TWINS = (
    f"SELECT id, CASE WHEN clock IS NULL THEN {_OF_ANY_TIME} ELSE {_OF_ITS_MINUTE} END AS first "
    f"FROM ({_KEYED}) WHERE known_by IS NOT NULL"
)


def note_twins(connection: "DuckDBPyConnection", table: str) -> None:
    """Fill the column `same_as` of the gathered documents: of one paper the first has none, the others name it."""
    connection.execute(
        f"UPDATE {table} SET {SAME_AS} = twins.first FROM ({_TWINS.replace(_TABLE, table)}) AS twins "
        f"WHERE {table}.id = twins.id AND twins.first <> twins.id"
    )
