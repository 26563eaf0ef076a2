"""The collectives of a step by kind, axis and line of the program, with the time that the core waits for them."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Sequence, Tuple


class Collective(NamedTuple):
    """All collectives of one kind along the same axes that one line of the program makes."""

    kind: str  # all-gather, ..., permute; send
    axes: Tuple[str, ...]
    count: int  # how often one runs in a step
    bytes: int  # of the input on each device, of all together
    exposed_s: float  # the core is idle and waits for them
    overlapped_s: float  # in flight while the core is busy
    source: str  # layer.py:24
    operation: str  # what JAX calls it there: jit(step)/transpose/dot_general
    instructions: Tuple[str, ...]  # of the module


def collectives_of(ledger: Sequence[Mapping[str, Any]]) -> List[Collective]:
    """The rows of a run's ledger (``Run.collectives``) that come from one line, together. The longest exposed first; they sum to the exposed time."""
    lines: Dict[Tuple[str, str, str], List[Mapping[str, Any]]] = {}
    for row in ledger:
        lines.setdefault((row["kind"], row["axis"], row["source"] or row["path"] or ""), []).append(row)
    found = [Collective(kind, tuple(axis.split(",")) if axis else (), sum(row["count"] for row in rows), sum(row["count"] * row["bytes"] for row in rows),
                        sum(row["exposed_s"] for row in rows), sum(row["hidden_s"] for row in rows), source, rows[0]["path"] or "", tuple(row["name"] for row in rows))
             for (kind, axis, source), rows in lines.items()]
    return sorted(found, key=lambda each: (-each.exposed_s, -each.bytes))
