"""Writes the modules of this folder: python make.py (JAX 0.10.2, on any computer)."""
import os
import pathlib

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

MESH = Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "model"))


def array(shape, dtype, *spec):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, P(*spec)))


def mlp(x, w1, w2):
    return jnp.sum(jax.nn.relu(x @ w1) @ w2)


def loop(x, w):
    return jax.lax.scan(lambda carry, layer: (jnp.tanh(carry @ layer), None), x, w)[0]


@functools.partial(jax.shard_map, mesh=MESH, in_specs=P("data", "model"), out_specs=P("data", "model"))
def ring(x):
    y = jax.lax.ppermute(x, "model", [(i, (i + 1) % 4) for i in range(4)])
    z = jax.lax.all_to_all(x, "model", 0, 1, tiled=True)
    return y + z.reshape(y.shape) + jax.lax.all_gather(y, "data")[0]


def mixed(x, i, k):
    """One of every kind of operation whose attributes the two forms spell differently."""
    top, order = jax.lax.top_k(x, 3)
    square = x[:4, :4] @ x[:4, :4].T + jnp.eye(4)
    return (jnp.sort(x, axis=1), top, order, x[i], x.at[i].add(1.0), jnp.abs(jnp.fft.fft(x[:, :16])),
            jax.lax.conv_general_dilated(k, jnp.ones((3, 3, 2, 4), jnp.float32), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
            jnp.pad(x, ((1, 2), (0, 3))), jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 4), (1, 4), "VALID"),
            jax.lax.cond(x[0, 0] > 0, lambda v: v * 2, lambda v: v - 1, x), x.astype(jnp.float16).sum(), (x > 0).astype(jnp.int8).sum(dtype=jnp.int32),
            jnp.linalg.cholesky(square), jax.random.normal(jax.random.PRNGKey(3), (4,)), jnp.array([1.5, -2.25, jnp.inf, jnp.nan]), jnp.array([3, 1, 2]),
            x[::-1, 1:9:2])


def update(params, gradients):
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


STATE = {"a": array((8, 8), jnp.float32, "data"), "b": array((8,), jnp.float32)}
PROGRAMS = {
    "mlp": (jax.grad(mlp, argnums=(1, 2)), [array((16, 32), jnp.float32, "data", None), array((32, 64), jnp.float32, None, "model"), array((64, 32), jnp.float32, "model", None)], {}),
    "loop": (loop, [array((16, 32), jnp.bfloat16, "data", None), array((5, 32, 32), jnp.bfloat16, None, "model", None)], {}),
    "ring": (ring, [array((16, 32), jnp.float32, "data", "model")], {}),
    "mixed": (mixed, [jax.ShapeDtypeStruct((8, 32), jnp.float32), jax.ShapeDtypeStruct((5,), jnp.int32), jax.ShapeDtypeStruct((1, 8, 8, 2), jnp.float32)], {}),
    "donated": (update, [STATE, STATE], {"donate_argnums": 0}),
}

folder = pathlib.Path(__file__).parent
for name, (function, arguments, options) in PROGRAMS.items():
    compiled = jax.jit(function, **options).lower(*arguments).compile()
    (folder / f"{name}.hlo").write_text(compiled.as_text())
    (folder / f"{name}.hlo.pb").write_bytes(compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto())
