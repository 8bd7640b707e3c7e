"""jumanji: combinatorial environments."""

import jax
import jumanji
from common import show

for name in ("Snake-v1", "Game2048-v1", "Knapsack-v1"):
    environment = jumanji.make(name)
    state, step = jax.jit(environment.reset)(jax.random.PRNGKey(0))
    rewards = []
    for _ in range(4):
        action = environment.action_spec.generate_value()
        state, step = jax.jit(environment.step)(state, action)
        rewards.append(step.reward)
    show(name, rewards, step.observation)
