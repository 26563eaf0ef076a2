"""A decoder that makes a token at a time: keys and values of all tokens before are kept."""
import jax
import jax.numpy as jnp

from arrays import argument


def cached(mesh, batch=64, length=2048, heads=32, head=128, layers=4, wide=14336, features=4096):
    """A token of each sequence: caches updated in place, layers by scan, weights by tp."""
    def one(x, w):
        q, k, v, o, up, down, ck, cv, at = w
        y = x
        knew, vnew = jnp.einsum("bd,dhe->bhe", y, k), jnp.einsum("bd,dhe->bhe", y, v)
        ck = jax.lax.dynamic_update_slice(ck, knew[:, None], (0, at, 0, 0))
        cv = jax.lax.dynamic_update_slice(cv, vnew[:, None], (0, at, 0, 0))
        s = jnp.einsum("bhe,bmhe->bhm", jnp.einsum("bd,dhe->bhe", y, q), ck).astype(jnp.float32)
        s = jax.nn.softmax(jnp.where(jnp.arange(length) <= at, s, -1e30))
        x = x + jnp.einsum("bhe,hed->bd", jnp.einsum("bhm,bmhe->bhe", s.astype(x.dtype), cv), o)
        return x + jax.nn.silu(x @ up) @ down, (ck, cv)
    def step(x, ws, caches, at):
        n = jnp.broadcast_to(at, (layers,))
        return jax.lax.scan(one, x, (*ws, *caches, n))
    a = lambda shape, *spec: argument(mesh, (layers, *shape), None, *spec)
    p = (features, heads, head)
    ws = (a(p, None, "tp"), a(p, None, "tp"), a(p, None, "tp"), a((heads, head, features), "tp"), a((features, wide), None, "tp"), a((wide, features), "tp"))
    caches = tuple(a((batch, length, heads, head), None, None, "tp") for _ in range(2))
    return jax.jit(step, donate_argnums=(2,)), (argument(mesh, (batch, features)), ws, caches, argument(mesh, (), dtype=jnp.int32))
