"""flax.linen: lifted transformations of modules, and parameters from shapes alone."""

import jax
import jax.numpy as jnp
from common import show
from flax import linen as nn

key = jax.random.key(0)
x = jax.random.normal(key, (4, 6, 8))
first = x[:, 0]

# --- parameters from shapes
shape = jax.ShapeDtypeStruct((2, 6, 8), jnp.float32)
show("lazy dense", nn.Dense(3).lazy_init(key, jax.ShapeDtypeStruct((4, 8), jnp.float32)))
show("lazy conv", nn.Conv(3, (3,)).lazy_init(key, shape))
show("lazy attention", nn.MultiHeadDotProductAttention(2).lazy_init(key, shape))


# --- scan: trees of inputs and outputs with axes of their own, and parameters along another axis
class Step(nn.Module):
    @nn.compact
    def __call__(self, carry, inputs, offset):
        carry = nn.Dense(8)(carry) + inputs["u"] + offset
        return carry, {"sum": carry.sum(-1), "part": (carry[..., :2],)}


steps = nn.scan(
    Step,
    variable_axes={"params": 1},
    split_rngs={"params": True},
    in_axes=({"u": 1}, nn.broadcast),
    out_axes={"sum": 1, "part": (0,)},
    length=6,
)()
variables = steps.init(key, first, {"u": x}, jnp.ones(8))
show("scan", variables, steps.apply(variables, first, {"u": x}, jnp.ones(8)))


class Cell(nn.Module):
    def setup(self):
        self.dense = nn.Dense(8)

    def __call__(self, carry, inputs):
        return self.dense(carry) * 0.3, inputs.sum()

    def decode(self, carry, inputs):
        return self.dense(carry) * 0.1, carry.mean()


cells = nn.scan(
    Cell, variable_broadcast="params", split_rngs={"params": False}, methods=["__call__", "decode"], in_axes=1
)()
variables = cells.init(key, first, x)
show("scanned methods", cells.apply(variables, first, x), cells.apply(variables, first, x, method="decode"))


# --- remat with a policy and a static argument
class Block(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        return nn.Dense(8)(jnp.sin(nn.Dense(16)(x))) if train else x


policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
block = nn.checkpoint(Block, static_argnums=(2,), policy=policy)()
variables = block.init(key, x, True)
show("remat", jax.value_and_grad(lambda v: jnp.sum(block.apply(v, x, True) ** 2))(variables))


# --- derivatives inside of a module
class Signs(nn.Module):
    @nn.compact
    def __call__(self, x):
        def backward(pullback, cotangent):
            parameters, inputs = pullback(cotangent)
            return jax.tree.map(jnp.sign, parameters), inputs * 0.5

        call = nn.custom_vjp(
            lambda module, x: module(x),
            forward_fn=lambda module, x: nn.vjp(lambda module, x: module(x), module, x),
            backward_fn=backward,
        )
        return call(nn.Dense(3), x)


signs = Signs()
variables = signs.init(key, x)
show("custom_vjp", jax.grad(lambda v, x: jnp.sum(signs.apply(v, x) ** 2), argnums=(0, 1))(variables, x))


class Derivatives(nn.Module):
    @nn.compact
    def __call__(self, x):
        dense = nn.Dense(8)
        _, tangent = nn.jvp(lambda module, x: module(x), dense, (x,), (x * 0.1,), variable_tangents={})
        return tangent, nn.value_and_grad(lambda module, x: jnp.sum(module(x) ** 2), dense, x), nn.jit(nn.Dense)(4)(x)


derivatives = Derivatives()
show("derivatives", derivatives.apply(derivatives.init(key, x), x))
