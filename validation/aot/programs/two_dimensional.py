"""Published algorithms of a product on a two-dimensional mesh (x, y), written out with shard_map: what each device sends is in the program."""
import jax
import jax.numpy as jnp
from functools import partial
from jax import lax
from jax.sharding import PartitionSpec as P

from arrays import argument


def kernel(mesh, body, shape, specs=(P("x", "y"), P("x", "y"))):
    m, k, n = shape
    mapped = jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("x", "y"), check_vma=False)
    return jax.jit(mapped), (argument(mesh, (m, k), *specs[0]), argument(mesh, (k, n), *specs[1]))


def ring(axis, by):
    size = lax.axis_size(axis)
    return [(i, (i + by) % size) for i in range(size)]


def cannon(mesh, shape=(16384, 16384, 16384)):
    """Cannon (1969): the blocks are skewed by permutes over both axes, then go round, one step a product."""
    def body(a, b):
        size = lax.axis_size("x")
        skew_a = [(i * size + j, i * size + (j - i) % size) for i in range(size) for j in range(size)]
        skew_b = [(i * size + j, (i - j) % size * size + j) for i in range(size) for j in range(size)]
        a, b = lax.ppermute(a, ("x", "y"), skew_a), lax.ppermute(b, ("x", "y"), skew_b)
        def step(_, state):
            a, b, c = state
            return lax.ppermute(a, "y", ring("y", -1)), lax.ppermute(b, "x", ring("x", -1)), c + jnp.dot(a, b, preferred_element_type=jnp.float32)
        return lax.fori_loop(0, size, step, (a, b, jnp.zeros((a.shape[0], b.shape[1]), jnp.float32)))[2].astype(a.dtype)
    return kernel(mesh, body, shape)


def summa(mesh, shape=(16384, 16384, 16384), panels=None):
    """SUMMA (van de Geijn, Watts 1997): a panel of A and one of B are broadcast in each step, here as a masked sum."""
    def body(a, b):
        steps = panels or lax.axis_size("x")
        def step(i, c):
            mine = lambda axis, value: jnp.where(lax.axis_index(axis) == i * lax.axis_size(axis) // steps, value, jnp.zeros_like(value))
            left, right = lax.psum(mine("y", a), "y"), lax.psum(mine("x", b), "x")
            return c + jnp.dot(left, right, preferred_element_type=jnp.float32)
        return lax.fori_loop(0, steps, step, jnp.zeros((a.shape[0], b.shape[1]), jnp.float32)).astype(a.dtype)
    return kernel(mesh, body, shape)


def wang(mesh, shape=(16384, 16384, 16384)):
    """Wang et al. (ASPLOS 2023): A is gathered once; B's blocks go round x both ways, each product beside the next shift."""
    def body(a, b):
        size, at, rows = lax.axis_size("x"), lax.axis_index("x"), b.shape[0]
        a = lax.all_gather(a, "y", axis=1, tiled=True)
        part = lambda owner: lax.dynamic_slice_in_dim(a, owner % size * rows, rows, 1)
        c, up, down = jnp.dot(part(at), b), b, b
        for step in range(1, size // 2 + 1):
            up = lax.ppermute(up, "x", ring("x", 1))
            c += jnp.dot(part(at - step), up)
            if 2 * step < size:
                down = lax.ppermute(down, "x", ring("x", -1))
                c += jnp.dot(part(at + step), down)
        return c
    return kernel(mesh, body, shape)


def meshslice(mesh, shape=(16384, 16384, 16384), slices=4, dataflow="output", unrolled=False):
    """MeshSlice (ISCA 2025): gathers and scatters in S slices, so that a slice's product hides the next one's collective.

    dataflow names the operand that stays: "output" gathers slices of A and B, "left" gathers B and scatters C."""
    def output(a, b):
        wide, high = a.shape[1] // slices, b.shape[0] // slices
        def step(i, c):
            left = lax.all_gather(lax.dynamic_slice_in_dim(a, i * wide, wide, 1), "y", axis=1, tiled=True)
            right = lax.all_gather(lax.dynamic_slice_in_dim(b, i * high, high, 0), "x", axis=0, tiled=True)
            return c + jnp.dot(left, right, preferred_element_type=jnp.float32)
        return lax.fori_loop(0, slices, step, jnp.zeros((a.shape[0], b.shape[1]), jnp.float32), unroll=unrolled).astype(a.dtype)
    def left(a, b):  # b: the columns of C over x, the contraction over y
        wide = b.shape[0] // slices
        def step(i, c):
            right = lax.all_gather(lax.dynamic_slice_in_dim(b, i * wide, wide, 0), "x", axis=0, tiled=True)
            part = lax.psum_scatter(jnp.dot(a, right.T), "y", scatter_dimension=1, tiled=True)
            return lax.dynamic_update_slice_in_dim(c, part, i * part.shape[1], 1)
        columns = b.shape[0] * lax.axis_size("x") // lax.axis_size("y")
        return lax.fori_loop(0, slices, step, jnp.zeros((a.shape[0], columns), a.dtype), unroll=unrolled)
    m, k, n = shape
    if dataflow == "output":
        return kernel(mesh, output, shape)
    return kernel(mesh, left, (m, k, n) if k == n else shape)
