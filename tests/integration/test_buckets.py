"""Blobs in a bucket, against a server that speaks S3."""

import builtins
import hashlib
import io
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import obstore
import obstore.exceptions
import pytest
from pydantic import SecretStr

from docmill.ai.providers.access import Kind
from docmill.bootstrap.meanings import originals_of
from docmill.documents.blobs import BlobMissing, StorageUnavailable, write_in
from docmill.documents.buckets import Bucket, BucketBlobs, S3Missing
from docmill.documents.faults import FileTooLarge
from docmill.services.doctor import Health, check_storage
from docmill.settings import Settings, StorageSection
from docmill.testing.providers import ProviderServer, Says
from docmill.testing.waiting import until
from docmill.testing.world import migrate
from tests.contract.mailroom import letter, mailroom
from tests.contract.served import somebody

NOW = datetime.now(UTC)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A private S3, gone with the module."""
    folder = tmp_path_factory.mktemp("s3")
    port = free_port()
    environment = {**os.environ, "GATEWAY_PORT": str(port), "BIND_HOST": "127.0.0.1", "SERVICES": "s3"}
    environment |= {"S3_DATA_DIR": str(folder), "LOG_LEVEL": "WARNING"}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "ministack"], env=environment, stdout=log, stderr=log, start_new_session=True
        )
    url = f"http://127.0.0.1:{port}"
    try:
        until(lambda: answers(url), 60, what="the S3 server")
        request = urllib.request.Request(f"{url}/papers", method="PUT")
        urllib.request.urlopen(request, timeout=10).close()
        yield url
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait(30)


def bucket_at(endpoint: str) -> Bucket:
    return Bucket(
        name="papers", prefix="mill/one", endpoint=endpoint, region="us-east-1", access_key="test", secret_key="test"
    )


@pytest.fixture
def blobs(endpoint: str, tmp_path: Path) -> BucketBlobs:
    return BucketBlobs(bucket_at(endpoint), tmp_path / "copies")


def test_bytes_come_back_from_the_bucket_by_their_hash(blobs: BucketBlobs, endpoint: str, tmp_path: Path) -> None:
    data = os.urandom(100_000)
    blob = blobs.put(io.BytesIO(data))
    assert (blob.key, blob.size, blob.new) == (hashlib.sha256(data).hexdigest(), 100_000, True)
    assert not blobs.put(io.BytesIO(data)).new
    # Another machine has no copies.
    elsewhere = BucketBlobs(bucket_at(endpoint), tmp_path / "elsewhere")
    assert elsewhere.has(blob.key)
    assert elsewhere.read(blob.key) == data
    assert elsewhere.path_of(blob.key).read_bytes() == data


def test_a_large_blob_goes_in_parts(blobs: BucketBlobs, endpoint: str, tmp_path: Path) -> None:
    data = os.urandom(1 << 20) * 12
    key = blobs.put(io.BytesIO(data)).key
    assert BucketBlobs(bucket_at(endpoint), tmp_path / "elsewhere").read(key) == data


def test_what_is_too_large_never_reaches_the_bucket(blobs: BucketBlobs, tmp_path: Path) -> None:
    with pytest.raises(FileTooLarge):
        blobs.put(io.BytesIO(b"x" * 100), limit=10)
    assert not blobs.has(hashlib.sha256(b"x" * 100).hexdigest())
    assert [path for path in (tmp_path / "copies").rglob("*") if path.is_file()] == []


def test_a_file_made_by_a_child_becomes_a_blob(blobs: BucketBlobs) -> None:
    file, key = write_in(blobs.workshop, b"made by a child")
    assert blobs.adopt(file, key).key == key
    assert not file.exists()
    assert blobs.read(key) == b"made by a child"


def test_a_deleted_blob_is_gone_from_bucket_and_copies(blobs: BucketBlobs) -> None:
    key = blobs.put(io.BytesIO(os.urandom(10))).key
    blobs.delete(key)
    blobs.delete(key)
    assert not blobs.has(key)
    with pytest.raises(BlobMissing):
        blobs.path_of(key)


def test_copies_of_what_another_host_deleted_go_after_a_day(blobs: BucketBlobs, endpoint: str, tmp_path: Path) -> None:
    gone, used = (blobs.put(io.BytesIO(os.urandom(10))).key for _ in range(2))
    elsewhere = BucketBlobs(bucket_at(endpoint), tmp_path / "elsewhere")
    copy, kept = elsewhere.path_of(gone), elsewhere.path_of(used)
    blobs.delete(gone)
    for path in (copy, kept):
        os.utime(path, ((NOW - timedelta(days=2)).timestamp(),) * 2)
    elsewhere.path_of(used)
    elsewhere.tidy(NOW)
    assert (copy.exists(), kept.exists()) == (False, True)
    with pytest.raises(BlobMissing):
        elsewhere.read(gone)


def test_making_room_bears_copies_that_vanish_meanwhile(
    blobs: BucketBlobs, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = BucketBlobs(bucket_at(endpoint), tmp_path / "small", most=1)
    data = next(each for number in range(10_000) if hashlib.sha256(each := b"%d" % number).hexdigest()[:2] == "00")
    first = small.path_of(blobs.put(io.BytesIO(b"another")).key)
    really = Path.glob

    def glob(folder: Path, pattern: str) -> Iterator[Path]:
        # Another process makes room in this very moment.
        found = list(really(folder, pattern))
        first.unlink(missing_ok=True)
        return iter(found)

    monkeypatch.setattr(Path, "glob", glob)
    key = small.put(io.BytesIO(data)).key
    assert small.read(key) == data


def test_a_signed_url_opens_the_blob_and_nothing_else(blobs: BucketBlobs) -> None:
    key = blobs.put(io.BytesIO(b"for whoever has the link")).key
    url = blobs.sign(key, within=timedelta(minutes=5), now=NOW)
    assert urllib.request.urlopen(url, timeout=10).read() == b"for whoever has the link"
    assert f"/papers/mill/one/{key}?" in url
    assert "X-Amz-Expires=300" in url
    assert "X-Amz-Signature=" in url
    written = blobs.sign(key, within=timedelta(minutes=5), now=NOW, method="PUT")
    assert written.split("X-Amz-Signature=")[1] != url.split("X-Amz-Signature=")[1]


def test_documents_are_processed_with_their_bytes_in_a_bucket(endpoint: str, tmp_path: Path) -> None:
    storage = StorageSection(
        kind="s3",
        bucket="papers",
        prefix="mill/two",
        endpoint=endpoint,
        region="us-east-1",
        access_key=SecretStr("test"),
        secret_key=SecretStr("test"),
    )
    migrate(f"sqlite:///{tmp_path / 'docmill.db'}")
    with mailroom(f"sqlite:///{tmp_path / 'docmill.db'}", tmp_path, storage=storage) as room:
        paths = [room.put(f"{number}.pdf", letter(f"Invoice {number}\nTotal {number}.50")) for number in (1, 2)]
        first, second = room.process(*paths)
        (copy,) = room.process(room.put("copy.pdf", Path(paths[0]).read_bytes()))
        assert [first.status, second.status, copy.status] == ["completed", "completed", "duplicate"]
        extraction = room.app.documents.extraction(second)
        assert extraction is not None
        assert extraction.fields["total"].value == "2.50"
        link = room.app.documents.link(first, by=somebody("ann"), within=timedelta(minutes=1))
        assert urllib.request.urlopen(link, timeout=10).read() == Path(paths[0]).read_bytes()
        # For outside executors, too: the bucket has an address of its own, so nobody need say where the API is.
        within, asked = timedelta(days=30), (first.org_id, "document", first.id)
        handed = originals_of(room.app).link(*asked, within=within, now=NOW)
        assert handed is not None
        assert urllib.request.urlopen(handed.url, timeout=10).read() == Path(paths[0]).read_bytes()
        assert "X-Amz-Expires=604800" in handed.url, "no bucket signs for longer"


def test_a_bucket_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    gone = BucketBlobs(bucket_at(address), tmp_path, patience=timedelta(seconds=1))
    with pytest.raises(StorageUnavailable) as refusal:
        gone.has("0" * 64)
    assert refusal.value.message == (
        f"The bucket 'papers' at {address} cannot be reached (Connection refused). "
        "Check `storage.endpoint`, and whether it runs."
    )


def test_a_bucket_that_is_not_there_is_named_whatever_is_asked_of_it(endpoint: str, tmp_path: Path) -> None:
    misspelt = BucketBlobs(replace(bucket_at(endpoint), name="nosuch"), tmp_path)
    key = "0" * 64
    for ask in (
        lambda: misspelt.put(io.BytesIO(b"x")),
        lambda: misspelt.read(key),
        lambda: misspelt.path_of(key),
        misspelt.probe,
    ):
        with pytest.raises(StorageUnavailable) as refusal:
            ask()
        assert refusal.value.message == (
            f"There is no bucket 'nosuch' at {endpoint}. Correct `storage.bucket`, or make the bucket."
        )


def test_a_place_that_is_no_bucket_is_told_in_a_sentence(tmp_path: Path) -> None:
    with ProviderServer(lambda asked: Says("no storage at all")) as server:
        other = BucketBlobs(bucket_at(server.base_url(Kind.GOOGLE)), tmp_path, patience=timedelta(seconds=1))
        with pytest.raises(StorageUnavailable) as refusal:
            other.put(io.BytesIO(b"x"))
    assert "cannot be used: " in refusal.value.message
    assert [part for part in ("\n", "Debug", "RetryError") if part in refusal.value.message] == []


def test_doctor_writes_and_reads_what_it_removes(endpoint: str, tmp_path: Path, blobs: BucketBlobs) -> None:
    blobs.probe()
    listing = urllib.request.urlopen(f"{endpoint}/papers?list-type=2&prefix=mill/one/", timeout=10)
    before = listing.read().count(b"<Key>")
    settings = Settings(home=tmp_path, storage=StorageSection(kind="s3", bucket="papers", endpoint=endpoint))
    sound = check_storage(settings, lambda: blobs)
    assert (sound.health, sound.found) == (Health.OK, f"bucket papers at {endpoint}, written and read")
    again = urllib.request.urlopen(f"{endpoint}/papers?list-type=2&prefix=mill/one/", timeout=10)
    assert again.read().count(b"<Key>") == before
    broken = check_storage(settings, lambda: BucketBlobs(replace(bucket_at(endpoint), name="nosuch"), tmp_path))
    assert (broken.health, "no bucket 'nosuch'" in broken.found) == (Health.FAIL, True)


def test_doctor_removes_what_it_wrote_also_where_reading_is_refused(
    endpoint: str, blobs: BucketBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keys() -> int:
        listing = urllib.request.urlopen(f"{endpoint}/papers?list-type=2&prefix=mill/one/", timeout=10)
        return int(listing.read().count(b"<Key>"))

    def refused(*about: object) -> None:
        assert keys() == before + 1
        raise obstore.exceptions.PermissionDeniedError("- AccessDenied: s3:GetObject is not allowed")

    before = keys()
    monkeypatch.setattr(obstore, "get", refused)
    with pytest.raises(StorageUnavailable, match="s3:GetObject is not allowed"):
        blobs.probe()
    assert keys() == before


def test_without_the_extra_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name.startswith("obstore"):
            raise ImportError(name)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    blobs = BucketBlobs(bucket_at("http://127.0.0.1:9"), tmp_path)
    with pytest.raises(S3Missing, match=r"pip install 'docmill\[s3\]'"):
        blobs.put(io.BytesIO(b"x"))
