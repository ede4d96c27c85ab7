"""What the server answers, as far as the client speaks of it."""

from typing import Any, Generic, TypedDict, TypeVar

T = TypeVar("T")


class Page(TypedDict, Generic[T]):
    """A part of a list."""

    items: list[T]
    next_cursor: str | None


class Document(TypedDict):
    """A document; `extraction` only where one is asked for."""

    id: str
    file_name: str
    status: str
    format: str | None
    schema_name: str | None
    document_type: str | None
    confidence: float | None
    duplicate_of: str | None
    job_id: str | None
    error: dict[str, str] | None
    created_at: str
    finished_at: str | None
    extraction: dict[str, Any] | None


class Job(TypedDict):
    """A job in a list."""

    id: str
    template: str
    entity_type: str
    entity_id: str
    status: str
    progress: float
    run: int


class Step(TypedDict):
    """A step of a job."""

    step_key: str
    status: str
    attempt: int
    result: Any
    error: dict[str, Any] | None
    model: str | None


class JobDetail(TypedDict):
    """A job with its steps."""

    job: Job
    version: int
    metadata: dict[str, Any]
    steps: list[Step]


class Item(TypedDict):
    """A review item."""

    id: str
    document_id: str
    file_name: str
    status: str
    version: int
    schema: str
    claimed_by: str | None
    claimed_by_name: str | None
    assigned_to: str | None
    assigned_to_name: str | None
    confidence: float
    priority: dict[str, float]
    fields_to_review: int


class Field(TypedDict):
    """A field of a review item."""

    path: str
    value: str | None
    state: str
    locked: bool
    needs_review: bool
    confidence: float | None
    evidence: list[dict[str, Any]]
    passed: list[str]
    failed: list[str]
    differs: bool
    proposed: str | None


class ItemView(TypedDict):
    """A review item with its fields."""

    item: Item
    fields: list[Field]
    checks: list[dict[str, Any]]
    missing: list[str]
    addable: list[str]
    comments: int


class Decision(TypedDict):
    """A decision, and the jobs that carry it out."""

    item: Item
    job_ids: list[str]
    failing: list[dict[str, Any]]


class Event(TypedDict):
    """What one transaction did to a job."""

    id: str
    type: str
    job_id: str
    version: int
    at: str
    data: dict[str, Any]
