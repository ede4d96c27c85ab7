"""Prompts as people use them: what `docmill.prompts` keeps, with an entry in the audit log for each change."""

from dataclasses import replace

from sqlalchemy import Connection

from docmill.model.ids import SHARED_ORG
from docmill.prompts.store import Prompts as Kept
from docmill.prompts.store import PromptVersion
from docmill.services.acting import Acted

PROMPT = "prompt"
"""What entries in the audit log are about."""


class Prompts(Acted, Kept):
    """The prompts that one organisation uses."""

    @property
    def shared(self) -> "Prompts":
        """The shared prompts alone. They are no organisation's, and what is done to them has a log of its own."""
        view = Prompts(self._database, SHARED_ORG)
        return view if self._actor is None else view.by(replace(self._actor, org_id=SHARED_ORG))

    def _changed(self, connection: Connection, before: PromptVersion | None, after: PromptVersion) -> None:
        new = before is None or before.version != after.version
        names = ("version", "digest", "description") if new else ("description",)
        told = [None if each is None else {name: getattr(each, name) for name in names} for each in (before, after)]
        self._record(connection, "prompt.publish" if new else "prompt.describe", (PROMPT, after.name), *told)
