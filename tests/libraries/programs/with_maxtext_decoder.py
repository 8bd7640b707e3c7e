"""A decoder as MaxText writes it: logical sharding rules, a scan over layers, policies of checkpoints by name."""

import functools
import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import optax
from common import show
from flax import linen as nn
from flax.linen import partitioning as nn_partitioning
from flax.training import train_state
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import mesh_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

RULES = (
    ("activation_batch", ("data", "fsdp")),
    ("activation_length", None),
    ("activation_embed", "tensor"),
    ("vocab", ("tensor",)),
    ("embed", ("fsdp",)),
    ("mlp", ("tensor",)),
    ("heads", ("tensor",)),
    ("kv", None),
    ("norm", None),
    ("layers", None),
)
POLICIES = {
    "full": None,
    "minimal": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "names": jax.checkpoint_policies.save_only_these_names("query_proj", "mlpwi"),
    "offloaded": jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["query_proj"],
        names_which_can_be_offloaded=["mlpwi"],
        offload_src="device",
        offload_dst="pinned_host",
    ),
}
constrained = functools.partial(nn.with_logical_constraint)
ACTIVATION = ("activation_batch", "activation_length", "activation_embed")


def param(module, name, shape, axes):
    init = nn.with_logical_partitioning(nn.initializers.variance_scaling(1.0, "fan_in", "normal"), axes)
    return jnp.asarray(module.param(name, init, shape, jnp.float32), module.dtype)


class RMSNorm(nn.Module):
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, x):
        x = jnp.asarray(x, jnp.float32)
        mean2 = jnp.mean(jax.lax.square(x), axis=-1, keepdims=True)
        scale = self.param("scale", nn.with_logical_partitioning(nn.initializers.ones, ("norm",)), (x.shape[-1],))
        return jnp.asarray(x * jax.lax.rsqrt(mean2 + 1e-6), self.dtype) * jnp.asarray(scale, self.dtype)


class DecoderLayer(nn.Module):
    mesh: Mesh
    dtype: jnp.dtype = jnp.float32
    heads: int = 2

    @nn.compact
    def __call__(self, x, positions, segments, deterministic):
        x = constrained(x, ACTIVATION)
        x = checkpoint_name(x, "decoder_layer_input")
        dim, depth = x.shape[-1], x.shape[-1] // self.heads
        y = RMSNorm(self.dtype, name="pre_attention_norm")(x)
        axes, shape = ("embed", "heads", "kv"), (dim, self.heads, depth)
        q, k, v = (jnp.einsum("btd,dhk->bthk", y, param(self, name, shape, axes)) for name in ("query", "key", "value"))
        q, k = (_rotated(a, positions) for a in (q, k))
        q, k, v = (checkpoint_name(a, f"{n}_proj") for a, n in ((q, "query"), (k, "key"), (v, "value")))
        mask = nn.combine_masks(
            nn.make_causal_mask(positions), nn.make_attention_mask(segments, segments, jnp.equal), dtype=bool
        )
        weights = jnp.einsum("bthk,bshk->bhts", q, k) / depth**0.5
        weights = jax.nn.softmax(jnp.where(mask, weights, -0.7 * float(jnp.finfo(jnp.float32).max)))
        out = jnp.einsum("bhts,bshk->bthk", weights, v)
        out = jnp.einsum("bthk,hkd->btd", out, param(self, "out", (self.heads, depth, dim), ("heads", "kv", "embed")))
        x = x + checkpoint_name(out, "out_proj")
        y = RMSNorm(self.dtype, name="pre_mlp_norm")(x)
        wi = param(self, "wi", (dim, 2, 2 * dim), ("embed", None, "mlp"))
        gate, up = jnp.moveaxis(checkpoint_name(jnp.einsum("btd,dcm->btcm", y, wi), "mlpwi"), 2, 0)
        y = nn.Dropout(0.1, broadcast_dims=(-2,))(nn.silu(gate) * up, deterministic=deterministic)
        y = y @ param(self, "wo", (2 * dim, dim), ("mlp", "embed"))
        return constrained(x + y, ACTIVATION), None


def _rotated(x, positions):
    half = x.shape[-1] // 2
    timescale = 1e4 ** (jnp.arange(half) / half)
    angle = positions[:, :, None, None] / timescale
    first, second = jnp.split(x, 2, -1)
    return jnp.concatenate(
        [first * jnp.cos(angle) - second * jnp.sin(angle), second * jnp.cos(angle) + first * jnp.sin(angle)], -1
    )


class Decoder(nn.Module):
    mesh: Mesh
    policy: str
    layers: int = 3
    vocab: int = 12
    dim: int = 8

    @nn.compact
    def __call__(self, tokens, positions, segments, deterministic=True):
        init = nn.with_logical_partitioning(nn.initializers.normal(1.0), ("vocab", "embed"))
        table = self.param("token_embedder", init, (self.vocab, self.dim))
        x = jnp.take(table, tokens, axis=0)
        layer = nn.remat(DecoderLayer, prevent_cse=False, policy=POLICIES[self.policy], static_argnums=(4,))
        stack = nn.scan(
            layer,
            variable_axes={"params": 0, "intermediates": 0},
            split_rngs={"params": True, "dropout": True},
            in_axes=(nn.broadcast, nn.broadcast, nn.broadcast),
            length=self.layers,
            metadata_params={nn.PARTITION_NAME: "layers"},
        )
        x, _ = stack(self.mesh, name="layers")(x, positions, segments, deterministic)
        logits = RMSNorm(jnp.float32, name="decoder_norm")(x) @ table.T
        return constrained(logits, ("activation_batch", "activation_length", "vocab"))


def cross_entropy(logits, targets):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1).mean()


def main():
    mesh = Mesh(mesh_utils.create_device_mesh((1, 2, 2)), ("data", "fsdp", "tensor"))
    rng = jax.random.PRNGKey(0)
    tokens = jax.random.randint(rng, (4, 6), 0, 12)
    positions = jnp.broadcast_to(jnp.arange(6), (4, 6))
    segments = jnp.where(positions < 4, 1, 2)
    batch = (tokens, positions, segments)
    optimizer = optax.adamw(1e-2)
    for policy in POLICIES:
        model = Decoder(mesh, policy)

        def init(key, model=model):
            params = model.init({"params": key, "dropout": key}, *batch)["params"]
            return train_state.TrainState.create(apply_fn=model.apply, params=params, tx=optimizer)

        with mesh, nn_partitioning.axis_rules(RULES):
            shapes = jax.eval_shape(init, rng)
            specs = nn.get_partition_spec(shapes)
            shardings = nn.logical_to_mesh_sharding(specs, mesh, RULES)
            state = nn.unbox(jax.jit(init, out_shardings=nn.unbox(shardings))(rng))
            wi = state.params["layers"]["wi"]
            if policy == "full":
                show("logical", [name == "layers" for name in specs.params["layers"]["wi"]])
                show("shards", wi.addressable_shards[0].data.shape, wi.sharding.spec == P(None, "fsdp", None, "tensor"))
                show("init", state.params)

            def loss(params, key, model=model):
                logits = model.apply({"params": params}, *batch, False, rngs={"dropout": key})
                return cross_entropy(logits, jnp.roll(tokens, -1, 1))

            def train_step(state, key, loss=loss):
                value, grads = jax.value_and_grad(loss)(state.params, key)
                return state.apply_gradients(grads=grads), {"loss": value, "norm": optax.global_norm(grads)}

            replicated = NamedSharding(mesh, P())
            step = jax.jit(
                train_step,
                in_shardings=(jax.tree.map(lambda x: x.sharding, state), replicated),
                out_shardings=(jax.tree.map(lambda x: x.sharding, state), None),
                donate_argnums=0,
            )
            metrics = []
            for i in range(2):
                state, values = step(state, jax.random.fold_in(rng, i))
                metrics.append(values)
            show(policy, metrics, state.params["layers"]["query"])


main()
