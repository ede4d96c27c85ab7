"""Words of review: where an item stands and the legal ways between, what became of a field, how its time stands."""

from collections.abc import Mapping
from enum import StrEnum

from docmill.model.errors import Conflict


class ReviewStatus(StrEnum):
    """Where a review item stands."""

    PENDING = "pending"
    IN_REVIEW = "in_review"
    """Claimed by somebody, until the claim ends."""
    APPROVED = "approved"
    """As it was extracted."""
    CORRECTED = "corrected"
    """Approved, with values that a person changed, added or took away."""
    REJECTED = "rejected"

    @property
    def decided(self) -> bool:
        """Whether a person (or a setting) has had the last word."""
        return self in DECIDED

    def may_become(self, other: "ReviewStatus") -> bool:
        """Whether an item may go from here to there; to stay is no way, and always allowed."""
        return other is self or other in REVIEW_TRANSITIONS[self]


DECIDED = frozenset({ReviewStatus.APPROVED, ReviewStatus.CORRECTED, ReviewStatus.REJECTED})
OPEN = tuple(status for status in ReviewStatus if status not in DECIDED)

# Nothing leads away from a decision: what comes up afterwards is a new item.
# One begins as pending, or as approved where a setting decides.
REVIEW_TRANSITIONS: Mapping[ReviewStatus, frozenset[ReviewStatus]] = {
    ReviewStatus.PENDING: frozenset({ReviewStatus.IN_REVIEW}),
    # Back by release, expiry, postponement and reassignment.
    ReviewStatus.IN_REVIEW: frozenset({ReviewStatus.PENDING, *DECIDED}),
    ReviewStatus.APPROVED: frozenset(),
    ReviewStatus.CORRECTED: frozenset(),
    ReviewStatus.REJECTED: frozenset(),
}


class FieldState(StrEnum):
    """What became of a field."""

    EXTRACTED = "extracted"
    """As the machine read it; no person has said anything."""
    CONFIRMED = "confirmed"
    CORRECTED = "corrected"
    ADDED = "added"
    """The machine had found nothing."""
    CLEARED = "cleared"
    """The document has no such value."""


CHANGED = frozenset({FieldState.CORRECTED, FieldState.ADDED, FieldState.CLEARED})
"""States that make an approval a correction."""


class SlaState(StrEnum):
    """How the time of an item stands."""

    NONE = "none"
    """It has all the time in the world."""
    ON_TRACK = "on_track"
    AT_RISK = "at_risk"
    OVERDUE = "overdue"


class Superseded(Conflict):
    """The same bytes were read anew: another item stands in the place of this one."""

    code = "superseded"


class VersionConflict(Conflict):
    """Somebody changed the item since it was looked at; look again."""

    code = "version_conflict"


class AlreadyClaimed(Conflict):
    """Somebody else reviews the item, or it is assigned to somebody else."""

    code = "already_claimed"


class NotYours(Conflict):
    """The item is not, or no longer, claimed by whoever wants to write."""

    code = "not_claimed"


class AlreadyDecided(Conflict):
    """The item is decided, which nothing changes."""

    code = "already_decided"


class RequiredMissing(Conflict):
    """Fields lack without which the document cannot be approved; the message names them."""

    code = "required_missing"


class ChecksFail(Conflict):
    """Rules do not hold for the values as they stand, and whoever approves has not said that this is known."""

    code = "checks_fail"


class TableTooLong(Conflict):
    """More rows than are kept for review, so a correction would lose the others."""

    code = "table_too_long"
