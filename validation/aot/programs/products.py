"""One matrix product, sharded in every way: the operands' and the result's places decide the collectives, the types the rate."""
import jax
import jax.numpy as jnp
from jax import lax

from arrays import argument, placed


def product(mesh, left, right, out, shape=(8192, 8192, 8192), dtype="bfloat16", result=None, precision=None):
    """C[m, n] = A[m, k] B[k, n]; left, right and out are the places of A, B and C, shape is (m, k, n)."""
    m, k, n = shape
    def multiply(a, b):
        return lax.dot_general(a, b, (((1,), (0,)), ((), ())), precision=precision, preferred_element_type=result or dtype)
    return jax.jit(multiply, out_shardings=placed(mesh, *out)), (
        argument(mesh, (m, k), *left, dtype=jnp.dtype(dtype)), argument(mesh, (k, n), *right, dtype=jnp.dtype(dtype)))


def rows_of_table(mesh, shape=(4096, 4096, 4096)):
    """The products of a table of sharded matmuls on the mesh (x, y), a row each: none, a gather, a reduction, a scatter, a gather of either operand."""
    m, k, n = shape
    rows = [(("x", None), (None, "y"), ("x", "y")), (("x", None), (None, "x"), ("x", None)), ((None, "x"), ("x", None), (None, None)),
            ((None, "x"), ("x", None), ("x", None)), ((None, "x"), ("y", None), (None, None)), (("x", "y"), ("y", None), ("x", None)),
            (("x", "y"), (None, "y"), ("x", "y")), (("x", "y"), ("y", "x"), ("x", "y")), ((None, "y"), ("y", "x"), ("y", "x")),
            ((None, ("x", "y")), (("x", "y"), None), (("x", "y"), None))]
    arguments = [(argument(mesh, (m, k), *a), argument(mesh, (k, n), *b)) for a, b, _ in rows]
    return jax.jit(lambda pairs: [a @ b for a, b in pairs], out_shardings=[placed(mesh, *c) for _, _, c in rows]), (arguments,)


def moved(mesh, shape=(16384, 8192)):
    """A product whose result is wanted along its other dimension: an all-to-all behind it."""
    m, n = shape
    def multiply(a, b):
        c = a @ b
        return lax.with_sharding_constraint(lax.with_sharding_constraint(c, placed(mesh, "x", None)), placed(mesh, None, "x"))
    return jax.jit(multiply, out_shardings=placed(mesh, None, "x")), (argument(mesh, (m, n), "x", None), argument(mesh, (n, n), None, None))
