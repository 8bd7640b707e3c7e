"""flax.linen: a convolutional network, batch statistics, recurrent cells, checkpoints as bytes."""

import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from common import data, show
from flax.training import train_state

images = jnp.arange(2 * 8 * 8.0).reshape(2, 8, 8, 1) / 64


class CNN(nn.Module):
    classes: int = 3

    @nn.compact
    def __call__(self, x, train: bool):
        x = nn.Conv(4, (3, 3))(x)
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.avg_pool(nn.relu(x), (2, 2), strides=(2, 2))
        x = x.reshape((x.shape[0], -1))
        return nn.Dense(self.classes)(nn.Dense(8)(x))


model = CNN()
variables = model.init(jax.random.key(0), images, False)
show("init", variables)


class State(train_state.TrainState):
    batch_stats: flax.core.FrozenDict


state = State.create(
    apply_fn=model.apply,
    params=variables["params"],
    batch_stats=variables["batch_stats"],
    tx=optax.sgd(0.05, momentum=0.9),
)


@jax.jit
def step(state):
    def loss(params):
        logits, changed = state.apply_fn(
            {"params": params, "batch_stats": state.batch_stats}, images, True, mutable=["batch_stats"]
        )
        return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.array([0, 2])).mean(), changed

    (value, changed), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads, batch_stats=changed["batch_stats"]), value


for _ in range(3):
    state, value = step(state)
show("train", value)
show("apply", state.apply_fn({"params": state.params, "batch_stats": state.batch_stats}, images, False))
again = flax.serialization.from_bytes(state.params, flax.serialization.to_bytes(state.params))
show("bytes", again)
x, _ = data(6)
for name, cell in (("gru", nn.GRUCell(4)), ("lstm", nn.OptimizedLSTMCell(4))):
    rnn = nn.RNN(cell)
    p = rnn.init(jax.random.key(1), x[None])
    show(name, rnn.apply(p, x[None]))
attention = nn.SelfAttention(num_heads=2)
z = jnp.ones((1, 3, 4)) * jnp.arange(3.0)[:, None]
show("attention", attention.apply(attention.init(jax.random.key(2), z), z, mask=nn.make_causal_mask(jnp.ones((1, 3)))))


class Bound(nn.Module):
    def setup(self):
        self.encoder, self.decoder = nn.Dense(3), nn.Dense(2)
        self.variable("notes", "count", lambda: jnp.zeros(()))

    def __call__(self, x):
        return self.decoder(self.encoder(x))

    def encode(self, x):
        self.sow("intermediates", "seen", x)
        return self.encoder(x)


bound = Bound()
p = bound.init(jax.random.key(3), x)
show("method", bound.apply(p, x, method=bound.encode, mutable=["intermediates"]))


class Step(nn.Module):
    @nn.compact
    def __call__(self, carry, _):
        return jnp.tanh(nn.Dense(2)(carry)), None


layers = nn.scan(Step, variable_axes={"params": 0}, split_rngs={"params": True}, length=3)()
p = layers.init(jax.random.key(4), x, None)
show("scan", layers.apply(p, x, None)[0])
print(len(nn.tabulate(CNN(), jax.random.key(0))(images, False)) > 100)
