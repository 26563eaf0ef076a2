"""A whole training step of a decoder: embedding, layers, loss, gradients, Adam. The mesh's axes decide what is sharded:

    pod, data   batches                            fsdp   batches and weights
    tp          heads, wide features, vocabulary   seq    the tokens of the residual stream lie along tp (sequence parallel)"""
import jax
import jax.numpy as jnp
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec as P

from arrays import argument, like, placed

BATCH_AXES = ("pod", "data", "fsdp")


def step(mesh, batch=16, length=1024, features=1024, heads=8, wide=4096, vocabulary=16384, layers=2, scan=True, remat="none", donate=True,
         accumulate=1, sequence=False, offload=()):
    """remat: none, full, dots (saves the products), offload (saves the layers' inputs in host memory). accumulate: microbatches of a step.
    offload: "parameters", "optimizer" keep these in pinned host memory; what the step needs it copies in, and back."""
    names = mesh.axis_names
    data = tuple(axis for axis in BATCH_AXES if axis in names) or None
    fsdp, tp = ("fsdp" if "fsdp" in names else None), ("tp" if "tp" in names else None)
    head = features // heads
    layer = {"q": (features, heads, head), "k": (features, heads, head), "v": (features, heads, head), "o": (heads, head, features),
             "gate": (features, wide), "up": (features, wide), "down": (wide, features), "norm1": (features,), "norm2": (features,)}
    place = {"q": (fsdp, tp, None), "k": (fsdp, tp, None), "v": (fsdp, tp, None), "o": (tp, None, fsdp),
             "gate": (fsdp, tp), "up": (fsdp, tp), "down": (tp, fsdp), "norm1": (None,), "norm2": (None,)}
    shapes = {"embedding": jax.ShapeDtypeStruct((vocabulary, features), jnp.float32), "head": jax.ShapeDtypeStruct((features, vocabulary), jnp.float32),
              "layers": {name: jax.ShapeDtypeStruct((layers, *shape), jnp.float32) for name, shape in layer.items()}}
    specs = {"embedding": P(tp, fsdp), "head": P(fsdp, tp), "layers": {name: P(None, *spec) for name, spec in place.items()}}
    stream = (data, tp if sequence else None, None)

    def norm(x, scale):
        y = x.astype(jnp.float32)
        return (y * lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-6) * scale).astype(x.dtype)

    def block(x, w):
        if remat == "offload":  # what the backward pass starts from: the name of a result is not asked for
            x = checkpoint_name(x, "stream")
        half = jax.tree.map(lambda a: a.astype(jnp.bfloat16), w)
        y = norm(x, w["norm1"])
        q, k, v = (jnp.einsum("bld,dhe->blhe", y, half[name]) for name in ("q", "k", "v"))
        scores = jnp.einsum("blhe,bmhe->bhlm", q, k).astype(jnp.float32) * head ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool)), scores, -1e30)
        mixed = jnp.einsum("bhlm,bmhe->blhe", jax.nn.softmax(scores).astype(x.dtype), v)
        x = lax.with_sharding_constraint(x + jnp.einsum("blhe,hed->bld", mixed, half["o"]), placed(mesh, *stream))
        y = norm(x, w["norm2"])
        x = x + (jax.nn.silu(y @ half["gate"]) * (y @ half["up"])) @ half["down"]
        return lax.with_sharding_constraint(checkpoint_name(x, "stream"), placed(mesh, *stream))

    policies = {"full": None, "dots": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
                "offload": jax.checkpoint_policies.save_and_offload_only_these_names(
                    names_which_can_be_saved=[], names_which_can_be_offloaded=["stream"], offload_src="device", offload_dst="pinned_host")}
    body = block if remat == "none" else jax.checkpoint(block, policy=policies[remat])

    def loss(parameters, tokens):
        x = parameters["embedding"].astype(jnp.bfloat16)[tokens[:, :-1]]
        x = lax.with_sharding_constraint(x, placed(mesh, *stream))
        if scan:
            x = lax.scan(lambda x, w: (body(x, w), None), x, parameters["layers"])[0]
        else:
            for i in range(layers):
                x = body(x, jax.tree.map(lambda a: a[i], parameters["layers"]))
        logits = (x @ parameters["head"].astype(jnp.bfloat16)).astype(jnp.float32)
        right = jnp.take_along_axis(logits, tokens[:, 1:, None], 2)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - right)

    def train(state, tokens):
        device = jax.tree.map(lambda spec: placed(mesh, *spec, memory="device" if offload else None), specs)
        parameters, mean, square = (jax.device_put(part, device) if offload else part for part in (state["parameters"], state["mean"], state["square"]))
        if accumulate == 1:
            value, gradient = jax.value_and_grad(loss)(parameters, tokens)
        else:
            def micro(total, part):
                return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(parameters, part)), None
            zero = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, parameters))
            parts = tokens.reshape(batch // accumulate, accumulate, -1).swapaxes(0, 1)
            value, gradient = lax.scan(micro, zero, parts)[0]
        count = state["count"] + 1
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
        square = jax.tree.map(lambda s, g: 0.95 * s + 0.05 * g * g, square, gradient)
        update = lambda p, m, s: p - 1e-3 * (m / (1 - 0.9 ** count) / (jnp.sqrt(s / (1 - 0.95 ** count)) + 1e-8) + 0.1 * p)
        return {"parameters": jax.tree.map(update, parameters, mean, square), "mean": mean, "square": square, "count": count}, value

    memory = {"parameters": "pinned_host" if "parameters" in offload else None, **dict.fromkeys(("mean", "square"), "pinned_host" if "optimizer" in offload else None)}
    state = {part: like(mesh, shapes, specs, memory=kind) for part, kind in memory.items()}
    state["count"] = argument(mesh, (), dtype=jnp.float32)
    places = jax.tree.map(lambda a: a.sharding, state)
    tokens = argument(mesh, (batch, length + 1), data, None, dtype=jnp.int32)
    return jax.jit(train, donate_argnums=(0,) if donate else (), out_shardings=(places, placed(mesh))), (state, tokens)


def layers_only(mesh, tokens=16384, features=4096, wide=14336, layers=4):
    """The gradients of MLP layers in a scan, FSDP by tensor parallelism: what a compiler makes of weights that are gathered in a loop."""
    def forward(x, w1, w2):
        return lax.scan(lambda x, w: (x + jax.nn.silu(x @ w[0]) @ w[1], None), x, (w1, w2))[0]
    gradient = jax.grad(lambda x, w1, w2: forward(x, w1, w2).astype(jnp.float32).sum(), (1, 2))
    return jax.jit(gradient), (argument(mesh, (tokens, features), "fsdp"), argument(mesh, (layers, features, wide), None, "fsdp", "tp"),
                               argument(mesh, (layers, wide, features), None, "tp", "fsdp"))


def offloaded_layers(mesh, tokens=8192, features=1024, wide=4096, layers=4):
    """The gradients of MLP layers in a scan, of which one product is saved in the host's memory and another one on the device."""
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved=["out"], names_which_can_be_offloaded=["wide"],
                                                                       offload_src="device", offload_dst="pinned_host")
    def layer(x, w):
        return x + checkpoint_name(jax.nn.gelu(checkpoint_name(x @ w[0], "wide")) @ w[1], "out"), None
    loss = lambda w, x: jnp.mean(lax.scan(jax.checkpoint(layer, policy=policy), x, w)[0].astype(jnp.float32) ** 2)
    return jax.jit(jax.grad(loss)), ((argument(mesh, (layers, features, wide), None, "fsdp"), argument(mesh, (layers, wide, features), None, "fsdp")),
                                     argument(mesh, (tokens, features), "fsdp"))
