"""`docmill up` and `docmill serve`: the API, with workers beside it or alone."""

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from docmill.cli.acting import me
from docmill.cli.errors import WrongUse
from docmill.cli.options import Json
from docmill.cli.output import print_json_line

if TYPE_CHECKING:
    from docmill.bootstrap import App as Installation

Port = Annotated[
    int | None, Parameter(metavar="N", show_default=False, help="Port to listen on; 0: any. Default: api.port (8400).")
]
Verbose = Annotated[bool, Parameter(negative="", help="Log more.")]


def up(*, port: Port = None, verbose: Verbose = False, json: Json = False) -> int:
    """Serve the API and run what is due, in one process, for this machine only.

    Listens on 127.0.0.1. The token stands in the file api-token under DOCMILL_HOME. SIGTERM or Ctrl-C drains.
    """
    return _serve("127.0.0.1", port, workers=True, verbose=verbose, json=json)


def serve(
    *,
    host: Annotated[
        str | None, Parameter(metavar="ADDRESS", show_default=False, help="Default: api.host (127.0.0.1).")
    ] = None,
    port: Port = None,
    verbose: Verbose = False,
    json: Json = False,
) -> int:
    """Serve the API alone; `docmill worker` runs what is due.

    Whoever opens it to a network names the hosts under which it is reached: DOCMILL_API__HOSTS=docs.example.
    """
    return _serve(host, port, workers=False, verbose=verbose, json=json)


def _serve(host: str | None, port: int | None, *, workers: bool, verbose: bool, json: bool) -> int:
    _need_extra()
    from docmill.api.app import create_app
    from docmill.api.doors import FILE, Doors, installation_token
    from docmill.api.serving import address_of, listen, server
    from docmill.cli.opening import opened
    from docmill.workers.logs import log_to_stderr

    if port is not None and not 0 <= port <= 65535:
        raise WrongUse(f"--port {port} is not between 0 and 65535.")
    with opened() as installation:
        log_to_stderr(verbose=verbose)
        settings = installation.settings
        token = installation_token(settings.home)
        where = (host or settings.api.host, settings.api.port if port is None else port)
        try:
            listening = listen(*where)
        except OSError as error:
            raise WrongUse(
                f"Cannot listen on {where[0]}, port {where[1]}: {error.strerror or error}. Another Docmill may be "
                "running there; end it, or choose another --port."
            ) from error
        address = address_of(listening)

        def ready() -> None:
            if json:
                print_json_line({"type": "ready", "address": address, "token_file": str(settings.home / FILE)})
            else:
                print(f"Docmill listens on {address}; token in {settings.home / FILE}", file=sys.stderr, flush=True)

        application = create_app(installation, Doors(token, installation.door, user=me()))
        with listening, _working(installation) if workers else nullcontext():
            server(application, on_ready=ready).run(sockets=[listening])
        if json:
            print_json_line({"type": "stopped"})
    return 0


def _working(installation: "Installation"):  # type: ignore[no-untyped-def]  # a context manager
    from docmill.workers.process import alongside

    return alongside(installation.worker(staying=True))


def _need_extra() -> None:
    from docmill.model.errors import ExtraMissing
    from docmill.model.extras import to_install

    try:
        import fastapi  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ExtraMissing(
            f"The API needs libraries that are not installed ({error}). Install them: {to_install('server')}.",
            extra="server",
        ) from error
