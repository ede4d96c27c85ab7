"""What the threads of a worker remember of live jobs, so that the end of a step needs no look at all the others.

Shared, because a job goes from lane to lane: what one of them committed is what the next finds under the lock, and when
the job ends, whoever ends it forgets it for all. A worker that runs for weeks remembers the jobs that it works on, not
those that it worked on.
"""

from collections.abc import Iterable
from threading import Lock

from docmill.engine.locked import KnownJob

_MOST = 8192
"""Jobs: more than a worker has slots; those that wait for days make room for others."""


class KnownJobs:
    """Committed states by job. Each is believed only while the locked row has its version, so none can be too old."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._jobs: dict[str, KnownJob] = {}
        self._changing = Lock()

    def get(self, job_id: str) -> KnownJob | None:
        """The job as it was last committed here; None: nobody remembers."""
        return self._jobs.get(job_id)

    def remember(self, jobs: Iterable[KnownJob]) -> None:
        """Keep these, the latest last; jobs that have ended are forgotten, and when there are too many, the oldest."""
        with self._changing:
            for job in jobs:
                self._jobs.pop(job.head.id, None)
                if not job.state.status.finished:
                    self._jobs[job.head.id] = job
            while len(self._jobs) > self._most:
                del self._jobs[next(iter(self._jobs))]

    def forget(self) -> None:
        """Believe nothing any more: for whoever puts rows back to what they were, versions included."""
        with self._changing:
            self._jobs.clear()

    def __len__(self) -> int:
        return len(self._jobs)
