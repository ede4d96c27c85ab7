"""Pools: how many steps of a kind this process runs at once, and who is next.

A pool has `capacity` slots; a slot is busy from the claim of a step until its outcome is handed over. Steps that took
several workers down wait in the pool's suspect queue and run one at a time in the whole process.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from docmill.engine.locked import SUSPECT


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """One pool of a worker process."""

    name: str
    capacity: int = 10
    priority: int = 0
    """Pools of higher priority claim first."""
    claims_per_cycle: int | None = None
    """At most this many claims in one transaction; None: as many as there are free slots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUse:
    """A pool at one moment."""

    name: str
    capacity: int
    busy: int
    failed: int
    """Steps of this pool that failed here since the start."""

    @property
    def idle(self) -> int:
        return max(0, self.capacity - self.busy)


class Slots:
    """The free slots of all pools; shared by lanes and runner, hence the lock."""

    def __init__(self, pools: Iterable[PoolSettings]) -> None:
        self.pools: Mapping[str, PoolSettings] = {
            pool.name: pool for pool in sorted(pools, key=lambda pool: (-pool.priority, pool.name))
        }
        self._free = {name: pool.capacity for name, pool in self.pools.items()}
        self._failed = dict.fromkeys(self.pools, 0)
        self._suspect_free = True
        self._open = True
        self._lock = Lock()

    @property
    def queues(self) -> tuple[str, ...]:
        """Every queue this process serves, suspects included."""
        return tuple(queue for name in self.pools for queue in (name, name + SUSPECT))

    def reserve(self, queue: str) -> bool:
        """Take one slot for a step of this queue, if there is one."""
        return self.reserve_up_to(queue, 1) == 1

    def reserve_up_to(self, queue: str, limit: int) -> int:
        """Take up to `limit` slots; how many there were."""
        pool = queue.removesuffix(SUSPECT)
        with self._lock:
            free = self._free.get(pool, 0) if self._open else 0
            if queue != pool:
                free = min(free, 1 if self._suspect_free else 0)
            # Below zero while a group runs that was claimed whole.
            taken = max(0, min(free, limit))
            if taken:
                self._free[pool] -= taken
                if queue != pool:
                    self._suspect_free = False
        return taken

    def release(self, queue: str, count: int = 1) -> None:
        """Give slots back. A negative count takes them, free or not: an execution group is not split."""
        pool = queue.removesuffix(SUSPECT)
        with self._lock:
            self._free[pool] += count
            if queue != pool and count:
                self._suspect_free = True

    def free(self, queue: str) -> int:
        """How many slots a claim from this queue would find now."""
        pool = queue.removesuffix(SUSPECT)
        free = self._free.get(pool, 0) if self._open else 0
        return free if queue == pool else min(free, int(self._suspect_free))

    def count_failure(self, queue: str) -> None:
        with self._lock:
            self._failed[queue.removesuffix(SUSPECT)] += 1

    @property
    def closed(self) -> bool:
        """Whether the process is draining."""
        return not self._open

    def close(self) -> None:
        """No more reservations: the process is draining."""
        with self._lock:
            self._open = False

    def use(self) -> list[PoolUse]:
        """All pools as they are now, in order of priority."""
        with self._lock:
            return [
                PoolUse(
                    name=name,
                    capacity=pool.capacity,
                    busy=pool.capacity - self._free[name],
                    failed=self._failed[name],
                )
                for name, pool in self.pools.items()
            ]


class Reservation:
    """Slots for steps claimed on the spot: first those that the committing steps leave, then free ones."""

    def __init__(self, slots: Slots, leaving: Counter[str]) -> None:
        self._slots = slots
        self._leaving = Counter(leaving)
        self._taken: list[str] = []

    def take(self, queue: str) -> bool:
        """Take a slot for a step of this queue, if there is one."""
        if self._slots.closed:
            # Not even a slot that is being left: a step given back by the drain would be taken again at once.
            return False
        if self._leaving[queue]:
            self._leaving[queue] -= 1
            return True
        if self._slots.reserve(queue):
            self._taken.append(queue)
            return True
        return False

    def undo(self) -> None:
        """The transaction failed: nothing was claimed, and nothing left."""
        for queue in self._taken:
            self._slots.release(queue)

    def settle(self) -> None:
        """The transaction stands: slots that were left and not taken are free."""
        for queue, count in self._leaving.items():
            if count:
                self._slots.release(queue, count)
