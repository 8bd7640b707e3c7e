"""gymnax: environments whose episodes are one program."""

import gymnax
import jax
from common import show

for name in ("CartPole-v1", "Pendulum-v1", "Catch-bsuite"):
    environment, params = gymnax.make(name)
    observation, state = environment.reset(jax.random.key(0), params)

    def step(carry, key, environment=environment, params=params):
        observation, state = carry
        action = environment.action_space(params).sample(key)
        observation, state, reward, done, _ = environment.step(key, state, action, params)
        return (observation, state), (observation, reward, done)

    show(name, observation, jax.lax.scan(step, (observation, state), jax.random.split(jax.random.key(1), 20))[1])
