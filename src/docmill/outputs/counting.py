"""Which documents add up, and which of them are the same paper as another in other bytes.

The second is told while documents are read, too (`docmill.extraction.same_paper`), and asked anew here: what a person
corrected or rejected since, and what lies in this folder at all, decides what a sum over it must leave out.
"""

from typing import TYPE_CHECKING

from docmill.extraction.classification import PRECISE, DocumentType
from docmill.extraction.likeness import KINDS as LEARNED
from docmill.extraction.same_paper import INVOICE, RECEIPT
from docmill.extraction.several_documents import CHECK as SEVERAL
from docmill.extraction.values.texts import loose
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


def _failing(check: str) -> str:
    # A name that no column of a schema has, for it would be taken for the column.
    return f"len(list_filter(fields, lambda __found: coalesce(contains(__found.failed, {quoted(check)}), false))) > 0"


_TABLE, _SPELLINGS = "__gathered", "__spellings"
# A receipt by name that is another paper is none, as for the check.
_OF = f"CASE WHEN schema <> 'receipt' THEN {{}} WHEN document_type = {quoted(DocumentType.RECEIPT.value)} THEN {{}} END"
_NUMBER = (
    "CASE WHEN TRY_CAST(total AS DECIMAL(38, 10)) <> 0 THEN CAST(TRY_CAST(total AS DECIMAL(38, 10)) AS VARCHAR) END"
)
"""In one form, also where a schema of one's own has it as text."""
_CANDIDATES = (
    f"SELECT org_id, id, schema, CAST({_OF.format('seller_name', 'company')} AS VARCHAR) AS who, "
    f"CAST({_OF.format('invoice_number', 'NULL')} AS VARCHAR) AS number, "
    f"{_OF.format('NULL', 'CAST(date AS VARCHAR)')} AS day, {_OF.format('NULL', _NUMBER)} AS amount, "
    f"{_OF.format('NULL', 'nullif(CAST(time AS VARCHAR)[1:5], {})').format(quoted(''))} AS clock, "
    f"{_failing(INVOICE)} OR {_failing(RECEIPT)} AS accused, created_at "
    f"FROM {_TABLE} WHERE {COUNTED} AND {STANDS} AND NOT {_failing(SEVERAL)}"
)


def _loose(column: str, spelled: str) -> str:
    """Letters and digits alone, as `loose` leaves them; nothing is null."""
    return f"nullif(coalesce({spelled}, regexp_replace(lower({column}), '[^a-z0-9]', '', 'g')), '')"


_KEYED = (
    f"SELECT *, {_loose('who', 'names.plain')} || '/' || "
    f"CASE WHEN schema = 'receipt' THEN day || '/' || amount ELSE {_loose('number', 'numbers.plain')} END AS known_by, "
    # Whom a check accuses is the other; of receipts, one that says its time stands for one that does not.
    "row_number() OVER (ORDER BY schema = 'receipt' AND clock IS NULL, accused, created_at, id) AS place "
    f"FROM ({_CANDIDATES}) LEFT JOIN {_SPELLINGS} AS names ON names.written = who "
    f"LEFT JOIN {_SPELLINGS} AS numbers ON numbers.written = number"
)
_OF_ANY_TIME = "first_value(id) OVER (PARTITION BY org_id, schema, known_by ORDER BY place)"
_OF_ITS_MINUTE = "first_value(id) OVER (PARTITION BY org_id, schema, known_by, clock ORDER BY place)"
_TWINS = (
    f"SELECT id, CASE WHEN clock IS NULL THEN {_OF_ANY_TIME} ELSE {_OF_ITS_MINUTE} END AS first "
    f"FROM ({_KEYED}) WHERE known_by IS NOT NULL"
)
_WRITTEN = (
    f"SELECT DISTINCT unnest([who, number]) AS written FROM ({_CANDIDATES}) "
    "WHERE strlen(who) <> length(who) OR strlen(number) <> length(number)"
)


def note_twins(connection: "DuckDBPyConnection", table: str) -> None:
    """Fill the column `same_as` of the gathered documents: of one paper the first has none, the others name it."""
    _note_spellings(connection, table)
    connection.execute(
        f"UPDATE {table} SET {SAME_AS} = twins.first FROM ({_TWINS.replace(_TABLE, table)}) AS twins "
        f"WHERE {table}.id = twins.id AND twins.first <> twins.id"
    )
    connection.execute(f"DROP TABLE {_SPELLINGS}")


def _note_spellings(connection: "DuckDBPyConnection", table: str) -> None:
    """What names and numbers with other letters than ASCII are compared as, by what the check compares them with.

    DuckDB has neither NFKC nor a full folding of case, and functions of ours in it would bring NumPy.
    """
    found = [text for (text,) in connection.execute(_WRITTEN.replace(_TABLE, table)).fetchall() if text is not None]
    connection.execute(
        f"CREATE TEMP TABLE {_SPELLINGS} AS SELECT unnest($1::VARCHAR[]) AS written, unnest($2::VARCHAR[]) AS plain",
        [found, [loose(text) for text in found]],
    )
