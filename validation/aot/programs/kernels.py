"""Pallas kernels among XLA's own operations: a product of our own, with and without its cost, and JAX's flash, splash, paged and ragged paged attention and grouped products on TPUs and its attention by Triton."""
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


def splash(mesh, sequences=2, heads=8, length=4096, head=128, window=None, backward=True):
    """JAX's splash attention, causal or with a window of keys; sequences: of a device."""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel, splash_attention_mask
    mask = splash_attention_mask.LocalMask((length, length), (window, 0), 0) if window else splash_attention_mask.CausalMask((length, length))
    kernel = splash_attention_kernel.make_splash_mha(splash_attention_mask.MultiHeadMask([mask] * heads), head_shards=1, q_seq_shards=1)
    mapped = jax.shard_map(lambda q, k, v: jax.vmap(kernel)(q, k, v), mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"), check_vma=False)
    arguments = [argument(mesh, (mesh.size * sequences, heads, length, head), "x") for _ in range(3)]
    if not backward:
        return jax.jit(mapped), arguments
    return jax.jit(jax.grad(lambda *qkv: jnp.sum(mapped(*qkv).astype(jnp.float32)), (0, 1, 2))), arguments


def paged(mesh, sequences=32, heads=16, groups=4, head=128, pages=1024, tokens=32, places=64):
    """A token of each sequence sees keys and values in pages; heads, groups: of a device."""
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
    def body(q, k, v, lengths, table):
        return paged_attention(q, k, v, lengths, table, pages_per_compute_block=8)
    mapped = jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P("x"), P("x"), P(), P()), out_specs=P(None, "x"), check_vma=False)
    held = argument(mesh, (groups * mesh.size, pages, tokens, head), "x")
    return jax.jit(mapped), (argument(mesh, (sequences, heads * mesh.size, head), None, "x"), held, held, argument(mesh, (sequences,), dtype=jnp.int32),
                             argument(mesh, (sequences, places), dtype=jnp.int32))


def ragged_paged(mesh, tokens=512, heads=8, head=128, groups=2, pages=512, page=32, sequences=16, places=64):
    """Prompts and single tokens of many sequences in one batch see keys and values in pages; heads, groups: of a device."""
    from jax.experimental.pallas.ops.tpu.ragged_paged_attention import ragged_paged_attention
    def body(q, kv, lens, table, starts, count):
        return ragged_paged_attention(q, kv, lens, table, starts, count, num_kv_pages_per_block=8, num_queries_per_block=32, vmem_limit_bytes=32 * 2 ** 20)
    mapped = jax.shard_map(body, mesh=mesh, in_specs=(P(None, "x"), P(None, None, "x"), P(), P(), P(), P()), out_specs=P(None, "x"), check_vma=False)
    whole = lambda *shape: argument(mesh, shape, dtype=jnp.int32)
    return jax.jit(mapped), (argument(mesh, (tokens, heads * mesh.size, head), None, "x"), argument(mesh, (pages, page, 2 * groups * mesh.size, head), None, None, "x"),
                             whole(sequences), whole(sequences, places), whole(sequences + 1), whole(1))


def megablox(mesh, rows=4096, features=2048, wide=4096, groups=8):
    """JAX's grouped products with gradients: rows in groups, each by its own matrix; rows: of a device."""
    from jax.experimental.pallas.ops.tpu.megablox import ops
    mapped = jax.shard_map(lambda x, w, sizes: ops.gmm(x, w, sizes, jnp.bfloat16, (512, 1024, 1024)), mesh=mesh, in_specs=(P("x"), P(), P()), out_specs=P("x"), check_vma=False)
    return jax.jit(jax.grad(lambda x, w, sizes: jnp.sum(mapped(x, w, sizes).astype(jnp.float32)), (0, 1))), (
        argument(mesh, (rows * mesh.size, features), "x"), argument(mesh, (groups, features, wide)), argument(mesh, (groups,), dtype=jnp.int32))


def triton(mesh, sequences=2, length=2048, heads=8, head=64):
    """JAX's attention on GPUs by Triton, forward and backward; sequences: of a device."""
    from jax.experimental.pallas.ops.gpu import attention
    blocks = attention.BlockSizes(block_q=64, block_k=64, block_q_dkv=32, block_kv_dkv=32, block_q_dq=32, block_kv_dq=32)
    mapped = jax.shard_map(lambda q, k, v: attention.mha(q, k, v, segment_ids=None, causal=True, block_sizes=blocks), mesh=mesh, in_specs=(P("x"),) * 3, out_specs=P("x"), check_vma=False)
    arguments = [argument(mesh, (sequences * mesh.size, length, heads, head), "x") for _ in range(3)]
    return jax.jit(jax.grad(lambda *qkv: jnp.sum(mapped(*qkv).astype(jnp.float32)), (0, 1, 2))), arguments
