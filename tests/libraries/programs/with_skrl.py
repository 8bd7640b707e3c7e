"""skrl: memories, preprocessors and models of flax for reinforcement learning."""

import jax
import jax.numpy as jnp
import skrl
from common import show
from skrl.memories.jax import RandomMemory
from skrl.resources.preprocessors.jax import RunningStandardScaler

skrl.config.jax.backend = "jax"
memory = RandomMemory(memory_size=5, num_envs=2, device=jax.devices()[0])
memory.create_tensor("states", size=3, dtype=jnp.float32)
memory.create_tensor("actions", size=1, dtype=jnp.int32)
for i in range(4):
    memory.add_samples(states=jnp.full((2, 3), i, jnp.float32), actions=jnp.full((2, 1), i, jnp.int32))
show("memory", memory.get_tensor_by_name("states"), len(memory))
show("all", memory.sample_all(names=("states", "actions")))
scaler = RunningStandardScaler(size=3)
x = jnp.arange(12.0).reshape(4, 3)
show("scaled", scaler(x, train=True), scaler(x + 1), scaler(x, inverse=True))
