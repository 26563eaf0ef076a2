"""Arguments of a program on a mesh: shapes, types and shardings without data."""

from __future__ import annotations

from typing import Any, Tuple

import numpy as np

from .._errors import InputError
from .._modules import is_mesh


def mesh_in(tree: Any) -> Any:
    """The first Mesh of devices that the arguments are sharded over; None if none is."""
    import jax

    shardings = (getattr(leaf, "sharding", None) for leaf in jax.tree.leaves(tree))
    return next((found.mesh for found in shardings if is_mesh(getattr(found, "mesh", None))), None)


def _resharded(sharding: Any, mesh: Any, name: str) -> Any:
    """The same PartitionSpec on the mesh; None where an array lies on a device of this computer alone."""
    import jax

    spec = getattr(sharding, "spec", None)
    if spec is None:
        return None
    axes = [axis for entry in spec if entry is not None for axis in (entry if isinstance(entry, tuple) else (entry,)) if isinstance(axis, str)]
    missing = [axis for axis in axes if axis not in mesh.axis_names]
    if missing:
        raise InputError(f"{name} is sharded over {missing[0]!r}, an axis that the mesh does not have; it has {', '.join(map(repr, mesh.axis_names))}", argument="arguments")
    return jax.sharding.NamedSharding(mesh, spec, memory_kind=sharding.memory_kind)


def _placed(leaf: Any, mesh: Any, name: str) -> Any:
    import jax

    if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")) or isinstance(leaf, np.generic):
        return leaf  # a number, or a static argument
    sharding = getattr(leaf, "sharding", None)
    if mesh is not None and sharding is not None and getattr(sharding, "mesh", None) is not mesh:
        sharding = _resharded(sharding, mesh, name)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding, weak_type=getattr(leaf, "weak_type", False))


def placed(arguments: Tuple[Any, ...], mesh: Any) -> Tuple[Any, ...]:
    """Arrays without their data, each by its PartitionSpec on the mesh. Raises InputError for a spec with an axis that the mesh has not."""
    import jax

    def place(path: Any, leaf: Any) -> Any:
        return _placed(leaf, mesh, f"argument {path[0].idx}" + jax.tree_util.keystr(path[1:]))

    return jax.tree_util.tree_map_with_path(place, tuple(arguments))
