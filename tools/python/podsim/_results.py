"""What commands find, as values."""

from __future__ import annotations

import functools
import json
from typing import Any, Dict, Iterator, List, Optional

import numpy as np

from . import _core
from ._objects import Machine, Plan, _pre


class Result:
    """The answer of a command: ``to_dict()`` has the keys of its JSON, which are attributes too; ``table()`` is the text that the command prints."""

    _words: Any = ()

    def __init__(self, text: str, *, ok: bool = True, table: Any = None):
        self._json, self._table, self._ok = text, table, ok

    @functools.cached_property
    def _dict(self) -> Dict[str, Any]:
        return json.loads(self._json)

    def to_dict(self) -> Dict[str, Any]:
        """A copy of the command's JSON."""
        return json.loads(self.json())

    def json(self) -> str:
        """The command's JSON, byte for byte."""
        return self._json

    def table(self) -> str:
        return self._table() if self._table else self._json

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        values = self._dict
        if isinstance(values, dict) and name in values:
            return values[name]
        raise AttributeError(f"{type(self).__name__} has no {name!r}; it has {', '.join(values) if isinstance(values, dict) else 'rows'}")

    def __getitem__(self, key: Any) -> Any:
        return self._dict[key]

    def keys(self) -> Any:
        return self._dict.keys()

    def __contains__(self, key: Any) -> bool:
        return key in self._dict

    def __iter__(self) -> Iterator[Any]:
        return iter(self._dict)

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *(self._dict if isinstance(self._dict, dict) else ())]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.json() == other.json()  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<podsim.{type(self).__name__}>\n{self.table()}"

    def _repr_html_(self) -> str:
        return _pre(self.table())

    def _frozen(self) -> Any:
        return (self.json(), self.table())

    def __reduce__(self) -> Any:
        return (_thawed, (type(self), *self._frozen(), self._ok))


def _thawed(kind: Any, text: str, table: str, ok: bool) -> Result:
    """A pickled result: its figures and its table. What needs the simulator's memory, such as a timeline, is not pickled."""
    result = kind.__new__(kind)
    Result.__init__(result, text, ok=ok, table=lambda: table)
    return result


class _Answered(Result):
    """A result whose texts are made when they are asked for."""

    def __init__(self, core: Any):
        self._core, self._ok = core, True

    _core: Any = None

    @functools.cached_property
    def _json(self) -> str:  # type: ignore[override]
        return self._core.json()

    def table(self) -> str:
        return self._core.table() if self._core is not None else self._table()

    def _alive(self, what: str) -> Any:
        if self._core is None:
            raise ValueError(f"this result was pickled, which keeps its figures and not its {what}")
        return self._core


class Run(_Answered):
    """One run. Attributes are the keys of ``podsim run --format json``: ``makespan_s`` (seconds), ``mfu``, ``flops``, ``link_bytes`` (of the whole slice),
    ``peak_memory_bytes`` (per device), ``axes`` ..."""

    @property
    def makespan_s(self) -> float:
        return self._core.makespan_s if self._core is not None else self._dict["makespan_s"]

    @property
    def interrupted(self) -> bool:
        return self._core is not None and self._core.interrupted

    def timeline(self) -> "Timeline":
        """When everything happened."""
        return Timeline(self._alive("timeline").timeline())

    def device_order(self) -> np.ndarray:
        """JAX's device ids in the shape of the mesh: ``Mesh(np.array(jax.devices())[order], axes)``."""
        core = self._alive("mesh")
        return np.array(core.device_order()).reshape(tuple(core.mesh().values()))

    def csv(self) -> str:
        return self._alive("rows").csv()

    def _repr_html_(self) -> str:
        from ._drawings import ledger_svg, split_svg, timeline_svg

        drawings = "" if self._core is None else split_svg(self) + ledger_svg(self) + timeline_svg(self.timeline())
        return drawings + super()._repr_html_()


class InterruptedRun:
    """What is known of a run that Ctrl-C ended."""

    def __init__(self, core: Any):
        self.simulated_s = core.simulated_ps * 1e-12
        self.finished, self.activities = core.finished, core.activities

    def __repr__(self) -> str:
        return f"<podsim.InterruptedRun: {self.simulated_s:.6g} s simulated, {self.finished} of {self.activities} task instances>"


UNITS = ("core", "dma", "link")


class Timeline:
    """When every task instance began and ended, in picoseconds. A transfer is one instance, of the device that sends.

    ``start_ps`` and ``sent_ps`` (end of work; a transfer has left the sender) are views of the engine's memory, without a copy, and cannot be written; they keep the
    memory alive. ``end_ps`` (received, the receiver's sum included), ``device``, ``task`` (index of ``labels``, and of ``roles``: "matmul", "all-gather", "forward") and
    ``unit`` (index of ``podsim.UNITS``) are computed when asked for, each an array of one entry per instance.

    Devices that behave alike were simulated once: ``device`` is then the lowest of them, and ``alike[d]`` tells which stands for device d. With ``fold="off"`` every
    device has its own.
    """

    def __init__(self, core: Any):
        self._core = core

    def __len__(self) -> int:
        return len(self._core)

    @property
    def start_ps(self) -> np.ndarray:
        return self._core.start_ps

    @property
    def sent_ps(self) -> np.ndarray:
        return self._core.sent_ps

    @functools.cached_property
    def end_ps(self) -> np.ndarray:
        return self._core.end_ps

    @functools.cached_property
    def device(self) -> np.ndarray:
        return self._core.device

    @functools.cached_property
    def task(self) -> np.ndarray:
        return self._core.task

    @functools.cached_property
    def unit(self) -> np.ndarray:
        return self._core.unit

    @functools.cached_property
    def labels(self) -> List[str]:
        return self._core.labels()

    @functools.cached_property
    def roles(self) -> List[str]:
        return self._core.roles()

    @functools.cached_property
    def alike(self) -> np.ndarray:
        return self._core.node_of()

    @property
    def makespan_ps(self) -> int:
        return self._core.makespan_ps

    def to_numpy(self) -> np.ndarray:
        """A copy as one structured array: start_ps, sent_ps, end_ps, device, task, unit."""
        fields = ("start_ps", "sent_ps", "end_ps", "device", "task", "unit")
        columns = {name: getattr(self, name) for name in fields}
        table = np.empty(len(self), dtype=[(name, columns[name].dtype) for name in fields])
        for name, column in columns.items():
            table[name] = column
        return table

    def df(self) -> Any:
        """A pandas DataFrame with a row per instance, labels and units as text."""
        import pandas

        frame = pandas.DataFrame(self.to_numpy())
        frame["task"] = pandas.Categorical.from_codes(np.asarray(self.task), categories=_distinct(self.labels))
        frame["unit"] = pandas.Categorical.from_codes(np.asarray(self.unit), categories=list(UNITS))
        return frame

    def __repr__(self) -> str:
        return f"<podsim.Timeline: {len(self)} task instances, {self.makespan_ps * 1e-12:.6g} s>"

    def _repr_svg_(self) -> str:
        from ._drawings import timeline_svg

        return timeline_svg(self)

    def _repr_html_(self) -> str:  # nbconvert strips SVG of its shapes, except within HTML
        return self._repr_svg_() or _pre(repr(self))


def _distinct(labels: List[str]) -> List[str]:
    """Labels with numbers where a program has one twice: a category each."""
    seen: Dict[str, int] = {}
    distinct = []
    for label in labels:
        count = seen[label] = seen.get(label, 0) + 1
        distinct.append(label if count == 1 else f"{label} ({count})")
    return distinct


class Comparison(_Answered):
    """Runs beside each other, each group's fastest first. ``rows`` has a dict per run."""

    @property
    def rows(self) -> List[Dict[str, Any]]:
        return self._dict["rows"]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, row: Any) -> Any:
        return self.rows[row] if isinstance(row, (int, slice)) else super().__getitem__(row)

    @property
    def best(self) -> Dict[str, Any]:
        """The fastest of all."""
        return min(self.rows, key=lambda row: row["makespan_s"])

    def df(self) -> Any:
        """A pandas DataFrame with a row per run."""
        import pandas

        return pandas.json_normalize(self.rows)


class TunedPlan:
    """A plan that ``tune`` found: the keys of its JSON as attributes, the plan, and where it runs."""

    def __init__(self, tuning: "Tuning", position: int):
        self._tuning, self._position = tuning, position

    @property
    def _dict(self) -> Dict[str, Any]:
        return self._tuning._dict["plans"][self._position]

    def to_dict(self) -> Dict[str, Any]:
        return self._tuning.to_dict()["plans"][self._position]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._dict:
            return self._dict[name]
        raise AttributeError(f"TunedPlan has no {name!r}; it has {', '.join(self._dict)}")

    @property
    def plan(self) -> Plan:
        """For ``podsim.run(plan=...)``; ``plan.save()`` writes what ``podsim run --plan`` reads."""
        return Plan._of(self._tuning._alive("plans").plan(self._position), self._tuning._machine)

    def device_order(self) -> np.ndarray:
        """JAX's device ids in the shape of the mesh: ``Mesh(np.array(jax.devices())[order], ("row", "col"))``."""
        core = self._tuning._alive("plans")
        return np.array(core.device_order(self._position)).reshape(tuple(core.mesh(self._position).values()))

    def __repr__(self) -> str:
        return f"<podsim.TunedPlan {self._dict.get('slice')} {self._dict.get('mesh')}: {self._dict.get('predicted_s')} s>"


class Tuning(_Answered):
    """Plans, the fastest first; ``best`` is the first. Attributes are the keys of ``podsim tune --format json``."""

    _machine: Optional[Machine] = None

    @property
    def plans(self) -> List[TunedPlan]:
        return [TunedPlan(self, position) for position in range(len(self._dict["plans"]))]

    @property
    def best(self) -> TunedPlan:
        return self.plans[0]

    def df(self) -> Any:
        """A pandas DataFrame with a row per plan."""
        import pandas

        return pandas.json_normalize(self._dict["plans"])


class TrainingTuning(Result):
    """Plans of a training step, the fastest first, as dicts; ``best`` is the first, and its ``run`` the command that runs it."""

    @property
    def best(self) -> Dict[str, Any]:
        return self._dict["plans"][0]

    def df(self) -> Any:
        import pandas

        return pandas.json_normalize(self._dict["plans"])


class Check(Result):
    """Whether a schedule is right: ``ok`` (also as a truth value), and the keys of ``podsim check --format json``."""

    @property
    def ok(self) -> bool:
        return self._ok

    def __bool__(self) -> bool:
        return self._ok


class Calibration(Result):
    """A fit: ``machine`` is the fitted one, the keys of ``podsim calibrate --format json`` say how sure and how wrong each value is."""

    _machine: Optional[Machine] = None

    @property
    def machine(self) -> Optional[Machine]:
        return self._machine
