"""A bell that rings nowhere, for tests of services that wake workers."""


class CountingBell:
    """Remembers what was rung."""

    def __init__(self) -> None:
        self.rung: list[frozenset[str]] = []

    def ring(self, queues: object) -> None:
        self.rung.append(frozenset(queues))  # type: ignore[call-overload]

    @property
    def heard(self) -> set[str]:
        """All queues that were rung for."""
        return {queue for queues in self.rung for queue in queues}

    def listen(self, worker_id: str, on_ring: object) -> None: ...

    def close(self) -> None: ...
