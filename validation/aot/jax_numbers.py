#!/usr/bin/env python3
"""Small programs with the numbers that JAX computes for them: validation/aot/numbers.

    python3 jax_numbers.py [--only NAME[,NAME...]] [--to FOLDER]

Each program is compiled for emulated CPU devices and run; some, in addition, for one chip of a TPU and one GPU that are not there (NAME_v5e, NAME_h100), whose modules must give the numbers of the CPU. NAME.hlo.gz is the compiled module as XLA prints it, without metadata; NAME.json.gz has
what every device was given and what it had in the end, the shards of each array once. The inputs are made from counters, so that a run with the
same jax and the same processor writes the same bytes. workloads/hlo_values/jax_numbers_test.cpp runs the modules without JAX and compares.

Needs the environment that tests/jax_env.sh makes, no accelerator.
"""

import argparse
import base64
import gzip
import json
import os
import pathlib

os.environ["JAX_PLATFORMS"] = "cpu"
# Linear algebra of XLA itself, not of libraries that are called with pointers.
os.environ["XLA_FLAGS"] = " ".join(["--xla_force_host_platform_device_count=64", "--xla_cpu_use_onednn=false", os.environ.get("XLA_FLAGS", "")])

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jaxlib._hlo import HloPrintOptions  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

from make import ABSENT, devices_of  # noqa: E402

os.environ.update(ABSENT.ENVIRONMENT)  # before JAX looks for devices

bf16, f32, f16, s32, s8, u32 = jnp.bfloat16, jnp.float32, jnp.float16, jnp.int32, jnp.int8, jnp.uint32

PROGRAMS = {}
ELSEWHERE = {"v5e": "v5e:2x2", "h100": "h100:1x8"}  # the slice of which the first device is taken


def program(**axes):
    """The function returns (the program, its arguments as (array, PartitionSpec), PartitionSpecs of its results or None)."""

    def register(make):
        PROGRAMS[make.__name__] = (make, axes)
        return make

    return register


def elsewhere(*machines):
    """A program of one device, compiled for these as well."""

    def register(make):
        PROGRAMS[make.__name__] = (make, {"x": 1})
        for machine in machines:
            PROGRAMS[f"{make.__name__}_{machine}"] = (make, {"x": 1})
        return make

    return register


def numbers(shape, dtype=f32, seed=0, scale=1.0):
    """Between -scale and scale, from a counter."""
    count = int(np.prod(shape)) if shape else 1
    bits = (np.arange(count, dtype=np.uint64) + np.uint64(seed * 7919 + 1)) * np.uint64(0x9E3779B97F4A7C15)
    real = ((bits >> np.uint64(40)).astype(np.float64) / 2**23 - 1) * scale
    return np.asarray(real.reshape(shape)).astype(dtype)


def whole(shape, low, high, dtype=s32, seed=0):
    return (np.floor((numbers(shape, np.float64, seed) + 1) / 2 * (high - low)) + low).astype(dtype)


def tree(arguments, spec):
    return jax.tree.map(lambda array: (array, spec), arguments)


# ---- Products by every collective ----


@program(x=2, y=4)
def product_all_gather(mesh):
    return lambda a, b: a @ b, [(numbers((16, 32), seed=1), P("x", "y")), (numbers((32, 24), seed=2), P("x", "y"))], P("x", "y")


@program(x=8)
def product_reduce_scatter(mesh):
    f = lambda a, b: lax.psum_scatter(a @ b, "x", scatter_dimension=0, tiled=True)
    return (jax.shard_map(f, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P("x", None)),
            [(numbers((16, 32), seed=1), P(None, "x")), (numbers((32, 8), seed=2), P("x", None))], None)


@program(x=8)
def product_all_reduce(mesh):
    return lambda a, b: a @ b, [(numbers((8, 32), bf16, 3), P(None, "x")), (numbers((32, 8), bf16, 4), P("x", None))], P(None, None)


@program(x=8)
def product_all_to_all(mesh):
    def f(a, b):
        rows = lax.all_to_all(a, "x", split_axis=1, concat_axis=0, tiled=True)
        return lax.all_to_all(rows @ b, "x", split_axis=0, concat_axis=1, tiled=True)

    return (jax.shard_map(f, mesh=mesh, in_specs=(P("x", None), P("x", None)), out_specs=P("x", None)),
            [(numbers((16, 32), seed=5), P("x", None)), (numbers((32, 8), seed=6), P("x", None))], None)


@program(x=8)
def other_reductions(mesh):
    def f(a, whole_numbers):
        return (lax.pmax(a, "x"), lax.pmin(a, "x"), lax.pmax(whole_numbers, "x"), lax.psum(whole_numbers, "x"),
                lax.all_gather(whole_numbers, "x", tiled=True) > -30, lax.pmean(a, "x"), lax.pmax(a > 0.5, "x"), lax.axis_index("x")[None])

    return (jax.shard_map(f, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=(P(), P(), P(), P(), P(), P(), P(), P("x")), check_vma=False),
            [(numbers((32, 3), seed=7), P("x")), (whole((32,), -99, 99, seed=8), P("x"))], None)


# ---- Two-dimensional products ----


@program(row=4, col=4)
def cannon(mesh):
    def f(a, b):
        i, j = lax.axis_index("row"), lax.axis_index("col")
        n = 4
        a = lax.ppermute(a, ("row", "col"), [(r * n + c, r * n + (c - r) % n) for r in range(n) for c in range(n)])
        b = lax.ppermute(b, ("row", "col"), [(r * n + c, ((r - c) % n) * n + c) for r in range(n) for c in range(n)])

        def step(_, state):
            a, b, c = state
            c = c + a @ b
            a = lax.ppermute(a, "col", [(k, (k - 1) % n) for k in range(n)])
            b = lax.ppermute(b, "row", [(k, (k - 1) % n) for k in range(n)])
            return a, b, c

        zero = jnp.zeros((a.shape[0], b.shape[1]), f32) + 0.0 * (i + j)
        return lax.fori_loop(0, n, step, (a, b, zero))[2]

    return (jax.shard_map(f, mesh=mesh, in_specs=(P("row", "col"), P("row", "col")), out_specs=P("row", "col"), check_vma=False),
            [(numbers((16, 32), seed=1), P("row", "col")), (numbers((32, 24), seed=2), P("row", "col"))], None)


@program(row=2, col=4)
def summa(mesh):
    def f(a, b):  # A [M/2, K/4], B [K/2, N/4]
        c = jnp.zeros((a.shape[0], b.shape[1]), f32)
        panel = 4
        for k in range(32 // panel):
            of_a, of_b = k * panel // a.shape[1], k * panel // b.shape[0]
            left = lax.dynamic_slice_in_dim(a, k * panel - of_a * a.shape[1], panel, 1)
            right = lax.dynamic_slice_in_dim(b, k * panel - of_b * b.shape[0], panel, 0)
            left = lax.psum(jnp.where(lax.axis_index("col") == of_a, left, 0), "col")
            right = lax.psum(jnp.where(lax.axis_index("row") == of_b, right, 0), "row")
            c = c + left @ right
        return c

    return (jax.shard_map(f, mesh=mesh, in_specs=(P("row", "col"), P("row", "col")), out_specs=P("row", "col"), check_vma=False),
            [(numbers((8, 32), seed=1), P("row", "col")), (numbers((32, 16), seed=2), P("row", "col"))], None)


@program(row=2, col=4)
def meshslice(mesh):
    slices = 4

    def f(a, b):
        c = 0.0
        for s in range(slices):
            left = lax.all_gather(a[:, s::slices], "col", axis=1, tiled=True)
            right = lax.all_gather(b[s::slices], "row", axis=0, tiled=True)
            c = c + left @ right
        return c

    return (jax.shard_map(f, mesh=mesh, in_specs=(P("row", "col"), P("row", "col")), out_specs=P("row", "col"), check_vma=False),
            [(numbers((8, 64), seed=3), P("row", "col")), (numbers((64, 16), seed=4), P("row", "col"))], None)


@program(row=2, col=4)
def wang(mesh):
    def f(a, b):  # gathers B over rows, rotates A over columns
        b = lax.all_gather(b, "row", axis=0, tiled=True)
        me, n = lax.axis_index("col"), 4
        c = jnp.zeros((a.shape[0], b.shape[1]), f32)
        for step in range(n):
            block = (me + step) % n
            c = c + a @ lax.dynamic_slice_in_dim(b, block * a.shape[1], a.shape[1], 0)
            if step < n - 1:
                a = lax.ppermute(a, "col", [(k, (k - 1) % n) for k in range(n)])
        return c

    return (jax.shard_map(f, mesh=mesh, in_specs=(P("row", "col"), P("row", "col")), out_specs=P("row", "col"), check_vma=False),
            [(numbers((8, 32), seed=5), P("row", "col")), (numbers((32, 16), seed=6), P("row", "col"))], None)


@program(x=4, y=4, z=4)
def three_axes(mesh):
    def f(a, b):
        a = lax.all_gather(a, "y", axis=1, tiled=True)
        b = lax.all_gather(b, "x", axis=0, tiled=True)
        c = lax.psum(a @ b, "z")
        mine = c + lax.axis_index("z").astype(f32)
        return c, lax.psum(jnp.sum(c), ("x", "z"))[None], lax.ppermute(mine, ("y", "z"), [(k, (5 * k + 3) % 16) for k in range(16)])

    return (jax.shard_map(f, mesh=mesh, in_specs=(P("x", ("z", "y")), P(("z", "x"), "y")), out_specs=(P("x", "y"), P("y"), P("x", ("y", "z"))), check_vma=False),
            [(numbers((8, 32), seed=1), P("x", ("z", "y"))), (numbers((32, 8), seed=2), P(("z", "x"), "y"))], None)


# ---- Layers, forward and backward ----


def gelu(x):
    return 0.5 * x * (1 + jnp.tanh(0.79788456 * (x + 0.044715 * x**3)))


@program(data=2, model=4)
def mlp_backward(mesh):
    def loss(weights, x):
        return jnp.mean(jnp.square(gelu(x @ weights["in"]) @ weights["out"]))

    weights = {"in": (numbers((16, 32), seed=1, scale=0.3), P(None, "model")), "out": (numbers((32, 16), seed=2, scale=0.3), P("model", None))}
    return jax.value_and_grad(loss), [weights, (numbers((8, 16), seed=3), P("data", None))], (P(), {"in": P(None, "model"), "out": P("model", None)})


@program(fsdp=8)
def mlp_fsdp_bf16(mesh):
    def loss(weights, x):
        w1, w2 = (w.astype(bf16) for w in weights)
        return jnp.mean(jnp.square((gelu(x @ w1) @ w2).astype(f32)))

    weights = [(numbers((16, 32), seed=1, scale=0.3), P("fsdp", None)), (numbers((32, 16), seed=2, scale=0.3), P("fsdp", None))]
    return jax.value_and_grad(loss), [weights, (numbers((16, 16), bf16, 3), P("fsdp", None))], (P(), [P("fsdp", None), P("fsdp", None)])


def attention(q, k, v, causal=True):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.float32(np.sqrt(q.shape[-1]))
    if causal:
        n = scores.shape[-1]
        scores = jnp.where(jnp.tril(jnp.ones((n, n), bool)), scores, -1e30)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)


@program(data=2, model=4)
def attention_backward(mesh):
    def loss(weights, x):
        q, k, v = (jnp.einsum("bsd,dhe->bshe", x, weights[name]) for name in "qkv")
        return jnp.sum(jnp.square(jnp.einsum("bshe,hed->bsd", attention(q, k, v), weights["o"])))

    weights = {name: (numbers((16, 4, 8), seed=n, scale=0.5), P(None, "model", None)) for n, name in enumerate("qkv")}
    weights["o"] = (numbers((4, 8, 16), seed=9, scale=0.5), P("model", None, None))
    specs = jax.tree.map(lambda given: given[1], weights, is_leaf=lambda given: isinstance(given, tuple))
    return jax.value_and_grad(loss), [weights, (numbers((4, 8, 16), seed=10), P("data", None, None))], (P(), specs)


def rms_norm(x, scale):
    return x * lax.rsqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + 1e-5) * scale


def decoder_loss(params, tokens, remat):
    x = params["embed"][tokens[:, :-1]]

    def layer(x, weights):
        h = rms_norm(x, weights["norm1"])
        q, k, v = (jnp.einsum("bsd,dhe->bshe", h, weights[name]) for name in "qkv")
        x = x + jnp.einsum("bshe,hed->bsd", attention(q, k, v), weights["o"])
        h = rms_norm(x, weights["norm2"])
        return x + (jax.nn.silu(h @ weights["gate"]) * (h @ weights["up"])) @ weights["down"], None

    x, _ = lax.scan(jax.checkpoint(layer) if remat else layer, x, params["layers"])
    logits = rms_norm(x, params["norm"]) @ params["embed"].T
    wanted = jax.nn.one_hot(tokens[:, 1:], logits.shape[-1], dtype=f32)
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * wanted, axis=-1))


def decoder_parameters(layers=2, d=16, heads=4, head=4, ff=32, vocabulary=32):
    shape = {"q": (d, heads, head), "k": (d, heads, head), "v": (d, heads, head), "o": (heads, head, d), "gate": (d, ff), "up": (d, ff), "down": (ff, d)}
    spec = {"q": P(None, "data", "model", None), "k": P(None, "data", "model", None), "v": P(None, "data", "model", None), "o": P(None, "model", None, "data"),
            "gate": P(None, "data", "model"), "up": P(None, "data", "model"), "down": P(None, "model", "data")}
    weights = {name: (numbers((layers,) + shape[name], seed=n, scale=0.4), spec[name]) for n, name in enumerate(shape)}
    for n, name in enumerate(("norm1", "norm2")):
        weights[name] = (1 + numbers((layers, d), seed=50 + n, scale=0.1), P(None, None))
    return {"embed": (numbers((vocabulary, d), seed=60, scale=0.5), P("model", "data")), "layers": weights, "norm": (1 + numbers((d,), seed=61, scale=0.1), P(None))}


def specs_of(arguments):
    return jax.tree.map(lambda given: given[1], arguments, is_leaf=lambda given: isinstance(given, tuple))


def zeros_like(arguments, seed):
    return jax.tree.map(lambda given: (np.abs(numbers(given[0].shape, seed=seed, scale=0.01)), given[1]), arguments, is_leaf=lambda given: isinstance(given, tuple))


def adam(params, m, v, grads, step):
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, v, grads)
    t = step.astype(f32) + 1
    update = lambda p, m, v: p - 0.01 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.95**t)) + 1e-3)
    return jax.tree.map(update, params, m, v), m, v


@program(data=2, model=4)
def decoder_step(mesh):
    params = decoder_parameters()

    def step(params, m, v, count, tokens):
        loss, grads = jax.value_and_grad(lambda p: decoder_loss(p, tokens, remat=True))(params)
        return (loss, *adam(params, m, v, grads, count), count + 1)

    specs = specs_of(params)
    return (step, [params, zeros_like(params, 70), zeros_like(params, 71), (np.int32(3), P()), (whole((4, 9), 0, 32, seed=80), P("data", None))],
            (P(), specs, specs, specs, P()))


@program(data=4, model=2)
def gradient_accumulation(mesh):
    params = decoder_parameters(layers=1)

    def step(params, tokens):
        def one(carry, micro):
            loss, grads = jax.value_and_grad(lambda p: decoder_loss(p, micro, remat=False))(params)
            return (carry[0] + loss, jax.tree.map(jnp.add, carry[1], grads)), loss

        zero = (jnp.zeros((), f32), jax.tree.map(jnp.zeros_like, params))
        (total, grads), losses = lax.scan(one, zero, tokens)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
        return total, losses, jax.tree.map(lambda p, g: p - 0.1 * g * jnp.minimum(1, 1 / norm), params, grads)

    return step, [params, (whole((2, 4, 9), 0, 32, seed=81), P(None, "data", None))], (P(), P(), specs_of(params))


# ---- Experts, sequences, stages ----


@program(expert=8)
def experts_all_to_all(mesh):
    def layer(x, router, up, down):  # [tokens, d], one expert a device
        n, capacity = 8, 4
        gates = jax.nn.softmax(x @ router)
        choice = jnp.argmax(gates, axis=-1)
        place = jnp.cumsum(jax.nn.one_hot(choice, n, dtype=s32), axis=0)[jnp.arange(x.shape[0]), choice] - 1
        kept = place < capacity
        slots = jnp.zeros((n, capacity, x.shape[1]), f32).at[choice, jnp.where(kept, place, capacity)].set(x, mode="drop")
        sent = lax.all_to_all(slots, "expert", split_axis=0, concat_axis=0, tiled=True)
        made = jax.nn.relu(sent.reshape(-1, x.shape[1]) @ up[0]) @ down[0]
        back = lax.all_to_all(made.reshape(slots.shape), "expert", split_axis=0, concat_axis=0, tiled=True)
        return jnp.where(kept, gates[jnp.arange(x.shape[0]), choice], 0)[:, None] * back[choice, jnp.minimum(place, capacity - 1)]

    def loss(x, router, up, down):
        mapped = jax.shard_map(layer, mesh=mesh, in_specs=(P("expert"), P(), P("expert"), P("expert")), out_specs=P("expert"), check_vma=False)
        return jnp.sum(jnp.square(mapped(x, router, up, down)))

    return (jax.value_and_grad(loss, argnums=(0, 1, 2, 3)),
            [(numbers((64, 8), seed=1), P("expert")), (numbers((8, 8), seed=2), P()), (numbers((8, 8, 16), seed=3), P("expert")), (numbers((8, 16, 8), seed=4), P("expert"))],
            (P(), (P("expert"), P(), P("expert"), P("expert"))))


@program(seq=8)
def ring_attention_backward(mesh):
    def ring(q, k, v):  # [s, h, d] of this device
        n = 8

        def step(state, _):
            k, v, top, total, out = state
            scores = jnp.einsum("qhd,khd->hqk", q, k)
            larger = jnp.maximum(top, jnp.max(scores, axis=-1))
            weights, old = jnp.exp(scores - larger[..., None]), jnp.exp(top - larger)
            out = out * old[..., None] + jnp.einsum("hqk,khd->hqd", weights, v)
            total = total * old + jnp.sum(weights, axis=-1)
            k, v = (lax.ppermute(x, "seq", [(i, (i + 1) % n) for i in range(n)]) for x in (k, v))
            return (k, v, larger, total, out), None

        s, h, d = q.shape
        start = (k, v, jnp.full((h, s), -1e30, f32), jnp.zeros((h, s), f32), jnp.zeros((h, s, d), f32))
        (_, _, _, total, out), _ = lax.scan(step, start, None, length=n)
        return jnp.transpose(out / total[..., None], (1, 0, 2))

    def loss(q, k, v):
        mapped = jax.shard_map(ring, mesh=mesh, in_specs=(P("seq"),) * 3, out_specs=P("seq"), check_vma=False)
        return jnp.sum(jnp.square(mapped(q, k, v)))

    return jax.value_and_grad(loss, argnums=(0, 1, 2)), [(numbers((32, 2, 4), seed=n), P("seq")) for n in range(3)], (P(), (P("seq"),) * 3)


@program(stage=4, data=2)
def pipeline_backward(mesh):
    def stages(weights, micro):  # weights [1, d, d] of this stage; micro [m, b, d]
        stage, n, m = lax.axis_index("stage"), 4, micro.shape[0]

        def tick(carry, t):
            held, done = carry
            x = jnp.where(stage == 0, micro[jnp.clip(t, 0, m - 1)], held)
            y = jnp.tanh(x @ weights[0])
            at = jnp.clip(t - (n - 1), 0, m - 1)
            done = jnp.where((stage == n - 1) & (t >= n - 1), done.at[at].set(y), done)
            return (lax.ppermute(y, "stage", [(i, i + 1) for i in range(n - 1)]), done), None

        (_, done), _ = lax.scan(tick, (jnp.zeros_like(micro[0]), jnp.zeros_like(micro)), jnp.arange(m + n - 1))
        return lax.psum(jnp.where(stage == n - 1, done, 0), "stage")

    def loss(weights, micro):
        mapped = jax.shard_map(stages, mesh=mesh, in_specs=(P("stage"), P(None, "data")), out_specs=P(None, "data"), check_vma=False)
        return jnp.sum(jnp.square(mapped(weights, micro)))

    return jax.value_and_grad(loss), [(numbers((4, 8, 8), seed=1), P("stage")), (numbers((3, 4, 8), seed=2), P(None, "data"))], (P(), P("stage"))


# ---- Element types and single operations ----


@program(x=8)
def int8_product(mesh):
    f = lambda a, b: lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=s32)
    return f, [(whole((16, 32), -128, 128, s8, 1), P("x", None)), (whole((32, 8), -128, 128, s8, 2), P("x", None))], P("x", None)


@program(x=8)
def fp8_product(mesh):
    f8 = jnp.float8_e4m3fn

    def f(a, b):
        scale_a, scale_b = jnp.max(jnp.abs(a)) / 448, jnp.max(jnp.abs(b)) / 448
        left, right = (a / scale_a).astype(f8), (b / scale_b).astype(f8)
        return lax.dot_general(left, right, (((1,), (0,)), ((), ())), preferred_element_type=f32) * (scale_a * scale_b), scale_a, scale_b

    return f, [(numbers((16, 32), seed=1), P("x", None)), (numbers((32, 8), seed=2), P("x", None))], (P("x", None), P(), P())


@program(x=8)
def random_and_sorted(mesh):
    def f(key, x):
        keys = jax.random.split(key, 4)
        noise = jax.random.uniform(keys[0], x.shape) + jax.random.normal(keys[1], x.shape) * 0.1
        bits = jax.random.bits(keys[2], x.shape)
        return noise, bits, jnp.sort(x + noise, axis=1), jnp.argsort(x, axis=1), jnp.cumsum(x, axis=1), jax.random.randint(keys[3], (8,), 0, 100)

    return f, [(np.array([7, 11], u32), P()), (numbers((16, 8), seed=2), P("x"))], (P("x"), P("x"), P("x"), P("x"), P("x"), P())


@program(data=4)
def convolutions_backward(mesh):
    def loss(kernels, x):
        for kernel, stride in zip(kernels, (1, 2)):
            x = jax.nn.relu(lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        pooled = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return jnp.mean(jnp.square(pooled))

    kernels = [(numbers((3, 3, 3, 4), seed=1), P()), (numbers((3, 3, 4, 4), seed=2), P())]
    return jax.value_and_grad(loss), [kernels, (numbers((8, 8, 8, 3), seed=3), P("data"))], (P(), [P(), P()])


@program(model=8)
def embedding_backward(mesh):
    def loss(table, ids):
        return jnp.sum(jnp.square(table[ids]) * jnp.arange(ids.size, dtype=f32).reshape(ids.shape + (1,)))

    return jax.value_and_grad(loss), [(numbers((64, 4), seed=1), P("model")), (whole((2, 6), 0, 64, seed=2), P())], (P(), P("model"))


@program(x=8)
def fourier(mesh):
    def f(real, imaginary):  # a transform of 64 as two of 8, the products written out
        angle = -2 * np.pi / 64 * np.outer(np.arange(8), np.arange(8))
        eight = -2 * np.pi / 8 * np.outer(np.arange(8), np.arange(8))
        c, s = np.cos(eight).astype(np.float32), np.sin(eight).astype(np.float32)
        tc, ts = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        me = lax.axis_index("x")
        a = lax.all_to_all(real, "x", 1, 0, tiled=True), lax.all_to_all(imaginary, "x", 1, 0, tiled=True)  # a column each
        b = c @ a[0] - s @ a[1], c @ a[1] + s @ a[0]
        wc, ws = jnp.asarray(tc)[:, me][:, None], jnp.asarray(ts)[:, me][:, None]
        b = b[0] * wc - b[1] * ws, b[1] * wc + b[0] * ws
        d = lax.all_to_all(b[0], "x", 0, 1, tiled=True), lax.all_to_all(b[1], "x", 0, 1, tiled=True)
        return d[0] @ c - d[1] @ s, d[0] @ s + d[1] @ c

    return (jax.shard_map(f, mesh=mesh, in_specs=(P("x"), P("x")), out_specs=(P("x"), P("x")), check_vma=False),
            [(numbers((8, 8), seed=1), P("x")), (numbers((8, 8), seed=2), P("x"))], None)


@program(x=4)
def cholesky_by_blocks(mesh):
    def f(a):  # right-looking, a block of rows a device, columns one by one
        me, rows = lax.axis_index("x"), a.shape[0]
        index = me * rows + jnp.arange(rows)

        def column(k, a):
            own = jnp.where(index == k, 1.0, 0.0)
            pivot = lax.psum(own @ a, "x")  # row k
            scaled = a[:, k] / jnp.sqrt(pivot[k])
            below = jnp.where(index >= k, scaled, 0.0)
            everyone = lax.all_gather(below, "x", tiled=True)
            a = a - jnp.outer(below, jnp.where(jnp.arange(a.shape[1]) > k, everyone, 0.0))
            return a.at[:, k].set(below)

        return lax.fori_loop(0, a.shape[1], column, a)

    square = numbers((16, 16), np.float64, 1)
    positive = (square @ square.T + 4 * np.eye(16)).astype(np.float32)
    return jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False), [(positive, P("x"))], None


@program(x=8)
def conditional_and_while(mesh):
    def f(x, count):
        x = lax.cond(count[0] > 2, lambda x: x + lax.psum(x, "x") * 0.125, lambda x: -x, x)
        x = lax.switch(count[1], [lambda x: x + 1, lambda x: x * 2, lambda x: x - 3], x)
        return lax.while_loop(lambda s: s[0] < count[0], lambda s: (s[0] + 1, lax.ppermute(s[1] * 1.5, "x", [(i, (i + 3) % 8) for i in range(8)])), (0, x))[1]

    return (jax.shard_map(f, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"), check_vma=False),
            [(numbers((16, 4), seed=1), P("x")), (np.array([5, 1], s32), P())], None)


@program(x=4, y=2)
def conditional_by_group(mesh):
    """Groups along y take branches of their own: sums, a gather, nothing; then a branch of either y that sums along x."""
    def f(x, w):
        mine = lax.axis_index("x")
        def summed(v, w):
            return v * 0.5 + lax.psum(v @ w, "y"), w
        def gathered(v, w):
            both = lax.all_gather(v, "y", axis=0)
            return v + both[0] * 0.25 - both[1] * 0.5, w * 2
        def alone(v, w):
            return v - 1, w
        x, w = lax.switch(jnp.minimum(mine, 2), [summed, gathered, alone], x, w)
        x = lax.cond(lax.axis_index("y") == 1, lambda v: lax.psum(v, "x"), lambda v: v * 3, x)
        return x, w

    return (jax.shard_map(f, mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=(P("x", "y"), P(("x", "y"))), check_vma=False),
            [(numbers((8, 8), seed=1), P("x", "y")), (numbers((8, 4), seed=2), P("y"))], None)


# ---- What single devices leave to libraries, or write in a way of their own ----


def complex_numbers(shape, seed):
    return (numbers(shape, seed=seed) + 1j * numbers(shape, seed=seed + 1)).astype(jnp.complex64)


def convolved(x, w, strides=(1, 1), padding="SAME", **more):
    return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"), **more)


def gradients(loss, *shapes, dtype=f32):
    return jax.grad(loss, tuple(range(len(shapes)))), [(numbers(shape, dtype, seed), P()) for seed, shape in enumerate(shapes, 1)], None


@elsewhere("v5e", "h100")
def transform(mesh):
    return jnp.fft.fft, [(complex_numbers((3, 8), 1), P())], None


@elsewhere("h100")
def transforms_of_real_numbers(mesh):
    f = lambda x, w: (jnp.fft.irfft(jnp.fft.rfft(x) * w, n=16), jnp.abs(jnp.fft.fft2(x)), jnp.fft.irfft2(jnp.fft.rfft2(x)), jnp.fft.ifft(x[:, :5]))
    return f, [(numbers((4, 16), seed=1), P()), (complex_numbers((9,), 2), P())], None


@elsewhere("v5e", "h100")
def complex_arithmetic(mesh):
    f = lambda x, y: (jnp.exp(1j * x).real, jnp.abs(x + 1j * y), (x + 1j * y) ** 2 / (2 + 1j * x), jnp.vdot(x + 1j * y, x - 1j * y), (x + 1j * y) @ (y - 1j * x).T)
    return f, [(numbers((4, 8), seed=1), P()), (numbers((4, 8), seed=2), P())], None


@elsewhere("v5e", "h100")
def roots_of_bf16(mesh):
    f = lambda x: jnp.sqrt(x).astype(f32) + jnp.broadcast_to(x[:, :1], x.shape).astype(f32)
    return f, [((whole((16, 256), 0, 16, np.float64, 1) ** 2).astype(bf16), P())], None  # squares: a root in float32 is that in bfloat16


@elsewhere("v5e", "h100")
def largest_of_rows(mesh):
    return lambda x: lax.top_k(x, 5), [(whole((6, 300), -40, 40, f32, 1), P())], None


@elsewhere("v5e", "h100")
def scattered_by_pairs(mesh):
    return lambda x, i: x.at[i[:, 0], i[:, 1]].add(1.0), [(numbers((64, 32), seed=1), P()), (whole((40, 2), 0, 32, seed=2), P())], None


@elsewhere("v5e")
def reshaped(mesh):
    f = lambda x: (2 * x.reshape(8, 4, 128).transpose(1, 0, 2).reshape(4, -1)).reshape(16, 256)
    return f, [(numbers((8, 512), seed=1), P())], None


@elsewhere("v5e")
def reshaped_bf16(mesh):
    f = lambda x: (2 * x.reshape(4, 24, 128).astype(f32)).astype(bf16).reshape(3, 32, 128)
    return f, [(numbers((96, 128), bf16, 1), P())], None


@elsewhere("v5e", "h100")
def convolution_gradients(mesh):
    return gradients(lambda x, w: (convolved(x, w, (2, 2)) ** 2).sum(), (2, 9, 9, 4), (3, 3, 4, 8))


@elsewhere("v5e", "h100")
def convolution_with_bias(mesh):
    f = lambda x, w, b: jax.nn.relu(convolved(x, w) + b)
    return f, [(numbers(shape, seed=seed), P()) for seed, shape in enumerate(((2, 8, 8, 4), (3, 3, 4, 8), (8,)), 1)], None


@elsewhere("v5e", "h100")
def convolution_gradients_by_group(mesh):
    return gradients(lambda x, w: (convolved(x, w, feature_group_count=2) ** 2).sum(), (2, 8, 8, 4), (3, 3, 2, 8))


@elsewhere("v5e", "h100")
def causal_convolution_gradients(mesh):
    f = lambda x, w: (lax.conv_general_dilated(x, w, (1,), [(4, 0)], rhs_dilation=(2,), dimension_numbers=("NWC", "WIO", "NWC")) ** 2).sum()
    return gradients(f, (2, 16, 4), (3, 4, 8))


@elsewhere("v5e", "h100")
def convolution_gradients_bf16(mesh):
    return gradients(lambda x, w: (convolved(x, w).astype(f32) ** 2).sum(), (2, 8, 8, 8), (3, 3, 8, 16), dtype=bf16)


# ---- Files ----


def stored(array, devices):
    """The shards of an array, each once, and which one every device has."""
    of_device = {shard.device.id: np.asarray(shard.data) for shard in array.addressable_shards}
    shards, places = [], []
    for device in devices:
        data = base64.b64encode(np.ascontiguousarray(of_device[device.id]).tobytes()).decode()
        if data not in shards:
            shards.append(data)
        places.append(shards.index(data))
    first = of_device[devices[0].id]
    return {"type": str(first.dtype), "dims": list(first.shape), "shards": shards, "of_device": places}


def write(path, text):
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def make(name, folder):
    build, axes = PROGRAMS[name]
    count = int(np.prod(list(axes.values())))
    devices = jax.devices()[:count]
    mesh = Mesh(np.array(devices).reshape(tuple(axes.values())), tuple(axes))
    function, arguments, results = build(mesh)
    is_given = lambda given: isinstance(given, tuple)
    put = lambda given: jax.device_put(given[0], NamedSharding(mesh, given[1]))
    placed = jax.tree.map(put, arguments, is_leaf=is_given)
    is_spec = lambda spec: isinstance(spec, P)
    shardings = None if results is None else jax.tree.map(lambda spec: NamedSharding(mesh, spec), results, is_leaf=is_spec)
    jitted = jax.jit(function, keep_unused=True, **({} if shardings is None else {"out_shardings": shardings}))
    compiled = jitted.lower(*placed).compile()
    made = compiled(*placed)
    machine = name.rsplit("_", 1)[1] if build.__name__ != name else None
    if machine:
        generation, extents = ELSEWHERE[machine].split(":")
        there = NamedSharding(Mesh(np.array(devices_of(generation, [int(extent) for extent in extents.split("x")], 1)[:1]), "x"), P())
        compiled = jitted.lower(*(jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=there) for a in placed)).compile()
    options = HloPrintOptions()
    options.print_metadata = False
    options.print_large_constants = True
    text = compiled.runtime_executable().hlo_modules()[0].to_string(options)
    write(folder / f"{name}.hlo.gz", text)
    tables = {"mesh": [[axis, size] for axis, size in axes.items()], "inputs": [stored(a, devices) for a in jax.tree.leaves(placed)], "outputs": [stored(a, devices) for a in jax.tree.leaves(made)]}
    write(folder / f"{name}.json.gz", json.dumps(tables, separators=(",", ":"), sort_keys=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--to", default=str(pathlib.Path(__file__).parent / "numbers"))
    given = parser.parse_args()
    folder = pathlib.Path(given.to)
    folder.mkdir(parents=True, exist_ok=True)
    names = [name for name in given.only.split(",") if name] or list(PROGRAMS)
    for name in names:
        make(name, folder)
        print(name, (folder / f"{name}.hlo.gz").stat().st_size, (folder / f"{name}.json.gz").stat().st_size, flush=True)


if __name__ == "__main__":
    main()
