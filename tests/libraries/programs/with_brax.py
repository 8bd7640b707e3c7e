"""brax: an environment's steps, and observations."""

import jax
import jax.numpy as jnp
from brax import envs
from common import show

environment = envs.get_environment("inverted_pendulum", backend="generalized")
state = jax.jit(environment.reset)(jax.random.key(0))
show("reset", state.obs)
step = jax.jit(environment.step)
for i in range(3):
    state = step(state, jnp.array([0.1 * i]))
show("steps", state.obs, state.reward)
states = jax.jit(jax.vmap(environment.reset))(jax.random.split(jax.random.key(1), 3))
show("batch", jax.jit(jax.vmap(environment.step))(states, jnp.ones((3, 1))).obs)
