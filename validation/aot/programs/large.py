"""A training step of a decoder of 70 billion parameters: groups of heads share keys and values, the tokens of the residual stream lie along "tp", weights and Adam's state along
both axes, so that every gather of weights goes through the whole slice."""
import jax
import jax.numpy as jnp
from jax import lax

from arrays import argument, placed


def rotated(x, base=10000.0):
    """Rotary embedding of [batch, length, heads, head]."""
    frequency = base ** (-jnp.arange(0, x.shape[-1], 2) / x.shape[-1])
    angle = jnp.arange(x.shape[1])[:, None] * frequency
    cosine, sine = jnp.cos(angle)[None, :, None], jnp.sin(angle)[None, :, None]
    first, second = jnp.split(x.astype(jnp.float32), 2, -1)
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1).astype(x.dtype)


def step(mesh, layers=80, batch=256, length=4096, features=8192, heads=64, groups=8, head=128, wide=28672, vocabulary=128256):
    shapes = {"q": (features, heads, head), "k": (features, groups, head), "v": (features, groups, head), "o": (heads, head, features),
              "gate": (features, wide), "up": (features, wide), "down": (wide, features), "norm1": (features,), "norm2": (features,)}
    places = {"q": ("fsdp", "tp", None), "k": ("fsdp", "tp", None), "v": ("fsdp", "tp", None), "o": ("tp", None, "fsdp"),
              "gate": ("fsdp", "tp"), "up": ("fsdp", "tp"), "down": ("tp", "fsdp"), "norm1": (None,), "norm2": (None,)}
    stream = lambda x: lax.with_sharding_constraint(x, placed(mesh, "fsdp", "tp", None))

    def norm(x, scale):
        y = x.astype(jnp.float32)
        return (y * lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-5) * scale).astype(x.dtype)

    def block(x, w):
        w = jax.tree.map(lambda a: a.astype(jnp.bfloat16), w)
        y = norm(x, w["norm1"])
        q, k, v = rotated(jnp.einsum("bld,dhe->blhe", y, w["q"])), rotated(jnp.einsum("bld,dhe->blhe", y, w["k"])), jnp.einsum("bld,dhe->blhe", y, w["v"])
        q = q.reshape(*q.shape[:2], groups, heads // groups, head)
        scores = jnp.einsum("blkge,bmke->bkglm", q, k).astype(jnp.float32) * head ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e30)
        mixed = jnp.einsum("bkglm,bmke->blkge", jax.nn.softmax(scores).astype(x.dtype), v).reshape(*x.shape[:2], heads, head)
        x = stream(x + jnp.einsum("blhe,hed->bld", mixed, w["o"]))
        y = norm(x, w["norm2"])
        return stream(x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]), None

    def loss(weights, tokens):
        x = stream(weights["embedding"].astype(jnp.bfloat16)[tokens[:, :-1]])
        x = lax.scan(jax.checkpoint(block), x, weights["layers"])[0]
        logits = (x @ weights["head"].astype(x.dtype)).astype(jnp.float32)
        return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, tokens[:, 1:, None], 2)[..., 0])

    def train(weights, mean, square, tokens):
        value, gradient = jax.value_and_grad(loss)(weights, tokens)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = jax.tree.map(lambda s, g: 0.95 * s + 0.05 * g * g, square, gradient)
        return jax.tree.map(lambda w, m, s: w - 1e-4 * m / (jnp.sqrt(s) + 1e-8), weights, mean, square), mean, square, value

    weights = {"embedding": argument(mesh, (vocabulary, features), "tp", "fsdp", dtype=jnp.float32), "head": argument(mesh, (features, vocabulary), "fsdp", "tp", dtype=jnp.float32),
               "layers": {name: argument(mesh, (layers, *shape), None, *places[name], dtype=jnp.float32) for name, shape in shapes.items()}}
    kept = jax.tree.map(lambda a: a.sharding, weights)
    return jax.jit(train, donate_argnums=(0, 1, 2), out_shardings=(kept, kept, kept, placed(mesh))), (
        weights, weights, weights, argument(mesh, (batch, length + 1), "fsdp", dtype=jnp.int32))
