"""Prompts as they are stored: versions of a name, the organisation's own before the shared ones."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from docmill.db.clock import database_now
from docmill.db.database import Database
from docmill.db.tables import prompts
from docmill.model.errors import InvalidInput, NotFound, PermanentError
from docmill.model.ids import DEFAULT_ORG, SHARED_ORG, is_id, new_id
from docmill.prompts.difference import difference
from docmill.prompts.substitution import render
from docmill.prompts.syntax import PromptInvalid, check

LONGEST_NAME = 100
LONGEST_DESCRIPTION = 500
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
Onto = Callable[[int | None], None]
"""Told the newest version there is inside the transaction that stores the next; raises to prevent it."""
_ATTEMPTS = 50
"""Each attempt that fails is another's that succeeded, so this many can store one name at the same moment."""


class UnknownPrompt(NotFound, PermanentError):
    """There is no such prompt here. For a step that names it, trying again cannot help: it fails at once."""

    code = "unknown_prompt"


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptVersion:
    """One stored version of a prompt, without its text. Its text never changes."""

    id: str
    name: str
    version: int
    shared: bool
    """It belongs to all organisations, not to this one."""
    description: str
    digest: str
    created_by: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt(PromptVersion):
    """One stored version of a prompt."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What became of a prompt that was put."""

    prompt: PromptVersion
    new: bool
    """False: the newest version had this text already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """What a model is to be asked, and the version it was made from."""

    prompt_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Two versions, and a unified diff that leads from one to the other."""

    old: PromptVersion
    new: PromptVersion
    text: str


class Prompts:
    """The prompts that one organisation uses: its own, and the shared ones it has none of its own for."""

    def __init__(self, database: Database, org_id: str = DEFAULT_ORG) -> None:
        self._database = database.scoped(org_id)
        self._org_id = org_id

    @property
    def shared(self) -> "Prompts":
        """The shared prompts alone."""
        return Prompts(self._database, SHARED_ORG)

    def put(
        self,
        name: str,
        text: str,
        *,
        description: str | None = None,
        created_by: str | None = None,
        onto: Onto | None = None,
    ) -> Stored:
        """Store the text as the newest version of the organisation's own prompt.

        If the newest version has this text already, it stays the newest. A description, if given, replaces the one
        there is; it is for people, and no reason for a version. `onto` may refuse the version this one would follow.
        """
        check_name(name)
        _check_description(description or "")
        faults = check(text)
        if faults:
            raise PromptInvalid(name, faults)
        for _ in range(_ATTEMPTS):
            try:
                return self._put(name, text, description, created_by, onto)
            except IntegrityError:
                continue  # Somebody took this version number at the same moment: look again.
        return self._put(name, text, description, created_by, onto)

    def _put(self, name: str, text: str, description: str | None, created_by: str | None, onto: Onto | None) -> Stored:
        digest = hashlib.sha256(text.encode()).hexdigest()
        with self._database.write() as connection:
            newest = connection.execute(_newest(self._org_id, name)).first()
            if onto is not None:
                onto(None if newest is None else newest.version)
            new = newest is None or newest.digest != digest
            if newest is None or new:
                values = {
                    "id": new_id(),
                    "org_id": self._org_id,
                    "name": name,
                    "version": newest.version + 1 if newest is not None else 1,
                    "text": text,
                    "description": newest.description
                    if newest is not None and description is None
                    else description or "",
                    "digest": digest,
                    "created_by": created_by,
                    "created_at": database_now(connection),
                }
                connection.execute(insert(prompts).values(values))
            elif description is not None and description != newest.description:
                connection.execute(update(prompts).where(prompts.c.id == newest.id).values(description=description))
            stored = _record(PromptVersion, connection.execute(_newest(self._org_id, name)).one())
            before = None if newest is None else _record(PromptVersion, newest)
            if stored != before:
                self._changed(connection, before, stored)
        return Stored(prompt=stored, new=new)

    def _changed(self, connection: Connection, before: PromptVersion | None, after: PromptVersion) -> None:
        """Called inside the transaction with what the newest version was, and is: for who writes that down."""

    def get(self, reference: str, version: int | None = None) -> Prompt:
        """The version with this id, or the newest (or the one asked for) of this name."""
        with self._database.read() as connection:
            return find_prompt(connection, self._org_id, reference, version)

    def resolve(
        self, reference: str, *, entity: Mapping[str, object] | None, entity_id: str, entity_type: str
    ) -> Rendered:
        """The prompt with this id or name, filled in for an entity."""
        with self._database.read() as connection:
            return resolve(
                connection,
                reference,
                org_id=self._org_id,
                entity=entity,
                entity_id=entity_id,
                entity_type=entity_type,
            )

    def list(self) -> Sequence[PromptVersion]:
        """The newest version of every prompt there is for this organisation, by name."""
        newest = (
            select(prompts.c.org_id, prompts.c.name, func.max(prompts.c.version).label("version"))
            .where(_visible(self._org_id))
            .group_by(prompts.c.org_id, prompts.c.name)
            .subquery()
        )
        query = select(*_COLUMNS).join(
            newest,
            (prompts.c.org_id == newest.c.org_id)
            & (prompts.c.name == newest.c.name)
            & (prompts.c.version == newest.c.version),
        )
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        # Shared ones first, so that one's own take their place.
        found = {row.name: row for row in sorted(rows, key=lambda row: row.org_id != SHARED_ORG)}
        return [_record(PromptVersion, found[name]) for name in sorted(found)]

    def versions(self, name: str) -> Sequence[PromptVersion]:
        """All versions of the prompt that the name means, the newest first."""
        with self._database.read() as connection:
            meant = find_prompt(connection, self._org_id, name)
            owner = SHARED_ORG if meant.shared else self._org_id
            query = select(*_COLUMNS).where(prompts.c.org_id == owner, prompts.c.name == meant.name)
            rows = connection.execute(query.order_by(prompts.c.version.desc())).all()
        return [_record(PromptVersion, row) for row in rows]

    def diff(self, name: str, old: int | None = None, new: int | None = None) -> Difference:
        """What changed between two versions: by default between the newest and the one before it."""
        after = self.get(name, new)
        if old is None and after.version == 1:
            raise InvalidInput(f"The prompt {name!r} has no version before 1; say which two to compare.", field="old")
        before = self.get(name, after.version - 1 if old is None else old)
        labels = {"old_label": f"{name}@{before.version}", "new_label": f"{name}@{after.version}"}
        return Difference(old=before, new=after, text=difference(before.text, after.text, **labels))

    def known(self) -> frozenset[str]:
        """Every name and id that a template of this organisation may write."""
        with self._database.read() as connection:
            rows = connection.execute(select(prompts.c.id, prompts.c.name).where(_visible(self._org_id))).all()
        return frozenset(word for row in rows for word in row)


def resolve(
    connection: Connection,
    reference: str,
    *,
    org_id: str,
    entity: Mapping[str, object] | None,
    entity_id: str,
    entity_type: str,
) -> Rendered:
    """The prompt that this organisation means by an id or a name, as it is now, filled in for an entity."""
    prompt = find_prompt(connection, org_id, reference)
    text = render(prompt.text, entity=entity, entity_id=entity_id, entity_type=entity_type)
    return Rendered(prompt_id=prompt.id, text=text)


def find_prompt(connection: Connection, org_id: str, reference: str, version: int | None = None) -> Prompt:
    """The version with this id, or the newest (or the one asked for) of this name; raises `UnknownPrompt`."""
    canonical = reference.lower()
    if is_id(canonical):
        if version is not None:
            raise InvalidInput("The id of a prompt names one version already; leave the version out.", field="version")
        query = select(*_COLUMNS, prompts.c.text).where(prompts.c.id == canonical, _visible(org_id))
    else:
        query = newest_by_name(org_id, reference)
    # What could never have been stored is not asked for: databases refuse some of it, such as a NUL.
    possible = is_id(canonical) or _NAME.fullmatch(reference) is not None
    row: Any = connection.execute(query).first() if possible else None
    if row is not None and version is not None and row.version != version:
        line = (prompts.c.org_id == row.org_id, prompts.c.name == reference, prompts.c.version == version)
        row = connection.execute(select(*_COLUMNS, prompts.c.text).where(*line)).first()
        if row is None:
            raise UnknownPrompt(
                f"There is no version {version} of the prompt {reference!r}. "
                f"`docmill prompts versions {reference}` shows those there are.",
                prompt=reference,
            )
    if row is None:
        raise _unknown(connection, org_id, reference)
    return _record(Prompt, row)


def check_name(name: str) -> None:
    """Refuse what cannot be the name of a prompt."""
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise InvalidInput(
            f"{name[:LONGEST_NAME]!r} cannot be the name of a prompt; use 1 to {LONGEST_NAME} letters, digits, "
            "'_', '.' and '-', beginning with a letter, a digit or '_'.",
            field="name",
        )
    if is_id(name.lower()):
        raise InvalidInput(f"{name!r} looks like the id of a prompt; choose a name that does not.", field="name")


def _check_description(description: str) -> None:
    if len(description) > LONGEST_DESCRIPTION or not description.isprintable():
        raise InvalidInput(
            f"A description is one line of at most {LONGEST_DESCRIPTION} characters; shorten it.", field="description"
        )


_COLUMNS = [prompts.c[name] for name in ("org_id", *PromptVersion.__dataclass_fields__) if name != "shared"]
"""Without the text."""


def _visible(org_id: str) -> ColumnElement[bool]:
    return prompts.c.org_id.in_((org_id, SHARED_ORG))


def _newest(org_id: str, name: str) -> Select[Any]:
    query = select(*_COLUMNS).where(prompts.c.org_id == org_id, prompts.c.name == name)
    return query.order_by(prompts.c.version.desc()).limit(1)


def newest_by_name(org_id: str, name: str) -> Select[Any]:
    """What a name means now: two looks into an index at most, however many versions there have been."""
    own, shared = (
        _newest(owner, name).with_only_columns(prompts.c.id).scalar_subquery() for owner in (org_id, SHARED_ORG)
    )
    return select(*_COLUMNS, prompts.c.text).where(prompts.c.id == func.coalesce(own, shared))


def _unknown(connection: Connection, org_id: str, reference: str) -> UnknownPrompt:
    hint = ""
    if len(reference) <= LONGEST_NAME and not is_id(reference.lower()):
        names = connection.execute(select(prompts.c.name).where(_visible(org_id)).distinct()).scalars()
        by_sound = {name.lower(): name for name in sorted(names)}
        close = get_close_matches(reference.lower(), by_sound, n=1, cutoff=0.6)
        hint = f" Did you mean {by_sound[close[0]]!r}?" if close else ""
    shown = reference if len(reference) <= LONGEST_NAME else f"{reference[:LONGEST_NAME]}…"
    return UnknownPrompt(
        f"There is no prompt {shown!r}.{hint} `docmill prompts list` shows those there are.", prompt=shown
    )


V = TypeVar("V", bound=PromptVersion)


def _record(kind: type[V], row: Any) -> V:
    values = {name: getattr(row, name) for name in kind.__dataclass_fields__ if name != "shared"}
    return kind(shared=row.org_id == SHARED_ORG, **values)
