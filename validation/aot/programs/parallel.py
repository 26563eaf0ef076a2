"""Parallelism that is written out with shard_map: experts, ring attention, a pipeline."""
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from arrays import argument


def around(axis, by=1):
    size = lax.axis_size(axis)
    return [(i, (i + by) % size) for i in range(size)]


def experts(mesh, tokens=2048, features=2048, wide=4096, capacity=256):
    """Experts over the axis "expert", a capacity for each: all-to-all there and back, with gradients. tokens: of a device."""
    count = mesh.size
    def body(x, router, w1, w2):
        chance = jax.nn.softmax((x @ router).astype(jnp.float32))
        chosen = jnp.argmax(chance, 1)
        onehot = jax.nn.one_hot(chosen, count, dtype=jnp.int32)
        place = jnp.sum(jnp.cumsum(onehot, 0) * onehot, 1) - 1
        mask = (jax.nn.one_hot(chosen, count, dtype=x.dtype)[:, :, None] * jax.nn.one_hot(place, capacity, dtype=x.dtype)[:, None, :])
        sent = jnp.einsum("tec,td->ecd", mask, x)
        here = lax.all_to_all(sent, "expert", 0, 1, tiled=True)
        worked = jax.nn.silu(here[0] @ w1[0]) @ w2[0]
        back = lax.all_to_all(worked[None], "expert", 1, 0, tiled=True)
        return x + jnp.einsum("tec,ecd->td", mask * jnp.max(chance, 1).astype(x.dtype)[:, None, None], back)
    mapped = jax.shard_map(body, mesh=mesh, in_specs=(P("expert"), P(), P("expert"), P("expert")), out_specs=P("expert"), check_vma=False)
    loss = lambda router, w1, w2, x: jnp.mean(jnp.square(mapped(x, router, w1, w2).astype(jnp.float32)))
    return jax.jit(jax.grad(loss, (0, 1, 2))), (argument(mesh, (features, count)), argument(mesh, (count, features, wide), "expert"),
                                                argument(mesh, (count, wide, features), "expert"), argument(mesh, (tokens * count, features), "expert"))


def ragged_experts(mesh, tokens=4096, features=2048, wide=4096, local=2):
    """No capacity: rows sorted by expert go by ragged_all_to_all, are multiplied by ragged_dot, and go back. tokens: of a device."""
    count = mesh.size
    def body(x, chosen, w1, w2):
        order = jnp.argsort(chosen)
        rows = x[order]
        sizes = jnp.bincount(chosen, length=count * local)
        send = jnp.sum(sizes.reshape(count, local), 1).astype(jnp.int32)
        table = lax.all_gather(send, "expert")
        me = lax.axis_index("expert")
        receive = table[:, me]
        start = (jnp.cumsum(send) - send).astype(jnp.int32)
        target = (jnp.cumsum(table, 0) - table)[me].astype(jnp.int32)
        here = lax.ragged_all_to_all(rows, jnp.zeros((2 * tokens, features), x.dtype), start, send, target, receive, axis_name="expert")
        groups = lax.psum_scatter(sizes.astype(jnp.int32), "expert", tiled=True)
        worked = lax.ragged_dot(jax.nn.silu(lax.ragged_dot(here, w1, groups)), w2, groups)
        began = (jnp.cumsum(receive) - receive).astype(jnp.int32)
        returned = (jnp.cumsum(table, 1) - table)[:, me].astype(jnp.int32)
        back = lax.ragged_all_to_all(worked, jnp.zeros_like(rows), began, receive, returned, send, axis_name="expert")
        return x + back[jnp.argsort(order)]
    mapped = jax.shard_map(body, mesh=mesh, in_specs=(P("expert"),) * 4, out_specs=P("expert"), check_vma=False)
    return jax.jit(mapped), (argument(mesh, (tokens * count, features), "expert"), argument(mesh, (tokens * count,), "expert", dtype=jnp.int32),
                             argument(mesh, (count * local, features, wide), "expert"), argument(mesh, (count * local, wide, features), "expert"))


def ragged_product(mesh, rows=4096, features=4096, wide=8192, groups=8):
    """Rows in groups, each by its own matrix; the groups' sizes are data. rows: of a device."""
    mapped = jax.shard_map(lax.ragged_dot, mesh=mesh, in_specs=(P("x"), P(), P()), out_specs=P("x"), check_vma=False)
    return jax.jit(mapped), (argument(mesh, (rows * mesh.size, features), "x"), argument(mesh, (groups, features, wide)), argument(mesh, (groups,), dtype=jnp.int32))


def ring_attention(mesh, batch=4, length=2048, heads=8, head=128, unrolled=False, backward=False):
    """Keys and values go round the axis "seq"; each device adds what it sees with running maxima and sums. length: of a device."""
    def body(q, k, v):
        top = jnp.full((batch, heads, length), -jnp.inf, jnp.float32)
        total, out = jnp.zeros_like(top), jnp.zeros((batch, heads, length, head), jnp.float32)
        def step(_, state):
            top, total, out, k, v = state
            after = lax.ppermute(k, "seq", around("seq")), lax.ppermute(v, "seq", around("seq"))
            scores = jnp.einsum("bqhe,bkhe->bhqk", q, k).astype(jnp.float32) * head ** -0.5
            now = jnp.maximum(top, scores.max(-1))
            weights, scale = jnp.exp(scores - now[..., None]), jnp.exp(top - now)
            mixed = jnp.einsum("bhqk,bkhe->bhqe", weights.astype(v.dtype), v).astype(jnp.float32)
            return now, total * scale + weights.sum(-1), out * scale[..., None] + mixed, *after
        top, total, out, _, _ = lax.fori_loop(0, lax.axis_size("seq"), step, (top, total, out, k, v), unroll=unrolled)
        return jnp.swapaxes(out / total[..., None], 1, 2).astype(q.dtype)
    spec = P(None, "seq")
    mapped = jax.shard_map(body, mesh=mesh, in_specs=(spec,) * 3, out_specs=spec, check_vma=False)
    arguments = [argument(mesh, (batch, length * mesh.size, heads, head), None, "seq") for _ in range(3)]
    if not backward:
        return jax.jit(mapped), arguments
    return jax.jit(jax.grad(lambda *qkv: jnp.sum(mapped(*qkv).astype(jnp.float32)), (0, 1, 2))), arguments


def pipeline(mesh, micro=8, tokens=1024, features=2048, wide=8192):
    """Stages over the axis "stage", batches over "data": microbatches shift by permutes in a scan; with gradients. tokens: of a microbatch."""
    stages = mesh.shape["stage"]
    def body(w1, w2, x):
        stage = lax.axis_index("stage")
        def step(carry, i):
            state, done = carry
            state = jnp.where(stage == 0, x[jnp.clip(i, 0, micro - 1)], state)
            out = state + jax.nn.gelu(state @ w1[0]) @ w2[0]
            done = lax.dynamic_update_index_in_dim(done, out, jnp.clip(i - stages + 1, 0, micro - 1), 0)
            return (lax.ppermute(out, "stage", around("stage")), done), None
        (_, done), _ = lax.scan(step, (jnp.zeros_like(x[0]), jnp.zeros_like(x)), jnp.arange(micro + stages - 1))
        return lax.psum(jnp.where(stage == stages - 1, jnp.sum(jnp.square(done.astype(jnp.float32))), 0.0), ("stage", "data"))
    mapped = jax.shard_map(body, mesh=mesh, in_specs=(P("stage"), P("stage"), P(None, "data")), out_specs=P(), check_vma=False)
    return jax.jit(jax.grad(mapped, (0, 1))), (argument(mesh, (stages, features, wide), "stage"), argument(mesh, (stages, wide, features), "stage"),
                                               argument(mesh, (micro, tokens * mesh.shape["data"], features), None, "data"))
