"""What the threads of a worker remember of live jobs, so that the end of a step needs no look at all the others.

Shared, because a job goes from lane to lane: what one of them committed is what the next finds under the lock, and when
the job ends, whoever ends it forgets it for all. A worker that runs for weeks remembers the jobs that it works on, and
of those that it worked on hardly any.
"""

from collections.abc import Iterable
from threading import Lock

from docmill.engine.locked import KnownJob

_MOST = 8192
"""Jobs: more than a worker has slots; those that wait for days make room for others."""


class KnownJobs:
    """Committed states by job. Each is believed only while the locked row has its version, so none can be too old, as
    long as the database keeps what it committed; after a failure nobody can know that, and all are forgotten."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._jobs: dict[str, KnownJob] = {}
        self._changing = Lock()

    def get(self, job_id: str) -> KnownJob | None:
        """The job as it was last committed here; None: nobody remembers."""
        return self._jobs.get(job_id)

    def remember(self, jobs: Iterable[KnownJob]) -> None:
        """Keep these, the latest last; jobs that have ended are forgotten, and when there are too many, the oldest.

        Lanes come in any order: what is newer stays. A job that ended meanwhile may come back; it is not believed, and
        makes room like those that wait.
        """
        with self._changing:
            for job in jobs:
                held = self._jobs.get(job.head.id)
                if held is not None and held.version > job.version:
                    continue
                self._jobs.pop(job.head.id, None)
                if not job.state.status.finished:
                    self._jobs[job.head.id] = job
            while len(self._jobs) > self._most:
                del self._jobs[next(iter(self._jobs))]

    def forget(self) -> None:
        """Believe nothing any more: rows may have been put back to what they were, versions included."""
        with self._changing:
            self._jobs.clear()

    def __len__(self) -> int:
        return len(self._jobs)
