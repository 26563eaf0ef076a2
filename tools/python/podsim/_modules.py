"""Compiled modules as the command takes them: files, with the description of their devices beside them. JAX is used only where its objects are given."""

from __future__ import annotations

import atexit
import functools
import gzip
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
from typing import Any, Dict, Mapping, Optional

from ._errors import InputError
from ._words import shown


_ABSENT = 'shard the arguments over podsim.jax.mesh("v5e:4x4", {"data": 4, "model": 4}), whose TPUs need not be there'


def is_mesh(value: Any) -> bool:
    """A jax.sharding.Mesh."""
    return hasattr(value, "axis_names") and hasattr(getattr(value, "devices", None), "flat")


def is_lowered(value: Any) -> bool:
    """A jax.stages.Lowered, or what looks like one."""
    return hasattr(value, "compile") and hasattr(value, "as_text")


def is_compiled(value: Any) -> bool:
    """A jax.stages.Compiled."""
    return hasattr(value, "as_text") and not hasattr(value, "compile")


@functools.lru_cache(maxsize=None)
def _folder() -> pathlib.Path:
    """Of this process, until it ends: a result may ask for its module again."""
    folder = tempfile.mkdtemp(prefix="podsim-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return pathlib.Path(folder)


def write_module(content: bytes, description: Optional[Mapping[str, Any]], folder: Optional[pathlib.Path] = None, name: str = "") -> pathlib.Path:
    """A file of the module, with its description beside it. The same content has the same file."""
    told = json.dumps(description).encode() if description else b""
    name = name or hashlib.sha256(content + told).hexdigest()[:32]
    folder = folder or _folder()
    path, beside = folder / f"{name}.hlo.gz", folder / f"{name}.json"
    packed = content if content[:2] == b"\x1f\x8b" else gzip.compress(content, 6, mtime=0)
    for file, data in ((path, packed), (beside, told)):  # the description last: where it is, the module is whole
        if data:
            part = file.with_name(f"{file.name}.{os.getpid()}")
            part.write_bytes(data)
            os.replace(part, file)
    return path


def read_module(path: Any) -> bytes:
    """The text of a module's file, unpacked; or its binary form."""
    content = pathlib.Path(path).read_bytes()
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def mesh_of_compiled(compiled: Any) -> Any:
    """The Mesh of the arguments of a Compiled; None if they name none. Raises InputError where they lie on CPUs."""
    import jax

    shardings = jax.tree.leaves((compiled.input_shardings, compiled.output_shardings))
    for sharding in shardings:
        if any(device.platform == "cpu" for device in getattr(sharding, "device_set", ())):
            raise InputError(f"compiled for CPUs: {_ABSENT}", argument="hlo")
    return next((sharding.mesh for sharding in shardings if is_mesh(getattr(sharding, "mesh", None))), None)


def description_of(mesh: Any) -> Dict[str, Any]:
    """Machine, slice, axes and places of a Mesh's devices. Raises InputError where they are no accelerators."""
    from .jax._devices import description_of as described

    platform = mesh.devices.flat[0].platform
    if platform == "cpu":
        raise InputError(f"expected a mesh of TPUs or GPUs, found one of {mesh.devices.size} CPU devices: {_ABSENT}", argument="mesh")
    return described(mesh)


def _is_text(hlo: str) -> bool:
    return "\n" in hlo or hlo.lstrip().startswith("HloModule")


def _content(hlo: Any) -> bytes:
    if isinstance(hlo, (bytes, bytearray, memoryview)):
        return bytes(hlo)
    if isinstance(hlo, str) and _is_text(hlo):
        return hlo.encode()
    try:
        return read_module(hlo)
    except OSError as error:
        raise InputError(f"expected a module, found a file that cannot be read: {error.strerror or error}", file=os.fspath(hlo)) from None


def _compiled(hlo: Any) -> Any:
    if not is_lowered(hlo):
        return hlo
    from .jax._compile import compile_lowered

    return compile_lowered(hlo)


def with_module(keywords: Mapping[str, Any]) -> Dict[str, Any]:
    """Keywords of a verb whose ``hlo`` is a file: a text, bytes, a Lowered or Compiled are written into one, with what a Mesh says about the devices."""
    keywords = dict(keywords)
    hlo, mesh = keywords.get("hlo"), keywords.get("mesh")
    if is_mesh(mesh):
        del keywords["mesh"]
        if hlo is None:
            raise InputError(f"a jax Mesh tells where the partitions of a module are, and belongs to hlo; else give its axes: {dict(mesh.shape)}", argument="mesh")
    else:
        mesh = None
    if hlo is None or (isinstance(hlo, (str, os.PathLike)) and not (isinstance(hlo, str) and _is_text(hlo)) and mesh is None):
        return keywords
    if is_lowered(hlo) or is_compiled(hlo):
        compiled = _compiled(hlo)
        mesh = mesh or mesh_of_compiled(compiled)
        content = compiled.as_text().encode()
    elif isinstance(hlo, (str, bytes, bytearray, memoryview, os.PathLike)):
        content = _content(hlo)
    elif isinstance(hlo, (list, tuple)) and mesh is None:
        return keywords
    else:
        raise TypeError(f"hlo takes a file, the text of a module, bytes, a jax Lowered or Compiled, found {shown(hlo)}")
    keywords["hlo"] = write_module(content, description_of(mesh) if mesh is not None else None)
    return keywords
