"""From a function to the module that XLA makes of it, kept in a folder by what it was made of."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import pathlib
import re
import time
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .._errors import InputError
from .._modules import description_of, mesh_of_compiled, write_module
from .._words import shown
from ._arguments import mesh_in, placed
from ._errors import compile_error, import_jax


@dataclass(frozen=True)
class Program:
    """What a user hands over: a function or a jitted one, its arguments and where it shall run."""

    function: Any  # without arguments: a function of the mesh that returns both
    arguments: Any  # a tuple, or a function of the mesh that makes one
    mesh: Any = None
    compiler_options: Optional[Mapping[str, Any]] = None
    jit_options: Mapping[str, Any] = field(default_factory=dict)

    def on(self, mesh: Any) -> "Program":
        return replace(self, mesh=mesh)

    def made(self) -> Tuple[Any, Any]:
        """The function and its arguments, on the mesh."""
        if self.arguments is None:
            function, arguments = self.function(self.mesh)
        else:
            function, arguments = self.function, self.arguments(self.mesh) if callable(self.arguments) else self.arguments
        return function, placed(arguments if isinstance(arguments, tuple) else (arguments,), self.mesh)


@dataclass(frozen=True)
class Module:
    """A module in a file, with the description of its devices beside it."""

    path: pathlib.Path
    told: Dict[str, Any]  # the description; the compiler's memory, compile_s
    cached: bool = False

    @property
    def memory(self) -> Optional[Dict[str, int]]:
        return self.told.get("memory")


def cache_folder() -> pathlib.Path:
    """Where compiled modules are kept: PODSIM_CACHE, else podsim in the user's folder for caches."""
    own = os.environ.get("PODSIM_CACHE")
    return pathlib.Path(own) if own else pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "podsim"


def _context(jax: Any, mesh: Any) -> Any:
    """The mesh as the one that bare PartitionSpecs in a program mean."""
    if mesh is None:
        return contextlib.nullcontext()
    return jax.set_mesh(mesh) if hasattr(jax, "set_mesh") else mesh


def lower(program: Program) -> Tuple[Any, Any]:
    """The Lowered, and its mesh. What the function raises while it is traced passes."""
    jax = import_jax()
    function, arguments = program.made()
    mesh = program.mesh or mesh_in(arguments)
    if not hasattr(function, "lower"):
        if not callable(function):
            raise TypeError(f"expected a function, a jitted one, a Lowered or a Compiled, found {shown(function)}")
        function = jax.jit(function, **program.jit_options)
    elif program.jit_options:
        raise TypeError(f"the function is jitted already: {', '.join(program.jit_options)} belongs to its own jax.jit")
    with _context(jax, mesh):
        lowered = function.lower(*arguments)
    if mesh is not None and mesh.size > 1 and "sharding" not in lowered.as_text():
        raise InputError(f"none of the arrays says where it lies on the mesh of {mesh.size} devices: "
                         "jax.ShapeDtypeStruct(shape, dtype, sharding=jax.NamedSharding(mesh, jax.P(\"data\", None)))", argument="arguments")
    return lowered, mesh


def compile_lowered(lowered: Any, compiler_options: Optional[Mapping[str, Any]] = None) -> Any:
    """The Compiled. Raises CompileError and OutOfMemory."""
    jax = import_jax()
    try:
        return lowered.compile(compiler_options=dict(compiler_options or {}))
    except (jax.errors.JaxRuntimeError, RuntimeError, ValueError) as error:
        raise compile_error(error) from error


def _versions() -> Dict[str, str]:
    found = {}
    for package in ("jax", "jaxlib", "libtpu", "jax-cuda12-plugin", "jax-cuda13-plugin"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def _memory_of(compiled: Any) -> Optional[Dict[str, int]]:
    told = compiled.memory_analysis()
    return {name: getattr(told, name) for name in sorted(dir(told)) if name.endswith("_in_bytes")} if told is not None else None


def compiled_module(compiled: Any, mesh: Any = None, *, folder: Optional[pathlib.Path] = None, name: str = "", **told: Any) -> Module:
    """The file of a Compiled. Raises InputError for one of CPUs."""
    mesh = mesh or mesh_of_compiled(compiled)
    description = {**(description_of(mesh) if mesh is not None else {}), "memory": _memory_of(compiled), **told}
    return Module(write_module(compiled.as_text().encode(), description, folder, name), description)


_PLACE = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_CALL = re.compile(r"callsite\((#loc\d*) at (#loc\d*)\)")
_NAME = re.compile(r"(.*)\((#loc\d*)\)")
_OWN = str(pathlib.Path(__file__).parent) + os.sep


def program_lines(text: str) -> List[str]:
    """The lines of a program that stand in its lowered text, each with its callers up to podsim: where podsim was called from is no part of the program."""
    places = dict(_PLACE.findall(text))
    known: Dict[str, str] = {}

    def told(place: str) -> str:
        """Empty for a line of podsim and its callers."""
        if place not in known:
            body = places.get(place, place)
            call, name = _CALL.search(body), _NAME.fullmatch(body)
            inner = told(call[1] if call else name[2]) if call or name else "" if _OWN in body else body
            known[place] = inner and (f"{inner} at {told(call[2])}" if call else f"{name[1]} {inner}" if name else inner)
        return known[place]

    return sorted({told(place) for place in re.findall(r"loc\((#loc\d*)\)", _PLACE.sub("", text))})


def _key(lowered: Any, description: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """Of all that the module depends on; lines of the program, too, as they stand in it."""
    parts = [lowered.as_text(), *program_lines(lowered.as_text(debug_info=True)), json.dumps([description, sorted(options.items()), _versions()], default=str)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def prepared(program: Program, cache: bool = True) -> Callable[[], Module]:
    """Lowers the program, in this thread: contexts of JAX are a thread's. What is returned compiles it in any, or takes what was compiled before."""
    began = time.perf_counter()
    lowered, mesh = lower(program)
    lower_s = time.perf_counter() - began
    options = dict(program.compiler_options or {})
    if mesh is None:
        return lambda: compiled_module(compile_lowered(lowered, options))
    folder, key = cache_folder(), _key(lowered, description_of(mesh), options)
    beside = folder / f"{key}.json"

    def compile_it() -> Module:
        if cache and beside.is_file():
            return Module(folder / f"{key}.hlo.gz", json.loads(beside.read_text(encoding="utf-8")), cached=True)
        began = time.perf_counter()
        compiled = compile_lowered(lowered, options)
        told = {"lower_s": round(lower_s, 2), "compile_s": round(time.perf_counter() - began, 2), "compiler_options": options, "versions": _versions()}
        if not cache:
            return compiled_module(compiled, mesh, **told)
        folder.mkdir(parents=True, exist_ok=True)
        return compiled_module(compiled, mesh, folder=folder, name=key, **told)

    return compile_it


def module_of(program: Program, cache: bool = True) -> Module:
    """Lowers and compiles, or takes what was compiled before. Raises CompileError, OutOfMemory, InputError; what tracing raises."""
    return prepared(program, cache)()
