"""Several steps beside each other: of meshes that are compiled side by side, the fastest first."""

from __future__ import annotations

import concurrent.futures
import html
import os
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from .._errors import InputError
from .._words import check_progress, shown
from ._compile import Program, prepared
from ._errors import CompileError, OutOfMemory, import_jax
from ._mesh import mesh_text
from ._step import Step, simulate
from ._text import seconds, size, table

_REFUSED = (CompileError, InputError, ValueError)  # ValueError: JAX, of a shape that the mesh does not divide
Progress = Optional[Callable[[str], Any]]


class Ranking:
    """Steps by name, the fastest first; ``best``, ``failed``: why there is no step of these names. A table, in print and in a notebook."""

    def __init__(self, steps: Mapping[str, Step], failed: Mapping[str, BaseException]):
        self._steps = dict(sorted(steps.items(), key=lambda item: item[1].step_s))
        self.failed = dict(failed)

    @property
    def best(self) -> Step:
        """The fastest that fits; of none, ValueError with what the compiler says."""
        found = next((step for step in self._steps.values() if step.memory.fits), None)
        if found is None:
            raise ValueError("no step: " + "; ".join(f"{name}: {error}" for name, error in self.failed.items()))
        return found

    def __getitem__(self, name: str) -> Step:
        return self._steps[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._steps)

    def __len__(self) -> int:
        return len(self._steps)

    def items(self) -> Any:
        return self._steps.items()

    def rows(self) -> List[Dict[str, Any]]:
        """A dict for each step, for pandas."""
        return [{"name": name, "step_s": step.step_s, "core_share": step.core_share, "exposed_s": step.exposed_s, "memory_bytes": step.memory.needed_bytes,
                 "fits": step.memory.fits, "exposed_most": _most(step)} for name, step in self.items()]

    def _table(self) -> List[Tuple[str, ...]]:
        best = min((step.step_s for step in self._steps.values()), default=0.0)
        return [("", "step", "vs best", "core", "exposed", "memory", "exposed most")] + [
            (name, seconds(step.step_s), f"{step.step_s / best - 1:+.1%}", f"{step.core_share:.1%}", seconds(step.exposed_s),
             size(step.memory.needed_bytes) + ("" if step.memory.fits else " does not fit"), _most(step)) for name, step in self.items()]

    def _failures(self) -> List[str]:
        return [f"{name}: {str(error).splitlines()[0]}" for name, error in self.failed.items()]

    def __repr__(self) -> str:
        return "\n".join((table(self._table(), "lrrrrr") if self._steps else []) + self._failures())

    def _repr_html_(self) -> str:
        rows = ["<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self._table()]
        return f"<table>{''.join(rows)}</table><pre>{html.escape(chr(10).join(self._failures()))}</pre>"


def _most(step: Step) -> str:
    """The collective that the core waits for longest."""
    if not step.collectives or not step.collectives[0].exposed_s:
        return "-"
    each = step.collectives[0]
    return f"{each.kind} {','.join(each.axes) or '-'} {seconds(each.exposed_s)}"


def compare(steps: Mapping[str, Any]) -> Ranking:
    """Steps beside each other, the fastest first: ``compare({"fsdp": simulate(...), "fsdp x tp": simulate(...)})``. Whatever ``simulate`` takes alone may stand for a Step."""
    if not isinstance(steps, Mapping):
        raise TypeError(f"compare() takes a dict of steps by name, found {shown(steps)}")
    return Ranking({str(name): step if isinstance(step, Step) else simulate(step) for name, step in steps.items()}, {})


def _named(meshes: Union[Mapping[str, Any], Sequence[Any]]) -> Dict[str, Any]:
    named = dict(meshes) if isinstance(meshes, Mapping) else {mesh_text(mesh): mesh for mesh in meshes}
    if not named:
        raise InputError("expected meshes, found none", argument="meshes")
    return named


def search(f: Any, args: Any, meshes: Union[Mapping[str, Any], Sequence[Any]], *, machine: Any = None, custom_calls: Optional[Mapping[str, Any]] = None,
           compiler_options: Optional[Mapping[str, Any]] = None, cache: bool = True, jobs: Optional[int] = None, progress: Progress = print, **jit_options: Any) -> Ranking:
    """Compiles a program for every mesh, side by side, and ranks the steps.

        meshes = podsim.jax.meshes("v5e:8x8", ("data", "model"))       # 1x64, 2x32, ... 64x1
        print(podsim.jax.search(step, arguments, meshes))

    ``args`` is the tuple of arguments, each laid on every mesh by its PartitionSpec, or a function of the mesh that makes them; None: ``f`` is a function of the mesh that
    returns the program and its arguments, as ``shard_map`` and ``NamedSharding`` within a program ask for. ``meshes`` is a list, or a dict by
    name. Meshes that cannot be compiled are in ``failed`` and in the table with the reason. ``progress`` is told a line for each mesh that is done; None: nothing.
    ``jobs`` compile at a time, as many as there are processors if left out; XLA's own threads share these. Other keywords are those of ``simulate``.
    """
    check_progress(progress)
    import_jax()
    named = _named(meshes)
    how = {name: value for name, value in {"machine": machine, "custom_call": dict(custom_calls or {}) or None}.items() if value is not None}
    programs = {name: Program(f, args, mesh, compiler_options, jit_options) for name, mesh in named.items()}
    steps, failed = {}, {}
    pool = concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count())
    tasks: Dict[Any, str] = {}
    try:
        for name, program in programs.items():
            tasks[_submitted(pool, program, cache)] = name
        for done, task in enumerate(concurrent.futures.as_completed(tasks), 1):
            name = tasks[task]
            said = _simulated(name, task, programs[name], how, cache, steps, failed)
            if progress:
                progress(f"{done} of {len(tasks)}: {name}: {said}")
    finally:  # after Ctrl-C, or what the program raises on any mesh, too: what has not begun is not compiled
        pool.shutdown(wait=False, cancel_futures=True)
    return Ranking(steps, {name: failed[name] for name in named if name in failed})


def _submitted(pool: concurrent.futures.Executor, program: Program, cache: bool) -> Any:
    """A future of the module; of what cannot even be lowered, one with the error."""
    try:
        return pool.submit(prepared(program, cache))
    except _REFUSED as error:
        future: Any = concurrent.futures.Future()
        future.set_exception(error)
        return future


def _simulated(name: str, task: Any, program: Program, how: Mapping[str, Any], cache: bool, steps: Dict[str, Step], failed: Dict[str, BaseException]) -> str:
    """Simulates one mesh, or notes why not; says which in a line."""
    try:
        steps[name] = Step(task.result(), how, program, cache)
    except _REFUSED as error:
        failed[name] = error
        return ("does not fit: " if isinstance(error, OutOfMemory) else "not compiled: ") + str(error).splitlines()[0]
    return seconds(steps[name].step_s)
