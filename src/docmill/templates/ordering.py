"""How the steps of a template stand to each other: keys, dependencies, cycles, groups, the finish step.

A step without `group` comes one group after the latest step it depends on, or in group 1. A dependency inside a group
is allowed; one on a later group is not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from docmill.templates.faults import Faults, Mark
from docmill.templates.steps import Draft

MAX_DEPENDENCIES = 20_000
"""Dependencies of one template, the finish step aside: the plan and its stored form stay small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """How the steps run; to be relied on only if no fault was noted. A place is an index in the file's list."""

    running: Sequence[int]
    """Places by group, then `order`, then place."""
    dependencies: Mapping[int, frozenset[int]]
    groups: Mapping[int, int]


def order(drafts: Sequence[Draft], faults: Faults) -> Ordering:
    """Relate the steps to each other; whatever is wrong is noted."""
    places = _places(drafts, faults)
    finish = _finish(drafts, faults, drafts[-1].mark)
    edges = _edges(drafts, places, faults, finish)
    groups = _groups(drafts, edges, faults, finish)
    _check_groups(drafts, places, edges, groups, faults)
    dependencies = _dependencies(drafts, edges, groups, faults, finish)
    _check_reads(drafts, places, dependencies, groups, faults)
    running = sorted(groups, key=lambda place: (groups[place], drafts[place].order, place))
    return Ordering(running=running, dependencies=dependencies, groups=groups)


def _places(drafts: Sequence[Draft], faults: Faults) -> dict[str, int]:
    places: dict[str, int] = {}
    for draft in drafts:
        if draft.key is None:
            continue
        if draft.key in places:
            first = drafts[places[draft.key]].key_mark.line
            message = f"Step key '{draft.key}' is already used on line {first}; give each step its own."
            faults.add(draft.key_mark, f"{draft.path}.step_key", "duplicate_step_key", message)
        else:
            places[draft.key] = draft.place
    return places


def _finish(drafts: Sequence[Draft], faults: Faults, end: Mark) -> int | None:
    """Place of the one finish step, which is written last."""
    found = [draft for draft in drafts if draft.finish]
    if not found:
        message = "The template has no finish step; end 'steps' with one of type FinishProcessing."
        faults.add(end, "steps", "finish_missing", message)
        return None
    for extra in found[1:]:
        message = f"A second finish step (the first is on line {found[0].mark.line}); keep only the last."
        faults.add(extra.mark, extra.path, "finish_duplicate", message)
    if len(found) == 1 and found[0].place != len(drafts) - 1:
        message = "The finish step must be the last one written; move it to the end of 'steps'."
        faults.add(found[0].mark, found[0].path, "finish_not_last", message)
    return found[0].place


def _edges(
    drafts: Sequence[Draft], places: Mapping[str, int], faults: Faults, finish: int | None
) -> dict[int, frozenset[int]]:
    """Named dependencies by place."""
    edges: dict[int, frozenset[int]] = {}
    known = [key for key, place in places.items() if place != finish]
    for draft in drafts:
        named: set[int] = set()
        for reference in draft.depends_on:
            place = places.get(reference.name)
            if place is None:
                hint = faults.suggest(reference.name, known) or " Add that step or remove the dependency."
                message = f"There is no step '{reference.name}'.{hint}"
                faults.add(reference.mark, reference.path, "unknown_dependency", message)
            elif reference.name == draft.key:
                message = f"Step '{draft.key}' depends on itself; remove it from depends_on."
                faults.add(reference.mark, reference.path, "self_dependency", message)
            elif place == finish:
                message = "Nothing can depend on the finish step, it runs last; remove the dependency."
                faults.add(reference.mark, reference.path, "dependency_on_finish", message)
            else:
                named.add(place)
        edges[draft.place] = frozenset(named)
    return edges


def _groups(
    drafts: Sequence[Draft], edges: Mapping[int, frozenset[int]], faults: Faults, finish: int | None
) -> dict[int, int]:
    """Group by place. Steps in or behind a cycle are left out unless they name their group."""
    needs = {draft.place: edges[draft.place] for draft in drafts if draft.place != finish}
    for draft in drafts:
        if draft.after_all and draft.group is None and draft.place in needs:
            needs[draft.place] |= frozenset(range(draft.place))
    groups: dict[int, int] = {}
    for place in _sorted_or_cycles(drafts, needs, faults):
        known = [groups[need] for need in needs[place] if need in groups]
        groups[place] = drafts[place].group or max(known, default=0) + 1
    groups |= {draft.place: draft.group for draft in drafts if draft.group is not None and draft.place != finish}
    if finish is not None:
        last = max(groups.values(), default=0)
        draft = drafts[finish]
        groups[finish] = draft.group or last + 1
        if groups[finish] <= last and finish == len(drafts) - 1:
            message = f"The finish step runs alone in the last group; remove 'group' or write {last + 1} or more."
            faults.add(draft.group_mark, f"{draft.path}.group", "finish_not_last", message)
    return groups


def _sorted_or_cycles(drafts: Sequence[Draft], needs: Mapping[int, frozenset[int]], faults: Faults) -> list[int]:
    """Places in an order that respects `needs`; each cycle becomes one fault and its steps are left out."""
    waiting = {place: {need for need in wanted if need in needs} for place, wanted in needs.items()}
    dependents: dict[int, list[int]] = {place: [] for place in needs}
    for place, wanted in waiting.items():
        for need in wanted:
            dependents[need].append(place)
    done: list[int] = []

    def release(places: list[int]) -> list[int]:
        """Take places out of the game; returns those that became free."""
        free: list[int] = []
        for place in places:
            del waiting[place]
        for place in places:
            for dependent in dependents[place]:
                if dependent in waiting:
                    waiting[dependent].discard(place)
                    if not waiting[dependent]:
                        free.append(dependent)
        return free

    free = [place for place, wanted in waiting.items() if not wanted]
    while waiting:
        while free:
            done += free
            free = release(free)
        if waiting:
            cycle = _walk(waiting)
            _note_cycle(drafts, cycle, faults)
            free = release(cycle)
    return done


def _walk(waiting: Mapping[int, set[int]]) -> list[int]:
    """A cycle: follow needs from the first waiting step until one comes round again."""
    place = min(waiting)
    seen: dict[int, int] = {}
    trail: list[int] = []
    while place not in seen:
        seen[place] = len(trail)
        trail.append(place)
        place = min(waiting[place])
    cycle = trail[seen[place] :]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]


def _note_cycle(drafts: Sequence[Draft], cycle: list[int], faults: Faults) -> None:
    names = [drafts[place].key or drafts[place].path for place in (*cycle, cycle[0])]
    shown = names if len(names) <= 12 else [*names[:10], "…", names[-1]]
    first = drafts[cycle[0]]
    marks = [reference for reference in first.depends_on if reference.name == names[1]]
    mark, path = (marks[0].mark, marks[0].path) if marks else (first.mark, f"{first.path}.depends_on")
    message = f"These steps wait for each other: {' → '.join(shown)}. Remove one of the dependencies."
    faults.add(mark, path, "cycle", message)


def _check_groups(
    drafts: Sequence[Draft],
    places: Mapping[str, int],
    edges: Mapping[int, frozenset[int]],
    groups: Mapping[int, int],
    faults: Faults,
) -> None:
    """No step may wait for a later group: that group waits for it."""
    for draft in drafts:
        for reference in draft.depends_on:
            need = places.get(reference.name)
            if need is None or need not in edges[draft.place] or need not in groups or draft.place not in groups:
                continue
            if groups[need] > groups[draft.place]:
                message = (
                    f"'{reference.name}' runs in group {groups[need]}, after this step's group {groups[draft.place]}; "
                    "give this step a later group or remove the dependency."
                )
                faults.add(reference.mark, reference.path, "dependency_later_group", message)


def _dependencies(
    drafts: Sequence[Draft],
    edges: Mapping[int, frozenset[int]],
    groups: Mapping[int, int],
    faults: Faults,
    finish: int | None,
) -> dict[int, frozenset[int]]:
    """Dependencies by place, `all_previous_steps` expanded to every step of an earlier group."""
    found: dict[int, frozenset[int]] = {}
    total = 0
    for draft in drafts:
        group = groups.get(draft.place)
        if group is None:
            continue
        found[draft.place] = edges[draft.place]
        if draft.after_all or draft.place == finish:
            found[draft.place] |= {place for place, other in groups.items() if other < group}
        if draft.place != finish:
            total += len(found[draft.place])
            if total > MAX_DEPENDENCIES:
                message = f"More than {MAX_DEPENDENCIES:,} dependencies; groups run in order, remove what they imply."
                faults.add(draft.mark, draft.path, "too_many_dependencies", message)
                return found
    return found


def _check_reads(
    drafts: Sequence[Draft],
    places: Mapping[str, int],
    dependencies: Mapping[int, frozenset[int]],
    groups: Mapping[int, int],
    faults: Faults,
) -> None:
    """An expression may read only results that are settled when it is computed."""
    for draft in drafts:
        before = _before(draft.place, dependencies) if draft.reads else set()
        for reference in draft.reads:
            place = places.get(reference.name)
            if place is None:
                hint = faults.suggest(reference.name, places) or " Write results.<step_key>."
                message = f"The expression reads results.{reference.name[:80]}, but there is no such step.{hint}"
                faults.add(reference.mark, reference.path, "unknown_result", message)
            elif place not in before and groups.get(place, 0) >= groups.get(draft.place, 0) > 0:
                remedy = f"add '{reference.name}' to depends_on or give this step a later group"
                if place == draft.place:
                    remedy = "a step's own result is known as 'result', in processor choices only"
                message = f"The expression reads results.{reference.name}, which need not be there yet; {remedy}."
                faults.add(reference.mark, reference.path, "result_not_ready", message)


def _before(place: int, dependencies: Mapping[int, frozenset[int]]) -> set[int]:
    """Everything a step waits for, directly or not."""
    found: set[int] = set()
    pending = [place]
    while pending:
        fresh = dependencies.get(pending.pop(), frozenset()) - found
        found |= fresh
        pending += fresh
    return found
