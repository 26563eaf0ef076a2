"""Other values of a machine: ``"+10%"`` of what it has."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping

from .. import _api
from .._errors import InputError
from .._objects import Machine

_RELATIVE = re.compile(r"([+-]\d+(?:\.\d+)?) ?%")
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)(.*)", re.IGNORECASE | re.DOTALL)


def _paths(values: Mapping[str, str], path: str) -> List[str]:
    """The value itself, or one for each dimension: link.bandwidth is link[x].bandwidth and so on."""
    if path in values:
        return [path]
    return [full for full in values if re.sub(r"\[[^\]]*\]", "", full) == path]


def _changed(values: Mapping[str, str], path: str, change: str) -> Dict[str, str]:
    percent = _RELATIVE.fullmatch(change.strip())
    if not percent:
        return {path: change}
    found = {full: _QUANTITY.fullmatch(values[full].strip()) for full in _paths(values, path)}
    numbers = {full: quantity for full, quantity in found.items() if quantity}
    if not numbers:
        raise InputError(f'expected the path of a number of the machine for "{change}", found "{path}"; podsim.show_machine(machine) lists them', argument="on")
    return {full: f"{float(quantity[1]) * (1 + float(percent[1]) / 100):.12g}{quantity[2]}" for full, quantity in numbers.items()}


def with_changes(machine: Any, changes: Mapping[str, Any]) -> Machine:
    """The machine with other values; ``"+10%"`` and ``"-5%"`` are relative to its own. Raises InputError."""
    machine = machine if isinstance(machine, Machine) else Machine(machine)
    values = {row["path"]: row["value"] for row in _api.show_machine(machine)["values"]}
    sets: Dict[str, Any] = {}
    for path, change in changes.items():
        sets.update(_changed(values, path, change) if isinstance(change, str) else {path: change})
    return machine.with_values(sets)
