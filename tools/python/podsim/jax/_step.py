"""A step on devices that are not there: its time, what it waits for, its memory."""

from __future__ import annotations

import functools
import html
import os
import pathlib
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from .. import _api
from .._errors import InputError
from .._modules import is_compiled, is_lowered, is_mesh, with_module
from .._objects import Machine
from .._results import Run
from .._words import shown
from ._collectives import Collective, collectives_of
from ._compile import Module, Program, compile_lowered, compiled_module, module_of
from ._text import seconds, size, table
from ._whatif import with_changes

_NO_RANGE = {"spec": "the machine's values are those of data sheets", "hypothetical": "a machine that does not exist"}


class Memory:
    """Bytes on each device: what XLA's compiler tells (``compiler``, None where it does not), what podsim counts in the order of the module, what the device has."""

    def __init__(self, compiler: Optional[Mapping[str, int]], podsim: Mapping[str, int], hbm_bytes: Optional[int], gpu: bool):
        self.compiler, self.podsim, self.hbm_bytes, self.gpu = compiler, podsim, hbm_bytes, gpu

    @property
    def needed_bytes(self) -> int:
        """What decides whether it fits: on GPUs all that XLA allocates; on TPUs the peak of what is live in HBM as podsim counts it, since XLA's includes what lies on the chip."""
        told = self.compiler or {}
        if self.gpu and "argument_size_in_bytes" in told:
            return sum(told[f"{name}_size_in_bytes"] for name in ("argument", "output", "temp")) - told["alias_size_in_bytes"]
        return self.podsim["hbm_required"]

    @property
    def fits(self) -> bool:
        return self.hbm_bytes is None or self.needed_bytes <= self.hbm_bytes

    def __repr__(self) -> str:
        of = f" of {size(self.hbm_bytes)}" if self.hbm_bytes else ""
        told = f"{size(self.needed_bytes)}{of}{'' if self.fits else ': does not fit'}"
        if not self.compiler:
            return f"{told}, counted by podsim"
        arguments, temporaries = (size(self.compiler.get(f"{name}_size_in_bytes", 0)) for name in ("argument", "temp"))
        if self.gpu:
            return f"{told} by XLA (arguments {arguments}, temporaries {temporaries}); podsim counts {size(self.podsim['hbm_required'])}"
        return f"{told}; XLA's peak, the chip's own memory included, {size(self.compiler.get('peak_memory_in_bytes', 0))} (arguments {arguments}, temporaries {temporaries})"


class Step:
    """One step of a compiled program. ``print`` it, or look at it:

    ``step_s`` and its trusted ``range_s``, ``core_s`` and ``core_share``, ``exposed_s`` and ``waiting_s``; ``collectives``, a row for each kind, axis and line of the program;
    ``memory``; ``unknown``, kernels whose cost nobody tells; ``why()``, what bounds it; ``run``, the podsim.Run with everything else. ``on()`` asks for another mesh or
    machine, ``expect()`` holds it to bounds, ``trace()`` and ``report()`` write files.
    """

    def __init__(self, module: Module, how: Mapping[str, Any], program: Optional[Program] = None, cache: bool = True):
        self.module, self.program = module, program
        self._how, self._cache = dict(how), cache
        self.run: Run = _api.run(**self._keywords())

    def _keywords(self, **more: Any) -> Dict[str, Any]:
        return {"hlo": self.module.path, **self._how, **more}

    @property
    def step_s(self) -> float:
        return self.run.makespan_s

    @property
    def range_s(self) -> Optional[Tuple[float, float]]:
        """Least and most by the errors of what was measured on the machine; None where nothing says."""
        trust = self.run.trust
        error = trust.get("p95_error") or trust.get("error")
        return (self.step_s * (1 - error), self.step_s * (1 + error)) if error else None

    @property
    def core_s(self) -> float:
        return self.run.compute_s

    @property
    def core_share(self) -> float:
        """Of the time, on the device whose core is busy longest."""
        return self.core_s / self.step_s if self.step_s else 0.0

    @property
    def exposed_s(self) -> float:
        """The core is idle while something is in flight."""
        return self.run.exposed_communication_s

    @property
    def waiting_s(self) -> float:
        return self.run.waiting_s

    @functools.cached_property
    def collectives(self) -> List[Collective]:
        """The longest exposed first."""
        return collectives_of(self.run.collectives)

    @property
    def memory(self) -> Memory:
        hbm = self.run.to_dict().get("hbm_bytes")
        return Memory(self.module.memory, self.run.module_memory_bytes, int(hbm) if hbm else None, gpu="cores" not in self.module.told)

    @property
    def unknown(self) -> Dict[str, int]:
        """Kernels without a cost or with a lower bound of it, and how often they run; the time is at least ``step_s`` then. ``custom_calls={"name": "2GFLOP,8MiB"}`` tells it."""
        coverage = self.run.coverage
        return {**coverage["lower_bound_names"], **coverage["unknown_names"]}

    def why(self) -> str:
        """What bounds the step, and what more of it would give. Simulates every loop iteration by iteration: minutes for a large model."""
        explained = _api.run(**self._keywords(explain=True)).explanation
        gains = [f"{row['parameter']} {row['makespan_change']:+.2%}" for row in explained["sensitivities"][:4]]
        return f"{explained['sentence']}. 1 % more of: {', '.join(gains)}"

    def on(self, other: Any) -> "Step":
        """The same program elsewhere.

        A mesh: it is compiled again, each argument by its PartitionSpec on that mesh. A machine or its name: the module as it is, on that machine. A dict: the same
        machine with other values, ``{"link.bandwidth": "+10%"}``.
        """
        if is_mesh(other):
            if self.program is None:
                raise InputError("a module is compiled for its mesh: hand the function and its arguments to simulate() for on(mesh)", argument="on")
            return simulate_program(self.program.on(other), self._how, self._cache)
        if isinstance(other, Mapping):
            return Step(self.module, {**self._how, "machine": with_changes(self._how.get("machine") or self.run.machine, other)}, self.program, self._cache)
        if isinstance(other, (Machine, str, os.PathLike)):
            return Step(self.module, {**self._how, "machine": other}, self.program, self._cache)
        raise TypeError(f'on() takes a mesh, a machine or values of it, {{"link.bandwidth": "+10%"}}, found {shown(other)}')

    def expect(self, *, step_s: Optional[float] = None, exposed_s: Optional[float] = None, memory_bytes: Optional[float] = None, core_share: Optional[float] = None) -> "Step":
        """The step itself, or an AssertionError with all that is worse than these bounds: at most so many seconds and bytes, at least this share of the core. For tests."""
        worse = [f"{what} {told(found)}, expected {side} {told(bound)}" for what, found, bound, side, told in (
            ("step", self.step_s, step_s, "at most", seconds), ("exposed", self.exposed_s, exposed_s, "at most", seconds),
            ("memory", self.memory.needed_bytes, memory_bytes, "at most", size), ("core share", self.core_share, core_share, "at least", "{:.1%}".format))
            if bound is not None and (found < bound if side == "at least" else found > bound)]
        if self.unknown:
            worse.append(f"the cost of {', '.join(self.unknown)} is not known: custom_calls={{...}}")
        if worse:
            raise AssertionError("; ".join(worse))
        return self

    def trace(self, path: Union[str, os.PathLike]) -> str:
        """Writes when everything happened: FILE.json for ui.perfetto.dev, FILE.xplane.pb or a folder for XProf and TensorBoard."""
        _api.run(**self._keywords(trace=path))
        return os.fspath(path)

    def report(self, path: Union[str, os.PathLike]) -> str:
        """Writes one HTML file of the step."""
        with tempfile.TemporaryDirectory() as folder:
            record = pathlib.Path(folder) / "step.record"
            _api.run(**self._keywords(record=record))
            return _api.report([record], path)

    def _seconds(self) -> str:
        told = self.module.told
        compiled = "compiled before" if self.module.cached else f"compiled in {told['compile_s']:.0f} s" if "compile_s" in told else ""
        return ", ".join(part for part in (compiled, f"simulated in {seconds(self.run.wall_s + self.run.build_s)}") if part)

    def _lines(self) -> List[str]:
        run = self.run
        mesh = ",".join(f"{axis}={extent}" for axis, extent in run.mesh.items())
        level = run.trust["level"]
        trusted = " to ".join(map(seconds, self.range_s)) if self.range_s else f"no range known ({_NO_RANGE.get(level, level)})"
        lines = [f"{run.module} on {run.machine} {run.slice}, mesh {mesh} ({run.devices} devices)",
                 f"step     {'at least ' if self.unknown else ''}{seconds(self.step_s)}; trusted: {trusted}",
                 f"  core     {seconds(self.core_s)} ({self.core_share:.1%})",
                 f"  exposed  {seconds(self.exposed_s)} ({self.exposed_s / self.step_s if self.step_s else 0:.1%})",
                 f"  waiting  {seconds(self.waiting_s)}",
                 f"memory   {self.memory!r}"]
        lines += [f"unknown  {name} runs {count} times, and its cost is not known: custom_calls={{\"{name}\": \"FLOPS,BYTES\"}}" for name, count in self.unknown.items()]
        return [*lines, f"         {self._seconds()}"]

    def _rows(self, most: int) -> List[Tuple[Any, ...]]:
        return [(seconds(each.exposed_s), seconds(each.overlapped_s), each.kind, ",".join(each.axes) or "-", each.count, size(each.bytes), _from_here(each.source))
                for each in self.collectives[:most]]

    def __repr__(self) -> str:
        heading = ("exposed", "hidden", "collective", "axis", "count", "bytes", "source")
        rows, more = self._rows(12), len(self.collectives) - 12
        lines = self._lines() + ([""] + table([heading, *rows], "rrllrrl") if rows else []) + ([f"... {more} more in .collectives"] if more > 0 else [])
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cells = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in self._rows(20))
        heading = "".join(f"<th>{name}</th>" for name in ("exposed", "hidden", "collective", "axis", "count", "bytes", "source"))
        head = html.escape("\n".join(self._lines()))
        return f"<pre>{head}</pre>" + (f"<table><tr>{heading}</tr>{cells}</table>" if cells else "")


def _from_here(source: str) -> str:
    """A line of a file below the current folder without that folder; the end of a long name."""
    return source.removeprefix(os.getcwd() + os.sep)[-60:]


def simulate_program(program: Program, how: Mapping[str, Any], cache: bool) -> Step:
    return Step(module_of(program, cache), how, program, cache)


def _module_of_object(subject: Any, mesh: Any, compiler_options: Any) -> Module:
    """Of a Lowered, a Compiled, a text or a file."""
    if is_lowered(subject) and not callable(subject):
        return compiled_module(compile_lowered(subject, compiler_options), mesh)
    if is_compiled(subject):
        return compiled_module(subject, mesh)
    path = pathlib.Path(with_module({"hlo": subject, "mesh": mesh})["hlo"])
    return Module(path, _told_beside(path))


def _told_beside(path: pathlib.Path) -> Dict[str, Any]:
    """The description beside a module's file; podsim itself says what is wrong in it."""
    import json

    name = path.name
    for ending in (".gz", ".pb", ".txt", ".hlo"):
        name = name.removesuffix(ending)
    beside = path.with_name(f"{name}.json")
    try:
        told = json.loads(beside.read_text(encoding="utf-8")) if beside.is_file() else {}
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def simulate(f: Any, *args: Any, mesh: Any = None, machine: Any = None, custom_calls: Optional[Mapping[str, Any]] = None,
             compiler_options: Optional[Mapping[str, Any]] = None, cache: bool = True, **jit_options: Any) -> Step:
    """How long a step takes on devices that need not be there, and why.

        import jax, jax.numpy as jnp, podsim.jax
        mesh = podsim.jax.mesh("v5e:16x16", {"data": 16, "model": 16})
        x = jax.ShapeDtypeStruct((8192, 4096), jnp.bfloat16, sharding=jax.NamedSharding(mesh, jax.P("data", None)))
        w = jax.ShapeDtypeStruct((4096, 16384), jnp.bfloat16, sharding=jax.NamedSharding(mesh, jax.P(None, "model")))
        print(podsim.jax.simulate(lambda x, w: jax.nn.gelu(x @ w), x, w))

    ``f`` is a function, a jitted one, a Lowered or a Compiled; also the text or file of a module, for which no JAX is needed. Arguments are arrays or
    ShapeDtypeStructs with shardings. ``mesh`` may be left out where they have it; arguments of another mesh are laid on it by their PartitionSpecs. ``machine`` is
    podsim's, where the mesh does not tell or another one is meant. ``custom_calls={"kernel": "2GFLOP,8MiB"}`` tells what a kernel costs, ``compiler_options`` go to XLA,
    other keywords to ``jax.jit``. Compiled modules are kept in the user's folder for caches (PODSIM_CACHE); ``cache=False`` neither reads nor writes there.

    Raises InputError, CompileError (OutOfMemory where the program does not fit), ImportError where there is no compiler, and what ``f`` raises.
    """
    how = {name: value for name, value in {"machine": machine, "custom_call": dict(custom_calls or {}) or None}.items() if value is not None}
    if mesh is not None and not is_mesh(mesh):
        raise TypeError(f'mesh takes a jax Mesh, as podsim.jax.mesh("v5e:16x16", {{"data": 16, "model": 16}}) makes it, found {shown(mesh)}')
    if isinstance(f, (str, bytes, os.PathLike)) or hasattr(f, "as_text"):
        if args or jit_options:
            raise TypeError("a module has its arguments already")
        return Step(_module_of_object(f, mesh, compiler_options), how)
    return simulate_program(Program(f, args, mesh, compiler_options, jit_options), how, cache)
