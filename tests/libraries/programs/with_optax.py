"""optax: optimizers, schedules, losses, and wrappers of optimizers."""

import jax
import jax.numpy as jnp
import optax
from common import data, show

x, y = data()
params = {"w": jnp.full((2, 3), 0.3), "v": jnp.arange(3.0)[:, None] / 3}


def loss(p):
    return jnp.mean((jnp.tanh(x @ p["w"]) @ p["v"] - y) ** 2)


optimizers = {
    name: getattr(optax, name)(1e-2)
    for name in [
        "adabelief",
        "adadelta",
        "adafactor",
        "adagrad",
        "adam",
        "adamax",
        "adamw",
        "amsgrad",
        "lamb",
        "lars",
        "lion",
        "nadam",
        "novograd",
        "radam",
        "rmsprop",
        "sgd",
        "sm3",
        "yogi",
        "rprop",
    ]
}
optimizers |= {
    "accumulated": optax.MultiSteps(optax.adam(1e-2), every_k_schedule=2),
    "scheduled": optax.inject_hyperparams(optax.adam)(optax.warmup_cosine_decay_schedule(0.0, 1e-2, 3, 10)),
    "partitioned": optax.partition({"a": optax.sgd(0.1), "b": optax.adam(0.01)}, {"w": "a", "v": "b"}),
    "finite": optax.apply_if_finite(optax.sgd(0.1), 3),
    "contrib": optax.contrib.schedule_free_adamw(1e-2),
    "prodigy": optax.contrib.prodigy(),
}
for name, optimizer in optimizers.items():
    p, state = params, optimizer.init(params)

    @jax.jit
    def step(p, state, optimizer=optimizer):
        updates, state = optimizer.update(jax.grad(loss)(p), state, p)
        return optax.apply_updates(p, updates), state

    for _ in range(4):
        p, state = step(p, state)
    show(name, p)
logits, labels = jnp.linspace(-2, 2, 12).reshape(4, 3), jnp.array([0, 1, 2, 0])
show(
    "losses",
    optax.softmax_cross_entropy_with_integer_labels(logits, labels),
    optax.huber_loss(logits[:, 0], logits[:, 1]),
)
show(
    "more losses",
    optax.sigmoid_binary_cross_entropy(logits, logits > 0),
    optax.ctc_loss(
        logits[None].repeat(2, 0), jnp.zeros((2, 4)), labels[None].repeat(2, 0)[:, :2] + 1, jnp.zeros((2, 2))
    ),
)
show(
    "schedules", [optax.exponential_decay(1.0, 5, 0.5)(i) for i in range(4)], optax.linear_onecycle_schedule(10, 1.0)(3)
)
