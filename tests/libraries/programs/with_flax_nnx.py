"""flax.nnx: modules that hold their parameters, optimizers, random streams, transformations."""

import jax.numpy as jnp
import optax
from common import data, show
from flax import nnx

x, y = data()


class Model(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(2, 8, rngs=rngs)
        self.drop = nnx.Dropout(0.2, rngs=rngs)
        self.second = nnx.Linear(8, 1, rngs=rngs)
        self.calls = nnx.Variable(jnp.array(0))

    def __call__(self, x):
        self.calls[...] = self.calls[...] + 1
        return self.second(self.drop(nnx.gelu(self.first(x))))


model = Model(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)


@nnx.jit
def step(model, optimizer):
    def loss(model):
        return jnp.mean((model(x) - y) ** 2)

    value, grads = nnx.value_and_grad(loss)(model)
    optimizer.update(model, grads)
    return value


for _ in range(5):
    value = step(model, optimizer)
show("train", value, nnx.state(model, nnx.Param), model.calls[...])
model.eval()
show("eval", model(x))
graph, params, rest = nnx.split(model, nnx.Param, ...)
show("merge", nnx.merge(graph, params, rest)(x))
show("grad", nnx.grad(lambda m: m(x).sum())(model))


@nnx.split_rngs(splits=4)
@nnx.vmap(axis_size=4)
def make(rngs):
    return nnx.Linear(2, 2, rngs=rngs)


many = make(nnx.Rngs(1))
show("many", nnx.state(many))
norm = nnx.BatchNorm(2, rngs=nnx.Rngs(2))
show("norm", norm(x), nnx.state(norm))
attention = nnx.MultiHeadAttention(2, 4, decode=False, rngs=nnx.Rngs(3))
show("attention", attention(jnp.ones((1, 3, 4)) * jnp.arange(3.0)[:, None]))
convolution = nnx.Conv(1, 2, (3, 3), rngs=nnx.Rngs(4))
show("convolution", convolution(jnp.ones((1, 5, 5, 1))))
print(len(str(model)) > 100)
