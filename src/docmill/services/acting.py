"""Whoever uses a service: whether they may, and that it is written down what they did."""

from copy import copy
from typing import Self

from sqlalchemy import Connection

from docmill.db.clock import database_now
from docmill.model.errors import Forbidden
from docmill.model.people import Permission, Principal
from docmill.people.audit import Data, record


class OrgService:
    """A service of one organisation."""

    _org_id: str

    def _allow(self, principal: Principal, permission: Permission) -> None:
        self._check_organisation(principal)
        principal.require(permission)

    def _check_organisation(self, principal: Principal) -> None:
        if principal.org_id != self._org_id:
            raise Forbidden(f"{principal.name} does not act for this organisation.")


class Acted(OrgService):
    """A service that people and keys use, and Docmill itself: what the former do with it is recorded.

    What Docmill does by itself is not. It does it at the rate of its jobs, which have events of their own.
    """

    _actor: Principal | None = None

    def by(self, principal: Principal) -> Self:
        """The same service, used by somebody: each change has its entry in the audit log, committed with it."""
        self._check_organisation(principal)
        view = copy(self)
        view._actor = principal
        return view

    def _record(
        self,
        connection: Connection,
        action: str,
        subject: tuple[str, str],
        before: Data | None = None,
        after: Data | None = None,
    ) -> None:
        """Call it last: from here to the commit, whatever else is recorded of the organisation waits.

        What is after as it was before is no deed, and not recorded.
        """
        if self._actor is not None and (before is None or before != after):
            record(connection, self._actor, action, subject, before, after, now=database_now(connection))
