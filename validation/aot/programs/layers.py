"""Layers of a transformer, forward or with gradients: an MLP and attention, by every mesh kind."""
import jax
import jax.numpy as jnp
from jax import lax

from arrays import argument, placed

# Where the arrays of a layer are, by kind of mesh: activations [tokens, features], first weights [features, wide], second [wide, features].
PLACES = {
    "data": (("data", None), (None, None), (None, None)),
    "fsdp": (("fsdp", None), ("fsdp", None), (None, "fsdp")),
    "tp": ((None, None), (None, "tp"), ("tp", None)),
    "sequence": (("tp", None), (None, "tp"), ("tp", None)),
    "fsdp_tp": (("fsdp", None), ("fsdp", "tp"), ("tp", "fsdp")),
}


def mlp(mesh, kind="fsdp", tokens=8192, features=4096, wide=16384, layers=1, backward=True):
    """x + W2 gelu(W1 x), `layers` of it one after the other; with backward: the gradients of the weights, placed as the weights."""
    x, first, second = PLACES[kind]
    def forward(weights, v):
        for w1, w2 in weights:
            inner = lax.with_sharding_constraint(v @ w1, placed(mesh, x[0] if kind != "sequence" else None, "tp" if "tp" in mesh.axis_names else None))
            v = lax.with_sharding_constraint(v + jax.nn.gelu(inner) @ w2, placed(mesh, *x))
        return v
    weights = [(argument(mesh, (features, wide), *first), argument(mesh, (wide, features), *second)) for _ in range(layers)]
    places = [(placed(mesh, *first), placed(mesh, *second)) for _ in range(layers)]
    v = argument(mesh, (tokens, features), *x)
    if not backward:
        return jax.jit(forward, out_shardings=placed(mesh, *x)), (weights, v)
    loss = lambda weights, v: jnp.mean(jnp.square(forward(weights, v).astype(jnp.float32)))
    return jax.jit(jax.grad(loss), out_shardings=places), (weights, v)


def attention(mesh, batch=16, length=2048, heads=16, head=128, backward=True):
    """Causal attention with its four projections: batches over "data", heads over "tp"."""
    features = heads * head
    data, tp = ("data" if "data" in mesh.axis_names else None), ("tp" if "tp" in mesh.axis_names else None)
    def forward(weights, v):
        q, k, u = (jnp.einsum("bld,dhe->blhe", v, w) for w in weights[:3])
        scores = jnp.einsum("blhe,bmhe->bhlm", q, k).astype(jnp.float32) * head ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e30)
        mixed = jnp.einsum("bhlm,bmhe->blhe", jax.nn.softmax(scores).astype(v.dtype), u)
        return lax.with_sharding_constraint(jnp.einsum("blhe,hed->bld", mixed, weights[3]), placed(mesh, data, None, None))
    specs = [(data, tp, None)] * 3 + [(tp, None, data)]
    shapes = [(features, heads, head)] * 3 + [(heads, head, features)]
    weights = [argument(mesh, shape, *spec) for shape, spec in zip(shapes, specs)]
    v = argument(mesh, (batch, length, features), data, None, None)
    if not backward:
        return jax.jit(forward), (weights, v)
    loss = lambda weights, v: jnp.mean(jnp.square(forward(weights, v).astype(jnp.float32)))
    return jax.jit(jax.grad(loss), out_shardings=[placed(mesh, *spec) for spec in specs]), (weights, v)
