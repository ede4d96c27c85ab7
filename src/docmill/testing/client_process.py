"""One client as a process of its own, to be killed: `submit <template> <id> <count>` or `cancel <job>`."""

import sys
from contextlib import suppress

from docmill.bootstrap import open_app
from docmill.engine.batch import NewJob
from docmill.model.errors import Conflict
from docmill.model.ids import DEFAULT_ORG, derived_id
from docmill.settings import load_settings


def main() -> None:
    """Do the one thing asked for; saying it again after a death must change nothing."""
    verb, *rest = sys.argv[1:]
    with open_app(load_settings()) as app:
        if verb == "submit":
            name, batch, count = rest
            template_id = app.templates.find(name).id
            app.jobs.submit(
                [
                    NewJob(
                        id=derived_id(batch, n),
                        template_id=template_id,
                        org_id=DEFAULT_ORG,
                        entity_type="thing",
                        entity_id=f"{batch}-{n}",
                    )
                    for n in range(int(count))
                ]
            )
        else:
            # It ended by itself, or the client that died had cancelled it.
            with suppress(Conflict):
                app.jobs.cancel(rest[0])


if __name__ == "__main__":
    main()
