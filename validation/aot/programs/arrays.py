"""What the programs share: arguments as shapes with a sharding, and initial values where the program makes them."""
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P


def placed(mesh, *spec, memory=None):
    """The sharding of an array: one entry per dimension, each None, an axis, or a tuple of axes. memory: "pinned_host" or None."""
    return NamedSharding(mesh, P(*spec), memory_kind=memory) if memory else NamedSharding(mesh, P(*spec))


def argument(mesh, shape, *spec, dtype=jnp.bfloat16, memory=None):
    """An argument that has a shape and a place, and no value."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=placed(mesh, *spec, memory=memory))


def like(mesh, tree, specs, dtype=None, memory=None):
    """Arguments like the arrays of `tree`, placed as the tree of PartitionSpecs says."""
    return jax.tree.map(lambda a, s: argument(mesh, a.shape, *s, dtype=dtype or a.dtype, memory=memory), tree, specs)
