"""A long job is declared stale, taken over or run again while another job uses its rows: nothing is lost or broken."""

import signal
from dataclasses import dataclass

from docmill.services.jobs import Retry
from tests.fault.conftest import OpenFleet
from tests.fault.library import BOOK, CHUNKS, CONNECTIONS, Library, open_library


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """What is left when everything has ended."""

    before: list[str]
    after: list[str]
    connections: int
    processing: str
    connecting: str
    error: str


def timeline(library: Library) -> Timeline:
    """The worker stalls after chunking, the connections are being looked for, and the book is processed again."""
    fleet = library.fleet
    library.add(CHUNKS)
    stalled = fleet.start(ready=True)
    job = library.process(hold=["embed"])
    library.wait_held("embed", stalled)
    before = library.chunks()
    library.pause(stalled)
    other = fleet.start(ready=True)
    connecting = library.connect(hold=["connect"])
    library.wait_held("connect", other)
    # The stalled worker is declared dead and its step begun anew.
    library.wait_held("embed", other)
    assert library.chunks() == before
    # As if that were not enough, somebody starts the whole job over.
    fleet.app.jobs.cancel(job)
    fleet.witness.wait_for("dropped")
    fleet.app.jobs.retry(job, Retry(everything=True))
    library.open("embed")
    library.wait_completed(job, "chunk", run=2)
    library.wake(stalled)
    library.open("connect")
    fleet.finish()
    assert stalled.running
    error = library.step(connecting, "connect").error or {}
    return Timeline(
        before=before,
        after=library.chunks(),
        connections=len(library.connections()),
        processing=library.status(job),
        connecting=library.status(connecting),
        error=str(error.get("message", "")),
    )


def test_the_timeline_that_lost_rows_loses_none(open_fleet: OpenFleet) -> None:
    with open_library(open_fleet) as library:
        told = timeline(library)
        assert (len(told.before), told.after) == (CHUNKS, told.before)
        assert (told.processing, told.connecting, told.error) == ("COMPLETED", "COMPLETED", "")
        assert told.connections == CONNECTIONS
        # The model was asked for each batch of pages and of vectors once, by whichever worker.
        assert (len(library.calls()), set(library.calls().values())) == (14, {1})


def test_deleting_what_is_there_breaks_the_same_timeline(open_fleet: OpenFleet) -> None:
    with open_library(open_fleet, chunker="replaceChunks") as library:
        told = timeline(library)
        assert len(told.after) == CHUNKS
        assert not set(told.before) & set(told.after)
        assert told.connecting == "FAILED"
        assert "foreign key" in told.error.lower()


def test_resume_from_checkpoint_after_timeout(open_fleet: OpenFleet) -> None:
    with open_library(open_fleet) as library:
        library.add(CHUNKS)
        stale = library.fleet.start(ready=True)
        job = library.process(hold=["save"])
        library.wait_held("save", stale)
        library.pause(stale)
        calls = library.calls()
        other = library.fleet.start(ready=True)
        library.wait_held("save", other)
        library.open("save")
        library.fleet.finish()
        assert library.status(job) == "COMPLETED"
        again = {call: count for call, count in library.calls().items() if call in calls}
        assert again == calls
        assert set(calls.values()) == {1}
        assert library.step(job, "save").crashes == 1


def test_chunks_are_not_deleted_during_embeddings(open_fleet: OpenFleet) -> None:
    with open_library(open_fleet) as library:
        library.add(CHUNKS)
        stale = library.fleet.start(ready=True)
        job = library.process(hold=["embed"])
        library.wait_held("embed", stale)
        ids = library.chunks()
        library.pause(stale)
        other = library.fleet.start(ready=True)
        library.wait_held("embed", other)
        assert library.chunks() == ids
        library.open("embed")
        library.fleet.finish()
        library.wake(stale)
        assert (len(ids), library.chunks()) == (CHUNKS, ids)
        assert library.status(job) == "COMPLETED"
        assert library.step(job, "chunk").crashes == 0


def test_no_foreign_key_violation_on_connection_detection(open_fleet: OpenFleet) -> None:
    with open_library(open_fleet) as library:
        library.add(CHUNKS)
        library.fleet.start(ready=True)
        job = library.process(hold=["connect"])
        library.wait_held("connect")
        library.until(lambda: library.status(job) == "COMPLETED", "the book to be ready")
        ids = library.chunks()
        library.fleet.app.jobs.retry(job, Retry(everything=True))
        library.wait_completed(job, "chunk", run=2)
        # The book is ready a second time; the job that looks for its connections is still the first.
        library.until(lambda: library.view(job).summary.progress == 1, "the book to be ready again")
        library.open("connect")
        library.fleet.finish()
        (connecting,) = library.jobs("detect connections")
        assert [library.status(each) for each in (job, connecting)] == ["COMPLETED"] * 2
        assert library.chunks() == ids
        assert len(library.connections()) == CONNECTIONS


def test_a_small_document_completes_every_stage_at_the_first_attempt(open_fleet: OpenFleet) -> None:
    with open_library(open_fleet) as library:
        library.add(12)
        library.fleet.start(ready=True)
        job = library.process()
        library.fleet.finish()
        assert [step.status for step in library.view(job).steps] == ["COMPLETED"] * 5
        assert {step.attempt for step in library.view(job).steps} == {1}
        assert library.crashes() == 0
        assert len(library.current()) == 12


def test_a_document_of_500_pages_outlasts_many_leases_without_being_taken_for_stale(open_fleet: OpenFleet) -> None:
    with open_library(open_fleet) as library:
        library.add(500)
        worker = library.fleet.start(ready=True)
        job = library.process(hold=["extract", "embed"])
        for stage in ("extract", "embed"):
            library.wait_held(stage)
            began = library.lease_ends(worker)
            library.until(
                lambda began=began: (library.lease_ends(worker) - began).total_seconds() > 3,  # type: ignore[misc]
                "three leases to pass",
            )
            library.open(stage)
        library.fleet.finish()
        assert library.status(job) == "COMPLETED"
        assert len(library.current()) == 500
        assert library.crashes() == 0
        assert library.fleet.scalar("select count(*) from workers") == 1
        assert (len(library.calls()), set(library.calls().values())) == (100, {1})


def test_a_job_killed_during_embeddings_resumes_there(open_fleet: OpenFleet) -> None:
    with open_library(open_fleet) as library:
        _assert_resumes_after_a_kill_in(library, "embed")


def test_a_job_killed_during_extraction_uses_what_was_read(open_fleet: OpenFleet) -> None:
    with open_library(open_fleet) as library:
        _assert_resumes_after_a_kill_in(library, "extract")


def _assert_resumes_after_a_kill_in(library: Library, stage: str) -> None:
    library.add(CHUNKS)
    victim = library.fleet.start(ready=True)
    job = library.process(hold=[stage])
    library.wait_held(stage, victim)
    done = library.calls()
    victim.kill()
    assert victim.exit_code == -signal.SIGKILL
    library.open(stage)
    library.fleet.start()
    library.fleet.finish()
    assert library.status(job) == "COMPLETED"
    assert {step.step_key: step.crashes for step in library.view(job).steps if step.crashes} == {stage: 1}
    # What was done before the death, and everything else, was paid for once.
    assert 0 < len(done) < len(library.calls())
    assert set(library.calls().values()) == {1}
    assert len(library.current()) == CHUNKS
    assert len(library.connections()) == CONNECTIONS


def test_a_book_is_ready_before_its_connections_are(open_fleet: OpenFleet) -> None:
    with open_library(open_fleet) as library:
        library.add(CHUNKS)
        library.fleet.start(ready=True)
        job = library.process(hold=["connect"])
        library.until(lambda: library.status(job) == "COMPLETED", "the book to be ready")
        library.wait_held("connect")
        (connecting,) = library.jobs("detect connections")
        assert (library.status(connecting), library.connections()) == ("IN_PROGRESS", [])
        assert library.view(connecting).parent_job_id == job
        library.open("connect")
        library.fleet.finish()
        assert library.status(connecting) == "COMPLETED"
        assert len(library.connections()) == CONNECTIONS


def test_a_new_edition_takes_the_place_of_what_nobody_uses(open_fleet: OpenFleet) -> None:
    """Every second page is rewritten: 30 chunks are stale, and those with connections stay until these are gone."""
    with open_library(open_fleet) as library:
        fleet = library.fleet
        library.add(CHUNKS)
        fleet.start(ready=True)
        job = library.process()
        fleet.finish()
        first = library.chunks()
        # Somebody takes away the connections of the second half.
        half = "(select id from book_chunks where position >= 30)"
        library.write(f"delete from book_connections where source_chunk_id in {half} or target_chunk_id in {half}")
        used = range(1, 30, 2)
        library.write("update books set edition = 2 where id = :id", id=BOOK)
        fleet.app.jobs.retry(job, Retry(everything=True, keep_checkpoints=False))
        library.wait_completed(job, "finish", run=2)
        second = library.current()
        assert len(second) == CHUNKS
        assert [a == b for a, b in zip(first, second, strict=True)] == [True, False] * (CHUNKS // 2) + [True]
        assert set(library.chunks()) - set(second) == {first[place] for place in used}
        fleet.finish()
        # The new connections are in; the old ones went with the first job that had the book to itself.
        fleet.app.jobs.retry(library.jobs("detect connections")[-1], Retry(everything=True))
        fleet.finish()
        assert len(library.connections()) == CONNECTIONS
        fleet.app.jobs.retry(job, Retry(everything=True))
        fleet.finish()
        assert library.chunks() == second
        assert {library.status(each) for each in library.jobs("detect connections")} == {"COMPLETED"}
