"""equinox: modules, filtered transformations, state, loops with gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from common import data, show

x, y = data()


class Net(eqx.Module):
    layers: list
    scale: jax.Array
    name: str = eqx.field(static=True)

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.layers = [eqx.nn.Linear(2, 8, key=first), jax.nn.tanh, eqx.nn.Linear(8, 1, key=second)]
        self.scale = jnp.ones(())
        self.name = "net"

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.scale * x


net = Net(jax.random.key(0))
optimizer = optax.adamw(1e-2)
state = optimizer.init(eqx.filter(net, eqx.is_array))


@eqx.filter_jit
def step(net, state):
    loss, grads = eqx.filter_value_and_grad(lambda n: jnp.mean((jax.vmap(n)(x) - y) ** 2))(net)
    updates, state = optimizer.update(grads, state, eqx.filter(net, eqx.is_array))
    return eqx.apply_updates(net, updates), state, loss


for _ in range(10):
    net, state, loss = step(net, state)
show("train", loss, eqx.filter(net, eqx.is_array))
show("tree_at", eqx.tree_at(lambda n: n.scale, net, jnp.float32(3))(x[0]))
dropped = eqx.nn.Dropout(0.5)(x, key=jax.random.key(1))
show("dropout", dropped)
cell = eqx.nn.LSTMCell(2, 4, key=jax.random.key(2))
carry = (jnp.zeros(4), jnp.zeros(4))
show("lstm", jax.lax.scan(lambda c, v: (cell(v, c), c[0]), carry, x)[1])
convolution = eqx.nn.Sequential(
    [eqx.nn.Conv2d(1, 3, 3, key=jax.random.key(3)), eqx.nn.Lambda(jax.nn.relu), eqx.nn.MaxPool2d(2, 2)]
)
show("convolution", convolution(jnp.arange(64.0).reshape(1, 8, 8) / 64))
show("ensemble", eqx.filter_vmap(lambda k: eqx.nn.MLP(2, 1, 4, 1, key=k)(x[0]))(jax.random.split(jax.random.key(4), 3)))
show("jacobian", eqx.filter_jacrev(lambda m: m(x[0]))(net).scale, eqx.filter_hessian(lambda s: jnp.sum(s**3))(x[0]))
out, pull = eqx.filter_vjp(lambda m: m(x[0]), net)
show("vjp", out, pull(jnp.ones(1))[0].scale)
embedding = eqx.nn.Embedding(5, 3, key=jax.random.key(5))
show("embedding", jax.vmap(embedding)(jnp.array([0, 3])))
norm = eqx.nn.LayerNorm(2)
show("norm", jax.vmap(norm)(x))
print(eqx.tree_pformat(net).count("\n") > 3)
