"""`docmill templates show` draws groups from top to bottom with what a reader must know about each step."""

import pytest

from docmill.templates.catalogue import Catalogue
from docmill.templates.compile import compile_template
from docmill.templates.describe import draw
from docmill.templates.times import instant, seconds, written

TEMPLATE = """\
name: invoice
description: Files an invoice.
processable_type: document
service_name: documents
compensate: true
steps:
  - {step_key: read, type: ReadText, timeout: 1h30m, max_attempts: 1}
  - step_key: vendor
    type: MatchVendor
    kind: ai
    pool: gpu
    depends_on: [read]
    optional: true
    condition: results.read.pages > 0
    on_retry_action: {switch_models: [opus, gpt], raise_max_tokens_by: 500}
    prompt: match-vendor
    model_config: {model: flash}
    input: {text: results.read.text}
    processor_method: [{when: result.found, method: link}, {method: ask}]
    compensation_method: unlink
    recovery: resume
    not_before: entity.due
    delay: 5
  - {step_key: total, type: CheckTotal, depends_on: [read], processor_method: save}
  - {step_key: finish, type: FinishProcessing, display_name: "Done\\e[31m\\n", processor_method: close}
"""

DRAWING = """\
invoice (processes document, task process, service documents, compensates on failure)
Files an invoice.

┌─ group 1 ───────────────────────────────────────────────────────────────────
│ read: Read · rule ReadText
│     pool       rule, timeout 1h30m
│     retry      none
└─────────────────────────────────────────────────────────────────────────────
  │
  ▼
┌─ group 2, 2 steps in parallel ──────────────────────────────────────────────
│ vendor: Vendor (optional) · ai MatchVendor
│     after      read
│     if         results.read.pages > 0
│     not before entity.due
│     delay      5s
│     pool       gpu, timeout 5m
│     retry      up to 4 attempts, backoff 10s, then models opus → gpt, max_tokens +500 each
│     on failure skip_dependents
│     prompt     match-vendor
│     model      model=flash
│     input      text = results.read.text
│     processor  link if result.found
│     processor  ask otherwise
│     undo       unlink
│     recovery   resume
│
│ total: Total · rule CheckTotal
│     after      read
│     pool       rule, timeout 5m
│     retry      up to 4 attempts, backoff 10s
│     processor  save
└─────────────────────────────────────────────────────────────────────────────
  │
  ▼
┌─ group 3 ───────────────────────────────────────────────────────────────────
│ finish: Done [31m  · system FinishProcessing
│     after      all previous steps
│     pool       system, timeout 5m
│     retry      up to 4 attempts, backoff 10s
│     finish by  close
└─────────────────────────────────────────────────────────────────────────────
"""


def test_the_drawing_shows_groups_dependencies_conditions_pools_retries_and_processors() -> None:
    assert draw(compile_template(TEMPLATE, catalogue=Catalogue.permissive()).plan) == DRAWING


def test_a_template_cannot_send_control_characters_to_the_terminal() -> None:
    drawing = draw(compile_template(TEMPLATE, catalogue=Catalogue.permissive()).plan)
    assert all(char.isprintable() or char == "\n" for char in drawing)


@pytest.mark.parametrize("text", ["0s", "0.25s", "10s", "5m", "1h30m", "2d1s"])
def test_a_length_of_time_is_written_as_it_is_read(text: str) -> None:
    length = seconds(text)
    assert length is not None
    assert written(length) == text


@pytest.mark.parametrize("text", ["", "m", "5x", "1h-3m", "5 minutes", "١m", "1.2.3s", "-1"])
def test_what_is_no_length_of_time_is_none(text: str) -> None:
    assert seconds(text) is None


@pytest.mark.parametrize("value", ["", "soon", "2026-13-01", 2026, None, "x" * 50, "10:30"])
def test_what_is_no_instant_is_none(value: object) -> None:
    assert instant(value) is None


def test_an_instant_without_offset_is_utc() -> None:
    found = instant("2026-01-31T08:00:00")
    assert found is not None
    assert found.isoformat() == "2026-01-31T08:00:00+00:00"
