"""Two transactions interleaved at statement boundaries, on real connections in two threads.

Each store's hot SQL is wrapped: before every statement its thread stops at a gate until it is let through. A statement
that waits for a lock is recognised by asking the database who blocks whom, not by waiting for some time.
"""

from collections.abc import Callable
from threading import Condition, Thread
from typing import Any, Generic, TypeVar, cast

from sqlalchemy import event

from docmill.engine.sql.rows import HotSql
from docmill.engine.store import Store
from docmill.testing.waiting import until

T = TypeVar("T")

STATEMENTS = frozenset(
    {
        "begin",
        "load",
        "load_template",
        "lock_candidates",
        "existing_jobs",
        "insert_jobs",
        "insert_steps",
        "update_steps",
        "update_jobs",
        "insert_events",
        "upsert_parts",
        "delete_parts",
        "orphaned_steps",
        "overdue_steps",
        "next_due",
        "query",
        "run_each",
    }
)


class _Gated:
    """`HotSql` that asks at its actor's gate before every statement."""

    def __init__(self, sql: HotSql, pause: Callable[[str], None]) -> None:
        self._sql = sql
        self._pause = pause

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._sql, name)
        if name not in STATEMENTS:
            return method

        def gated(*arguments: Any, **named: Any) -> Any:
            self._pause(name)
            return method(*arguments, **named)

        return gated


class Actor(Generic[T]):
    """One side: a store, a thread, and what it does with the store."""

    def __init__(
        self, store: Store, deed: Callable[[Store], T], *, blocked: Callable[[], bool], all_statements: bool = False
    ) -> None:
        """`all_statements`: stop before those that go through SQLAlchemy too, and not only at the hot ones."""
        self._store = store
        self._all_statements = all_statements
        self._deed = deed
        self._blocked = blocked
        self._turn = Condition()
        self._allowed = 0
        self._at_gate = False
        self._free = False
        self._ended = False
        self._answer: T | None = None
        self._error: BaseException | None = None
        self.statements: list[str] = []
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        real = self._store.sql
        self._store.sql = cast(HotSql, _Gated(real, self._pause))
        connection = self._store.session.connection
        try:
            self._pause("start")
            if self._all_statements:
                event.listen(connection, "before_cursor_execute", self._pause_at_core)
            self._answer = self._deed(self._store)
        except BaseException as error:
            self._error = error
        finally:
            self._store.sql = real
            if self._all_statements:
                event.remove(connection, "before_cursor_execute", self._pause_at_core)
            with self._turn:
                self._ended = True
                self._turn.notify_all()

    def _pause_at_core(self, connection: object, cursor: object, statement: str, *rest: object) -> None:
        self._pause(statement.split(maxsplit=1)[0].lower())

    def _pause(self, name: str) -> None:
        with self._turn:
            self.statements.append(name)
            self._at_gate = True
            self._turn.notify_all()
            self._turn.wait_for(lambda: self._free or self._allowed > 0)
            self._allowed -= 1
            self._at_gate = False

    def _resting(self) -> bool:
        return self._ended or (self._at_gate and self._allowed <= 0)

    def _settle(self) -> bool:
        """Until it stands at a gate, has ended, or waits for a lock; whether it can be let through again."""

        def settled() -> str:
            with self._turn:
                if self._turn.wait_for(self._resting, timeout=0.005):
                    return "ended" if self._ended else "gate"
            return "blocked" if self._blocked() else ""

        return until(settled, 20.0, interval=0.0, what="the other side to come to rest") == "gate"

    def go(self, statements: int) -> None:
        """Let it do this many statements (the beginning counts as one), or as many as it has."""
        for _ in range(statements):
            if not self._settle():
                return
            with self._turn:
                self._allowed = 1
                self._turn.notify_all()
        self._settle()

    def go_on(self) -> None:
        """Let it go as far as it can: to its end, or to where a lock stops it."""
        with self._turn:
            self._free = True
            self._turn.notify_all()

        def stopped() -> bool:
            with self._turn:
                if self._turn.wait_for(lambda: self._ended, timeout=0.005):
                    return True
            return self._blocked()

        until(stopped, 20.0, interval=0.0, what="the other side to end or to wait for a lock")

    def end(self) -> T:
        """Wait for its end; what it answered, or raises what it raised."""
        with self._turn:
            self._free = True
            self._turn.notify_all()
        self._thread.join(20.0)
        assert not self._thread.is_alive(), f"never ended; its statements were {self.statements}"
        if self._error is not None:
            raise self._error
        return cast(T, self._answer)
