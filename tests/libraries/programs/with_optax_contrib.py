"""optax.contrib: each optimizer on the same regression, and wrappers that need arguments of their own."""

import jax
import jax.numpy as jnp
import optax
from common import data, show
from optax import contrib

x, y = data()
params = {
    "w": jnp.full((2, 8), 0.3) + jnp.arange(16.0).reshape(2, 8) / 20,
    "b": jnp.zeros(8),
    "v": jnp.full((8, 1), 0.2),
}


def loss(params):
    return ((jnp.tanh(x @ params["w"] + params["b"]) @ params["v"] - y) ** 2).mean()


OPTIMIZERS = {
    "acprop": lambda: contrib.acprop(1e-2),
    "ademamix": lambda: contrib.ademamix(1e-2),
    "adopt": lambda: contrib.adopt(1e-2),
    "cocob": lambda: contrib.cocob(),
    "dadapt_adamw": lambda: contrib.dadapt_adamw(),
    "dog": lambda: contrib.dog(1.0, init_step=("heuristic", 1e-3)),
    "dowg": lambda: contrib.dowg(),
    "galore": lambda: contrib.galore(1e-2, rank=2),
    "momo": lambda: contrib.momo(1e-1),
    "momo_adam": lambda: contrib.momo_adam(1e-1),
    "muon": lambda: contrib.muon(1e-2),
    "prodigy": lambda: contrib.prodigy(),
    "sam": lambda: contrib.sam(optax.sgd(0.1), optax.chain(contrib.normalize(), optax.sgd(0.05)), opaque_mode=True),
    "schedule_free_adamw": lambda: contrib.schedule_free_adamw(1e-2),
    "schedule_free_sgd": lambda: contrib.schedule_free_sgd(1e-2),
    "simplified_ademamix": lambda: contrib.simplified_ademamix(1e-3),
    "sophia": lambda: contrib.sophia(1e-2),
    "split_real_and_imaginary": lambda: contrib.split_real_and_imaginary(optax.adam(1e-2)),
    "reduce_on_plateau": lambda: optax.chain(
        optax.adam(1e-2), contrib.reduce_on_plateau(patience=1, factor=0.5, accumulation_size=1)
    ),
}
NEEDS_VALUE = ("momo", "momo_adam", "reduce_on_plateau")


def train(name, optimizer):
    def step(params, state):
        value, grads = jax.value_and_grad(loss)(params)
        extra = {"value": value} if name in NEEDS_VALUE else {}
        if name == "sam":
            extra = {"grad_fn": lambda p, _: jax.grad(loss)(p)}
        if name == "sophia":
            extra = {"obj_fn": loss}
        updates, state = optimizer.update(grads, state, params, **extra)
        return optax.apply_updates(params, updates), state

    step = jax.jit(step)
    trained, state = params, optimizer.init(params)
    for _ in range(3):
        trained, state = step(trained, state)
    show(name, loss(trained), trained)
    if name.startswith("schedule_free"):
        show(f"{name} eval", contrib.schedule_free_eval_params(state, trained))


for name, make in OPTIMIZERS.items():
    if hasattr(contrib, name):
        train(name, make())
noisy = contrib.differentially_private_aggregate(l2_norm_clip=1.0, noise_multiplier=0.1, key=jax.random.key(1))
each = jax.vmap(jax.grad(lambda p, x, y: ((jnp.tanh(x @ p["w"] + p["b"]) @ p["v"] - y) ** 2).mean()), (None, 0, 0))
show("private", noisy.update(each(params, x, y), noisy.init(params), params)[0])
