#!/usr/bin/env python3
"""Measures on this machine what `podsim calibrate` and `podsim validate` want to know. Needs JAX and nothing else; one file, so copy it.

    python3 capture_jax.py -o capture.tar.gz                    all devices, at most nine minutes
    python3 capture_jax.py --list --mesh row=2,col=4            what would run; needs no JAX
    python3 capture_jax.py --emulate 8 -o trial.tar.gz          on eight CPU devices: proves that it runs, measures nothing of interest

The archive holds observations.csv (for calibrate), collective_matmuls.csv (the same columns, for validate), probes.csv, timings.csv,
environment.json, hlo/*.txt and profile/. README.md beside this file says what each of them tells.

A case is one or several steps that start at once, on every device. It is run `loop` times inside one program, every turn waiting for the one
before, so that the time to start a program does not count; the same loop with nothing in it is subtracted.
"""

import argparse
import csv
import dataclasses
import datetime
import glob
import gzip
import inspect
import io
import json
import math
import os
import platform
import re
import shutil
import signal
import statistics
import sys
import tarfile
import tempfile
import time

FORMAT_VERSION = 1
ITEM_BYTES = {"bf16": 2, "f32": 4}
COLLECTIVES = ("permute", "all-gather", "reduce-scatter", "all-reduce", "all-to-all")
AXIS_NAMES = ("row", "col", "depth", "axis3")  # what podsim calls the axes of a slice
OBSERVATION_COLUMNS = ("op", "devices", "bytes", "seconds", "axis", "array_dim", "dtype", "m", "n", "k", "schedule", "source")
PROBE_COLUMNS = ("probe", "axis", "devices", "bytes", "dtype", "m", "n", "k", "slices", "seconds", "first_alone_s", "second_alone_s", "hidden",
                 "source")
TIMING_COLUMNS = ("case", "loop", "repetitions", "host_min_s", "host_median_s", "empty_loop_s", "device_median_s", "seconds", "timed_by")
BLOCK = 8                # MeshSlice interleaves blocks of so many rows or columns
LOOPS = (4, 16, 64)      # turns in one program; more would make the profile unwieldy
LOOP_SECONDS = 0.01      # what one program should last, so that jitter of its start does not matter
CASE_SECONDS = 0.25      # what the repetitions of one case may take
KIB, MIB = 1 << 10, 1 << 20


# ---------------------------------------------------------------------------------------------------------------------- cases

@dataclasses.dataclass(frozen=True)
class Mesh:
    """Named axes, the first one most significant, over devices in row-major order."""
    axes: tuple  # of (name, size)

    @property
    def names(self):
        return tuple(name for name, _ in self.axes)

    @property
    def devices(self):
        return math.prod(size for _, size in self.axes)

    @property
    def wide(self):
        """The names of the axes along which something can move."""
        return tuple(name for name, size in self.axes if size > 1)

    def size(self, names):
        return math.prod(size for name, size in self.axes if name in names)

    def text(self):
        return ",".join(f"{name}={size}" for name, size in self.axes)


@dataclasses.dataclass(frozen=True)
class Step:
    """One operation on every device. `shapes` are what each device holds of its operands; the first operand changes from turn to turn."""
    op: str
    shapes: tuple
    dtype: str = "bf16"
    axes: tuple = ()
    group: int = 1         # devices that take part: the product of the axes' sizes
    dim: int = None        # the array dimension that is gathered, scattered or exchanged
    shift: int = 1         # of a permute
    schedule: str = ""     # of a collective with a matmul
    slices: int = 1        # of a MeshSlice product
    sides: tuple = ()      # of a MeshSlice product: the sizes of its two axes

    @property
    def input_bytes(self):
        """On each device, as `podsim run --bytes`. A matmul and reduce-scatter: of the product, which is what is scattered."""
        if self.op == "matmul reduce-scatter":
            return self.shapes[0][0] * self.shapes[1][1] * ITEM_BYTES[self.dtype]
        return math.prod(self.shapes[0]) * ITEM_BYTES[self.dtype]

    @property
    def out_shape(self):
        rows, columns = self.shapes[0]
        if self.op in ("all-gather", "reduce-scatter"):
            factor = self.group if self.op == "all-gather" else 1 / self.group
            return (round(rows * factor), columns) if self.dim == 0 else (rows, round(columns * factor))
        if self.op == "matmul":
            return rows, self.shapes[1][1]
        if self.op == "all-gather matmul":
            return rows * self.group, self.shapes[1][1]
        if self.op == "matmul reduce-scatter":
            return rows // self.group, self.shapes[1][1]
        if self.op == "meshslice-os":
            return rows, self.shapes[1][1]
        if self.op == "meshslice-ls":
            return rows, self.shapes[1][0] * self.sides[0] // self.sides[1]
        return rows, columns

    @property
    def product(self):
        """(m, n, k) of the product that each device computes, of MeshSlice that the mesh computes; None of what has no product."""
        (rows, columns), weights = self.shapes[0], self.shapes[1] if len(self.shapes) > 1 else None
        if self.op in ("matmul", "matmul reduce-scatter"):
            return rows, weights[1], columns
        if self.op == "all-gather matmul":
            return rows * self.group, weights[1], columns
        if self.op == "meshslice-os":
            return rows * self.sides[0], weights[1] * self.sides[1], columns * self.sides[1]
        if self.op == "meshslice-ls":
            return rows * self.sides[0], weights[0] * self.sides[0], columns * self.sides[1]
        return None

    @property
    def held_bytes(self):
        """Operands and result on each device."""
        return sum(math.prod(shape) for shape in self.shapes + (self.out_shape,)) * ITEM_BYTES[self.dtype]

    @property
    def guess_s(self):
        """A rough idea of how long one turn takes: it decides nothing but the number of turns."""
        work = 2 * math.prod(self.product) / (math.prod(self.sides) or 1) if self.product else 0
        wire = max(math.prod(self.shapes[0]), math.prod(self.out_shape)) * ITEM_BYTES[self.dtype] if self.axes else 0
        return 1e-5 + work / 1e14 + wire / 5e10 + self.held_bytes / 5e11


@dataclasses.dataclass(frozen=True)
class Case:
    """Steps that start at once. `kind` says which file tells of it: observation, collective matmul or probe."""
    name: str
    rank: int
    kind: str
    steps: tuple
    parts: tuple = ()  # of a probe: the cases that are its steps alone

    @property
    def loop(self):
        guess = max(step.guess_s for step in self.steps)
        return next((loop for loop in LOOPS if loop * guess >= LOOP_SECONDS), LOOPS[-1])


def array_shape(item_bytes, size, group, dim):
    """Rows and columns of about `size` bytes, nearly square; `dim` divides by `group`."""
    elements = max(size // item_bytes, group)
    other = 1 << max(int(math.log2(elements)) // 2, 0)
    while other > 1 and elements // other < group:
        other //= 2
    divided = elements // other // group * group
    return (divided, other) if dim == 0 else (other, divided)


def sizes_up_to(most):
    return [KIB << (2 * i) for i in range(16) if KIB << (2 * i) <= most] or [most]


def size_text(size):
    return f"{size // MIB}M" if size % MIB == 0 else f"{size // KIB}K" if size % KIB == 0 else str(size)


def all_cases(mesh, max_bytes=64 * MIB, max_held_bytes=2 << 30):
    """What is measured, the most telling first, without what would hold more than `max_held_bytes` on a device."""
    cases = []

    def add(name, rank, kind, *steps, parts=()):
        cases.append(Case(re.sub(r"\W+", "_", name), rank, kind, steps, tuple(re.sub(r"\W+", "_", part) for part in parts)))

    sizes = sizes_up_to(max_bytes)
    telling = {sizes[0], sizes[-1], sizes[len(sizes) * 5 // 9]}  # of nine sizes 1 KiB, 1 MiB and 64 MiB
    second = {sizes[len(sizes) // 3], sizes[max(len(sizes) - 2, 0)]}
    singles = [(name,) for name in mesh.wide]
    pairs = [(one, other) for i, one in enumerate(mesh.wide) for other in mesh.wide[i + 1:]]
    several = [mesh.wide] if len(mesh.wide) > 1 else []

    def moving(op, axes, size, dim=None, shift=1):
        group = mesh.size(axes)
        return Step(op, (array_shape(2, size, group, dim or 0),), axes=axes, group=group, dim=dim, shift=shift)

    def name_of(op, axes, size, dim=None):
        return f"{op} {' '.join(axes)} {size_text(size)}" + ("" if dim is None else f" dim{dim}")

    for size in sizes:
        rank = 0 if size in telling else 3 if size in second else 4
        for axes in singles + several:
            later = 1 if rank == 0 and axes not in singles else 0
            for op in COLLECTIVES:
                for dim in (None,) if op in ("permute", "all-reduce") else (0, 1):
                    order = rank + (5 if dim == 1 else max(later, int(op not in ("permute", "all-gather") and rank == 0)))
                    add(name_of(op, axes, size, dim), order, "observation", moving(op, axes, size, dim))
        if len(mesh.wide) > 2 and size in telling | second:
            for axes in pairs:
                add(name_of("all-gather", axes, size, 0), rank + 1, "observation", moving("all-gather", axes, size, 0))

    for size in sorted({sizes[len(sizes) * 5 // 9], sizes[-1]}):
        rank = 0 if size == sizes[-1] else 2
        for axes in singles:
            if mesh.size(axes) > 2:  # of two devices both neighbours are the same one
                alone = name_of("permute", axes, size)
                add(f"opposite shifts {axes[0]} {size_text(size)}", rank, "probe", moving("permute", axes, size),
                    moving("permute", axes, size, shift=-1), parts=(alone, alone))
        for one, other in pairs:
            for op, dim in (("permute", None), ("all-gather", 0)):
                add(f"two axes {op} {one} {other} {size_text(size)}", rank + 1, "probe", moving(op, (one,), size, dim),
                    moving(op, (other,), size, dim), parts=(name_of(op, (one,), size, dim), name_of(op, (other,), size, dim)))

    largest = 1 << int(math.log2(max(math.isqrt(max_bytes), 64)))  # 8192 rows and columns for 64 MiB
    half = largest // 2

    def product(m, n, k, dtype="bf16"):
        return Step("matmul", ((m, k), (k, n)), dtype)

    def add_product(m, n, k, dtype="bf16", rank=2):
        add(f"matmul {m}x{n}x{k} {dtype}", rank, "observation", product(m, n, k, dtype))

    thin = max(largest // 32, 16)
    add_product(half, half, half, rank=0)
    for extent in (largest, largest // 4, largest // 8, largest // 16):
        add_product(extent, extent, extent)
    for m, n, k in ((thin, largest, largest), (largest, thin, largest), (largest, largest, thin), (16, largest, largest)):
        add_product(m, n, k)
    for extent in (half, largest // 8):
        add_product(extent, extent, extent, "f32")
    for size, rank in ((max_bytes, 0), (4 * max_bytes, 2), (max_bytes // 4, 2), (max_bytes // 64, 2), (max_bytes // 1024, 3)):
        add(f"hbm copy {size_text(size)}", rank, "observation", Step("hbm_copy", (array_shape(2, size, 1, 0),)))
    for axes in singles:
        for size in sorted({sizes[len(sizes) * 5 // 9], sizes[max(len(sizes) - 2, 0)]}):
            for op, dim in (("all-gather", 0), ("permute", None)):
                add(f"beside matmul {op} {axes[0]} {size_text(size)}", 1, "probe", moving(op, axes, size, dim), product(half, half, half),
                    parts=(name_of(op, axes, size, dim), f"matmul {half}x{half}x{half} bf16"))

    for axes in singles:
        group, rows = mesh.size(axes), max(half // 4, 16)
        for schedule in ("plain", "overlapped", "bidirectional"):
            if schedule == "bidirectional" and group == 2:
                continue
            for op, left in (("all-gather matmul", rows), ("matmul reduce-scatter", rows * group)):
                add(f"{op} {axes[0]} {schedule}", 2, "collective matmul",
                    Step(op, ((left, half), (half, half)), axes=axes, group=group, dim=0, schedule=schedule))
    if len(mesh.wide) > 1:
        cases += meshslice_cases(mesh, half)
    cases.sort(key=lambda case: case.rank)
    return [case for case in cases if sum(step.held_bytes for step in case.steps) <= max_held_bytes]


def meshslice_cases(mesh, extent):
    """MeshSlice products on the first two wide axes, `extent` rows and columns of X and W on each device, with 1 to 8 slices."""
    axes = mesh.wide[:2]
    rows, columns = mesh.size(axes[:1]), mesh.size(axes[1:])
    least = rows * columns // math.gcd(rows, columns)
    cases = []
    for slices in (1, 2, 4, 8):
        unit = least * slices * BLOCK  # what the sliced extent, and with it both of its parts, must divide by
        sliced = max(extent * max(rows, columns) // unit, 1) * unit
        common = dict(axes=axes, group=rows * columns, slices=slices, sides=(rows, columns))
        shapes = {"meshslice-os": ((extent, sliced // columns), (sliced // rows, extent)),
                  "meshslice-ls": ((extent, extent), (sliced // rows, extent))}
        for op, local in shapes.items():
            cases.append(Case(f"{op}_{'_'.join(axes)}_s{slices}".replace("-", "_"), 2, "probe", (Step(op, local, **common),)))
    return cases


# ------------------------------------------------------------------------------------------------------------------ the kernels

class Kernels:
    """The steps as JAX code for one device, inside shard_map. `jnp` and `lax` are arguments so that tests can interpret them."""

    def __init__(self, jnp, lax):
        self.jnp, self.lax = jnp, lax

    def run(self, step, operands):
        lax = self.lax
        x, axes = operands[0], step.axes[0] if len(step.axes) == 1 else step.axes
        if step.op == "all-gather":
            return lax.all_gather(x, axes, axis=step.dim, tiled=True)
        if step.op == "reduce-scatter":
            return lax.psum_scatter(x, axes, scatter_dimension=step.dim, tiled=True)
        if step.op == "all-reduce":
            return lax.psum(x, axes)
        if step.op == "all-to-all":
            return lax.all_to_all(x, axes, step.dim, step.dim, tiled=True)
        if step.op == "permute":
            return self.shifted(x, axes, step.group, step.shift)
        if step.op == "matmul":  # float32 in full: by default a TPU rounds its operands to bfloat16
            return self.jnp.dot(x, operands[1], precision=lax.Precision.HIGHEST if step.dtype == "f32" else None)
        if step.op == "hbm_copy":
            return x + 1
        if step.op == "nothing":
            return x
        special = {"all-gather matmul": self.gather_matmul, "matmul reduce-scatter": self.matmul_scatter,
                   "meshslice-os": self.meshslice_os, "meshslice-ls": self.meshslice_ls}
        return special[step.op](step, x, operands[1])

    def shifted(self, x, axis, size, by):
        return self.lax.ppermute(x, axis, [(i, (i + by) % size) for i in range(size)])

    def gather_matmul(self, step, x, weights):
        """all-gather(x) . weights; overlapped: what a neighbour sent is multiplied while it is passed on."""
        lax, jnp, axis, size, rows = self.lax, self.jnp, step.axes[0], step.group, x.shape[0]
        if step.schedule == "plain":
            return jnp.dot(lax.all_gather(x, axis, axis=0, tiled=True), weights)
        here = lax.axis_index(axis)
        out = jnp.zeros(step.out_shape, x.dtype)

        def place(out, block, of, offset=0):
            return lax.dynamic_update_slice_in_dim(out, jnp.dot(block, weights), (of % size) * rows + offset, axis=0)

        if step.schedule == "overlapped":
            for turn in range(size):
                following = self.shifted(x, axis, size, 1) if turn + 1 < size else x
                out, x = place(out, x, here - turn), following
            return out
        middle = rows // 2
        out, low, high = place(out, x, here), x[:middle], x[middle:]
        for turn in range(1, size):
            low, high = self.shifted(low, axis, size, 1), self.shifted(high, axis, size, -1)
            out = place(place(out, low, here - turn), high, here + turn, middle)
        return out

    def matmul_scatter(self, step, x, weights):
        """reduce-scatter(x . weights) over the rows; overlapped: partial sums travel while the next block is multiplied."""
        lax, jnp, axis, size = self.lax, self.jnp, step.axes[0], step.group
        if step.schedule == "plain":
            return lax.psum_scatter(jnp.dot(x, weights), axis, scatter_dimension=0, tiled=True)
        here, rows = lax.axis_index(axis), x.shape[0] // size
        middle = rows // 2

        def block(of, offset=0, length=rows):
            return jnp.dot(lax.dynamic_slice_in_dim(x, (of % size) * rows + offset, length, axis=0), weights)

        if step.schedule == "overlapped":
            total = block(here + 1)
            for turn in range(1, size):
                total = self.shifted(total, axis, size, -1) + block(here + 1 + turn)
            return total
        low, high = block(here - 1, 0, middle), block(here + 1, middle, rows - middle)
        for turn in range(1, size):
            low = self.shifted(low, axis, size, 1) + block(here - 1 - turn, 0, middle)
            high = self.shifted(high, axis, size, -1) + block(here + 1 + turn, middle, rows - middle)
        return jnp.concatenate([low, high], axis=0)

    def slice_of(self, x, dim, number, slices):
        """Of every `slices` blocks of BLOCK rows (columns) of x the one with this number."""
        rows, columns = x.shape
        if dim == 0:
            return x.reshape(rows // (slices * BLOCK), slices, BLOCK, columns)[:, number].reshape(rows // slices, columns)
        return x.reshape(rows, columns // (slices * BLOCK), slices, BLOCK)[:, :, number].reshape(rows, columns // slices)

    def meshslice_os(self, step, x, weights):
        """Y = X W, Y stays: per slice of K both operands are gathered, X along the columns of the mesh and W along its rows."""
        row, column = step.axes
        total = None
        for number in range(step.slices):
            left = self.lax.all_gather(self.slice_of(x, 1, number, step.slices), column, axis=1, tiled=True)
            right = self.lax.all_gather(self.slice_of(weights, 0, number, step.slices), row, axis=0, tiled=True)
            partial = self.jnp.dot(left, right)
            total = partial if total is None else total + partial
        return total

    def meshslice_ls(self, step, x, weights):
        """Y = X W^T, X stays: per slice of N W is gathered along the rows of the mesh, Y reduced and scattered along its columns."""
        row, column = step.axes
        parts = []
        for number in range(step.slices):
            right = self.lax.all_gather(self.slice_of(weights, 0, number, step.slices), row, axis=0, tiled=True)
            part = self.lax.psum_scatter(self.jnp.dot(x, right.T), column, scatter_dimension=1, tiled=True)
            parts.append(part.reshape(part.shape[0], part.shape[1] // BLOCK, 1, BLOCK))
        return self.jnp.concatenate(parts, axis=2).reshape(step.out_shape)

    def timed(self, steps, loop):
        """`loop` turns of all steps at once. A turn needs a corner of every result of the one before; results are kept, so that none is
        computed in part."""
        jnp, lax = self.jnp, self.lax
        replaced = [step.op in ("hbm_copy", "nothing") for step in steps]  # the result is the next operand: nothing else to keep
        dtypes = {"bf16": jnp.bfloat16, "f32": jnp.float32}

        def corner(y):
            return jnp.clip(y[:1, :1].astype(jnp.float32), -1, 1) + jnp.clip(y[-1:, -1:].astype(jnp.float32), -1, 1)

        def program(*operands):
            mine, at = [], 0
            for step in steps:
                mine.append(operands[at:at + len(step.shapes)])
                at += len(step.shapes)

            def turn(_, carry):
                results = [self.run(step, (x,) + own[1:]) for step, x, own in zip(steps, carry[0], mine)]
                token = sum(corner(y) for y in results)
                following = [lax.dynamic_update_slice(y if swap else x, token.astype(x.dtype), (0, 0))
                             for x, y, swap in zip(carry[0], results, replaced)]
                return tuple(following), tuple(y for y, swap in zip(results, replaced) if not swap)

            kept = tuple(jnp.zeros(step.out_shape, dtypes[step.dtype]) for step, swap in zip(steps, replaced) if not swap)
            return lax.fori_loop(0, loop, turn, (tuple(own[0] for own in mine), kept))

        return program


# -------------------------------------------------------------------------------------------------------------------- the backend

class JaxBackend:
    """Everything that touches JAX: devices, compiling, running, the profile."""

    def __init__(self, distributed=False):
        import jax  # pylint: disable=import-outside-toplevel
        if distributed:
            jax.distributed.initialize()
        self.jax = jax
        self.jnp, self.lax = jax.numpy, jax.lax
        self.placed = jax.devices()[0].platform == "tpu"
        self.devices = sorted(jax.devices(), key=lambda d: (tuple(d.coords), d.core_on_chip) if self.placed else d.id)
        self.first = jax.process_index() == 0
        self.fills = {}
        self.mesh = self.sharding = self.spec = None

    def pod(self):
        """What machine() and default_mesh() look at."""
        return {"platform": self.devices[0].platform, "kind": self.devices[0].device_kind, "hosts": self.jax.process_count(),
                "devices": len(self.devices), "coords": [list(d.coords) for d in self.devices] if self.placed else None,
                "cores": max(d.core_on_chip for d in self.devices) + 1 if self.placed else 1}

    def open(self, mesh):
        import numpy  # pylint: disable=import-outside-toplevel
        sharding = self.jax.sharding
        placed = numpy.array(self.devices, dtype=object).reshape([size for _, size in mesh.axes])
        self.mesh = sharding.Mesh(placed, mesh.names)
        self.spec = sharding.PartitionSpec(mesh.names, None)  # every device has its own rows
        self.sharding = sharding.NamedSharding(self.mesh, self.spec)

    def environment(self):
        import jaxlib  # pylint: disable=import-outside-toplevel
        one = self.devices[0]
        return {"jax": self.jax.__version__, "jaxlib": jaxlib.__version__, "platform_version": getattr(one.client, "platform_version", ""),
                **self.pod(), "device_ids": [d.id for d in self.devices],
                "process_indices": [d.process_index for d in self.devices]}

    def agree(self, value):
        """The value of the first process, so that all processes take the same decisions."""
        if self.jax.process_count() == 1:
            return value
        import numpy  # pylint: disable=import-outside-toplevel
        from jax.experimental import multihost_utils  # pylint: disable=import-outside-toplevel
        return float(multihost_utils.broadcast_one_to_all(numpy.float32(value)))

    def shard_map(self, function):
        if hasattr(self.jax, "shard_map"):
            shard_map = self.jax.shard_map
        else:
            from jax.experimental.shard_map import shard_map  # pylint: disable=import-outside-toplevel
        known = inspect.signature(shard_map).parameters
        unchecked = {name: False for name in ("check_vma", "check_rep") if name in known}  # loops carry what differs between devices
        return shard_map(function, mesh=self.mesh, in_specs=self.spec, out_specs=self.spec, **unchecked)

    def operand(self, shape, dtype):
        """Values in [-0.5, 0.5) made on the devices."""
        jnp, lax = self.jnp, self.lax
        rows, columns = shape[0] * len(self.devices), shape[1]
        if (rows, columns, dtype) not in self.fills:
            def fill():
                mixed = lax.broadcasted_iota(jnp.int32, (rows, columns), 0) * 73 + lax.broadcasted_iota(jnp.int32, (rows, columns), 1) * 151
                return ((mixed % 1024) / 1024 - 0.5).astype(jnp.bfloat16 if dtype == "bf16" else jnp.float32)
            self.fills[rows, columns, dtype] = self.jax.jit(fill, out_shardings=self.sharding)
        return self.fills[rows, columns, dtype]()

    def compile(self, name, steps, loop):
        """A function that runs the program once and returns its seconds, and the HLO text."""
        mapped = self.shard_map(Kernels(self.jnp, self.lax).timed(steps, loop))

        def program(*operands):
            return mapped(*operands)

        program.__name__ = name  # the profile calls the module jit_NAME
        kinds = [(shape, step.dtype) for step in steps for shape in step.shapes]
        operands = [self.operand(shape, dtype) for shape, dtype in kinds]
        compiled = self.jax.jit(program).lower(*operands).compile()
        del operands

        def run(repetitions):
            operands = self.jax.block_until_ready([self.operand(shape, dtype) for shape, dtype in kinds])
            seconds = []
            for _ in range(repetitions):
                begin = time.perf_counter()
                self.jax.block_until_ready(compiled(*operands))
                seconds.append(time.perf_counter() - begin)
            return seconds

        return run, compiled.as_text() or ""

    def profile(self, folder, work):
        """Runs `work` under the profiler. Returns the seconds of each module on the devices by the program's name, as far as the profile
        tells."""
        with self.jax.profiler.trace(folder):
            work()
        return module_seconds(folder)


def module_seconds(folder):
    """From the trace files: {program name: [seconds, ...]}, of the events on lines "XLA Modules" of devices, named jit_NAME(number)."""
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "**", "*.trace.json.gz"), recursive=True)):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            events = [event for event in json.load(file).get("traceEvents", []) if event]
        named = {}
        for event in events:
            if event.get("ph") == "M" and event.get("name") in ("process_name", "thread_name"):
                named[event["name"], event["pid"], event.get("tid") if event["name"] == "thread_name" else None] = event["args"]["name"]
        for event in events:
            if event.get("ph") != "X" or not named.get(("process_name", event["pid"], None), "").startswith("/device:"):
                continue
            module = re.match(r"jit_(\w+)", event.get("name", ""))
            if named.get(("thread_name", event["pid"], event["tid"])) == "XLA Modules" and module:
                exact = event.get("args", {}).get("device_duration_ps")
                found.setdefault(module.group(1), []).append(float(exact) * 1e-12 if exact else float(event["dur"]) * 1e-6)
    return found


def near_square(devices):
    rows = next(rows for rows in range(math.isqrt(devices), 0, -1) if devices % rows == 0)
    return rows, devices // rows


def machine(kind):
    """podsim's name for a device kind, and the dimensions of its torus."""
    for pattern, name, dimensions in ((r"v5 ?lite|v5e", "tpu_v5e", 2), (r"v6 ?lite|v6e", "tpu_v6e", 2), (r"tpu ?v?7", "tpu7x", 3),
                                      (r"tpu v5p?\b", "tpu_v5p", 3), (r"tpu v4", "tpu_v4", 3), (r"tpu v3", "tpu_v3", 2),
                                      (r"h100", "dgx_h100", 2), (r"a100", "dgx_a100", 2)):
        if re.search(pattern, kind, re.IGNORECASE):
            return name, dimensions
    return "MACHINE", 2


def default_mesh(pod):
    """An axis per dimension of the slice, named as podsim names them, and the slice: what coordinates say, else hosts and their devices, else
    the nearest to a square."""
    _, dimensions = machine(pod["kind"])
    cores, extents = pod["cores"], None
    if pod["coords"]:
        spread = [sorted({place[d] for place in pod["coords"]}) for d in range(len(pod["coords"][0]))]
        extents = [len(values) for values in spread]
        while len(extents) > dimensions and extents[-1] == 1:
            extents.pop()
        if math.prod(extents) * cores != pod["devices"]:
            extents = None
    elif pod["platform"] in ("gpu", "cuda", "rocm"):
        extents = [pod["hosts"], pod["devices"] // pod["hosts"]]
    if extents is None:
        extents, cores = list(near_square(pod["devices"])), 1
    axes = list(zip(AXIS_NAMES, extents)) + ([("core", cores)] if cores > 1 else [])
    return Mesh(tuple(axes)), "x".join(map(str, extents))


# -------------------------------------------------------------------------------------------------------------------- measuring

@dataclasses.dataclass
class Timing:
    case: Case
    host: list             # seconds of one program each, repeated
    empty: float           # of the same number of turns with nothing in them
    device: list = dataclasses.field(default_factory=list)
    device_empty: float = 0.0

    @property
    def by_device(self):
        return bool(self.device) and statistics.median(self.device) > self.device_empty

    @property
    def seconds(self):
        """Of one turn; None where the loop is not longer than the empty one."""
        whole, empty = (statistics.median(self.device), self.device_empty) if self.by_device else (statistics.median(self.host), self.empty)
        return (whole - empty) / self.case.loop if whole > empty else None

    @property
    def source(self):
        if self.by_device:
            return f"capture_jax: device time from the profile; median of {len(self.device)} loops of {self.case.loop}"
        return f"capture_jax: host time; median of {len(self.host)} loops of {self.case.loop} less an empty loop"


class Capture:
    """Measures cases within a budget. What it has can be written at any time."""

    def __init__(self, backend, cases, seconds, say=lambda text: None, clock=time.monotonic):
        self.backend, self.cases, self.budget, self.say, self.clock = backend, cases, seconds, say, clock
        self.begin = clock()
        self.timings, self.failed, self.hlo, self.left = {}, {}, {}, 0
        self.programs, self.empties = {}, {}

    def elapsed(self):
        return self.backend.agree(self.clock() - self.begin)

    def empty(self, count, loop):
        name = f"empty_{count}_{loop}"
        if name not in self.empties:
            run, text = self.backend.compile(name, (Step("nothing", ((8, 128),)),) * count, loop)
            run(1)
            self.empties[name] = statistics.median(run(7))
            self.programs[name], self.hlo[name] = run, text
        return self.empties[name]

    def measure(self, case):
        empty = self.empty(len(case.steps), case.loop)
        run, text = self.backend.compile(case.name, case.steps, case.loop)
        once = self.backend.agree(run(1)[0])
        host = run(min(max(int(CASE_SECONDS / max(once, 1e-6)), 3), 15))
        self.timings[case.name] = Timing(case, host, empty)
        self.programs[case.name], self.hlo[case.name] = run, text

    def run(self):
        """All cases, or as many as the time allows; a tenth is kept for the profile."""
        longest = 0.0
        for number, case in enumerate(self.cases):
            now = self.elapsed()
            if now + longest > 0.9 * self.budget:
                self.left = len(self.cases) - number
                self.say(f"{self.budget - now:4.0f} s left: stopping, {self.left} cases not measured")
                break
            try:
                self.measure(case)
            except Exception as problem:  # pylint: disable=broad-except
                self.failed[case.name] = f"{type(problem).__name__}: {str(problem).strip().splitlines()[0] if str(problem).strip() else ''}"
            took = self.elapsed() - now
            longest = max(longest, took)
            self.say(f"{self.budget - now - took:4.0f} s left {number + 1:4}/{len(self.cases)} {case.name:44} {self.told(case.name)}")

    def told(self, name):
        if name in self.failed:
            return f"failed: {self.failed[name]}"
        seconds = self.timings[name].seconds
        return "no longer than an empty loop" if seconds is None else f"{seconds * 1e6:.2f} us"

    def profile(self, folder):
        """One short pass over what was measured, within what is left of the time; device times where the profile tells them."""
        def work():
            for name, run in self.programs.items():
                if self.elapsed() > 0.95 * self.budget:
                    return
                run(1)

        self.say(f"{self.budget - self.elapsed():4.0f} s left: profile")
        try:
            found = self.backend.profile(folder, work)
        except Exception as problem:  # pylint: disable=broad-except
            self.failed["profile"] = f"{type(problem).__name__}: {problem}"
            return
        for name, timing in self.timings.items():
            empty = found.get(f"empty_{len(timing.case.steps)}_{timing.case.loop}")
            if found.get(name) and empty:
                timing.device, timing.device_empty = found[name], statistics.median(empty)


# ----------------------------------------------------------------------------------------------------------------------- writing

def csv_text(columns, rows, comments=()):
    out = io.StringIO()
    for comment in comments:
        out.write(f"# {comment}\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if row.get(column) is None else row[column] for column in columns])
    return out.getvalue()


def number(value):
    return None if value is None else float(f"{value:.9g}")


def observation_row(timing):
    """The columns of `podsim calibrate`."""
    step = timing.case.steps[0]
    m, n, k = step.product or (None, None, None)
    op = {"all-gather matmul": "all-gather", "matmul reduce-scatter": "reduce-scatter"}.get(step.op, step.op)
    return {"op": op, "devices": step.group, "bytes": None if op == "matmul" else step.input_bytes, "seconds": number(timing.seconds),
            "axis": "+".join(step.axes), "array_dim": step.dim, "dtype": step.dtype, "m": m, "n": n, "k": k, "schedule": step.schedule,
            "source": timing.source}


def probe_row(timing, timings):
    """`hidden`: how much of the shorter of two steps took no time of its own: 0 one after the other, 1 at once."""
    case = timing.case
    step = next((step for step in case.steps if step.product), case.steps[0])
    m, n, k = step.product or (None, None, None)
    alone = [timings[part].seconds if part in timings else None for part in case.parts]
    hidden = None
    if len(alone) == 2 and None not in alone and timing.seconds is not None:
        hidden = number((sum(alone) - timing.seconds) / min(alone))
    axes = tuple(dict.fromkeys(axis for part in case.steps for axis in part.axes))
    return {"probe": case.name, "axis": "+".join(axes), "devices": max(part.group for part in case.steps), "bytes": case.steps[0].input_bytes,
            "dtype": step.dtype, "m": m, "n": n, "k": k, "slices": step.slices if step.op.startswith("meshslice") else None,
            "seconds": number(timing.seconds), "first_alone_s": number(alone[0]) if alone else None,
            "second_alone_s": number(alone[1]) if alone else None, "hidden": hidden, "source": timing.source}


def timing_row(timing):
    return {"case": timing.case.name, "loop": timing.case.loop, "repetitions": len(timing.host), "host_min_s": number(min(timing.host)),
            "host_median_s": number(statistics.median(timing.host)), "empty_loop_s": number(timing.empty),
            "device_median_s": number(statistics.median(timing.device)) if timing.device else None, "seconds": number(timing.seconds),
            "timed_by": "device" if timing.by_device else "host"}


def files_of(capture, mesh, slice_text, environment):
    """{name in the archive: text}."""
    kind = environment.get("kind", "")
    of_kind = {name: [t for t in capture.timings.values() if t.case.kind == name and t.seconds is not None]
               for name in ("observation", "collective matmul", "probe")}
    about = [f"Source: tools/capture/capture_jax.py, {environment.get('date', '')}; jax {environment.get('jax', '')}",
             f"Hardware: {environment.get('devices', mesh.devices)} x {kind}; mesh {mesh.text()}",
             "Derived: seconds are those of one turn of a loop less those of an empty one; bytes are the input on each device"]
    command = f"podsim calibrate observations.csv --base {machine(kind)[0]} --slice {slice_text} --mesh {mesh.text()}"
    texts = {"observations.csv": csv_text(OBSERVATION_COLUMNS, map(observation_row, of_kind["observation"]), about + [f"Read by: {command}"]),
             "probes.csv": csv_text(PROBE_COLUMNS, (probe_row(t, capture.timings) for t in of_kind["probe"]), about),
             "timings.csv": csv_text(TIMING_COLUMNS, map(timing_row, capture.timings.values())),
             "environment.json": json.dumps({"format_version": FORMAT_VERSION, "mesh": mesh.text(), "slice": slice_text, **environment,
                                             "cases_measured": len(capture.timings), "cases_not_measured": capture.left,
                                             "failed": capture.failed}, indent=2) + "\n"}
    if of_kind["collective matmul"]:
        command = f"podsim validate --observations collective_matmuls.csv --machine mine.textproto --slice {slice_text} --mesh {mesh.text()}"
        texts["collective_matmuls.csv"] = csv_text(OBSERVATION_COLUMNS, map(observation_row, of_kind["collective matmul"]),
                                                   about + [f"Read by: {command}"])
    for name, text in capture.hlo.items():
        texts[f"hlo/{name}.txt"] = text
    return texts


def write_archive(path, texts, profile_folder):
    with tarfile.open(path, "w:gz") as archive:
        for name, text in texts.items():
            data = text.encode("utf-8")
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(data), int(time.time())
            archive.addfile(member, io.BytesIO(data))
        archive.add(profile_folder, arcname="profile")


# ----------------------------------------------------------------------------------------------------------------------- command

def parse_mesh(text):
    axes = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([A-Za-z]\w*)=([1-9]\d*)\s*", part)
        if not match or match.group(1) in dict(axes):
            raise argparse.ArgumentTypeError(f"expected distinct axes and their sizes, as row=2,col=4; found {text!r}")
        axes.append((match.group(1), int(match.group(2))))
    return Mesh(tuple(axes))


def parse_size(text):
    match = re.fullmatch(r"([1-9]\d*) ?(|KiB|MiB|GiB)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"expected bytes, as 65536 or 64MiB; found {text!r}")
    return int(match.group(1)) << {"": 0, "KiB": 10, "MiB": 20, "GiB": 30}[match.group(2)]


def parser():
    made = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0], allow_abbrev=False)
    made.add_argument("-o", "--output", default="capture.tar.gz", metavar="FILE", help="the archive (default: capture.tar.gz)")
    made.add_argument("--observations-only", metavar="FILE.csv", help="write observations.csv alone")
    made.add_argument("--mesh", type=parse_mesh, metavar="row=R,col=C", help="default: an axis per dimension of the slice")
    made.add_argument("--max-bytes", type=parse_size, metavar="SIZE", help="the largest input on a device (default: 64MiB; 256KiB with --emulate)")
    made.add_argument("--max-held-bytes", type=parse_size, default=2 << 30, metavar="SIZE",
                      help="leave out cases whose operands and result on a device are larger (default: 2GiB)")
    made.add_argument("--seconds", type=float, default=540, metavar="S", help="time for everything (default: 540)")
    made.add_argument("--list", action="store_true", help="print the cases, measure nothing")
    made.add_argument("--emulate", type=int, metavar="N", help="on N devices that the CPU plays")
    made.add_argument("--no-profile", action="store_true", help="host times only")
    made.add_argument("--distributed", action="store_true", help="several hosts: the same command on each; the first one writes")
    return made


def list_cases(mesh, cases, out):
    print(f"mesh {mesh.text()}: {len(cases)} cases", file=out)
    for case in cases:
        first = case.steps[0]
        size = "x".join(map(str, first.product)) if first.op == "matmul" else f"{first.input_bytes} B"
        print(f"{case.name:44} {case.kind:18} {size:>18} {case.loop:4} turns", file=out)


def interrupted(_signal, _frame):
    raise KeyboardInterrupt


def main(arguments=None, make_backend=JaxBackend, clock=time.monotonic):
    options = parser().parse_args(arguments)
    if options.emulate is not None and options.emulate < 1 or options.seconds <= 0:
        parser().error("--emulate and --seconds must be above zero")
    max_bytes = options.max_bytes or (256 * KIB if options.emulate else 64 * MIB)
    if options.list:
        mesh = options.mesh or Mesh(tuple(zip(AXIS_NAMES, near_square(options.emulate or 8))))
        list_cases(mesh, all_cases(mesh, max_bytes, options.max_held_bytes), sys.stdout)
        return 0
    target = options.observations_only or options.output
    if not os.path.isdir(os.path.dirname(os.path.abspath(target))):
        parser().error(f"{target}: there is no such folder")
    if options.emulate:
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={options.emulate}".strip()
        os.environ["JAX_PLATFORMS"] = "cpu"
    begin = clock()
    try:
        backend = make_backend(options.distributed)
    except ImportError as problem:
        print(f"capture_jax: error: this needs JAX: {problem}", file=sys.stderr)
        return 2
    pod = backend.pod()
    mesh, slice_text = default_mesh(pod)
    mesh = options.mesh or mesh
    if mesh.devices != pod["devices"]:
        print(f"capture_jax: error: --mesh {mesh.text()} has {mesh.devices} devices, this machine {pod['devices']}", file=sys.stderr)
        return 2
    backend.open(mesh)
    environment = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "python": platform.python_version(),
                   "flags": {name: os.environ.get(name, "") for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "JAX_PLATFORMS")}, **backend.environment()}

    def say(text):
        if backend.first:
            print(text, file=sys.stderr, flush=True)

    say(f"{pod['devices']} x {pod['kind']}, mesh {mesh.text()}")
    capture = Capture(backend, all_cases(mesh, max_bytes, options.max_held_bytes), options.seconds, say, clock)
    capture.begin = begin
    signal.signal(signal.SIGTERM, interrupted)
    folder = tempfile.mkdtemp(prefix="capture_jax_")
    try:
        try:
            capture.run()
            if not options.no_profile:
                capture.profile(folder)
        except KeyboardInterrupt:
            say("interrupted: writing what there is")
        texts = files_of(capture, mesh, slice_text, environment)
        if backend.first and options.observations_only:
            with open(target, "w", encoding="utf-8") as file:
                file.write(texts["observations.csv"])
        elif backend.first:
            write_archive(target, texts, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    say(f"{target}: {len(capture.timings)} cases, {len(capture.failed)} failed, {capture.left} left out for time")
    return 0 if capture.timings else 1


if __name__ == "__main__":
    sys.exit(main())
