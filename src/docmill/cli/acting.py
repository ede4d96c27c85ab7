"""For whom a command acts, and as whom: the organisation of the installation, and whoever sits at this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from docmill.bootstrap import App as Installation
    from docmill.model.people import Principal
    from docmill.settings import Settings

Organisation = Annotated[
    str | None,
    Parameter(metavar="NAME", help="Which organisation, by name; default: the one of this installation."),
]


def me() -> str:
    """The user of this machine, if it has a name."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "system"


@contextmanager
def acting_for(
    organisation: str | None = None, name: str | None = None, settings: "Settings | None" = None
) -> "Iterator[tuple[Installation, Principal]]":
    """The installation as one organisation sees it, and whoever acts: who may read the database may do anything.

    `name`: who that is; None: the user of this machine. `settings`: as they were read; None: not yet.
    """
    from docmill.cli.opening import opened
    from docmill.model.people import system_principal

    with opened(settings) as whole:
        if organisation is None:
            yield whole, system_principal(whole.org_id, name or me())
            return
        view = whole.of(whole.organisations.find(organisation).id)
        try:
            yield view, system_principal(view.org_id, name or me())
        finally:
            view.close()
