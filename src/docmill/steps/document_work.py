"""What the steps of document processing work with: blobs, limits, where results go. Made once per application."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from docmill.documents.blobs import BlobMissing, Blobs, Workshop
from docmill.documents.limits import Limits
from docmill.extraction.same_paper import Identity
from docmill.steps.document_cuts import cut_short

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPolicy:
    """What comes to people of what is processed."""

    of_duplicates: bool = False
    """Whether a duplicate has an item of its own; otherwise that of its original stands for it."""
    auto_approve: bool = False
    """Whether a document of which nothing needs a look is approved at once."""
    assign: bool = False
    """Whether a new item goes to the reviewer with the fewest."""
    sla: timedelta | None = None
    """For organisations and schemas that say nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentWork:
    """What a step may use besides its context."""

    blobs: Callable[[], Blobs]
    """Opened at first use: a template is checked without a storage."""
    clock: Callable[[], datetime]
    limits: Limits = field(default_factory=Limits)
    cache_ttl: timedelta | None = None
    """How long a result answers for the same bytes; None: for ever."""
    preserve_locked: bool = True
    """Whether a duplicate gets the values that people decided for its original."""
    originals_expire_after: timedelta | None = None
    outputs: Any = None
    """The settings of the outputs, as `docmill.outputs` reads them."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The settings of the extraction, as `docmill.extraction` reads them."""
    takes: Mapping[str, Any] = field(default_factory=dict)
    """What the models of a provider can look at, by its name: `pictures` or `text`; `files` for those not named."""
    review: ReviewPolicy = field(default_factory=ReviewPolicy)
    earlier: Callable[[str, Sequence[str], str], tuple[str, str] | None] | None = None
    """By organisation, what others are known by that are the same paper, and own id: id and name of one."""
    abreast: int = 2
    """Pages of one document that are read at the same time."""

    async def path_of(self, key: str) -> str:
        """The local file of a blob, for a child."""
        return str(await self._call(self.blobs().path_of, key))

    async def has(self, key: str) -> bool:
        """Whether the blob is there."""
        return await self._call(self.blobs().has, key)

    async def answers(self, key: str) -> bool:
        """Whether a reading or an extraction is there with its own bytes, and no limit of old cut it short.

        One that was damaged is removed: it is made anew, and all that name its key find it whole again.
        """
        try:
            data = await self._call(self.blobs().read, key)
        except BlobMissing:
            return False
        if hashlib.sha256(data).hexdigest() == key:
            return not await asyncio.to_thread(cut_short, data, self.limits)
        await self._call(self.blobs().delete, key)
        return False

    @property
    def workshop(self) -> Workshop:
        """Where children leave what they make."""
        blobs = self.blobs()
        return Workshop(str(blobs.workshop), None if blobs.shelf is None else str(blobs.shelf))

    async def adopt(self, made: Mapping[str, Any]) -> str:
        """The key of what a child left."""
        if made["file"] is None:
            return str(made["key"])
        # On a thread in any case: it waits until the storage has it.
        return (await asyncio.to_thread(self.blobs().adopt, Path(made["file"]), str(made["key"]))).key

    async def same_paper(self, org_id: str, identity: Identity | None, document_id: str) -> tuple[str, str] | None:
        """Id and name of the document that has the same paper."""
        if identity is None or self.earlier is None:
            return None
        return await asyncio.to_thread(self.earlier, org_id, identity.against, document_id)

    async def _call(self, function: Callable[..., T], *arguments: object) -> T:
        # A hop to a thread and back costs more than looking at a file does.
        return function(*arguments) if self.blobs().local else await asyncio.to_thread(function, *arguments)
