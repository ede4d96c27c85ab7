"""Jobs submitted under an id that exists: the same job is left alone, another one is refused."""

from collections.abc import Callable, Iterator, Sequence

import orjson

from docmill.engine.batch import NewJob
from docmill.engine.sql.rows import HotSql, JobHead
from docmill.model.errors import IdempotencyConflict
from docmill.templates.plan import Plan


def check_same(again: Sequence[NewJob], sql: HotSql, plan_of: Callable[[str], Plan]) -> None:
    """Raise IdempotencyConflict for the first of these jobs that is not the one that has its id.

    The version of the template does not matter: whoever repeats a call may meet a newer one.
    """
    if not again:
        return
    rows, _ = sql.load(sorted({job.id for job in again}))
    heads = {row.head.id: row.head for row in rows}
    for job in again:
        head = heads.get(job.id)
        differing = [] if head is None else list(_differences(job, head, plan_of))
        if differing:
            raise IdempotencyConflict(
                f"A job was submitted as {job.id} before, with another {', another '.join(differing)}. "
                "Use another key or id for another job.",
                job_id=job.id,
                differs=differing,
            )


def _differences(job: NewJob, head: JobHead, plan_of: Callable[[str], Plan]) -> Iterator[str]:
    if job.org_id != head.org_id:
        yield "organisation"
        return  # Whatever else it is, it is nobody's business here.
    if plan_of(job.template_id).name != plan_of(head.template_id).name:
        yield "template"
    if (job.entity_type, job.entity_id) != (head.entity_type, head.entity_id):
        yield "entity"
    if job.title != head.title:
        yield "title"
    if orjson.loads(orjson.dumps(job.metadata, option=orjson.OPT_NON_STR_KEYS)) != head.metadata:
        yield "metadata"
    if job.file_type != head.file_type:
        yield "file type"
    if job.priority != head.priority:
        yield "priority"
