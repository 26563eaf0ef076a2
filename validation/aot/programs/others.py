"""What else programs do: transforms, factorizations, tables, convolutions, control flow, updates in place and in host memory, several slices."""
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from arrays import argument, placed


def fourier(mesh, size=2048):
    """A two-dimensional FFT: along rows, an all-to-all, along columns."""
    def body(v):
        v = lax.all_to_all(jnp.fft.fft(v, axis=1), "x", 1, 0, tiled=True)
        return jnp.fft.fft(v, axis=0)
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P(None, "x"), check_vma=False)), (
        argument(mesh, (size, size), "x", dtype=jnp.complex64),)


def factorized(mesh, size=512):
    """A dense solve: LU with pivots, the right-hand sides sharded."""
    return jax.jit(jnp.linalg.solve, out_shardings=placed(mesh, None, "x")), (
        argument(mesh, (size, size), dtype=jnp.float32), argument(mesh, (size, 4096), None, "x", dtype=jnp.float32))


def cholesky(mesh, size=1024):
    """Cholesky and a triangular solve, the right-hand sides sharded."""
    def solve(a, b):
        return lax.linalg.triangular_solve(jnp.linalg.cholesky(a), b, left_side=True, lower=True)
    return jax.jit(solve), (argument(mesh, (size, size), dtype=jnp.float32), argument(mesh, (size, 4096), None, "x", dtype=jnp.float32))


def embedding(mesh, rows=32000, features=2048, tokens=16384):
    """The gradient of a table whose rows and columns are sharded: a gather, a scatter-add, reductions."""
    def loss(table, ids):
        return jnp.sum(jnp.square(table[ids].astype(jnp.float32)))
    return jax.jit(jax.grad(loss), out_shardings=placed(mesh, "tp", "fsdp")), (
        argument(mesh, (rows, features), "tp", "fsdp"), argument(mesh, (tokens,), "fsdp", dtype=jnp.int32))


def convolutions(mesh, batch=64, size=64, channels=128):
    """Two convolutions of images, gradients, batches over "data"."""
    def loss(weights, x):
        for w in weights:
            x = jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        return jnp.mean(jnp.square(x.astype(jnp.float32)))
    return jax.jit(jax.grad(loss)), ([argument(mesh, (3, 3, channels, channels)) for _ in range(2)], argument(mesh, (batch, size, size, channels), "data"))


def convolution(mesh, batch=128, size=224, channels=3, features=64, window=7, stride=2, groups=1, padding="SAME"):
    """One convolution of images with few features to contract over, batches over "data"."""
    def convolve(x, w):
        return lax.conv_general_dilated(x, w, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups)
    return jax.jit(convolve), (argument(mesh, (batch, size, size, channels), "data"), argument(mesh, (window, window, channels // groups, features)))


def branches(mesh, size=4096):
    """A conditional, and a loop that ends when the data say so."""
    def body(x, w, flag):
        x = lax.cond(flag[0] > 0, lambda v: v @ w, lambda v: v * 2, x)
        return lax.while_loop(lambda v: lax.psum(jnp.sum(jnp.abs(v.astype(jnp.float32))), "x") > 1e6, lambda v: v * 0.5, x)
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=(P("x"), P(), P()), out_specs=P("x"), check_vma=False)), (
        argument(mesh, (size * mesh.size, size), "x"), argument(mesh, (size, size)), argument(mesh, (1,), dtype=jnp.int32))


def singular_values(mesh, batch=8, size=256):
    """Singular values and vectors of a batch of matrices on one GPU."""
    return jax.jit(lambda x: jnp.linalg.svd(x, full_matrices=False)), (argument(mesh, (batch, size, size), dtype=jnp.float32),)


def sorted_rows(mesh, rows=1024, columns=16384):
    """Sorting, top_k and random numbers along whole rows."""
    def work(x, key):
        noise = jax.random.normal(jax.random.wrap_key_data(key), x.shape, x.dtype)
        return lax.sort(x + noise, dimension=1), lax.top_k(x, 64)
    return jax.jit(work), (argument(mesh, (rows * mesh.size, columns), "x", dtype=jnp.float32), argument(mesh, (2,), dtype=jnp.uint32))


def updated(mesh, size=16384, memory=None):
    """An update of donated arrays; memory="pinned_host": the second of them lives in the host's memory and comes and goes."""
    def update(p, m, g):
        m = jax.device_put(m, placed(mesh, "x", None, memory="device")) if memory else m
        m = 0.9 * m + g
        return p - 0.01 * m, m
    places = placed(mesh, "x", None), placed(mesh, "x", None, memory=memory)
    arguments = [argument(mesh, (size, size), "x", None, dtype=jnp.float32, memory=kind) for kind in (None, memory, None)]
    return jax.jit(update, donate_argnums=(0, 1), out_shardings=places), arguments


def between_slices(mesh, features=4096, wide=16384, tokens=16384):
    """Gradients of an MLP: batches over "pod" and "x", weights over "x" and "y"; gradients are summed between slices."""
    def loss(w1, w2, v):
        return jnp.mean(jnp.square((jax.nn.gelu(v @ w1) @ w2).astype(jnp.float32)))
    first, second = ("x", "y"), ("y", "x")
    return jax.jit(jax.grad(loss, (0, 1)), out_shardings=(placed(mesh, *first), placed(mesh, *second))), (
        argument(mesh, (features, wide), *first), argument(mesh, (wide, features), *second), argument(mesh, (tokens, features), ("pod", "x"), None))
