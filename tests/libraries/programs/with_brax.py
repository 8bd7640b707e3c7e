"""brax: an environment's steps, and observations."""

import jax
import jax.numpy as jnp
from brax import envs
from brax.training import distribution, replay_buffers
from brax.training.agents.ppo import losses
from brax.training.agents.sac import networks
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

sac = networks.make_sac_networks(4, 2, hidden_layer_sizes=(8,))
critic = sac.q_network.init(jax.random.PRNGKey(0))
show("networks", sac.q_network.apply(None, critic, jnp.ones((3, 4)), jnp.ones((3, 2))), critic)
tanh_normal = distribution.NormalTanhDistribution(3)
parameters = jax.random.normal(jax.random.PRNGKey(1), (2, 6))
drawn = tanh_normal.sample_no_postprocessing(parameters, jax.random.PRNGKey(2))
show("distribution", drawn, tanh_normal.log_prob(parameters, drawn), tanh_normal.mode(parameters))
values = jnp.arange(10.0).reshape(5, 2) / 10
show("advantages", losses.compute_gae(jnp.zeros((5, 2)), jnp.ones((5, 2)), values**2, values, jnp.ones(2), 0.95, 0.9))
queue = replay_buffers.UniformSamplingQueue(6, jnp.zeros(2), 3)
stored = queue.insert(queue.init(jax.random.PRNGKey(3)), jnp.arange(8.0).reshape(4, 2))
show("replay", queue.sample(stored)[1])
