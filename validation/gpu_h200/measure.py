#!/usr/bin/env python3
"""What one GPU takes for operations and whole training steps of JAX: device times of kernels (from the profiler), wall times of steps, the compiled modules.

usage: measure.py OUT [--sections steps,operations,products,attention,host] [--seconds N] [--tiny]

OUT/measured.csv         a row for each operation: what, dtype, its parameters, device seconds of a call (median, min), kernels, FLOPs or bytes that count
OUT/steps.csv            a row for each step: wall seconds (min, median of 8), peak of the allocator, XLA's memory analysis
OUT/modules, OUT/profiles  the scheduled text of the steps, profiles of some
--tiny: small sizes, to try it on a computer without a GPU.
"""
import argparse
import collections
import concurrent.futures
import csv
import functools
import glob
import gzip
import json
import os
import shutil
import sys
import tempfile
import time
import traceback

import jax
import jax.numpy as jnp
import numpy
from jax import lax

options = argparse.ArgumentParser()
options.add_argument("out")
options.add_argument("--sections", default="steps,products,attention,operations,host")
options.add_argument("--seconds", type=float, default=450)
options.add_argument("--tiny", action="store_true")
options.add_argument("--after", default="", help="a folder of an earlier call: what it measured is left out")
options = options.parse_args()
BEGAN = time.monotonic()
GPU = jax.default_backend() == "gpu"
BF16, F32 = jnp.bfloat16, jnp.float32
os.makedirs(f"{options.out}/modules", exist_ok=True)
os.makedirs(f"{options.out}/profiles", exist_ok=True)


def left():
    return options.seconds - (time.monotonic() - BEGAN)


def say(*words):
    print(f"{time.monotonic() - BEGAN:7.1f}", *words, flush=True)


class Table:
    def __init__(self, name, columns):
        path = f"{options.out}/{name}"
        fresh = not os.path.exists(path)
        self.file = open(path, "a", newline="")
        self.rows = csv.DictWriter(self.file, columns)
        if fresh:
            self.rows.writeheader()

    def add(self, **row):
        self.rows.writerow(row)
        self.file.flush()


MEASURED = Table("measured.csv", ["section", "what", "dtype", "parameters", "seconds_median", "seconds_min", "calls", "kernels", "longest_kernel", "flops", "bytes"])
STEPS = Table("steps.csv", ["name", "parameters", "seconds_min", "seconds_median", "steps", "compile_s", "peak_allocator", "argument", "output", "temp", "alias",
                            "flops_xla", "loss"])


def random(shape, dtype=BF16, seed=0, scale=1.0):
    """Random values: a GPU is faster on zeros."""
    key = jax.random.key(seed)
    if jnp.issubdtype(jnp.dtype(dtype), jnp.integer):
        return jax.jit(lambda k: jax.random.randint(k, shape, -8, 8).astype(dtype))(key)
    return jax.jit(lambda k: (jax.random.normal(k, shape, F32) * scale).astype(dtype))(key)


def before(name, *columns):
    path = f"{options.after}/{name}"
    return {tuple(row[c] for c in columns) for row in csv.DictReader(open(path))} if options.after and os.path.exists(path) else set()


MEASURED_BEFORE = before("measured.csv", "section", "what", "dtype", "parameters")
STEPS_BEFORE = before("steps.csv", "name")


class Operations:
    """Operations of one section, each a jitted function of its own name, run in one session of the profiler: the name of the module tells whose a kernel is."""

    def __init__(self, section):
        self.section, self.pending = section, []

    def add(self, what, function, arguments, dtype="bfloat16", flops=0, moved=0, **parameters):
        if (self.section, what, dtype, json.dumps(parameters)) in MEASURED_BEFORE:
            return
        self.pending.append((what, function, arguments, dtype, flops, moved, parameters))

    def run(self, most, calls=6, batch=24):
        """At most `most` seconds; a batch is a session of the profiler."""
        end = time.monotonic() + min(most, left())
        while self.pending and time.monotonic() < end:
            these, self.pending = self.pending[:batch], self.pending[batch:]
            try:
                self.session(these, calls, end)
            except Exception:
                traceback.print_exc()
        if self.pending:
            say(self.section, "left out:", len(self.pending), [p[0] for p in self.pending])

    def session(self, these, calls, end):
        def prepared(numbered):
            number, (what, function, arguments, _, _, _, parameters) = numbered
            if time.monotonic() > end:
                return None
            try:
                values = arguments()

                def named(*a):
                    return function(*a)
                named.__name__ = f"op{number}x"
                return number, jax.jit(named).lower(*values).compile(), values
            except Exception as error:
                say("refused:", what, parameters, repr(error)[:300])
                return number, None, None
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            done = list(pool.map(prepared, enumerate(these)))
        self.pending = [these[i] for i, r in enumerate(done) if r is None] + self.pending
        ready = []
        for number, compiled, values in (r for r in done if r is not None and r[1] is not None):
            try:
                jax.block_until_ready(compiled(*values))
                ready.append((number, compiled, values))
            except Exception as error:
                say("refused:", these[number][0], these[number][6], repr(error)[:300])
        folder = tempfile.mkdtemp()
        jax.profiler.start_trace(folder)
        for number, compiled, values in ready:
            for _ in range(calls):
                jax.block_until_ready(compiled(*values))
        jax.profiler.stop_trace()
        kernels = kernels_of(folder)
        shutil.rmtree(folder)
        for number, compiled, values in ready:
            what, _, _, dtype, flops, moved, parameters = these[number]
            mine = kernels.get(f"jit_op{number}x", [])
            row = dict(section=self.section, what=what, dtype=dtype, parameters=json.dumps(parameters), flops=flops, bytes=moved, calls=calls)
            if mine:
                each = len(mine) // calls
                if each * calls != len(mine):  # a capture that lost events: the sum is all that is known
                    total = sum(d for _, _, d in mine) / calls
                    MEASURED.add(**row, seconds_median=f"{total:.4e}", seconds_min="", kernels=f"{len(mine) / calls:.2f}", longest_kernel=max(mine, key=lambda k: k[2])[0])
                    continue
                mine.sort(key=lambda k: k[1])
                sums = sorted(sum(d for _, _, d in mine[c * each:(c + 1) * each]) for c in range(calls))
                longest = max(mine[:each], key=lambda k: k[2])
                MEASURED.add(**row, seconds_median=f"{sums[calls // 2]:.4e}", seconds_min=f"{sums[0]:.4e}", kernels=each, longest_kernel=f"{longest[0]}"[:120])
            else:
                took = []
                for _ in range(calls):
                    t = time.perf_counter()
                    jax.block_until_ready(compiled(*values))
                    took.append(time.perf_counter() - t)
                took.sort()
                MEASURED.add(**row, seconds_median=f"{took[calls // 2]:.4e}", seconds_min=f"{took[0]:.4e}", kernels="wall", longest_kernel="")
        say(self.section, "session of", len(ready), "operations,", len(self.pending), "left")


def kernels_of(folder):
    """Module -> [(kernel, start in ns, seconds)] of the streams of the GPU."""
    found = collections.defaultdict(list)
    for path in glob.glob(f"{folder}/**/*.xplane.pb", recursive=True):
        for plane in jax.profiler.ProfileData.from_file(path).planes:
            if not plane.name.startswith("/device:GPU"):
                continue
            for line in plane.lines:
                if not line.name.startswith("Stream"):
                    continue
                for event in line.events:
                    stats = dict(event.stats)
                    module = stats.get("hlo_module", "")
                    found[str(module).partition("(")[0]].append((event.name, event.start_ns, event.duration_ns * 1e-9))
    return found


# ---- products ----------------------------------------------------------------------------------------------------------------------------------------------
def products():
    ops = Operations("products")
    big = 256 if options.tiny else 1 << 30
    def product(m, n, k, dtype, out=None, batch=0, layout="nn"):
        m, n, k = min(m, big), min(n, big), min(k, big)
        a = ((batch,) if batch else ()) + ((m, k) if layout[0] == "n" else (k, m))
        b = ((batch,) if batch else ()) + ((k, n) if layout[1] == "n" else (n, k))
        ca, cb = len(a) - (1 if layout[0] == "n" else 2), len(b) - (2 if layout[1] == "n" else 1)
        f8 = jnp.dtype(dtype).itemsize == 1
        out = out or (jnp.int32 if jnp.dtype(dtype) == jnp.int8 else BF16 if f8 else dtype)
        def f(x, y):
            axes = ((0,), (0,)) if batch else ((), ())
            return lax.dot_general(x, y, (((ca,), (cb,)), axes), preferred_element_type=out)
        ops.add("product", f, lambda: (random(a, dtype, 1), random(b, dtype, 2)), dtype=jnp.dtype(dtype).name, flops=2 * max(batch, 1) * m * n * k,
                moved=max(batch, 1) * ((m * k + k * n) * jnp.dtype(dtype).itemsize + m * n * jnp.dtype(out).itemsize), m=m, n=n, k=k, batch=batch, layout=layout,
                out=jnp.dtype(out).name)
    f8 = jnp.float8_e4m3fn
    for size in (1024, 2048, 4096, 8192, 16384):
        for dtype in (BF16, F32, f8, jnp.int8):
            if not (dtype == F32 and size == 16384):
                product(size, size, size, dtype, layout="nt" if dtype in (f8, jnp.int8) else "nn")
    for layout in ("nt", "tn", "tt"):
        product(8192, 8192, 8192, BF16, layout=layout)
    for m, n, k in ((8192, 4096, 4096), (8192, 1024, 4096), (8192, 14336, 4096), (8192, 4096, 14336), (8192, 128256, 4096), (4096, 4096, 8192), (4096, 14336, 8192), (14336, 4096, 8192),
                    (8192, 8192, 1024), (8192, 3584, 8192), (8192, 8192, 3584), (16384, 1280, 8192), (16384, 8192, 1024), (4096, 5120, 5120), (4096, 13824, 5120)):
        product(m, n, k, BF16)
        product(m, n, k, f8, layout="nt")
    for m, n, k in ((1, 8192, 8192), (16, 8192, 8192), (64, 8192, 8192), (128, 8192, 8192), (256, 8192, 8192), (512, 8192, 8192), (8192, 64, 8192), (8192, 256, 8192), (8192, 8192, 64),
                    (8192, 8192, 256), (256, 256, 65536), (1000, 1000, 1000), (4095, 4097, 4111), (8190, 8200, 8204), (5000, 3000, 7000)):
        product(m, n, k, BF16)
    for m, n, k in ((8192, 4096, 4096), (8192, 14336, 4096), (2048, 2048, 8192), (512, 4096, 4096)):
        product(m, n, k, F32)
        product(m, n, k, F32, out=F32, layout="tn")
        product(m, n, k, BF16, out=F32)
    for batch, m, n, k in ((32, 4096, 4096, 128), (32, 4096, 128, 4096), (256, 512, 512, 64), (64, 2048, 2048, 128), (8, 4096, 14336, 4096), (1024, 128, 128, 128), (8, 1024, 4096, 4096)):
        product(m, n, k, BF16, batch=batch)
    for groups, m, n, k in ((8, 16384, 14336, 4096), (8, 4096, 7168, 2048), (64, 16384, 1408, 2048)):
        m, n, k = min(m, big), min(n, big), min(k, big)
        sizes = numpy.full(groups, m // groups, numpy.int32)
        ops.add("ragged_product", lambda x, y, s: lax.ragged_dot(x, y, s), lambda m=m, n=n, k=k, groups=groups, sizes=sizes: (random((m, k)), random((groups, k, n)), jnp.asarray(sizes)),
                flops=2 * m * n * k, m=m, n=n, k=k, groups=groups)
    return ops


# ---- attention ---------------------------------------------------------------------------------------------------------------------------------------------
def attention():
    ops = Operations("attention")
    how = "cudnn" if GPU else "xla"
    def add(batch, length, heads, kv, width, causal, backward, window=None):
        if options.tiny:
            batch, length = 1, min(length, 128)
        scores = length * length * (0.5 if causal else 1) if not window else length * window
        flops = int(4 * batch * heads * scores * width * (3.5 if backward else 1))
        def forward(q, k, v):
            return jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation=how, local_window_size=(window - 1, 0) if window else None)
        def both(q, k, v, d):
            out, pull = jax.vjp(forward, q, k, v)
            return out, pull(d)
        shapes = ((batch, length, heads, width), (batch, length, kv, width), (batch, length, kv, width))
        values = lambda: tuple(random(s, BF16, i) for i, s in enumerate(shapes + (shapes[:1] if backward else ())))
        ops.add("attention_both" if backward else "attention", both if backward else forward, values, flops=flops, batch=batch, length=length, heads=heads, kv_heads=kv,
                head_dim=width, causal=causal, window=window)
    for backward in (False, True):
        for length, batch in ((512, 32), (1024, 16), (2048, 8), (4096, 4), (8192, 2), (16384, 1), (32768, 1)):
            add(batch, length, 32, 8, 128, True, backward)
        for length, batch in ((512, 32), (2048, 8), (8192, 2)):
            add(batch, length, 32, 32, 64, True, backward)
            add(batch, length, 16, 16, 128, False, backward)
        add(2, 4096, 32, 8, 128, True, backward)
        add(1, 4096, 32, 8, 128, True, backward)
        add(1, 4096, 64, 8, 128, True, backward)
        add(4, 2048, 8, 8, 128, True, backward)
        add(4, 4096, 16, 16, 256, True, backward)
        add(64, 197, 16, 16, 64, False, backward)
        add(1, 16384, 32, 8, 128, True, backward, window=1024)
    return ops


# ---- everything else ---------------------------------------------------------------------------------------------------------------------------------------
def operations():
    ops = Operations("operations")
    tokens, width, wide, classes = (256, 128, 256, 512) if options.tiny else (8192, 4096, 14336, 128256)
    x, h = (tokens, width), (tokens, wide)
    def size(shape, dtype=BF16):
        return int(numpy.prod(shape)) * jnp.dtype(dtype).itemsize
    def gradient(f):
        return lambda d, *a: jax.vjp(f, *a)[1](d)
    one = lambda shape, dtype=BF16, seed=0: (lambda: (random(shape, dtype, seed),))
    ops.add("copy", lambda a: a + 1, one(x), moved=2 * size(x), shape=x)
    ops.add("copy", lambda a: a + 1, one(h), moved=2 * size(h), shape=h)
    ops.add("copy", lambda a: a * 2, one(h, F32), "float32", moved=2 * size(h, F32), shape=h)
    for n in (1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30):
        if not options.tiny or n < 1 << 20:
            ops.add("copy", lambda a: a + 1, one((n,)), moved=4 * n, shape=(n,))
    ops.add("add", lambda a, b: a + b, lambda: (random(x), random(x, seed=1)), moved=3 * size(x), shape=x)
    ops.add("convert", lambda a: a.astype(BF16), one(h, F32), moved=size(h, F32) + size(h), shape=h)
    ops.add("convert", lambda a: a.astype(F32), one(h), moved=size(h, F32) + size(h), shape=h)
    ops.add("rms_norm", rms_norm, lambda: (random(x), random((width,), F32)), moved=2 * size(x), shape=x)
    ops.add("rms_norm_grad", gradient(rms_norm), lambda: (random(x), random(x), random((width,), F32)), moved=3 * size(x), shape=x)
    ops.add("layer_norm", layer_norm, lambda: (random(x), random((width,), F32), random((width,), F32)), moved=2 * size(x), shape=x)
    ops.add("layer_norm_grad", gradient(layer_norm), lambda: (random(x), random(x), random((width,), F32), random((width,), F32)), moved=3 * size(x), shape=x)
    ops.add("softmax", lambda a: jax.nn.softmax(a.astype(F32)).astype(BF16), one((tokens * 2, tokens // 2)), moved=2 * size((tokens, tokens)), shape=(tokens * 2, tokens // 2))
    ops.add("softmax_grad", gradient(lambda a: jax.nn.softmax(a.astype(F32)).astype(BF16)), lambda: (random((tokens, tokens // 2)), random((tokens, tokens // 2))),
            moved=3 * size((tokens, tokens // 2)), shape=(tokens, tokens // 2))
    swiglu = lambda a, b: jax.nn.silu(a) * b
    ops.add("swiglu", swiglu, lambda: (random(h), random(h, seed=1)), moved=3 * size(h), shape=h)
    ops.add("swiglu_grad", gradient(swiglu), lambda: (random(h), random(h), random(h, seed=1)), moved=5 * size(h), shape=h)
    ops.add("gelu", jax.nn.gelu, one(h), moved=2 * size(h), shape=h)
    ops.add("gelu_grad", gradient(jax.nn.gelu), lambda: (random(h), random(h)), moved=3 * size(h), shape=h)
    ops.add("gelu_erf", lambda a: jax.nn.gelu(a, approximate=False), one(h), moved=2 * size(h), shape=h)
    ops.add("exp", jnp.exp, one(h, F32), "float32", moved=2 * size(h, F32), shape=h)
    q = (2, tokens // 2, width // 128, 128)
    ops.add("rotary", rotate, one(q), moved=2 * size(q), shape=q)
    ops.add("transpose", lambda a: a.T + 1, one(x), moved=2 * size(x), shape=x)
    ops.add("transpose", lambda a: a.T + 1, one(x, F32), "float32", moved=2 * size(x, F32), shape=x)
    ops.add("transpose_heads", lambda a: a.swapaxes(1, 2) + 1, one(q), moved=2 * size(q), shape=q)
    ops.add("sum_last", lambda a: jnp.sum(a.astype(F32), -1), one(h), moved=size(h), shape=h)
    ops.add("sum_first", lambda a: jnp.sum(a.astype(F32), 0), one(h), moved=size(h), shape=h)
    ops.add("sum_all", lambda a: jnp.sum(a), one(h, F32), "float32", moved=size(h, F32), shape=h)
    ops.add("concatenate", lambda a, b: jnp.concatenate([a, b], -1), lambda: (random(x), random(x, seed=1)), moved=4 * size(x), shape=x)
    ops.add("update_slice", lambda a, b: lax.dynamic_update_slice(a, b, (0, 0)), lambda: (random((tokens * 4, width)), random(x, seed=1)), moved=10 * size(x), shape=x)
    count = 1 << (12 if options.tiny else 28)
    def adam(p, m, s, g):
        m, s = 0.9 * m + 0.1 * g, 0.95 * s + 0.05 * g * g
        return p - 1e-3 * (m / (jnp.sqrt(s) + 1e-8) + 0.1 * p), m, s
    ops.add("adam", adam, lambda: tuple(random((count,), F32, i) ** 2 for i in range(4)), "float32", moved=28 * count, shape=(count,))
    ops.add("adam_bf16_gradient", adam, lambda: (*(random((count,), F32, i) ** 2 for i in range(3)), random((count,))), "float32", moved=26 * count, shape=(count,))
    ops.add("sgd", lambda p, g: p - 0.1 * g, lambda: (random((count,), F32), random((count,), F32, 1)), "float32", moved=12 * count, shape=(count,))
    ops.add("norm_of_gradient", lambda g: jnp.sqrt(jnp.sum(g * g)), one((count,), F32), "float32", moved=4 * count, shape=(count,))
    index = lambda count=tokens, most=classes: jax.random.randint(jax.random.key(3), (count,), 0, most)
    ops.add("embedding", lambda t, i: t[i], lambda: (random((classes, width)), index()), moved=2 * size(x), rows=tokens, classes=classes, width=width)
    ops.add("embedding_grad", lambda d, i: jnp.zeros((classes, width), F32).at[i].add(d.astype(F32)), lambda: (random(x), index()), moved=size((classes, width), F32) + size(x),
            rows=tokens, classes=classes, width=width)
    def entropy(l, i):
        l = l.astype(F32)
        return jnp.mean(jax.nn.logsumexp(l, -1) - jnp.take_along_axis(l, i[:, None], 1)[:, 0])
    logits = (tokens // 2, classes)
    ops.add("cross_entropy", entropy, lambda: (random(logits), index(tokens // 2)), moved=size(logits), shape=logits)
    ops.add("cross_entropy_grad", lambda l, i: jax.grad(entropy)(l, i), lambda: (random(logits), index(tokens // 2)), moved=2 * size(logits), shape=logits)
    for rows, columns in ((1, 1 << 20), (1, 1 << 24), (8192, 256), (1024, 8192)):
        rows, columns = (min(rows, 8), min(columns, 256)) if options.tiny else (rows, columns)
        ops.add("sort", lambda a: jnp.sort(a, -1), one((rows, columns), F32), "float32", moved=8 * rows * columns, rows=rows, columns=columns)
        ops.add("argsort", lambda a: jnp.argsort(a, -1), one((rows, columns), F32), "float32", moved=8 * rows * columns, rows=rows, columns=columns)
    ops.add("top_k", lambda a: lax.top_k(a, 2), one((tokens, 8), F32), "float32", rows=tokens, columns=8, k=2)
    ops.add("top_k", lambda a: lax.top_k(a, 8), one((tokens, 256), F32), "float32", rows=tokens, columns=256, k=8)
    ops.add("top_k", lambda a: lax.top_k(a, 50), one((64, classes), F32), "float32", rows=64, columns=classes, k=50)
    ops.add("cumsum", lambda a: jnp.cumsum(a, -1), one((64, 1 << (10 if options.tiny else 18)), F32), "float32", moved=8 * 64 << 18)
    ops.add("cumsum_first", lambda a: jnp.cumsum(a, 0), one(x, F32), "float32", moved=2 * size(x, F32), shape=x)
    ops.add("random_bits", lambda k: jax.random.bits(jax.random.wrap_key_data(k), h, jnp.uint32), lambda: (jnp.array([1, 2], jnp.uint32),), "uint32", moved=size(h, F32), shape=h)
    ops.add("random_normal", lambda k: jax.random.normal(jax.random.wrap_key_data(k), h, F32), lambda: (jnp.array([1, 2], jnp.uint32),), "float32", moved=size(h, F32), shape=h)
    for length in (256, 1024, 4096, 65536):
        rows = (1 << 25) // length if not options.tiny else 4
        ops.add("fft", jnp.fft.fft, lambda rows=rows, length=length: (lax.complex(random((rows, length), F32), random((rows, length), F32, 1)),), "complex64", moved=16 * rows * length,
                rows=rows, length=length)
    side = 64 if options.tiny else 4096
    ops.add("fft_2d", jnp.fft.fft2, lambda: (lax.complex(random((side, side), F32), random((side, side), F32, 1)),), "complex64", moved=32 * side * side, side=side)
    sides = (64,) if options.tiny else (256, 1024, 4096, 8192)
    def spd(n, batch=()):
        a = random((*batch, n, n), F32, 5) / n ** 0.5
        return a @ a.swapaxes(-1, -2) + 4 * jnp.eye(n)
    for n in sides:
        ops.add("cholesky", lax.linalg.cholesky, lambda n=n: (spd(n),), "float32", flops=n ** 3 // 3, n=n)
        ops.add("triangular_solve", lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True), lambda n=n: (jnp.linalg.cholesky(spd(n)), random((n, n), F32)), "float32",
                flops=n ** 3, n=n, columns=n)
        ops.add("lu", lambda a: lax.linalg.lu(a)[0], lambda n=n: (spd(n),), "float32", flops=2 * n ** 3 // 3, n=n)
        if n <= 4096:
            ops.add("qr", lambda a: jnp.linalg.qr(a, mode="raw"), lambda n=n: (spd(n),), "float32", flops=4 * n ** 3 // 3, n=n)
            ops.add("solve", jnp.linalg.solve, lambda n=n: (spd(n), random((n, 16), F32)), "float32", flops=2 * n ** 3 // 3, n=n)
        if n <= 1024:
            ops.add("eigh", jnp.linalg.eigh, lambda n=n: (spd(n),), "float32", n=n)
            ops.add("svd", lambda a: jnp.linalg.svd(a, compute_uv=True), lambda n=n: (spd(n),), "float32", n=n)
    for batch, n in ((4096, 16), (4096, 32), (256, 128), (64, 512)):
        batch = 4 if options.tiny else batch
        ops.add("cholesky", lax.linalg.cholesky, lambda n=n, batch=batch: (spd(n, (batch,)),), "float32", flops=batch * n ** 3 // 3, n=n, batch=batch)
        ops.add("lu", lambda a: lax.linalg.lu(a)[0], lambda n=n, batch=batch: (spd(n, (batch,)),), "float32", flops=2 * batch * n ** 3 // 3, n=n, batch=batch)
        ops.add("solve", jnp.linalg.solve, lambda n=n, batch=batch: (spd(n, (batch,)), random((batch, n, 1), F32)), "float32", flops=2 * batch * n ** 3 // 3, n=n, batch=batch)
    images = 2 if options.tiny else 128
    def conv(side, features, out, kernel, stride=1, groups=1, dtype=BF16):
        f = lambda a, w: lax.conv_general_dilated(a, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups)
        side_out = -(-side // stride)
        flops = 2 * images * side_out ** 2 * kernel ** 2 * features // groups * out
        shapes = (images, side, side, features), (kernel, kernel, features // groups, out)
        parameters = dict(images=images, side=side, features=features, out=out, kernel=kernel, stride=stride, groups=groups)
        ops.add("convolution", f, lambda: (random(shapes[0], dtype), random(shapes[1], dtype, 1)), jnp.dtype(dtype).name, flops=flops, **parameters)
        ops.add("convolution_both_gradients", lambda d, a, w: jax.vjp(f, a, w)[1](d), lambda: (random((images, side_out, side_out, out), dtype), random(shapes[0], dtype),
                random(shapes[1], dtype, 1)), jnp.dtype(dtype).name, flops=2 * flops, **parameters)
    for shape in ((224, 3, 64, 7, 2), (56, 64, 64, 1), (56, 64, 64, 3), (56, 64, 256, 1), (56, 256, 64, 1), (28, 128, 128, 3), (28, 512, 128, 1), (14, 256, 256, 3), (14, 1024, 256, 1),
                  (7, 512, 512, 3), (7, 512, 2048, 1), (224, 3, 1024, 16, 16), (56, 96, 96, 7, 1, 96)):
        conv(*(min(shape[0], 16), *shape[1:]) if options.tiny else shape)
    pool = (images, 112 if not options.tiny else 8, 112 if not options.tiny else 8, 64)
    ops.add("max_pool", lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"), one(pool), moved=size(pool) * 5 // 4, shape=pool)
    return ops


# ---- the host ----------------------------------------------------------------------------------------------------------------------------------------------
def host():
    """Wall times: what a call costs, and copies between host and device."""
    def best(f, calls):
        took = []
        for _ in range(5):
            t = time.perf_counter()
            for _ in range(calls):
                f()
            took.append((time.perf_counter() - t) / calls)
        return sorted(took)
    def add(what, took, moved=0, **parameters):
        MEASURED.add(section="host", what=what, dtype="", parameters=json.dumps(parameters), seconds_median=f"{took[2]:.4e}", seconds_min=f"{took[0]:.4e}", calls=5, kernels="wall",
                     longest_kernel="", flops=0, bytes=moved)
    small = random((128,), F32)
    one = jax.jit(lambda a: a + 1)
    one(small)
    add("call_and_wait", best(lambda: one(small).block_until_ready(), 200))
    def chain(n=500):
        y = small
        for _ in range(n):
            y = one(y)
        return y.block_until_ready()
    add("call_in_a_row", [t / 500 for t in best(chain, 1)])
    @functools.partial(jax.jit, static_argnums=1)
    def kernels(a, n):  # a matrix too small to be fused away: each product is a kernel of its own
        for _ in range(n):
            a = lax.optimization_barrier(jnp.sin(a))
        return a
    for n in (1, 64, 512):
        kernels(small, n).block_until_ready()
        add("kernels_in_a_row", best(lambda: kernels(small, n).block_until_ready(), 5), kernels=n)
    for megabytes in (1, 16, 256, 1024):
        if options.tiny and megabytes > 1:
            break
        array = numpy.random.default_rng(0).random(megabytes << 17)
        on = jax.device_put(array.view(numpy.float32))
        add("host_to_device", best(lambda: jax.device_put(array.view(numpy.float32)).block_until_ready(), 1), moved=array.nbytes, pinned=False)
        add("device_to_host", best(lambda: numpy.asarray(on + 0), 1), moved=array.nbytes, pinned=False)
        try:
            sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
            near = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="device")
            there = jax.device_put(on, sharding).block_until_ready()
            add("host_to_device", best(lambda: jax.device_put(there, near).block_until_ready(), 1), moved=array.nbytes, pinned=True)
            add("device_to_host", best(lambda: jax.device_put(on, sharding).block_until_ready(), 1), moved=array.nbytes, pinned=True)
        except Exception as error:
            say("refused: pinned", repr(error)[:200])


# ---- whole steps -------------------------------------------------------------------------------------------------------------------------------------------
def attend(q, k, v, causal):
    return jax.nn.dot_product_attention(q, k, v, is_causal=causal, implementation="cudnn" if GPU else "xla")


def cast(tree):
    return jax.tree.map(lambda a: a.astype(BF16) if a.dtype == F32 else a, tree)


def rms_norm(x, scale):
    y = x.astype(F32)
    return (y * lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-6) * scale).astype(x.dtype)


def layer_norm(x, scale, bias):
    y = x.astype(F32)
    mean = jnp.mean(y, -1, keepdims=True)
    return ((y - mean) * lax.rsqrt(jnp.mean((y - mean) ** 2, -1, keepdims=True) + 1e-5) * scale + bias).astype(x.dtype)


def rotate(a):
    half = a.shape[-1] // 2
    angle = jnp.arange(a.shape[1])[:, None] * 5e5 ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angle)[None, :, None].astype(a.dtype), jnp.sin(angle)[None, :, None].astype(a.dtype)
    return jnp.concatenate([a[..., :half] * cos - a[..., half:] * sin, a[..., half:] * cos + a[..., :half] * sin], -1)


def saved(body, remat):
    policies = {"full": None, "dots": jax.checkpoint_policies.dots_with_no_batch_dims_saveable}
    return body if remat == "none" else jax.checkpoint(body, policy=policies[remat])


def entropy(logits, targets):
    logits = logits.astype(F32)
    return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, targets[..., None], -1)[..., 0])


def llama(layers, width, heads, kv, wide, classes, batch, length, remat, experts=0):
    """Decoder with RMSNorm, rotary positions, SwiGLU, untied head; with `experts`, two of them for each token, by grouped products."""
    head = 128
    shapes = {"q": (width, heads * head), "k": (width, kv * head), "v": (width, kv * head), "o": (heads * head, width), "n1": (width,), "n2": (width,)}
    if experts:
        shapes |= {"router": (width, experts), "gate": (experts, width, wide), "up": (experts, width, wide), "down": (experts, wide, width)}
    else:
        shapes |= {"gate": (width, wide), "up": (width, wide), "down": (wide, width)}
    parameters = {"embedding": (classes, width), "head": (width, classes), "norm": (width,), "layers": {n: (layers, *s) for n, s in shapes.items()}}

    def block(x, w):
        n1, n2 = w["n1"], w["n2"]
        w = cast(w)
        y = rms_norm(x, n1)
        split = lambda a, n: a.reshape(batch, length, n, head)
        q, k, v = rotate(split(y @ w["q"], heads)), rotate(split(y @ w["k"], kv)), split(y @ w["v"], kv)
        x = x + attend(q, k, v, True).reshape(batch, length, heads * head) @ w["o"]
        y = rms_norm(x, n2)
        if not experts:
            return x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]
        y = y.reshape(-1, width)
        score, chosen = lax.top_k(jax.nn.softmax((y @ w["router"]).astype(F32)), 2)
        order = jnp.argsort(chosen.reshape(-1))
        rows, sizes = y[order // 2], jnp.bincount(chosen.reshape(-1), length=experts).astype(jnp.int32)
        z = jax.nn.silu(lax.ragged_dot(rows, w["gate"], sizes)) * lax.ragged_dot(rows, w["up"], sizes)
        z = lax.ragged_dot(z, w["down"], sizes) * score.reshape(-1)[order][:, None].astype(BF16)
        return x + jnp.zeros_like(y).at[order // 2].add(z).reshape(x.shape)

    def loss(p, tokens):
        x = p["embedding"].astype(BF16)[tokens[:, :-1]]
        x = lax.scan(lambda x, w: (saved(block, remat)(x, w), None), x, p["layers"])[0]
        return entropy(rms_norm(x, p["norm"]) @ p["head"].astype(BF16), tokens[:, 1:])
    return parameters, loss, lambda: jax.random.randint(jax.random.key(9), (batch, length + 1), 0, classes)


def gpt(layers, width, heads, classes, batch, length, remat):
    """Decoder with LayerNorm, biases, learned positions, GELU, tied head."""
    shapes = {"qkv": (width, 3 * width), "bqkv": (3 * width,), "o": (width, width), "bo": (width,), "w1": (width, 4 * width), "b1": (4 * width,), "w2": (4 * width, width),
              "b2": (width,), "s1": (width,), "t1": (width,), "s2": (width,), "t2": (width,)}
    parameters = {"embedding": (classes, width), "positions": (length, width), "s": (width,), "t": (width,), "layers": {n: (layers, *s) for n, s in shapes.items()}}

    def block(x, f):
        w = cast(f)
        q, k, v = jnp.split((layer_norm(x, f["s1"], f["t1"]) @ w["qkv"] + w["bqkv"]).reshape(batch, length, 3 * heads, -1), 3, 2)
        x = x + attend(q, k, v, True).reshape(x.shape) @ w["o"] + w["bo"]
        return x + jax.nn.gelu(layer_norm(x, f["s2"], f["t2"]) @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"]

    def loss(p, tokens):
        table = p["embedding"].astype(BF16)
        x = table[tokens[:, :-1]] + p["positions"].astype(BF16)
        x = lax.scan(lambda x, w: (saved(block, remat)(x, w), None), x, p["layers"])[0]
        return entropy(layer_norm(x, p["s"], p["t"]) @ table.T, tokens[:, 1:])
    return parameters, loss, lambda: jax.random.randint(jax.random.key(9), (batch, length + 1), 0, classes)


def vit(layers, width, heads, patch, side, batch, remat):
    shapes = {"qkv": (width, 3 * width), "o": (width, width), "w1": (width, 4 * width), "b1": (4 * width,), "w2": (4 * width, width), "b2": (width,), "s1": (width,), "t1": (width,),
              "s2": (width,), "t2": (width,)}
    count = (side // patch) ** 2
    parameters = {"patch": (patch, patch, 3, width), "positions": (count, width), "head": (width, 1000), "layers": {n: (layers, *s) for n, s in shapes.items()}}

    def block(x, f):
        w = cast(f)
        q, k, v = jnp.split((layer_norm(x, f["s1"], f["t1"]) @ w["qkv"]).reshape(batch, count, 3 * heads, -1), 3, 2)
        x = x + attend(q, k, v, False).reshape(x.shape) @ w["o"]
        return x + jax.nn.gelu(layer_norm(x, f["s2"], f["t2"]) @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"]

    def loss(p, data):
        images, labels = data
        x = lax.conv_general_dilated(images, p["patch"].astype(BF16), (patch, patch), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")).reshape(batch, count, width)
        x = lax.scan(lambda x, w: (saved(block, remat)(x, w), None), x + p["positions"].astype(BF16), p["layers"])[0]
        return entropy(jnp.mean(x, 1) @ p["head"].astype(BF16), labels)
    return parameters, loss, lambda: (random((batch, side, side, 3)), jax.random.randint(jax.random.key(9), (batch,), 0, 1000))


def resnet(batch, side, stages=((3, 64), (4, 128), (6, 256), (3, 512))):
    """ResNet-50, normalised over the batch."""
    parameters = {"stem": (7, 7, 3, 64), "head": (2048, 1000)}
    plan, inputs = [], 64
    for s, (count, width) in enumerate(stages):
        for b in range(count):
            name, stride = f"{s}.{b}", 2 if s > 0 and b == 0 else 1
            parameters |= {f"{name}.a": (1, 1, inputs, width), f"{name}.b": (3, 3, width, width), f"{name}.c": (1, 1, width, 4 * width)}
            if inputs != 4 * width:
                parameters[f"{name}.d"] = (1, 1, inputs, 4 * width)
            plan.append((name, stride))
            inputs = 4 * width
    parameters["head"] = (inputs, 1000)

    def conv(x, w, stride=1):
        x = lax.conv_general_dilated(x, w.astype(BF16), (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        y = x.astype(F32)
        mean, square = jnp.mean(y, (0, 1, 2)), jnp.mean(y * y, (0, 1, 2))
        return ((y - mean) * lax.rsqrt(square - mean * mean + 1e-5)).astype(BF16)

    def loss(p, data):
        images, labels = data
        x = jax.nn.relu(conv(images, p["stem"], 2))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME").astype(BF16)
        for name, stride in plan:
            y = jax.nn.relu(conv(jax.nn.relu(conv(x, p[f"{name}.a"])), p[f"{name}.b"], stride))
            y = conv(y, p[f"{name}.c"])
            x = jax.nn.relu(y + (conv(x, p[f"{name}.d"], stride) if f"{name}.d" in p else x))
        return entropy(jnp.mean(x, (1, 2)) @ p["head"].astype(BF16), labels)
    return parameters, loss, lambda: (random((batch, side, side, 3)), jax.random.randint(jax.random.key(9), (batch,), 0, 1000))


def steps():
    t = options.tiny
    llama8b = lambda batch, length, remat, layers=4: functools.partial(llama, layers, *((256, 2, 1, 512, 512) if t else (4096, 32, 8, 14336, 128256)), batch, 128 if t else length, remat)
    plans = [("llama8b_L4_b2_full", llama8b(2, 4096, "full"), True), ("llama8b_L4_b2_none", llama8b(2, 4096, "none"), True),
             ("gpt1b_L12_b8_none", functools.partial(gpt, *((2, 128, 2, 512, 2, 64) if t else (12, 2048, 16, 50304, 8, 1024)), "none"), True),
             ("mixtral_L2_b2_none", functools.partial(llama, 2, *((256, 2, 1, 512, 512) if t else (4096, 32, 8, 7168, 32000)), 2, 128 if t else 4096, "none", experts=8), True),
             ("resnet50_b128", functools.partial(resnet, *((2, 32) if t else (128, 224))), True),
             ("vit_l16_b64_none", functools.partial(vit, *((2, 128, 2, 16, 32, 2) if t else (24, 1024, 16, 16, 224, 64)), "none"), False),
             ("llama1b_L12_b4_full", functools.partial(llama, 12, *((256, 2, 2, 512, 512) if t else (2048, 16, 16, 8192, 32000)), 4, 128 if t else 2048, "full"), False),
             ("llama8b_L4_b2_dots", llama8b(2, 4096, "dots"), False), ("llama8b_L2_b1_16k_full", llama8b(1, 16384, "full", 2), False),
             ("llama1b_L12_b4_none", functools.partial(llama, 12, *((256, 2, 2, 512, 512) if t else (2048, 16, 16, 8192, 32000)), 4, 128 if t else 2048, "none"), False),
             ("llama70b_L1_b1_full", functools.partial(llama, 1, *((256, 2, 1, 512, 512) if t else (8192, 64, 8, 28672, 32000)), 1, 128 if t else 4096, "full"), False)]
    for name, make, profiled in plans:
        if (name,) in STEPS_BEFORE:
            continue
        if left() < 30:
            say("left out:", name)
            continue
        try:
            measure_step(name, make, profiled)
        except Exception as error:
            say("refused:", name, repr(error)[:500])
            traceback.print_exc()


def measure_step(name, make, profiled):
    shapes, loss, data = make()
    is_shape = lambda s: isinstance(s, tuple)

    def step(state, batch):
        value, gradient = jax.value_and_grad(loss)(state["p"], batch)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], gradient)
        s = jax.tree.map(lambda s, g: 0.95 * s + 0.05 * g * g, state["s"], gradient)
        count = state["count"] + 1
        update = lambda p, m, s: p - 1e-4 * (m / (1 - 0.9 ** count) / (jnp.sqrt(s / (1 - 0.95 ** count)) + 1e-8) + 0.1 * p)
        return {"p": jax.tree.map(update, state["p"], m, s), "m": m, "s": s, "count": count}, value

    @jax.jit
    def initial():
        make_one = lambda s: jax.random.normal(jax.random.key(len(s) + s[-1]), s, F32) * 0.02 if len(s) > 1 else jnp.ones(s, F32)
        p = jax.tree.map(make_one, shapes, is_leaf=is_shape)
        zero = jax.tree.map(jnp.zeros_like, p)
        return {"p": p, "m": zero, "s": jax.tree.map(jnp.zeros_like, p), "count": jnp.zeros((), F32)}
    state, batch = initial(), data()
    began = time.monotonic()
    step.__name__ = f"step_{name}"
    compiled = jax.jit(step, donate_argnums=0).lower(state, batch).compile()
    took = time.monotonic() - began
    with gzip.open(f"{options.out}/modules/{name}.hlo.gz", "wt") as file:
        file.write(compiled.as_text())
    memory = compiled.memory_analysis()
    cost = compiled.cost_analysis() or {}
    cost = cost[0] if isinstance(cost, list) else cost
    times = []
    for i in range(11):
        t = time.perf_counter()
        state, value = compiled(state, batch)
        jax.block_until_ready((state, value))
        times.append(time.perf_counter() - t)
    times = sorted(times[3:])
    peak = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)
    STEPS.add(name=name, parameters=sum(int(numpy.prod(s)) for s in jax.tree.leaves(shapes, is_leaf=is_shape)), seconds_min=f"{times[0]:.6f}", seconds_median=f"{times[4]:.6f}",
              steps=len(times), compile_s=f"{took:.1f}", peak_allocator=peak, argument=memory.argument_size_in_bytes, output=memory.output_size_in_bytes,
              temp=memory.temp_size_in_bytes, alias=memory.alias_size_in_bytes, flops_xla=cost.get("flops", 0), loss=float(value))
    say(name, f"{times[0] * 1e3:.2f} ms, compiled in {took:.1f} s, loss {float(value):.3f}")
    if profiled:
        folder = tempfile.mkdtemp()
        jax.profiler.start_trace(folder)
        for _ in range(3):
            state, value = compiled(state, batch)
            jax.block_until_ready((state, value))
        jax.profiler.stop_trace()
        for path in glob.glob(f"{folder}/**/*", recursive=True):
            if path.endswith(".trace.json.gz"):
                shutil.copy(path, f"{options.out}/profiles/{name}.trace.json.gz")
            elif path.endswith(".xplane.pb"):
                with open(path, "rb") as source, gzip.open(f"{options.out}/profiles/{name}.xplane.pb.gz", "wb") as target:
                    shutil.copyfileobj(source, target)
        shutil.rmtree(folder)


def main():
    say(jax.__version__, jax.devices(), sys.version.split()[0], os.environ.get("XLA_FLAGS", ""))
    wanted = options.sections.split(",")
    share = {"products": 0.35, "attention": 0.25, "operations": 0.4}
    for section in wanted:
        try:
            if section == "steps":
                steps()
            elif section == "host":
                host()
            else:
                later = sum(share.get(s, 0) for s in wanted[wanted.index(section):])
                {"products": products, "attention": attention, "operations": operations}[section]().run(left() * share[section] / later)
        except Exception:
            traceback.print_exc()
    say("done")


if __name__ == "__main__":
    main()
