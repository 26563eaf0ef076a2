#!/usr/bin/env python3
"""Does ``podsim show mesh --mesh-order jax`` lay meshes as JAX does? Every mesh of one to three axes over TPU slices of 4 to 1024 devices.

    device_order.py --podsim build/podsim            JAX's create_device_mesh on the devices of libtpu's ahead-of-time topologies beside podsim
    device_order.py --podsim build/podsim --stored   beside what JAX said before: device_order.csv, without JAX
    device_order.py --write device_order.csv         stores what JAX says: slices of up to 64 devices, in as few rows as there are different orders

JAX needs no TPU here, but ``jax[tpu]``. Ends with 1 if an order differs, or if one of both refuses a mesh that the other lays.
"""

import argparse
import collections
import csv
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
STORED = os.path.join(HERE, "device_order.csv")
FLAT = ["2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16"]
SOLID = ["2x2x1", "2x2x2", "2x2x3", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x4x12", "4x8x8", "8x8x8"]
MACHINES = {"tpu_v3": FLAT, "tpu_v4": SOLID, "tpu_v5e": FLAT, "tpu_v5p": SOLID, "tpu_v6e": FLAT, "tpu7x": SOLID}  # slices of podsim's machines
DEVICES_OF_CHIP = {"tpu_v3": 2, "tpu7x": 2}
MOST_STORED = 64  # devices
REFUSED = "refused"


def extents_of(slice_name):
    return [int(extent) for extent in slice_name.split("x")]


def devices_of(machine, slice_name):
    count = DEVICES_OF_CHIP.get(machine, 1)
    for extent in extents_of(slice_name):
        count *= extent
    return count


def meshes_of(devices):
    """All of one to three axes, without axes of one device but for two examples."""
    meshes = [(devices,), (1, devices), (devices, 1)]
    for a in range(2, devices // 2 + 1):
        if devices % a:
            continue
        meshes.append((a, devices // a))
        meshes.extend((a, b, devices // a // b) for b in range(2, devices // a // 2 + 1) if devices // a % b == 0)
    return meshes


def cases():
    for machine, slices in MACHINES.items():
        for slice_name in slices:
            for mesh in meshes_of(devices_of(machine, slice_name)):
                for split in (False, True):
                    yield machine, slice_name, mesh, split


class Jax:
    """Ids of the devices that create_device_mesh gives, row-major."""

    def __init__(self):
        import make  # noqa: PLC0415: only where it is asked
        os.environ.update(make.ENVIRONMENT)
        import jax  # noqa: PLC0415
        from jax.experimental import mesh_utils

        self._absent, self._mesh_utils, self._devices = make.ABSENT, mesh_utils, {}
        self.version = jax.__version__

    def devices(self, machine, slice_name):
        key = machine, slice_name
        if key not in self._devices:
            self._devices[key] = self._absent.devices_of(machine, extents_of(slice_name))
        return self._devices[key]

    def order(self, machine, slice_name, mesh, split):
        try:
            laid = self._mesh_utils.create_device_mesh(mesh, self.devices(machine, slice_name), allow_split_physical_axes=split)
        except (NotImplementedError, ValueError, AssertionError):
            return REFUSED
        return " ".join(str(device.id) for device in laid.flat)


class Stored:
    def __init__(self, path):
        self._orders = {}
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(line for line in file if not line.startswith("#")):
                for machine in row["machines"].split(" "):
                    for split in ("no", "yes") if row["split"] == "both" else (row["split"],):
                        self._orders[machine, row["slice"], row["mesh"], split == "yes"] = row["ids"]

    def order(self, machine, slice_name, mesh, split):
        return self._orders.get((machine, slice_name, "x".join(map(str, mesh)), split))


def podsim_order(binary, machine, slice_name, mesh, split):
    axes = ",".join(f"{name}={size}" for name, size in zip("abc", mesh))
    command = [binary, "show", "mesh", "--machine", machine, "--slice", slice_name, "--mesh", axes, "--mesh-order", "jax", "--format", "json"]
    done = subprocess.run(command + (["--allow-split-axes"] if split else []), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return REFUSED
    return " ".join(map(str, json.loads(done.stdout)["device_ids_row_major"]))


def compare(binary, said):
    counts = {machine: collections.Counter() for machine in MACHINES}
    for machine, slice_name, mesh, split in cases():
        expected = said.order(machine, slice_name, mesh, split)
        if expected is None:
            continue
        found = podsim_order(binary, machine, slice_name, mesh, split)
        refused = [found == REFUSED, expected == REFUSED]
        kind = "both refuse" if all(refused) else "only podsim refuses" if refused[0] else "only JAX refuses" if refused[1] else "equal" if found == expected else "different"
        counts[machine][kind] += 1
        if kind not in ("equal", "both refuse"):
            print(f"{machine} {slice_name} {'x'.join(map(str, mesh))}{' split' if split else ''}: {kind}\n  podsim {found}\n  JAX    {expected}")
    kinds = ["equal", "different", "both refuse", "only podsim refuses", "only JAX refuses"]
    print("machine", "meshes", *kinds, sep=",")
    for machine, of_machine in [*counts.items(), ("all", sum(counts.values(), collections.Counter()))]:
        print(machine, sum(of_machine.values()), *(of_machine[kind] for kind in kinds), sep=",")
    total = sum(counts.values(), collections.Counter())
    return total["equal"] + total["both refuse"] == sum(total.values())


def write(path):
    jax = Jax()
    machines, rows = {}, {}  # of a row; rows by their mesh and order
    for machine, slice_name, mesh, split in cases():
        if devices_of(machine, slice_name) > MOST_STORED:
            continue
        rows.setdefault((machine, slice_name, "x".join(map(str, mesh))), []).append(jax.order(machine, slice_name, mesh, split))
    for (machine, slice_name, mesh), (whole, split) in rows.items():
        for key in [("both", whole)] if whole == split else [("no", whole), ("yes", split)]:
            machines.setdefault((slice_name, mesh, *key), []).append(machine)
    import libtpu  # noqa: PLC0415

    with open(path, "w", encoding="utf-8") as file:
        file.write("# Ids of the devices of create_device_mesh(mesh, devices of the ahead-of-time topology, allow_split_physical_axes=split), row-major.\n")
        file.write(f"# Written by device_order.py --write with jax {jax.version}, libtpu {libtpu.__version__}.\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["slice", "mesh", "split", "machines", "ids"])
        writer.writerows([slice_name, mesh, split, " ".join(names), ids] for (slice_name, mesh, split, ids), names in machines.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--podsim", metavar="FILE", help="the program to compare")
    parser.add_argument("--stored", action="store_true", help="with the stored orders of JAX")
    parser.add_argument("--write", metavar="FILE", help="stores the orders of JAX instead")
    options = parser.parse_args()
    if options.write:
        write(options.write)
        return 0
    if not options.podsim:
        parser.error("expected --podsim or --write")
    return 0 if compare(options.podsim, Stored(STORED) if options.stored else Jax()) else 1


if __name__ == "__main__":
    sys.exit(main())
