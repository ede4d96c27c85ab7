"""Which foreign keys point at a table, asked of the database each time: a migration may have added one."""

import re
from dataclasses import dataclass
from itertools import groupby

from docmill.model.errors import PermanentError
from docmill.plugin import Database

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)?")

# Constraints that a partition inherits are left out: the table they come from answers for all its partitions.
_POSTGRES = """
select cast(c.oid as text), cast(cast(c.conrelid as regclass) as text), c.conrelid = c.confrelid,
  quote_ident(f.attname), quote_ident(t.attname)
from pg_constraint c
cross join lateral unnest(c.conkey, c.confkey) as pair(f, t)
join pg_attribute f on f.attrelid = c.conrelid and f.attnum = pair.f
join pg_attribute t on t.attrelid = c.confrelid and t.attnum = pair.t
where c.contype = 'f' and c.confrelid = cast(cast(:table as text) as regclass) and c.conparentid = 0
order by 1"""

# A reference that names no column means the primary key.
_SQLITE = """
select m.name || '/' || f.id, '"' || replace(m.name, '"', '""') || '"', lower(m.name) = lower(:plain),
  '"' || replace(f."from", '"', '""') || '"',
  '"' || replace(coalesce(f."to", p.name), '"', '""') || '"'
from sqlite_master m join pragma_foreign_key_list(m.name) f
left join pragma_table_info(:plain) p on p.pk = f.seq + 1
where m.type = 'table' and lower(f."table") = lower(:plain)
order by 1"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One foreign key that points at the table."""

    table: str
    """The table that points, quoted."""
    columns: tuple[tuple[str, str], ...]
    """Pairs of (pointing column, column pointed at), quoted."""
    own_table: bool

    def pointing_at(self, target: str, key: str) -> str:
        """A query for rows that point at the row named `target`; a row that points at itself does not count."""
        pairs = [f"other.{column} = {target}.{to}" for column, to in self.columns]
        if self.own_table:
            pairs.append(f"other.{key} <> {target}.{key}")
        return f"select 1 from {self.table} as other where {' and '.join(pairs)}"


def quoted(name: str) -> str:
    """The name of a table (a schema before it, if there is one) or column, ready to stand in SQL."""
    if not _NAME.fullmatch(name):
        raise PermanentError(f"{name!r} cannot be the name of a table or column here; use letters, digits and _.")
    return ".".join(f'"{part}"' for part in name.split("."))


def references_to(db: Database, kind: str, table: str) -> list[Reference]:
    """Every foreign key that points at the table, whatever it does when a row is deleted."""
    if kind == "postgresql":
        found = db.execute(_POSTGRES, {"table": quoted(table)}).all()
    else:
        found = db.execute(_SQLITE, {"plain": table}).all()
    references = []
    for _, rows in groupby(found, key=lambda row: row[0]):
        pairs = list(rows)
        columns = tuple((row[3], row[4]) for row in pairs)
        references.append(Reference(table=pairs[0][1], columns=columns, own_table=bool(pairs[0][2])))
    return references
