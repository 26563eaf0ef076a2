"""Machines, schedules and plans: constant values that runs share."""

from __future__ import annotations

import html
import os
from typing import Any, Dict, Mapping, Optional, Tuple, Union

from . import _core
from ._words import name_or_path, overrides, text_only


def _pre(text: str) -> str:
    """In a notebook; wide tables scroll, as wrapped ones cannot be read."""
    return f'<pre style="white-space: pre; overflow-x: auto">{html.escape(text)}</pre>'


class Machine:
    """A machine: a shipped one by its name, or a textproto file; with other values, as ``--set`` gives them.

    >>> podsim.Machine("tpu_v4", {"link.bandwidth": "45GB/s"})

    Values carry units, as ``"45GB/s"``, ``"1us"`` (bare numbers have none). Machines are constant; ``with_values()`` makes another. They pickle, whole: a worker needs no
    file.
    """

    __slots__ = ("_base", "_changed", "_sets", "_word")

    def __init__(self, name_or_file: Union[str, os.PathLike], values: Optional[Mapping[str, Any]] = None):
        self._word = name_or_path(name_or_file, "machine")
        self._base = _core.Machine.load(self._word)
        self._set(values)

    def _set(self, values: Optional[Mapping[str, Any]], before: Tuple[Tuple[str, str], ...] = ()) -> None:
        self._sets = before + overrides(values)
        self._changed = self._base.with_values(list(self._sets)) if self._sets else self._base

    @classmethod
    def from_text(cls, text: str, name: str = "") -> "Machine":
        """The machine of a textproto. ``name`` stands in messages for a file."""
        return cls._of(_core.Machine.read(text_only(text), text_only(name, "name") or "a machine in memory"))

    @classmethod
    def _of(cls, base: _core.Machine, word: str = "", sets: Tuple[Tuple[str, str], ...] = ()) -> "Machine":
        machine = cls.__new__(cls)
        machine._base = base
        machine._word = word or f"{base.name} in memory"
        machine._set(None, sets)
        return machine

    @property
    def name(self) -> str:
        return self._base.name

    def with_values(self, values: Mapping[str, Any]) -> "Machine":
        """The same machine with other values; it counts as hypothetical if they differ."""
        machine = Machine.__new__(Machine)
        machine._word, machine._base = self._word, self._base
        machine._set(values, self._sets)
        return machine

    def text(self) -> str:
        """The textproto, each value with its source. ``podsim --machine FILE`` reads it."""
        return self._changed.text()

    def save(self, path: Union[str, os.PathLike]) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Machine) and self._changed == other._changed

    def __hash__(self) -> int:
        return hash(self.text())

    def __repr__(self) -> str:
        values = f", {dict(self._sets)!r}" if self._sets else ""
        return f"podsim.machine({self._word!r}{values})"

    def _repr_html_(self) -> str:
        from . import show_machine

        return _pre(show_machine(self).table())

    def __reduce__(self) -> Any:
        return (Machine._of, (self._base, self._word, self._sets))


class Schedule:
    """What every device does, as data: tasks with regions and edges. Built by ``podsim.schedule()`` of an algorithm, by ``podsim.Builder`` by hand, or read from a file.

    ``run()`` times it, ``check()`` proves it, ``execute()`` computes with it.
    """

    __slots__ = ("_core",)

    def __init__(self, path: Union[str, os.PathLike]):
        self._core = _core.Schedule.load(name_or_path(path, "schedule"))

    @classmethod
    def _of(cls, core: _core.Schedule) -> "Schedule":
        schedule = cls.__new__(cls)
        schedule._core = core
        return schedule

    @classmethod
    def from_text(cls, text: Union[str, bytes], name: str = "a schedule in memory") -> "Schedule":
        """The schedule of a textproto, or of its binary form."""
        return cls._of(_core.Schedule.read(text if isinstance(text, bytes) else text_only(text).encode(), text_only(name, "name")))

    @property
    def name(self) -> str:
        return self._core.name

    @property
    def mesh(self) -> Dict[str, int]:
        return self._core.mesh

    def __len__(self) -> int:
        """Tasks, of all programs."""
        return self._core.tasks()

    def text(self) -> str:
        """The textproto that ``podsim run --schedule`` reads."""
        return self._core.text()

    def save(self, path: Union[str, os.PathLike]) -> None:
        """As text, or binary if the name ends in .pb."""
        binary = os.fspath(path).endswith(".pb")
        with open(path, "wb") as file:
            file.write(self._core.binary() if binary else self._core.text().encode())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and self._core == other._core

    __hash__ = None  # type: ignore[assignment]  # large, and compared by content

    def __str__(self) -> str:
        """A line per task, for people."""
        return self._core.listing()

    def __repr__(self) -> str:
        return f"<podsim.Schedule {self.name!r}: {len(self)} tasks on {self.mesh}>"

    def _repr_html_(self) -> str:
        return _pre(str(self))

    def __reduce__(self) -> Any:
        return (Schedule._of, (self._core,))


class Plan:
    """A plan of a workload: its slice and mesh, and how each product is computed; as ``podsim tune -o`` writes it. ``podsim.run(plan=...)`` runs it."""

    __slots__ = ("_core", "_machine")

    def __init__(self, path: Union[str, os.PathLike]):
        self._core = _core.Plan.load(name_or_path(path, "plan"))
        self._machine: Optional[Machine] = None

    @classmethod
    def _of(cls, core: _core.Plan, machine: Optional[Machine] = None) -> "Plan":
        plan = cls.__new__(cls)
        plan._core, plan._machine = core, machine
        return plan

    @classmethod
    def from_text(cls, text: str, name: str = "a plan in memory") -> "Plan":
        return cls._of(_core.Plan.read(text_only(text), text_only(name, "name")))

    def text(self) -> str:
        return self._core.text()

    def save(self, path: Union[str, os.PathLike]) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.text())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._core == other._core

    def __hash__(self) -> int:
        return hash(self.text())

    def __repr__(self) -> str:
        return f"<podsim.Plan\n{self.text()}>"

    def __reduce__(self) -> Any:
        return (Plan._of, (self._core, self._machine))
