"""One template step: its YAML mapping into a draft with its own fields checked; relations are checked in `ordering`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from docmill.model.statuses import FailureAction, StepKind
from docmill.templates import conditions, times
from docmill.templates.catalogue import EXTERNAL_TYPE, FINISH_TYPE, Catalogue
from docmill.templates.faults import Faults, Mark
from docmill.templates.fields import Fields, plain
from docmill.templates.plan import ALL_PREVIOUS, ForEach, ProcessorChoice, RetryAction
from docmill.templates.schemas import check_schema
from docmill.templates.source import BrokenNode, MappingNode, Node, ScalarNode

KEYS = frozenset(
    {
        *("step_key", "display_name", "kind", "type", "pool", "group", "execution_group", "order", "depends_on"),
        *("condition", "optional", "timeout", "max_attempts", "backoff", "max_crashes", "on_failure_action"),
        *("on_retry_action", "prompt", "model_config", "output_schema", "processor_method", "compensation_method"),
        *("recovery", "input", "not_before", "delay", "executor", "answer_within"),
        *("for_each", "parallel", "items_may_fail"),
    }
)
_STEP_KEY = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
_POOL = re.compile(r"[a-z][a-z0-9_-]{0,62}", re.ASCII)
_EXECUTOR = re.compile(r"[a-z][a-z0-9_-]{0,62}", re.ASCII)
_INPUT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A step named by another, and where."""

    name: str
    mark: Mark
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A step as written: names not yet resolved, group perhaps not yet known."""

    place: int
    path: str
    mark: Mark
    """Where the step begins."""
    key: str | None
    """None: missing or refused."""
    key_mark: Mark
    group: int | None
    group_mark: Mark
    order: int
    depends_on: tuple[Reference, ...]
    after_all: bool
    """It named `all_previous_steps`."""
    finish: bool
    reads: tuple[Reference, ...]
    """Steps whose results its expressions read."""
    settings: Mapping[str, object]
    """The remaining fields of its PlanStep."""


def read_step(node: Node, place: int, faults: Faults, catalogue: Catalogue, service: str | None) -> Draft | None:
    """The draft of one step, or None if it is no mapping at all."""
    path = f"steps[{place}]"
    if not isinstance(node, MappingNode):
        if not isinstance(node, BrokenNode):
            faults.add(
                node.mark, path, "wrong_type", "A step is a mapping; write 'step_key: …' and 'type: …' below the dash."
            )
        return None
    return _StepReader(Fields(node, path, faults, known=KEYS, what="a step"), place, catalogue, service).read()


class _StepReader:
    def __init__(self, fields: Fields, place: int, catalogue: Catalogue, service: str | None) -> None:
        self.fields = fields
        self.place = place
        self.catalogue = catalogue
        self.service = service
        self.reads: list[Reference] = []

    def read(self) -> Draft:
        fields = self.fields
        key = self._key()
        step_type = self._type()
        finish = step_type == FINISH_TYPE
        kind = fields.choice("kind", StepKind) or self.catalogue.kind_of(step_type or "")
        optional = fields.flag("optional", False)
        depends_on, after_all = self._depends_on()
        group, group_key = self._group()
        settings: dict[str, object] = {
            "display_name": fields.text("display_name") or display_name(key or ""),
            "kind": kind,
            "step_type": step_type or "",
            "pool": fields.pattern("pool", _POOL, "a pool is lower-case letters, digits, '_' and '-'") or kind.value,
            "condition": self._expression("condition"),
            "optional": optional,
            "timeout": fields.duration("timeout", 300.0, positive=True),
            "max_attempts": fields.whole("max_attempts", 4, low=1, high=100),
            "backoff": fields.duration("backoff", 10.0),
            "max_crashes": fields.whole("max_crashes", 3, low=1, high=100),
            "on_failure": self._on_failure(optional),
            "on_retry": self._on_retry(),
            "prompt": self._prompt(),
            "model": self._model(),
            "output_schema": self._schema(),
            "processor": self._processor(),
            "compensation": self._method("compensation_method"),
            "recovery": self._recovery(step_type),
            "input": self._input(),
            "not_before": self._not_before(),
            "delay": fields.duration("delay", 0.0),
            "answer_within": self._answer_within(),
            "for_each": self._for_each(step_type),
            "finish": finish,
            "executor": self._executor(kind, step_type),
        }
        if finish:
            self._check_finish(kind, optional)
        return Draft(
            place=self.place,
            path=fields.path,
            mark=fields.node.mark,
            key=key,
            key_mark=fields.value_mark("step_key"),
            group=group,
            group_mark=fields.value_mark(group_key),
            order=fields.whole("order", 0, low=0, high=1_000_000),
            depends_on=depends_on,
            after_all=after_all,
            finish=finish,
            reads=tuple(self.reads),
            settings=settings,
        )

    def _key(self) -> str | None:
        self.fields.require("step_key", "give each step a short unique key such as 'read_text'")
        rule = "a key is 1 to 64 lower-case letters, digits and '_', beginning with a letter"
        key = self.fields.pattern("step_key", _STEP_KEY, rule)
        if key == ALL_PREVIOUS:
            self.fields.fault("step_key", "bad_name", f"'{ALL_PREVIOUS}' has a meaning of its own; choose another key.")
            return None
        return key

    def _type(self) -> str | None:
        self.fields.require("type", "name the step type that does the work")
        name = self.fields.text("type")
        if name is not None and not self.catalogue.knows_type(name):
            known = [*(self.catalogue.step_types or {}), FINISH_TYPE]
            hint = self.fields.faults.suggest(name, known) or " Register it with @step or check the spelling."
            self.fields.fault("type", "unknown_step_type", f"There is no step type '{name}'.{hint}")
        return name

    def _group(self) -> tuple[int | None, str]:
        fields = self.fields
        if fields.get("group") is not None and fields.get("execution_group") is not None:
            fields.fault("execution_group", "duplicate_key", "'group' and 'execution_group' are the same; keep one.")
        key = "group" if fields.get("group") is not None else "execution_group"
        return fields.whole_or_none(key, low=1, high=1_000_000), key

    def _depends_on(self) -> tuple[tuple[Reference, ...], bool]:
        fields = self.fields
        node = fields.get("depends_on")
        named: list[tuple[str, Node]]
        if isinstance(node, ScalarNode):
            named = [(fields.at("depends_on"), node)]
        else:
            named = list(fields.items("depends_on", what=f"a list of step keys, or {ALL_PREVIOUS}"))
        found: dict[str, Reference] = {}
        for path, item in named:
            name = fields.text_of(item, path)
            if name is None:
                continue
            if name in found:
                message = f"'{name}' is listed twice; keep one of them."
                fields.faults.add(item.mark, path, "duplicate_dependency", message)
            found[name] = Reference(name=name, mark=item.mark, path=path)
        after_all = found.pop(ALL_PREVIOUS, None) is not None
        return tuple(found.values()), after_all

    def _on_failure(self, optional: bool) -> FailureAction:
        chosen = self.fields.choice("on_failure_action", FailureAction)
        if chosen is None:
            return FailureAction.SKIP_DEPENDENTS if optional else FailureAction.FAIL_JOB
        if optional and chosen is FailureAction.FAIL_JOB:
            message = "An optional step cannot fail its job; use skip_dependents or continue, or remove 'optional'."
            self.fields.fault("on_failure_action", "optional_fail_job", message)
        return chosen

    def _on_retry(self) -> RetryAction:
        node = self.fields.mapping("on_retry_action")
        if node is None:
            return RetryAction()
        known = ("switch_models", "raise_max_tokens_by")
        inner = Fields(node, self.fields.at("on_retry_action"), self.fields.faults, known=known, what="on_retry_action")
        models = [inner.text_of(item, path) for path, item in inner.items("switch_models", what="model names")]
        return RetryAction(
            switch_models=tuple(model for model in models if model is not None),
            raise_max_tokens_by=inner.whole("raise_max_tokens_by", 0, low=0, high=10_000_000),
        )

    def _prompt(self) -> str | None:
        node = self.fields.get("prompt")
        if node is None:
            return None
        number = isinstance(node, ScalarNode) and isinstance(node.value, int) and not isinstance(node.value, bool)
        name = node.text if number and isinstance(node, ScalarNode) else self.fields.text("prompt")
        known = self.catalogue.prompts
        if name is not None and known is not None and name not in known:
            hint = (
                self.fields.faults.suggest(name, known)
                or f" Store it with `docmill prompts set {name} FILE`, or check the spelling."
            )
            self.fields.fault("prompt", "unknown_prompt", f"There is no prompt '{name}'.{hint}")
        return name

    def _model(self) -> dict[str, object]:
        node = self.fields.mapping("model_config")
        return {} if node is None else {key: plain(entry.value) for key, entry in node.entries.items()}

    def _schema(self) -> dict[str, object] | None:
        node = self.fields.mapping("output_schema")
        if node is None:
            return None
        check_schema(node, self.fields.at("output_schema"), self.fields.faults)
        return {key: plain(entry.value) for key, entry in node.entries.items()}

    def _processor(self) -> tuple[ProcessorChoice, ...]:
        fields = self.fields
        node = fields.get("processor_method")
        if node is None:
            return ()
        if isinstance(node, ScalarNode):
            method = self._method("processor_method")
            return () if method is None else (ProcessorChoice(when=None, method=method),)
        what = "a method name, or a list of {when: expression, method: name}"
        branches: list[ProcessorChoice] = []
        items = list(fields.items("processor_method", what=what))
        for index, (path, item) in enumerate(items):
            if not isinstance(item, MappingNode):
                if not isinstance(item, BrokenNode):
                    fields.wrong_type(item, path, "a mapping", "write {when: expression, method: name}")
                continue
            inner = Fields(item, path, fields.faults, known=("when", "method"), what="a processor choice")
            inner.require("method", "name the method to call")
            method = self._method("method", inner)
            when = self._expression("when", inner, conditions.PROCESSOR_NAMES)
            if inner.get("when") is None and index < len(items) - 1:
                message = "A branch without 'when' is the default and hides those below; move it to the end."
                fields.faults.add(item.mark, path, "processor_default_not_last", message)
            if method is not None:
                branches.append(ProcessorChoice(when=when, method=method))
        return tuple(branches)

    def _method(self, key: str, inner: Fields | None = None) -> str | None:
        fields = inner or self.fields
        method = fields.text(key)
        if method is None:
            return None
        if self.service is None:
            message = f"'{method}' needs a service; add service_name at the top of the template."
            fields.fault(key, "service_missing", message)
            return method
        known = self.catalogue.processors
        # An unknown service is one fault at service_name, not one per step.
        if known is not None and self.service in known and method not in known[self.service]:
            hint = fields.faults.suggest(method, known[self.service]) or " Register it with @processor."
            fields.fault(key, "unknown_processor", f"Service '{self.service}' has no method '{method}'.{hint}")
        return method

    def _recovery(self, step_type: str | None) -> str | None:
        name = self.fields.text("recovery")
        offered = self.catalogue.recoveries_of(step_type or "")
        if name is not None and offered is not None and name not in offered:
            hint = self.fields.faults.suggest(name, offered)
            message = (
                f"Step type '{step_type}' has no recovery '{name}'; it offers {', '.join(sorted(offered)) or 'none'}."
            )
            self.fields.fault("recovery", "unknown_recovery", message + hint)
        return name

    def _expression(
        self, key: str, inner: Fields | None = None, names: frozenset[str] = conditions.STEP_NAMES
    ) -> str | None:
        fields = inner or self.fields
        node = fields.get(key)
        if node is None:
            return None
        text = fields.expression_of(node, fields.at(key), names)
        return self._noting_reads(text, node, fields.at(key), names)

    def _noting_reads(self, text: str | None, node: Node, path: str, names: frozenset[str]) -> str | None:
        if text is not None:
            keys = conditions.parse(text, names=names).result_keys or ()
            self.reads += (Reference(name=key, mark=node.mark, path=path) for key in sorted(keys))
        return text

    def _input(self) -> dict[str, str]:
        node = self.fields.mapping("input")
        found: dict[str, str] = {}
        for name, entry in node.entries.items() if node is not None else ():
            path = f"{self.fields.at('input')}.{name[:80]}"
            if not _INPUT_NAME.fullmatch(name):
                message = f"'{name[:80]}' is not a name; use letters, digits and '_', beginning with a letter."
                self.fields.faults.add(entry.key_mark, path, "bad_name", message)
            text = self.fields.expression_of(entry.value, path, conditions.STEP_NAMES)
            if self._noting_reads(text, entry.value, path, conditions.STEP_NAMES) is not None:
                found[name] = text or ""
        return found

    def _not_before(self) -> str | None:
        node = self.fields.get("not_before")
        if isinstance(node, ScalarNode) and isinstance(node.value, str):
            # An instant comes first: 2026-01-31 would also parse, as a subtraction.
            at = times.instant(node.value)
            if at is not None:
                return conditions.literal(at.isoformat())
            return self._expression("not_before")
        if node is not None:
            remedy = "write a time such as 2026-01-31T08:00:00Z or an expression giving one"
            self.fields.wrong_type(node, self.fields.at("not_before"), "text", remedy)
        return None

    def _answer_within(self) -> float | None:
        return self.fields.duration("answer_within", 0.0, positive=True) or None

    def _for_each(self, step_type: str | None) -> ForEach | None:
        fields = self.fields
        items = self._expression("for_each")
        parallel = fields.whole("parallel", 10, low=1, high=1_000)
        may_fail = fields.flag("items_may_fail", False)
        if fields.get("for_each") is not None:
            return None if items is None else ForEach(items=items, parallel=parallel, may_fail=may_fail)
        for key in ("parallel", "items_may_fail"):
            if fields.get(key) is not None:
                fields.fault(key, "for_each_missing", f"'{key}' is about items; add 'for_each' or remove it.")
        if self.catalogue.takes_item(step_type or ""):
            message = (
                f"Step type '{step_type}' works on one item at a time; add 'for_each: metadata.documents' or such."
            )
            fields.fault("type", "for_each_missing", message)
        return None

    def _executor(self, kind: StepKind, step_type: str | None) -> str | None:
        """A name, never an address: where a template sends data to is for the administrator to say."""
        fields = self.fields
        name = fields.pattern("executor", _EXECUTOR, "an executor is lower-case letters, digits, '_' and '-'")
        if kind is not StepKind.EXTERNAL:
            if fields.get("executor") is not None:
                message = "Only steps of kind external have 'executor'; remove it, or set 'kind: external'."
                fields.fault("executor", "not_external", message)
        elif step_type == EXTERNAL_TYPE:
            fields.require("executor", "name one of the `executors` of the settings")
        return name

    def _check_finish(self, kind: StepKind, optional: bool) -> None:
        """The finish step always runs and always counts, so nothing may make it skippable."""
        fields = self.fields
        if kind is not StepKind.SYSTEM:
            fields.fault("kind", "finish_kind", "The finish step is of kind system; remove 'kind'.")
        if optional:
            fields.fault("optional", "finish_optional", "The finish step cannot be optional; remove 'optional'.")
        if fields.get("for_each") is not None:
            fields.fault("for_each", "finish_for_each", "The finish step runs once; remove 'for_each'.")
        if fields.get("condition") is not None:
            fields.fault("condition", "finish_condition", "The finish step always runs; remove 'condition'.")
        action = fields.get("on_failure_action")
        if isinstance(action, ScalarNode) and action.value != FailureAction.FAIL_JOB.value:
            message = "A failed finish step fails the job; remove 'on_failure_action'."
            fields.fault("on_failure_action", "finish_on_failure", message)


def display_name(key: str) -> str:
    """What a step is called unless the template says so: `read_text` is "Read text"."""
    words = key.replace("_", " ").strip()
    return words[:1].upper() + words[1:]
