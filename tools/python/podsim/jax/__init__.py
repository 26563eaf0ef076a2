"""How long a step takes on a pod that is not there, and why: a JAX function in, its time, memory and exposed collectives out.

    import jax, jax.numpy as jnp, podsim.jax
    mesh = podsim.jax.mesh("v5e:16x16", {"data": 16, "model": 16})
    step = podsim.jax.simulate(f, *arguments)      # XLA compiles it for 256 chips, podsim plays the module
    print(step)

JAX is imported when it is needed, and no accelerator is: TPUs take the package libtpu, GPUs jax-cuda13-plugin.
"""

from __future__ import annotations

from ._collectives import Collective
from ._errors import CompileError, OutOfMemory
from ._mesh import mesh, meshes
from ._search import Ranking, compare, search
from ._step import Memory, Step, simulate

for _public in (Collective, CompileError, OutOfMemory, Memory, Ranking, Step):
    _public.__module__ = "podsim.jax"

__all__ = ["Collective", "CompileError", "Memory", "OutOfMemory", "Ranking", "Step", "compare", "mesh", "meshes", "search", "simulate"]
