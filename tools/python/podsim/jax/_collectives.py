"""The collectives of a step by kind, axis and line of the program, with the time that the core waits for them."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from ._sources import Source


class Collective(NamedTuple):
    """All collectives of one kind along the same axes that one line of the program makes."""

    kind: str  # all-gather, ..., permute
    axes: Tuple[str, ...]
    count: int  # how often one runs in a step
    bytes: int  # of the input on each device, of all together
    exposed_s: float  # the core is idle and waits for them
    overlapped_s: float  # in flight while the core is busy
    source: str  # layer.py:24
    operation: str  # what JAX calls it there: jit(step)/transpose/dot_general
    instructions: Tuple[str, ...]  # of the module


# In front of the name of an instruction in a loop that is played iteration by iteration: "while.120 3 ".
_ITERATION = re.compile(r"^(?:\S+ \d+ )+")
_SHORT = {"collective-permute": "permute"}


def _flat(operations: Sequence[Mapping[str, Any]], times: int = 1) -> Iterator[Tuple[str, Mapping[str, Any], int]]:
    """Instruction, operation and how often that is done: calls are looked into."""
    for operation in operations:
        if operation.get("operations"):
            yield from _flat(operation["operations"], times * operation["count"])
        else:
            yield _ITERATION.sub("", operation["name"]), operation, times


def _waits(operations: Sequence[Mapping[str, Any]]) -> Dict[str, Tuple[float, float]]:
    """Exposed and overlapped seconds by instruction."""
    waits: Dict[str, Tuple[float, float]] = {}
    for name, operation, times in _flat(operations):
        exposed, overlapped = waits.get(name, (0.0, 0.0))
        waits[name] = exposed + times * operation["exposed_s"], overlapped + times * operation["overlapped_s"]
    return waits


def _category(operations: Sequence[Mapping[str, Any]], name: str) -> str:
    return next(operation["category"] for instruction, operation, _ in _flat(operations) if instruction == name)


def collectives_of(shown: Mapping[str, Any], operations: Sequence[Mapping[str, Any]], sources: Mapping[str, Source]) -> List[Collective]:
    """The longest exposed first. They sum to the exposed time: other operations that the core waits for, as transfers between slices, are rows without axes.

    `shown` is what ``show_hlo`` tells, `operations` are those of ``run``.
    """
    waits = _waits(operations)
    groups: Dict[Tuple[str, Tuple[str, ...], str], List[Tuple[Mapping[str, Any], Tuple[float, float], Source]]] = {}
    for row in shown["collectives"]:
        source = sources.get(row["instruction"]) or sources.get(row["runs_as"]) or Source("", 0, row.get("op_name") or "")
        wait = waits.pop(row["runs_as"], None) or waits.pop(row["instruction"], (0.0, 0.0))
        key = _SHORT.get(row["kind"], row["kind"]), tuple(row.get("axes") or ()), str(source)
        groups.setdefault(key, []).append((row, wait, source))
    found = [Collective(kind, axes, sum(row["count"] for row, _, _ in rows), sum(row["count"] * row["bytes"] for row, _, _ in rows),
                        sum(wait[0] for _, wait, _ in rows), sum(wait[1] for _, wait, _ in rows), source, rows[0][2].operation,
                        tuple(row["instruction"] for row, _, _ in rows)) for (kind, axes, source), rows in groups.items()]
    found += [Collective(_category(operations, name), (), 0, 0, *wait, "", "", (name,)) for name, wait in waits.items() if wait[0] > 0]
    return sorted(found, key=lambda each: (-each.exposed_s, -each.bytes))
