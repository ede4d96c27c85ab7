"""One client as a process of its own, to be killed: `submit <template> <id> <count>`, `cancel <job>`,
`resolve <issue>`, or `callbacks <file>`, which brings in a callback for each line of the file.
"""

import sys
from contextlib import suppress
from pathlib import Path

from docmill.bootstrap import open_app
from docmill.bootstrap.clock import this_moment
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
        elif verb == "callbacks":
            # Loaded as a server of callbacks would, plug-ins and all.
            assert app.registry.steps
            for line in Path(rest[0]).read_bytes().splitlines():
                app.callbacks.receive(line, now=this_moment())
        elif verb == "resolve":
            # The client that died had resolved it.
            with suppress(Conflict):
                app.issues.resolve(rest[0], data={"answer": 42}, by="client")
        else:
            # It ended by itself, or the client that died had cancelled it.
            with suppress(Conflict):
                app.jobs.cancel(rest[0])


if __name__ == "__main__":
    main()
