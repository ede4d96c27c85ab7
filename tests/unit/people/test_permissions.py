"""Who may do what, written out: a change to the table of permissions is a change here."""

import pytest

from docmill.model.people import PERMISSIONS, Forbidden, Permission, Principal, Role, may_grant, system_principal

EXPECTED = {
    Role.OWNER: set(Permission),
    Role.ADMIN: set(Permission),
    Role.REVIEWER: {
        "documents.read",
        "jobs.read",
        "issues.read",
        "issues.resolve",
        "review.read",
        "review.decide",
    },
    Role.VIEWER: {
        "documents.read",
        "jobs.read",
        "templates.read",
        "prompts.read",
        "review.read",
        "issues.read",
        "exports.read",
        "analytics.read",
    },
    Role.SERVICE: {"documents.read", "documents.write", "jobs.read", "jobs.write"},
}


@pytest.mark.parametrize("role", Role)
def test_a_role_allows_exactly_what_is_written_here(role: Role) -> None:
    assert PERMISSIONS[role] == EXPECTED[role]


def test_a_viewer_changes_nothing() -> None:
    assert all(permission.value.endswith(".read") for permission in PERMISSIONS[Role.VIEWER])


@pytest.mark.parametrize("role", Role)
def test_permissions_are_nouns_and_verbs(role: Role) -> None:
    assert all(permission.value.count(".") == 1 for permission in PERMISSIONS[role])


def test_only_owners_make_owners() -> None:
    assert {role for role in Role if may_grant(role, Role.OWNER)} == {Role.OWNER}


def test_nobody_but_owners_and_administrators_grants_anything() -> None:
    assert {role for role in Role for other in Role if may_grant(role, other)} == {Role.OWNER, Role.ADMIN}


def test_a_principal_refuses_what_it_may_not_and_names_it() -> None:
    viewer = Principal(org_id="o", kind="user", id="u", name="Vera", role=Role.VIEWER, scopes=PERMISSIONS[Role.VIEWER])
    viewer.require("documents.read")
    with pytest.raises(Forbidden, match=r"Vera.*documents\.write") as refused:
        viewer.require(Permission.DOCUMENTS_WRITE)
    assert refused.value.details == {"permission": "documents.write"}


def test_a_permission_that_there_is_not_is_a_mistake_of_the_program() -> None:
    with pytest.raises(ValueError, match=r"documents\.raed"):
        system_principal("o").require("documents.raed")


def test_a_key_has_no_more_than_its_scopes() -> None:
    key = Principal(
        org_id="o", kind="key", id="k", name="up", role=Role.OWNER, scopes=frozenset({Permission.DOCUMENTS_READ})
    )
    assert key.may("documents.read")
    assert not key.may("documents.write")
