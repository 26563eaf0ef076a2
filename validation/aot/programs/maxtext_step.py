"""MaxText's training step, lowered as its train_compile does (maxtext/trainers/pre_train/train_compile.py of maxtext 0.2.0)."""

import pathlib


class Step:
    """What is lowered for devices that are not there, as jax.jit's functions are."""

    def __init__(self, function, mesh, rules):
        self.function, self.mesh, self.rules = function, mesh, rules

    def lower(self, *arguments):
        import jax
        from flax.linen import partitioning
        with jax.set_mesh(self.mesh), partitioning.axis_rules(self.rules):
            return self.function.lower(*arguments)


def step(mesh, target, **settings):
    """target: MaxText's name of a slice, v5e-16. The mesh has MaxText's names of axes; settings are keys of its base.yml."""
    import jax
    from jax.sharding import Mesh
    from maxtext.configs import pyconfig
    from maxtext.trainers.pre_train import train, train_compile
    from maxtext.utils import maxtext_utils, sharding
    jax.config.update("jax_default_prng_impl", "unsafe_rbg")
    slices = len({getattr(device, "slice_index", 0) for device in mesh.devices.flat})
    axes = dict(mesh.shape)
    within = {axis: size // slices if axis == "data" else size for axis, size in axes.items()}
    key = {"stage": "pipeline"}  # where a key of base.yml has another name than its axis
    parallel = {f"ici_{key.get(axis, axis)}_parallelism": size for axis, size in ({"fsdp": 1} | within).items()}
    config = pyconfig.initialize(
        ["", str(pathlib.Path(pyconfig.__file__).parent / "base.yml")], run_name="step", compile_topology=target, compile_topology_num_slices=slices,
        enable_checkpointing=False, log_config=False, dcn_data_parallelism=slices, **parallel, **settings)
    whole = Mesh(mesh.devices.reshape([axes.get(axis, 1) for axis in config.mesh_axes]), config.mesh_axes)
    arguments, _, shardings, _, model = train_compile.get_shaped_inputs(whole, config)
    function, *given, static, donated = maxtext_utils.get_functional_train_with_signature(
        train.train_step, sharding.get_input_data_sharding(config, whole), shardings, model, config)
    jitted = jax.jit(function, in_shardings=given[0], out_shardings=given[1], static_argnums=static, donate_argnums=donated)
    return Step(jitted, whole, config.logical_axis_rules), arguments
