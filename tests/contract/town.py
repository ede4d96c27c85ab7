"""Two organisations with people in them, on one database."""

from datetime import timedelta

from docmill.db.database import Database
from docmill.model.people import PERMISSIONS, Principal, Role, system_principal
from docmill.services.keys import Keys, KeyService
from docmill.services.organisations import Organisations
from docmill.services.people import Member, People
from docmill.services.sessions import Sessions

PASSWORD = "correct horse battery"


class PlainPasswords:
    """Hashes nothing, and counts how often it was asked: Argon2 takes its time by intention."""

    def __init__(self) -> None:
        self.checked = 0

    def hash(self, password: str) -> str:
        return f"plain:{password}"

    def matches(self, password: str, stored: str | None) -> bool:
        self.checked += 1
        return stored == f"plain:{password}"


class Town:
    """`ours` is the organisation of the installation, `theirs` another; Ann owns one, Theo the other."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.passwords = PlainPasswords()
        self.sessions = Sessions(database, self.passwords)
        self.at_door = KeyService(database)
        founding = Organisations(database)
        ours = founding.found("Ours", "Ann@ours.example", "Ann")
        theirs = founding.found("Theirs", "theo@theirs.example", "Theo", another=True)
        self.ours, self.theirs = ours.organisation.id, theirs.organisation.id
        self.ann = self.sessions.accept(ours.token, PASSWORD).principal
        self.theo = self.sessions.accept(theirs.token, PASSWORD).principal
        self.people = People(database, self.ours)
        self.keys = Keys(database, self.ours)

    def member(self, role: Role, name: str = "Mia") -> Member:
        """Another member of ours, invited by Ann."""
        _, token = self.people.invite(self.ann, f"{name.lower()}@ours.example", role)
        joined = self.sessions.accept(token, PASSWORD, name=name).principal
        return self.people.get(self.ann, joined.id)

    def principal(self, member: Member) -> Principal:
        """The member as they act."""
        return Principal(
            org_id=self.ours,
            kind="user",
            id=member.id,
            name=member.name,
            role=member.role,
            scopes=PERMISSIONS[member.role],
        )

    def system(self, org_id: str) -> Principal:
        return system_principal(org_id)


DAY = timedelta(days=1)
