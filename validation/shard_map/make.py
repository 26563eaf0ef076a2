#!/usr/bin/env python3
"""Bodies of shard_map with the numbers that JAX computes for them: validation/shard_map/bodies.json.

    python3 make.py [--to FILE]

A body is a podsim program, which Python reads as well: its expressions are evaluated as they stand, with jax.lax's collectives behind the names, inside
jax.shard_map on 8 emulated devices. So the two readings of a text have nothing in common but the text. Inputs are made from counters, and outputs are kept as up to
24 of their elements and one weighted sum of all. Some bodies have an out spec that leaves out an axis along which the result differs: JAX has to refuse these
(check_vma), or there is no file. workloads/sharded/shard_map_test.cpp reads the file; no test needs JAX.

Needs jax 0.10.2 (pip install jax==0.10.2), no accelerator.
"""

import argparse
import json
import os
import pathlib
import random

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

jax.config.update("jax_default_matmul_precision", "highest")

MESHES = [{"p": 8}, {"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 2, "y": 2, "z": 2}]
BODIES, REFUSED, MOST_ELEMENTS, MOST_KEPT = 200, 40, 4096, 24


def numbers(shape, seed):
    """Between -1 and 1, from a counter; exact in float32."""
    count = int(np.prod(shape))
    with np.errstate(over="ignore"):
        bits = (np.arange(count, dtype=np.uint64) + np.uint64(seed * 7919 + 1)) * np.uint64(0x9E3779B97F4A7C15)
    return ((bits >> np.uint64(40)).astype(np.float64) / 2**23 - 1).reshape(shape).astype(np.float32)


# ---- How Python reads a body ----


def names_of(axes):
    return axes if isinstance(axes, tuple) else (axes,)


def gelu(a):
    return jax.nn.gelu(a, approximate=True)


def ppermute(a, axes, by):
    n = int(np.prod([lax.axis_size(axis) for axis in names_of(axes)]))
    pairs = by if isinstance(by, list) else [(i, (i + by) % n) for i in range(n)]
    return lax.ppermute(a, axes, pairs)


FUNCTIONS = {
    "relu": jax.nn.relu,
    "gelu": gelu,
    "sum": lambda a, dim: jnp.sum(a, axis=dim),
    "mean": lambda a, dim: jnp.mean(a, axis=dim),
    "psum": lax.psum,
    "pmean": lax.pmean,
    "pmax": lax.pmax,
    "all_gather": lambda a, dim, axes, tiled=False: lax.all_gather(a, axes, axis=dim, tiled=tiled),
    "psum_scatter": lambda a, dim, axes, tiled=False: lax.psum_scatter(a, axes, scatter_dimension=dim, tiled=tiled),
    "all_to_all": lambda a, split, concat, axes, tiled=False: lax.all_to_all(a, axes, split, concat, tiled=tiled),
    "ppermute": ppermute,
    "axis_index": lax.axis_index,
}


def partition_spec(spec, axes):
    """x,-,(y+z) as a PartitionSpec."""
    if spec == "-" and not axes:
        return P()
    entries = []
    for entry in spec.split(","):
        names = tuple(name for name in entry.strip("()").split("+") if name != "-")
        entries.append(names or None)
    return P(*entries)


def evaluate(body, check_vma=False, traced_only=False):
    mesh = jax.make_mesh(tuple(body["mesh"].values()), tuple(body["mesh"]), axis_types=(jax.sharding.AxisType.Auto,) * len(body["mesh"]))
    arrays = [numbers(shape, seed + 1) for seed, shape in enumerate(body["shapes"].values())]
    specs = tuple(partition_spec(spec, True) for spec in body["shards"].values())
    statements = [line.split(" as ") for line in body["statements"]]

    def f(*blocks):
        scope = {**FUNCTIONS, **{axis: axis for axis in body["mesh"]}, **dict(zip(body["shapes"], blocks))}
        outputs = []
        for statement in statements:
            name, expression = statement[0].split(" = ", 1)
            scope[name] = eval(expression, {"__builtins__": {}}, scope)  # noqa: S307: our own text
            if len(statement) > 1:
                outputs.append(scope[name])
        return tuple(outputs)

    outs = tuple(partition_spec(statement[1], True) if statement[1] != "-" else P() for statement in statements if len(statement) > 1)
    mapped = jax.shard_map(f, mesh=mesh, in_specs=specs, out_specs=outs, check_vma=check_vma)
    return jax.eval_shape(mapped, *arrays) if traced_only else jax.jit(mapped)(*arrays)


# ---- Random bodies ----


class Generator:
    """Makes a body statement by statement, with the shape of each block and the axes along which it may differ."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.mesh = self.rng.choice(MESHES)
        self.shapes, self.shards, self.statements, self.values, self.read = {}, {}, [], {}, set()
        for i in range(self.rng.randint(1, 3)):
            self.add_input("ABC"[i])

    def spec(self, axes, rank):
        dims = [[] for _ in range(rank)]
        for axis in axes:
            self.rng.choice(dims).append(axis)
        return dims

    @staticmethod
    def text(dims):
        return ",".join("-" if not axes else axes[0] if len(axes) == 1 else "(" + "+".join(axes) + ")" for axes in dims) or "-"

    def some_axes(self, least=0):
        axes = list(self.mesh)
        self.rng.shuffle(axes)
        return axes[: self.rng.randint(least, len(axes))]

    def add_input(self, name):
        rank = self.rng.choice([1, 2, 2, 2])
        dims = self.spec(self.some_axes(), rank)
        block = tuple(self.rng.choice([4, 8, 8]) for _ in range(rank))
        parts = [int(np.prod([self.mesh[a] for a in axes])) for axes in dims]
        self.shapes[name] = tuple(b * p for b, p in zip(block, parts))
        self.shards[name] = self.text(dims)
        self.values[name] = (block, {a for axes in dims for a in axes})

    def axes_text(self, axes):
        return axes[0] if len(axes) == 1 else "(" + ", ".join(axes) + ")"

    def pick(self, least_rank=0):
        names = [n for n, (shape, _) in self.values.items() if len(shape) >= least_rank]
        return self.rng.choice(names) if names else None

    def expression(self):
        """(text, shape, axes along which it differs, names read) or None, where the shapes do not allow it."""
        rng, kind = self.rng, self.rng.randrange(19)
        a = self.pick(1)
        shape, varying = self.values[a]
        axes = self.some_axes(1)
        devices = int(np.prod([self.mesh[axis] for axis in axes]))
        over = self.axes_text(axes)
        d = rng.randrange(len(shape))
        less, more = varying - set(axes), varying | set(axes)
        if kind in (0, 1):
            pairs = [(l, r, t) for l, (s, _) in self.values.items() for r, (q, _) in self.values.items() for t in ("", ".T") if len(s) == len(q) == 2 and s[1] == (q[::-1] if t else q)[0]]
            if not pairs:
                return None
            left, right, turned = rng.choice(pairs)
            (s, v), (q, w) = self.values[left], self.values[right]
            return f"{left} @ {right}{turned}", (s[0], (q[::-1] if turned else q)[1]), v | w, {left, right}
        if kind in (2, 3):
            b = self.pick()
            other, w = self.values[b]
            try:
                result = np.broadcast_shapes(shape, other)
            except ValueError:
                return None
            form = rng.choice(["{} + {}", "{} - {}", "{} * {}", "{} / ({} + 3)"])
            if "/" in form and not b.islower() and b not in self.shapes:
                form = "{} - {}"  # an input is above -1
            return form.format(a, b), result, varying | w, {a, b}
        if kind == 4:
            return rng.choice(["{} * 0.5", "{} + 1", "2 - {}", "relu({})", "gelu({})", "-{}"]).format(a), shape, varying, {a}
        if kind == 5 and len(shape) == 2:
            return f"{a}.T", shape[::-1], varying, {a}
        if kind == 6:
            return f"{rng.choice(['sum', 'mean'])}({a}, {d})", shape[:d] + shape[d + 1 :], varying, {a}
        if kind in (7, 8, 9):
            return f"{['psum', 'pmean', 'pmax'][kind - 7]}({a}, {over})", shape, less, {a}
        if kind == 10:
            return f"all_gather({a}, {d}, {over}, tiled=True)", shape[:d] + (shape[d] * devices,) + shape[d + 1 :], less, {a}
        if kind == 11:
            d = rng.randint(0, len(shape))
            return f"all_gather({a}, {d}, {over})", shape[:d] + (devices,) + shape[d:], less, {a}
        if kind == 12 and shape[d] % devices == 0:
            return f"psum_scatter({a}, {d}, {over}, tiled=True)", shape[:d] + (shape[d] // devices,) + shape[d + 1 :], more, {a}
        if kind == 13 and shape[d] == devices:
            return f"psum_scatter({a}, {d}, {over})", shape[:d] + shape[d + 1 :], more, {a}
        if kind == 14 and shape[d] % devices == 0:
            c = rng.randrange(len(shape))
            result = list(shape)
            result[d] //= devices
            result[c] *= devices
            return f"all_to_all({a}, {d}, {c}, {over}, tiled=True)", tuple(result), more, {a}
        if kind == 15 and shape[d] == devices:
            c = rng.randrange(len(shape))
            result = list(shape[:d] + shape[d + 1 :])
            result.insert(c, devices)
            return f"all_to_all({a}, {d}, {c}, {over})", tuple(result), more, {a}
        if kind == 16:
            return f"ppermute({a}, {over}, {rng.randint(-3, 3)})", shape, more, {a}
        if kind == 17:
            senders, receivers = rng.sample(range(devices), devices), rng.sample(range(devices), devices)
            pairs = ", ".join(f"({s}, {r})" for s, r in list(zip(senders, receivers))[: rng.randint(1, devices)])
            return f"ppermute({a}, {over}, [{pairs}])", shape, more, {a}
        if kind == 18:
            return rng.choice(["{} * axis_index({})", "{} + axis_index({}) / 4"]).format(a, over), shape, more, {a}
        return None

    def add(self, name, made):
        text, shape, varying, read = made
        self.statements.append([f"{name} = {text}", None])
        self.values[name] = (shape, varying)
        self.read |= read

    def body(self):
        for i in range(self.rng.randint(2, 6)):
            made = None
            while made is None or np.prod(made[1]) * np.prod([self.mesh[a] for a in made[2]] or [1]) > MOST_ELEMENTS or len(made[1]) > 4:
                made = self.expression()
            self.add(f"V{i}", made)
        for name in [n for n in self.shapes if n not in self.read]:  # every input is read
            del self.shapes[name], self.shards[name], self.values[name]
        for i, name in enumerate([n for n in list(self.values) if n not in self.read and n not in self.shapes]):
            shape, varying = self.values[name]
            if not shape and varying:
                self.add(f"S{i}", (f"psum({name}, {self.axes_text(sorted(varying))})", (), set(), {name}))
                name = f"S{i}"
            axes = sorted(varying) if self.values[name][1] else []
            axes += [a for a in self.mesh if shape and a not in axes and self.rng.random() < 0.2]
            self.rng.shuffle(axes)
            self.out(name, self.spec(axes, len(shape)))
        for name, (shape, varying) in self.values.items():  # others, too
            if name in self.shapes or not shape or name not in self.read or self.rng.random() > 0.15:
                continue
            self.out(name, self.spec(sorted(varying), len(shape)))
        return {"mesh": self.mesh, "shapes": self.shapes, "shards": self.shards, "statements": [s if spec is None else f"{s} as {spec}" for s, spec in self.statements]}

    def out(self, name, dims):
        for statement in self.statements:
            if statement[0].startswith(name + " = "):
                statement[1] = self.text(dims)


def kept(name, output):
    values = np.asarray(output, np.float32).ravel()
    stride = -(-values.size // MOST_KEPT)
    weights = (np.arange(values.size, dtype=np.uint64) * np.uint64(2654435761) % np.uint64(1024)).astype(np.float64) / 1024
    shown = [float(str(value)) for value in values[::stride]]  # the shortest text that float32 reads as the same
    return {"name": name, "stride": stride, "values": shown, "weighted": float(values.astype(np.float64) @ weights), "weights": float(np.abs(values.astype(np.float64)) @ weights)}


def stored():
    bodies, refused, seed = [], [], 0
    while len(bodies) < BODIES:
        seed += 1
        body = Generator(seed).body()
        outputs = evaluate(body)
        if not all(np.isfinite(np.asarray(o)).all() and np.abs(np.asarray(o)).max() < 1e6 for o in outputs):
            continue
        names = [line.split(" = ")[0] for line in body["statements"] if " as " in line]
        bodies.append({"seed": seed, **body, "outputs": [kept(name, output) for name, output in zip(names, outputs)]})
        if len(refused) < REFUSED and (wrong := without_an_axis(seed, body, outputs)) is not None:
            refused.append({"seed": seed, **wrong})
    return {"jax": jax.__version__, "bodies": bodies, "refused": refused}


def without_an_axis(seed, body, outputs):
    """The body with an out spec that lacks an axis which it needs; None: it has none that it needs, to JAX either."""
    rng = random.Random(seed)
    wrong = dict(body, statements=list(body["statements"]))
    with_axes = [i for i, line in enumerate(wrong["statements"]) if " as " in line and any(c.isalpha() for c in line.split(" as ")[1])]
    if not with_axes:
        return None
    i = rng.choice(with_axes)
    text, spec = wrong["statements"][i].split(" as ")
    axis = rng.choice([a for a in body["mesh"] if a in spec])
    dims = [[a for a in entry.strip("()").split("+") if a not in ("-", axis)] for entry in spec.split(",")]
    wrong["statements"][i] = f"{text} as {Generator.text(dims)}"
    # Whether the blocks do differ, on numbers; then the refusal has a reason.
    whole = outputs[sum(" as " in line for line in body["statements"][:i])]
    entry = [d for d, e in enumerate(spec.split(",")) if axis in e][0]
    first = [a for a in spec.split(",")[entry].strip("()").split("+")]
    if first[0] != axis:
        return None
    halves = np.split(np.asarray(whole), body["mesh"][axis], axis=entry)
    if all(np.array_equal(halves[0], half) for half in halves):
        return None
    try:
        evaluate(wrong, check_vma=True, traced_only=True)
    except ValueError:
        return dict(wrong, axis=axis)
    raise SystemExit(f"JAX takes {wrong}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path(__file__).parent / "bodies.json")
    to = parser.parse_args().to
    tables = stored()
    lines = ",\n".join(json.dumps(body) for body in tables["bodies"]), ",\n".join(json.dumps(body) for body in tables["refused"])
    to.write_text(f'{{"jax": {json.dumps(tables["jax"])},\n"bodies": [\n{lines[0]}],\n"refused": [\n{lines[1]}]}}\n')


if __name__ == "__main__":
    main()
