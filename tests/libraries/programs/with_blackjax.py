"""blackjax: samplers as pairs of functions."""

import blackjax
import jax
import jax.numpy as jnp
from common import show


def log_density(p):
    return -0.5 * jnp.sum(p["x"] ** 2) - 0.5 * (p["y"] - 1) ** 2


start = {"x": jnp.ones(2), "y": jnp.float32(0)}
keys = jax.random.split(jax.random.key(0), 5)
kernels = {
    "hmc": blackjax.hmc(log_density, 0.1, jnp.ones(3), 5),
    "nuts": blackjax.nuts(log_density, 0.3, jnp.ones(3)),
    "mala": blackjax.mala(log_density, 0.1),
    "rmh": blackjax.additive_step_random_walk(log_density, blackjax.mcmc.random_walk.normal(0.3)),
}
for name, kernel in kernels.items():
    state = kernel.init(start)
    step = jax.jit(kernel.step)
    for key in keys:
        state, info = step(key, state)
    show(name, state.position)
adapted, _ = blackjax.window_adaptation(blackjax.nuts, log_density).run(jax.random.key(1), start, num_steps=30)
show("adaptation", jnp.isfinite(adapted.parameters["step_size"]))
show("diagnostics", blackjax.diagnostics.effective_sample_size(jnp.sin(jnp.arange(40.0)).reshape(2, 20)))
