"""Statuses of documents: the table of transitions is whole."""

from docmill.model.documents import DOCUMENT_TRANSITIONS, FINISHED_DOCUMENTS, DocumentStatus, leading_to


def test_every_status_can_be_reached_and_left_only_by_a_retry() -> None:
    assert set(DOCUMENT_TRANSITIONS) == set(DocumentStatus)
    reached = {after for ways in DOCUMENT_TRANSITIONS.values() for after in ways}
    assert reached == set(DocumentStatus) - {DocumentStatus.QUEUED}
    assert {status for status in DocumentStatus if status.finished} == FINISHED_DOCUMENTS
    # What is done may be done anew, and never becomes what failed or what waits.
    for done in (DocumentStatus.COMPLETED, DocumentStatus.DUPLICATE):
        assert not DOCUMENT_TRANSITIONS[done] & {DocumentStatus.FAILED, DocumentStatus.QUEUED}


def test_the_ways_to_a_status_are_those_that_lead_from_the_others() -> None:
    assert set(leading_to(DocumentStatus.FAILED)) == {
        DocumentStatus.QUEUED,
        DocumentStatus.PROCESSING,
        DocumentStatus.FAILED,
    }
