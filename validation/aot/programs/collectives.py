"""Bare collectives: each kind over one axis and over both, and permutes along the axes of the mesh."""
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from arrays import argument


def every_kind(mesh, elements=4194304):
    """all-reduce over both axes and over each, maximum, all-gather, reduce-scatter, all-to-all; the last axis may be the only one."""
    axes = tuple(mesh.axis_names)
    last = axes[-1]
    def body(v):
        size = lax.axis_size(last)
        square = v.reshape(size, -1)
        return (lax.psum(v, axes), lax.psum(v * 2, last), lax.pmax(v * 3, axes[0]), lax.psum_scatter(square * 4, last, tiled=True),
                lax.all_gather(v[: v.shape[0] // size] * 5, last, tiled=True), lax.all_to_all(square * 6, last, 0, 0))
    spec = P(axes)
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=(spec,) * 6, check_vma=False)), (
        argument(mesh, (elements * mesh.size,), axes, dtype=jnp.float32),)


def permutes(mesh, elements=16777216):
    """A shift by one along every axis, there and back, and a reversal of the first axis."""
    axes = tuple(mesh.axis_names)
    def body(v):
        out = []
        for axis in axes:
            size = lax.axis_size(axis)
            out += [lax.ppermute(v * len(out), axis, [(i, (i + by) % size) for i in range(size)]) for by in (1, -1)]
        size = lax.axis_size(axes[0])
        return *out, lax.ppermute(v + 1, axes[0], [(i, size - 1 - i) for i in range(size)])
    spec = P(axes)
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=(spec,) * (2 * len(axes) + 1), check_vma=False)), (
        argument(mesh, (elements * mesh.size,), axes),)


def converted_maximum(mesh, rows=4096, columns=32768):
    """The maximum of sharded rows in another type: the compiler converts within the all-reduce."""
    def body(a, b):
        logits = a @ b
        top = lax.pmax(jnp.max(logits, 1, keepdims=True), "x").astype(jnp.float32)
        return jnp.exp(logits.astype(jnp.float32) - top).astype(jnp.bfloat16)
    mapped = jax.shard_map(body, mesh=mesh, in_specs=(P(None, None), P(None, "x")), out_specs=P(None, "x"), check_vma=False)
    return jax.jit(mapped), (argument(mesh, (rows, 2048), None, None), argument(mesh, (2048, columns), None, "x"))
