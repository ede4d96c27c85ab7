"""The store: every change to a job, whoever asks for it, is one `commit` of one batch.

Lanes, sweeper and services share this door; `transaction` does the work behind it.
"""

from collections.abc import Callable

from sqlalchemy import Connection

from docmill.db.database import Session
from docmill.engine.batch import Batch, Outcome
from docmill.engine.failpoints import failpoint
from docmill.engine.known import KnownJobs
from docmill.engine.sql.rows import HotSql
from docmill.engine.transaction import Transaction
from docmill.model.errors import NotFound
from docmill.templates.document import plan_from_document
from docmill.templates.plan import Plan

Also = Callable[[Connection, Outcome], None]
"""What somebody else writes in the transaction of a commit, told what that does."""


class PlanSource:
    """Compiled plans by template id. A template version never changes, so they are kept for good."""

    def __init__(self) -> None:
        self._plans: dict[str, Plan] = {}

    def get(self, template_id: str, sql: HotSql) -> Plan:
        """The plan of this template version; NotFound when there is no such version."""
        plan = self._plans.get(template_id)
        if plan is None:
            document = sql.load_template(template_id)
            if document is None:
                raise NotFound(f"There is no process template version with id {template_id}.", template_id=template_id)
            # Of two threads that meet here one keeps its plan for both: steps are known by identity.
            plan = self._plans.setdefault(template_id, plan_from_document(document))
        return plan


class Store:
    """Transactions on jobs over one session. Each thread has its own.

    What it commits is remembered in `known`; whoever changes a job now and then remembers nothing.
    """

    def __init__(self, session: Session, plans: PlanSource, known: KnownJobs | None = None) -> None:
        self.session = session
        self.plans = plans
        self.sql = hot_sql(session)
        self.known = KnownJobs(0) if known is None else known

    def commit(self, batch: Batch, also: Also | None = None) -> Outcome:
        """Do the whole batch in one transaction; `also` at its end, which costs a few more ways to the server.

        Raises what the driver raises; then nothing was done, or (a commit whose answer was lost) all of it.
        """
        transaction = self.begin()
        if also is None:
            with self.session.writing(), self.sql.transaction():
                outcome = transaction.run(batch)
                failpoint("commit.inside")
        else:
            with self.session.write() as connection:
                outcome = transaction.run(batch)
                also(connection, outcome)
                failpoint("commit.inside")
        self.remember(transaction)
        failpoint("commit.after")
        return outcome

    def begin(self) -> Transaction:
        """The work of a transaction that the caller has opened and will commit (lane B, around its processors)."""
        return Transaction(self.sql, self.plans, self.known)

    def remember(self, transaction: Transaction) -> None:
        """Keep the jobs of a transaction that is committed, so that their steps need not be read again."""
        self.known.remember(transaction.known())


def hot_sql(session: Session) -> HotSql:
    """The hot statements of the session's dialect."""
    if session.connection.dialect.name == "postgresql":
        from docmill.engine.sql.postgres import PostgresSql

        return PostgresSql(session.raw)
    from docmill.engine.sql.sqlite import SqliteSql

    return SqliteSql(session.raw)
