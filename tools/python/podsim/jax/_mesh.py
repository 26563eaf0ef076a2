"""Meshes of devices that are not there, by the names that people use for slices."""

from __future__ import annotations

import functools
import math
from typing import Any, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from .. import _api
from .._errors import InputError
from .._words import shown
from ._devices import GPUS, compiled_for, devices_of, mesh_of
from ._errors import check_compiler, first_line, import_jax


class Slice(NamedTuple):
    """What a name means: ``v5p-128`` is 4x4x4 chips of tpu_v5p."""

    machine: str
    extents: Tuple[int, ...]
    pods: int = 1

    def __str__(self) -> str:
        name = f"{self.machine}:{'x'.join(map(str, self.extents))}"
        return name if self.pods == 1 else f"{self.pods} x {name}"


def slice_of(name: str, pods: int = 1) -> Slice:
    """``"v5p-128"`` (cores), ``"v5e-256"`` (chips), ``"v5e:16x16"``, ``"h100:16x8"`` (hosts x GPUs), ``"h100:128"``; ``pods`` of them. Raises InputError."""
    if not isinstance(name, str):
        raise TypeError(f'a slice is a name, as "v5p-128" or "v5e:16x16", found {shown(name)}')
    found = _api.show_topology(machine=name)
    if found.machine not in compiled_for():
        raise InputError(f"XLA's compilers are not told of {found.machine} here, but of {', '.join(compiled_for())}", argument="slice")
    return Slice(found.machine, tuple(int(extent) for extent in found.slice.split("x")), pods)


def _unknown(of: Slice, said: str) -> InputError:
    """A slice that the compiler refuses, with near ones that the vendor offers."""
    try:
        _api.show_topology(machine=of.machine, slice=of.extents, strict_slice=True)
        near = ""
    except InputError as error:
        near = "; " + error.message
    return InputError(f"XLA's compiler has no slice {of}: {first_line(said)}{near}", argument="slice")


@functools.lru_cache(maxsize=16)
def _devices(of: Slice) -> List[Any]:
    import_jax()
    check_compiler(of.machine, of.machine in GPUS)
    try:
        return devices_of(of.machine, of.extents, of.pods)
    except Exception as error:  # jaxlib's error has no class of its own for this
        raise _unknown(of, str(error)) from error


def mesh(name: str, axes: Mapping[str, int], *, pods: int = 1) -> Any:
    """A ``jax.sharding.Mesh`` of devices that need not be there.

        mesh("v5e:16x16", {"data": 16, "model": 16})
        mesh("v5p-128", {"data": 2, "fsdp": 8, "tensor": 4})        # 128 cores: 64 chips, 4x4x4
        mesh("h100:16x8", {"fsdp": 16, "tensor": 8})                # 16 hosts of 8 GPUs
        mesh("v5e:4x4", {"replica": 2, "fsdp": 16}, pods=2)         # two slices: the first axes lie between them

    The devices are in JAX's own order (``mesh_utils.create_device_mesh``). Programs are lowered and compiled for it; they cannot run.
    """
    of = slice_of(name, pods)
    devices = _devices(of)
    if not isinstance(axes, Mapping) or not all(isinstance(size, int) and size > 0 for size in axes.values()):
        raise TypeError(f'a mesh takes the sizes of its axes, as {{"data": 16, "model": 16}}, found {shown(axes)}')
    if math.prod(axes.values()) != len(devices):
        factors = " x ".join(f"{axis} {size}" for axis, size in axes.items())
        raise InputError(f"{of} has {len(devices)} devices, the axes ask for {math.prod(axes.values())} ({factors})", argument="axes")
    try:
        return mesh_of(devices, axes, pods)
    except (ValueError, NotImplementedError) as error:
        raise InputError(f"JAX cannot lay this mesh over {of}: {error}", argument="axes") from error


def meshes(name: str, axes: Sequence[str], *, pods: int = 1) -> List[Any]:
    """Every mesh with these axes over the slice, for ``search``: ``meshes("v5e:8x8", ("data", "model"))`` has seven, 1x64 to 64x1."""
    of = slice_of(name, pods)
    found = []
    for sizes in _factors(len(_devices(of)), len(axes)):
        try:
            found.append(mesh(name, dict(zip(axes, sizes)), pods=pods))
        except InputError:  # not all can be laid over several slices
            continue
    return found


def _factors(product: int, parts: int) -> Iterator[Tuple[int, ...]]:
    if parts <= 1:
        yield (product,) if parts else ()
        return
    for first in range(1, product + 1):
        if product % first == 0:
            for rest in _factors(product // first, parts - 1):
                yield (first, *rest)


def mesh_text(of: Any) -> str:
    """``data=16,model=16``."""
    return ",".join(f"{axis}={size}" for axis, size in zip(of.axis_names, of.devices.shape))
