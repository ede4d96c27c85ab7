"""The API on a socket of its own, in this process, for tests of what it promises; tokens are made up."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import httpx

from docmill.api.access import Shown
from docmill.api.app import create_app
from docmill.api.doors import Doors
from docmill.api.problems import Unauthenticated
from docmill.api.serving import address_of, listen, server
from docmill.bootstrap import App, open_app
from docmill.client import Client
from docmill.model.ids import DEFAULT_ORG
from docmill.model.people import PERMISSIONS, Principal, Role
from docmill.settings import Settings
from docmill.testing.waiting import until

OTHER_ORG = "00000000-0000-7000-8000-0000000000aa"


def somebody(name: str, role: Role = Role.OWNER, org_id: str = DEFAULT_ORG) -> Principal:
    """A member of an organisation."""
    return Principal(org_id=org_id, kind="user", id=name, name=name, role=role, scopes=PERMISSIONS[role])


@dataclass
class People:
    """Knows people by their tokens."""

    tokens: dict[str, Principal] = field(default_factory=dict)

    def __call__(self, shown: Shown) -> Principal:
        found = self.tokens.get(shown.bearer or "")
        if found is None:
            raise Unauthenticated("Show a token that is known here: `Authorization: Bearer TOKEN`.")
        return found


@dataclass(frozen=True)
class Served:
    """A server, and ways to speak to it.

    Nobody asks for certificates here, and reading those of the system takes five times as long as a request.
    """

    app: App
    address: str
    people: People

    def client(self, token: str = "owner") -> Client:
        return Client(self.address, token, transport=httpx.HTTPTransport(verify=False))

    def send(self, method: str, path: str, *, token: str | None = "owner", **more: object) -> httpx.Response:
        """A request as it is, whatever the answer."""
        headers = dict(more.pop("headers", {}))  # type: ignore[call-overload]
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        url = path if path.startswith("http") else self.address + path
        return httpx.request(method, url, headers=headers, timeout=60, verify=False, **more)  # type: ignore[arg-type]

    @property
    def litter(self) -> list[Path]:
        """Files that are on their way into the blobs."""
        return [path for path in self.app.blobs.workshop.iterdir() if path.is_file()]


@contextmanager
def serving(url: str, home: Path, *, doors: bool = False, **settings: object) -> Iterator[Served]:
    """Serve the installation of this database."""
    people = People(
        {
            "owner": somebody("owner"),
            "viewer": somebody("viewer", Role.VIEWER),
            "reviewer": somebody("reviewer", Role.REVIEWER),
            "service": somebody("service", Role.SERVICE),
            "stranger": somebody("stranger", org_id=OTHER_ORG),
        }
    )
    wanted = {"home": home, "database_url": url, "api": {"rate": 100_000, "burst": 100_000}, **settings}
    with open_app(Settings(**wanted)) as app:  # type: ignore[arg-type]
        listening = listen("127.0.0.1", 0)
        api = create_app(app, Doors("installation", app.door) if doors else people)
        running = server(api)
        thread = Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        until(lambda: running.started or not thread.is_alive(), 60, what="the server")
        try:
            yield Served(app, address_of(listening), people)
        finally:
            api.state.stopping = True
            running.should_exit = True
            thread.join(30)
            listening.close()
