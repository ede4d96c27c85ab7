"""Who acts, and what they may do: roles, permissions, and the principal that every service is given."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from docmill.model.errors import Forbidden

__all__ = ["PERMISSIONS", "Forbidden", "Permission", "Principal", "Role", "may_grant", "system_principal"]


class Role(StrEnum):
    """What a member is to an organisation."""

    OWNER = "owner"
    ADMIN = "admin"
    REVIEWER = "reviewer"
    VIEWER = "viewer"
    SERVICE = "service"


class Permission(StrEnum):
    """One thing that may be allowed, as `noun.verb`."""

    DOCUMENTS_READ = "documents.read"
    DOCUMENTS_WRITE = "documents.write"
    JOBS_READ = "jobs.read"
    JOBS_WRITE = "jobs.write"
    TEMPLATES_READ = "templates.read"
    TEMPLATES_WRITE = "templates.write"
    PROMPTS_READ = "prompts.read"
    PROMPTS_WRITE = "prompts.write"
    REVIEW_READ = "review.read"
    REVIEW_DECIDE = "review.decide"
    REVIEW_MANAGE = "review.manage"
    ISSUES_READ = "issues.read"
    ISSUES_RESOLVE = "issues.resolve"
    AUDIT_READ = "audit.read"
    MEMBERS_READ = "members.read"
    MEMBERS_MANAGE = "members.manage"
    KEYS_MANAGE = "keys.manage"
    WEBHOOKS_MANAGE = "webhooks.manage"
    EXPORTS_READ = "exports.read"
    CONFIG_READ = "config.read"
    ANALYTICS_READ = "analytics.read"


_P = Permission
_ALL = frozenset(Permission)
_INNER = {_P.AUDIT_READ, _P.MEMBERS_READ, _P.CONFIG_READ}
_LOOK = frozenset(each for each in Permission if each.value.endswith(".read")) - _INNER

PERMISSIONS: Mapping[Role, frozenset[Permission]] = {
    Role.OWNER: _ALL,
    Role.ADMIN: _ALL,
    Role.REVIEWER: frozenset(
        {
            *(_P.DOCUMENTS_READ, _P.JOBS_READ, _P.ISSUES_READ, _P.REVIEW_READ),
            *(_P.REVIEW_DECIDE, _P.ISSUES_RESOLVE),
        }
    ),
    Role.VIEWER: _LOOK,
    Role.SERVICE: frozenset({_P.DOCUMENTS_READ, _P.DOCUMENTS_WRITE, _P.JOBS_READ, _P.JOBS_WRITE}),
}
"""What a role allows. Owners differ from administrators in whom they may make what: see `may_grant`."""

_GRANTS: Mapping[Role, frozenset[Role]] = {
    Role.OWNER: frozenset(Role),
    Role.ADMIN: frozenset(Role) - {Role.OWNER},
    Role.REVIEWER: frozenset(),
    Role.VIEWER: frozenset(),
    Role.SERVICE: frozenset(),
}


def may_grant(role: Role, other: Role) -> bool:
    """Whether someone of this role may give the other role, or take it away: nobody makes owners but owners."""
    return other in _GRANTS[role]


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Whoever acts, for one organisation."""

    org_id: str
    kind: Literal["user", "key", "system"]
    id: str
    """Of the user or the key; for the system, the name it acts under."""
    name: str
    role: Role
    scopes: frozenset[Permission] = field(default_factory=frozenset)
    """What is allowed; never more than the role has."""

    def may(self, permission: Permission | str) -> bool:
        """Whether this is allowed."""
        return permission in self.scopes

    def require(self, permission: Permission | str) -> None:
        """Refuse what is not allowed; the message names what it needs."""
        wanted = Permission(permission)
        if wanted not in self.scopes:
            raise Forbidden(f"{self.name} may not do this: it needs the permission {wanted}.", permission=wanted.value)


def system_principal(org_id: str, name: str = "system") -> Principal:
    """The installation itself, or whoever sits at its command line under this name."""
    return Principal(org_id=org_id, kind="system", id=name, name=name, role=Role.OWNER, scopes=_ALL)
