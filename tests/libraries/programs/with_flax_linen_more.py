"""flax.linen: recurrent layers, decoding, lifted transformations, metadata of partitions, serialization."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from common import show
from flax import serialization, traverse_util
from flax.core import freeze

key = jax.random.key
x = jax.random.normal(key(0), (4, 6, 8))


def both(name, module, *args, **options):
    variables = module.init(key(1), *args)
    show(name, variables, module.apply(variables, *args, **options))


both("rnn", nn.RNN(nn.LSTMCell(5), reverse=True, keep_order=True, return_carry=True), x)
both("bidirectional", nn.Bidirectional(nn.RNN(nn.GRUCell(3)), nn.RNN(nn.MGUCell(3)), merge_fn=jnp.add), x)
both("conv lstm", nn.RNN(nn.ConvLSTMCell(3, (2, 2))), jnp.ones((2, 3, 4, 4, 1)))
both("weight norm", nn.WeightNorm(nn.Dense(3)), x)
both("vmap", nn.vmap(nn.Dense, {"params": 0}, {"params": True}, in_axes=None, out_axes=-1, axis_size=3)(2), x)

attention = nn.MultiHeadDotProductAttention(2, qkv_features=8, decode=True, deterministic=True, normalize_qk=True)
variables = attention.init(key(0), x)
cache = jax.tree.map(jnp.zeros_like, variables["cache"])
for i in range(3):
    out, state = attention.apply({**variables, "cache": cache}, x[:, i : i + 1], mutable=["cache"])
    cache = state["cache"]
    show("decode", out, cache["cache_index"])


class Block(nn.Module):
    @nn.compact
    def __call__(self, carry, _):
        carry = nn.Dropout(0.2, deterministic=False)(nn.tanh(nn.Dense(8)(carry)))
        self.sow("intermediates", "mean", carry.mean())
        return carry, carry.sum()


axes, streams = {"params": 0, "intermediates": 0}, {"params": True, "dropout": True}
stack = nn.scan(nn.remat(Block, prevent_cse=False), axes, split_rngs=streams, length=3)()
variables = stack.init({"params": key(0), "dropout": key(1)}, x, None)
run = lambda params: stack.apply({"params": params}, x, None, rngs={"dropout": key(2)}, mutable=["intermediates"])
show("scan", run(variables["params"]), jax.grad(lambda params: run(params)[0][0].sum())(variables["params"]))


class Signs(nn.Module):
    """A layer whose gradients with respect to its parameters are signs."""

    @nn.compact
    def __call__(self, x):
        def backward(pull, cotangent):
            params, inputs = pull(cotangent)
            return jax.tree.map(jnp.sign, params), inputs

        forward = lambda layer, x: nn.vjp(lambda layer, x: layer(x), layer, x)
        return nn.custom_vjp(lambda layer, x: layer(x), forward, backward)(nn.Dense(2), x)


variables = Signs().init(key(0), x)
show("custom_vjp", jax.grad(lambda variables: Signs().apply(variables, x).sum())(variables))

kernel = nn.with_partitioning(nn.initializers.lecun_normal(), ("in", "out"))
variables = nn.Dense(3, kernel_init=kernel).init(key(0), x)
show("partitions", variables, len(nn.get_partition_spec(variables)["params"]["kernel"]))

values = {"a": jnp.ones((2, 3), jnp.bfloat16), "b": {"c": jnp.arange(3)}}
text = serialization.to_bytes(values)
show("bytes", len(text), serialization.from_bytes(jax.tree.map(jnp.zeros_like, values), text))
kernels = traverse_util.ModelParamTraversal(lambda path, _: "kernel" in path)
show("traversal", kernels.update(lambda v: v * 2, {"layer": {"kernel": jnp.ones(2), "bias": jnp.ones(1)}}))
show("frozen", freeze(values), hash(freeze({"a": 1})) == hash(freeze({"a": 1})))
