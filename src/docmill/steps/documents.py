"""The steps of document processing as one application declares them."""

from docmill.plugin import Declaration, EntityLoader, Processor, StepType, declared
from docmill.steps import document_apply
from docmill.steps.document_ask import ask_step
from docmill.steps.document_check import check_step
from docmill.steps.document_extract import extract_step, validate
from docmill.steps.document_read import read_step
from docmill.steps.document_review import review_outputs_step
from docmill.steps.document_save import save_step
from docmill.steps.document_work import DocumentWork


def document_declarations(work: DocumentWork) -> tuple[Declaration, ...]:
    """Steps, processors and loader."""
    return (
        check_step(work),
        read_step(work),
        extract_step(work),
        ask_step(work),
        declared(validate, StepType),
        save_step(work),
        review_outputs_step(work),
        declared(document_apply.claim, Processor),
        declared(document_apply.complete, Processor),
        declared(document_apply.review_outputs, Processor),
        declared(document_apply.load_document, EntityLoader),
    )
