"""Pallas kernels of TPUs among XLA's own operations: a product of our own, with and without its cost, and JAX's flash attention."""
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

from arrays import argument


def kernel_product(a, b, block, cost):
    (m, k), n = a.shape, b.shape[1]
    def body(a_ref, b_ref, c_ref, sum_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            sum_ref[...] = jnp.zeros_like(sum_ref)
        sum_ref[...] += jnp.dot(a_ref[...], b_ref[...], preferred_element_type=jnp.float32)
        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            c_ref[...] = sum_ref[...].astype(c_ref.dtype)
    estimate = pl.CostEstimate(flops=2 * m * k * n, transcendentals=0, bytes_accessed=2 * (m * k + k * n + m * n)) if cost else None
    return pl.pallas_call(body, grid=(m // block, n // block, k // block), out_shape=jax.ShapeDtypeStruct((m, n), a.dtype),
                          in_specs=[pl.BlockSpec((block, block), lambda i, j, l: (i, l)), pl.BlockSpec((block, block), lambda i, j, l: (l, j))],
                          out_specs=pl.BlockSpec((block, block), lambda i, j, l: (i, j)), scratch_shapes=[pltpu.VMEM((block, block), jnp.float32)],
                          cost_estimate=estimate, name="product")(a, b)


def product(mesh, shape=(8192, 8192, 8192), block=512, cost=True):
    """Both operands are gathered, the kernel multiplies."""
    m, k, n = shape
    def body(a, b):
        return kernel_product(lax.all_gather(a, "y", axis=1, tiled=True), lax.all_gather(b, "x", axis=0, tiled=True), block, cost)
    spec = P("x", "y")
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=(spec, spec), out_specs=spec, check_vma=False)), (
        argument(mesh, (m, k), "x", "y"), argument(mesh, (k, n), "x", "y"))


def flash(mesh, batch=4, heads=8, length=4096, head=128, backward=True):
    """JAX's own flash attention, heads sharded; heads: of a device."""
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention
    def body(q, k, v):
        return flash_attention(q, k, v, causal=True, sm_scale=head ** -0.5)
    spec = P(None, "x")
    mapped = jax.shard_map(body, mesh=mesh, in_specs=(spec,) * 3, out_specs=spec, check_vma=False)
    arguments = [argument(mesh, (batch, heads * mesh.size, length, head), None, "x") for _ in range(3)]
    if not backward:
        return jax.jit(mapped), arguments
    return jax.jit(jax.grad(lambda *qkv: jnp.sum(mapped(*qkv).astype(jnp.float32)), (0, 1, 2))), arguments
