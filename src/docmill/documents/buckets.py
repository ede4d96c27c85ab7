"""Blobs in a bucket that speaks S3. Needs the extra `s3`; a local folder keeps copies of what children read."""

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from docmill.documents.blobs import UNUSED, Blob, StorageUnavailable, checked_key, missing, spool, sweep, unusable
from docmill.documents.bucket_faults import explained, is_no_bucket
from docmill.documents.links import Method
from docmill.model.errors import DocmillError
from docmill.model.extras import to_install

if TYPE_CHECKING:
    from obstore.store import S3Store

_COPIES = 2 << 30
"""Bytes of local copies; beyond it, those that were used longest ago go."""


class S3Missing(DocmillError):
    """The library for S3 is not installed."""

    code = "extra_missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Which bucket, and how to get at it. What is None comes from the environment, as every S3 client reads it."""

    name: str
    prefix: str = ""
    endpoint: str | None = None
    region: str | None = None
    access_key: str | None = None
    secret_key: str | None = None


class BucketBlobs:
    """Blobs in a bucket, with local copies of what was asked for as a file."""

    local = False
    shelf = None

    def __init__(
        self, bucket: Bucket, copies: Path, *, most: int = _COPIES, patience: timedelta = timedelta(seconds=60)
    ) -> None:
        self._bucket = bucket
        self._copies = copies
        self._most = most
        self._patience = patience
        self._opened: S3Store | None = None

    @property
    def _store(self) -> "S3Store":
        if self._opened is None:
            self._opened = _open(self._bucket, self._patience)
        return self._opened

    @property
    def workshop(self) -> Path:
        folder = self._copies / "tmp"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unusable(folder, error) from error
        return folder

    def put(self, stream: BinaryIO, *, limit: int | None = None) -> Blob:
        # First to a file: only then are hash and size known, and what is cut off never reaches the bucket.
        file, key, size = spool(stream, self.workshop, limit=limit)
        try:
            new = self._upload(file, key)
            self._keep(file, key)
            return Blob(key=key, size=size, new=new)
        finally:
            file.unlink(missing_ok=True)

    def adopt(self, file: Path, key: str) -> Blob:
        size = file.stat().st_size
        new = self._upload(file, key)
        self._keep(file, key)
        return Blob(key=key, size=size, new=new)

    def _upload(self, file: Path, key: str) -> bool:
        if self.has(key):
            return False
        try:
            with self._told() as obstore:
                # In parts when it is large; they become an object when the last one is there.
                obstore.put(self._store, checked_key(key), file)
        except FileNotFoundError as error:
            # Where nothing can be put is no bucket, whatever it is.
            raise self._explained(error) from None
        return True

    def probe(self) -> None:
        """Put a small object, read it and delete it, past all copies; StorageUnavailable says what refused."""
        key, data = secrets.token_hex(32), secrets.token_bytes(16)
        try:
            with self._told() as obstore:
                obstore.put(self._store, key, data)
            found = self._looked_at(key)
        except FileNotFoundError as error:
            raise self._explained(error) from None
        if found != data:
            raise StorageUnavailable(f"The bucket {self._bucket.name!r} gives other bytes than were stored.")

    def _looked_at(self, key: str) -> bytes:
        """The bytes of an object that goes, whether it can be read or not."""
        try:
            with self._told() as obstore:
                found = bytes(obstore.get(self._store, key).bytes())
        except BaseException:
            # What refused the reading is told, whatever comes of this.
            with contextlib.suppress(DocmillError, FileNotFoundError), self._told() as obstore:
                obstore.delete(self._store, key)
            raise
        with self._told() as obstore:
            obstore.delete(self._store, key)
        return found

    def read(self, key: str) -> bytes:
        try:
            return self._copy(key).read_bytes()
        except FileNotFoundError:
            return self._fetch(key)

    def _fetch(self, key: str) -> bytes:
        try:
            with self._told() as obstore:
                data = bytes(obstore.get(self._store, checked_key(key)).bytes())
        except FileNotFoundError:
            raise missing(key) from None
        if hashlib.sha256(data).hexdigest() != key:
            raise StorageUnavailable(
                f"The bucket {self._bucket.name!r} gave other bytes for {key} than were stored; restore a backup."
            )
        return data

    def path_of(self, key: str) -> Path:
        copy = self._copy(key)
        if copy.exists():
            with contextlib.suppress(OSError):
                os.utime(copy)
            return copy
        file = self.workshop / secrets.token_hex(16)
        try:
            file.write_bytes(self._fetch(key))
            self._keep(file, key)
        finally:
            file.unlink(missing_ok=True)
        return copy

    def has(self, key: str) -> bool:
        try:
            with self._told() as obstore:
                obstore.head(self._store, checked_key(key))
        except FileNotFoundError:
            return False
        return True

    def delete(self, key: str) -> None:
        with contextlib.suppress(FileNotFoundError), self._told() as obstore:
            obstore.delete(self._store, checked_key(key))
        self._copy(key).unlink(missing_ok=True)

    def sign(self, key: str, *, within: timedelta, now: datetime, method: Method = "GET") -> str:
        with self._told() as obstore:
            url: str = obstore.sign(self._store, method, checked_key(key), within)
        return url

    def _copy(self, key: str) -> Path:
        return self._copies / checked_key(key)[:2] / key

    def _keep(self, file: Path, key: str) -> None:
        copy = self._copy(key)
        copy.parent.mkdir(parents=True, exist_ok=True)
        os.replace(file, copy)
        self._make_room(copy)

    def _make_room(self, newest: Path) -> None:
        """Every 256th copy or so looks: by its name, which is random."""
        if not newest.name.startswith("00"):
            return
        files = sorted(self._kept())
        held = sum(size for _, size, _ in files)
        for _, size, entry in files:
            if held <= self._most or entry == newest:
                break
            entry.unlink(missing_ok=True)
            held -= size

    def _kept(self) -> Iterator[tuple[float, int, Path]]:
        """When each copy was used last, its size, and itself; others may delete them meanwhile."""
        for entry in self._copies.glob("??/*"):
            with contextlib.suppress(FileNotFoundError):
                found = entry.stat()
                yield found.st_mtime, found.st_size, entry

    def tidy(self, now: datetime) -> None:
        """Copies of what another host deleted from the bucket are not asked for any more: they go after a day."""
        sweep(self.workshop, now - UNUSED)
        for folder in self._copies.glob("??"):
            sweep(folder, now - UNUSED)

    @contextmanager
    def _told(self) -> Iterator[Any]:
        """The library; whatever it raises becomes an error that says which bucket and what to check.

        But for FileNotFoundError: that there is nothing under a key is an answer.
        """
        try:
            import obstore
            from obstore.exceptions import BaseError
        except ImportError as error:
            raise S3Missing(
                f"Blobs in a bucket need the extra for S3. Install it: {to_install('s3')}.", extra="s3"
            ) from error
        try:
            yield obstore
        except FileNotFoundError as error:
            if is_no_bucket(error):
                raise self._explained(error) from None
            raise
        except (BaseError, OSError) as error:
            raise self._explained(error) from error

    def _explained(self, error: BaseException) -> StorageUnavailable:
        return explained(error, name=self._bucket.name, endpoint=self._bucket.endpoint)


def _open(bucket: Bucket, patience: timedelta) -> "S3Store":
    from obstore.store import S3Store

    options: dict[str, Any] = {
        "endpoint": bucket.endpoint,
        "region": bucket.region,
        "access_key_id": bucket.access_key,
        "secret_access_key": bucket.secret_key,
    }
    given = {name: value for name, value in options.items() if value is not None}
    # A server of one's own often speaks plain HTTP, and knows its buckets by path.
    plain = bucket.endpoint is not None and bucket.endpoint.startswith("http://")
    return S3Store(
        bucket.name,
        prefix=bucket.prefix or None,
        client_options={"allow_http": plain, "timeout": "60s"},
        retry_config={"max_retries": 3, "retry_timeout": patience},
        virtual_hosted_style_request=False if bucket.endpoint else None,
        **given,
    )
