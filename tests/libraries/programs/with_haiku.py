"""dm-haiku: transformed functions, state, recurrent networks, lifting."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from common import data, show

x, y = data()


class Block(hk.Module):
    def __init__(self, size, name=None):
        super().__init__(name)
        self.size = size

    def __call__(self, x):
        w = hk.get_parameter("w", (x.shape[-1], self.size), init=hk.initializers.TruncatedNormal(0.5))
        count = hk.get_state("count", (), init=jnp.zeros)
        hk.set_state("count", count + 1)
        return jax.nn.relu(x @ w)


def network(x, train):
    x = hk.BatchNorm(True, True, 0.9)(Block(8)(x), train)
    x = hk.dropout(hk.next_rng_key(), 0.1, x) if train else x
    return hk.Linear(1)(x)


net = hk.transform_with_state(network)
params, state = net.init(jax.random.PRNGKey(0), x, True)
show("init", params, state)
optimizer = optax.chain(optax.clip(1.0), optax.adam(1e-2))
opt_state = optimizer.init(params)


@jax.jit
def step(params, state, opt_state, key):
    def loss(params):
        out, changed = net.apply(params, state, key, x, True)
        return jnp.mean((out - y) ** 2), changed

    (value, state_), grads = jax.value_and_grad(loss, has_aux=True)(params)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), state_, opt_state, value


for i in range(3):
    params, state, opt_state, value = step(params, state, opt_state, jax.random.PRNGKey(i))
show("train", value)


def recurrent(x):
    core = hk.DeepRNN([hk.LSTM(4), jnp.tanh, hk.GRU(3)])
    return hk.dynamic_unroll(core, x[:, None], core.initial_state(1))[0]


r = hk.without_apply_rng(hk.transform(recurrent))
show("recurrent", r.apply(r.init(jax.random.PRNGKey(1), x), x))


def images(x):
    return hk.Sequential([hk.Conv2D(3, 3), jax.nn.relu, hk.Flatten(), hk.nets.MLP([4, 2])])(x)


c = hk.without_apply_rng(hk.transform(images))
z = jnp.ones((2, 6, 6, 1))
show("images", c.apply(c.init(jax.random.PRNGKey(2), z), z))


def attention(x):
    return hk.MultiHeadAttention(2, 4, w_init=hk.initializers.VarianceScaling())(x, x, x)


a = hk.without_apply_rng(hk.transform(attention))
z = jnp.ones((1, 3, 8)) * jnp.arange(3.0)[:, None]
show("attention", a.apply(a.init(jax.random.PRNGKey(3), z), z))
outer = hk.transform(lambda x: hk.vmap(hk.Linear(2), split_rng=False)(x))
show("vmap", outer.apply(outer.init(jax.random.PRNGKey(4), x), None, x))
print(len(hk.experimental.tabulate(c)(jnp.ones((2, 6, 6, 1)))) > 100)
