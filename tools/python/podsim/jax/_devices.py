"""Devices that are not there, as the compilers of TPUs and GPUs describe them, and meshes of them.

Needs JAX and nothing of podsim: a program of another Python can load this file by its path.
"""

from __future__ import annotations

import math
import os
import pathlib
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

TARGETS = pathlib.Path(__file__).resolve().parent / "targets"

# Compilers that look neither for a TPU of this computer nor for its metadata, and say nothing about that. Several processes may load libtpu.
ENVIRONMENT = {"TPU_SKIP_MDS_QUERY": "1", "TPU_ACCELERATOR_TYPE": "v5litepod-4", "TPU_WORKER_HOSTNAMES": "localhost", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
               "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}


class Compiler(NamedTuple):
    """How a compiler knows a machine."""

    name: str  # libtpu's, or the GPU's file in targets/; empty: it is known where there is one, and not compiled for without
    kind: str  # device_kind of its devices
    cores: str = "default"  # chip_config_name: megacore has one device a chip
    wraps: int = 0  # the extent that wraps by itself; 0: all wrap, if each is a multiple of 4


# By podsim's name of the machine.
TPUS = {
    "tpu_v3": Compiler("v3", "TPU v3", wraps=32),
    "tpu_v4": Compiler("v4", "TPU v4", "megacore"),
    "tpu_v5e": Compiler("v5e", "TPU v5 lite", wraps=16),
    "tpu_v5p": Compiler("v5", "TPU v5", "megacore"),
    "tpu_v6e": Compiler("v6e", "TPU v6 lite", wraps=16),
    "tpu7x": Compiler("tpu7x", "TPU7x"),
}
GPUS = {
    "dgx_h100": Compiler("h100", "NVIDIA H100 80GB HBM3"),
    "dgx_b200": Compiler("b200", "NVIDIA B200"),
    "dgx_h200": Compiler("", "NVIDIA H200"),
    "dgx_a100": Compiler("", "NVIDIA A100-SXM4-80GB"),
}


def compiled_for() -> List[str]:
    """Machines that need not be there."""
    return [*TPUS, *(name for name, compiler in GPUS.items() if compiler.name)]


def set_environment() -> None:
    """What is not set otherwise. The compilers look at it when they are loaded."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)


def devices_of(machine: str, extents: Sequence[int], slices: int = 1) -> List[Any]:
    """The devices of a slice, or of several, in the order of the compiler's description. The extents of GPUs are hosts and the GPUs of each."""
    from jax.experimental import topologies

    if machine in GPUS:
        target = (TARGETS / f"{GPUS[machine].name}.textproto").read_text(encoding="utf-8")
        hosts, each = extents
        return list(topologies.get_topology_desc("gpus", "cuda", target_config=target, topology=f"{slices}x{hosts}x{each}").devices)
    compiler = TPUS[machine]
    wraps = [extent == compiler.wraps for extent in extents] if compiler.wraps else [all(extent % 4 == 0 for extent in extents)] * len(extents)
    return list(topologies.get_topology_desc(
        platform="tpu", topology_name=compiler.name + ":" + "x".join(map(str, extents)), chip_config_name=compiler.cores, chips_per_host_bounds=(2, 2, 1),
        num_slices=slices, wrap=tuple((wraps + [False])[:3])).devices)


def mesh_of(devices: Sequence[Any], axes: Mapping[str, int], slices: int = 1) -> Any:
    """A Mesh of the devices as JAX lays it. Several slices are along the first axes, whose product their number must divide or be."""
    from jax.experimental import mesh_utils
    from jax.sharding import Mesh

    sizes = list(axes.values())
    if slices > 1:
        between = _between(sizes, slices)
        within = [size // outer for size, outer in zip(sizes, between)]
        array = mesh_utils.create_hybrid_device_mesh(within, between, devices, allow_split_physical_axes=True)
    else:
        array = mesh_utils.create_device_mesh(sizes, devices, allow_split_physical_axes=True)
    return Mesh(array, tuple(axes))


def _between(sizes: Sequence[int], slices: int) -> List[int]:
    """How many slices each axis crosses: the first axes cross all that they can. Raises ValueError."""
    between = []
    for size in sizes:
        between.append(math.gcd(size, slices))
        slices //= between[-1]
    if slices > 1:
        raise ValueError(f"the first axes cannot be laid over the slices: {slices} of them are left")
    return between


def description_of(mesh: Any) -> Dict[str, Any]:
    """Where the devices of a Mesh are, for JSON beside a module (docs/hlo.md); no machine where podsim has none of that kind."""
    devices = list(mesh.devices.flat)
    kind = devices[0].device_kind
    told: Dict[str, Any] = {"axes": dict(zip(mesh.axis_names, mesh.devices.shape)), "devices": [device.id for device in devices], "kind": kind}
    tpu = next((name for name, compiler in TPUS.items() if kind in (compiler.kind, {"TPU v5": "TPU v5p"}.get(compiler.kind))), None)
    if tpu:
        coords = [list(device.coords) for device in devices]
        extents = [max(place[dimension] for place in coords) + 1 for dimension in range(3)]
        flat = tpu in ("tpu_v3", "tpu_v5e", "tpu_v6e")
        slices = [getattr(device, "slice_index", 0) for device in devices]
        return {"machine": tpu, "slice": "x".join(map(str, extents[:2] if flat else extents)), "slices": len(set(slices)), **told, "coords": coords,
                "cores": [device.core_on_chip for device in devices], "slice_index": slices}
    gpu = next((name for name, compiler in GPUS.items() if kind == compiler.kind), None)
    if gpu:
        return {"machine": gpu, **_hosts_of(devices), "slices": 1, **told}
    return told


def _hosts_of(devices: Sequence[Any]) -> Dict[str, Any]:
    """Hosts x GPUs of each, and where each device is: its host, and its place there by the numbers of the devices."""
    of_host: Dict[int, List[int]] = {}
    for device in devices:
        of_host.setdefault(device.process_index, []).append(device.id)
    hosts = {process: (number, sorted(of_host[process])) for number, process in enumerate(sorted(of_host))}
    coords = [[hosts[device.process_index][0], hosts[device.process_index][1].index(device.id)] for device in devices]
    return {"slice": f"{len(hosts)}x{max(len(own) for _, own in hosts.values())}", "coords": coords}
