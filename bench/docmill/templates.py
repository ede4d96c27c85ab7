"""The templates of the benchmark: YAML as a user would write it, compiled and registered before each measurement.

Every template of Docmill ends with a finish step; in the six-step workflow f is that step.
"""

from bench.settings import Kind

_FLOW = """
name: {name}
processable_type: bench_document
service_name: bench
steps:
  - {{step_key: a, type: bench.step{processor}}}
  - {{step_key: b, type: bench.step, depends_on: [a]{processor}}}
  - {{step_key: c, type: {waiting}, depends_on: [b]{processor}}}
  - {{step_key: d, type: bench.step, depends_on: [c]{processor}}}
  - {{step_key: e, type: bench.step, depends_on: [c]{processor}}}
  - {{step_key: f, type: FinishProcessing{processor}}}
"""

_SINGLE = """
name: {name}
processable_type: bench_document
steps:
  - {{step_key: {name}, type: bench.{name}}}
  - {{step_key: finish, type: FinishProcessing}}
"""

ENTITY_TYPE = "bench_document"
FLOW = "flow"
FLOW_WAITING = "flow-waiting"
FLOW_PROCESSED = "flow-processed"
NOOP = "noop"
PROBE = "probe"

_PROCESSOR = ", processor_method: store"

SOURCES = {
    FLOW: _FLOW.format(name=FLOW, waiting="bench.step", processor=""),
    FLOW_WAITING: _FLOW.format(name=FLOW_WAITING, waiting="bench.model", processor=""),
    FLOW_PROCESSED: _FLOW.format(name=FLOW_PROCESSED, waiting="bench.step", processor=_PROCESSOR),
    NOOP: _SINGLE.format(name=NOOP),
    PROBE: _SINGLE.format(name=PROBE),
}


def template_for(kind: Kind, *, waits: bool, processed: bool) -> str:
    """The name of the template behind a workload."""
    if kind is Kind.NOOP:
        return NOOP
    if processed:
        return FLOW_PROCESSED
    return FLOW_WAITING if waits else FLOW
