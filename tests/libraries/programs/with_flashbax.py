"""flashbax: replay buffers of items and of trajectories with priorities."""

import flashbax
import jax
import jax.numpy as jnp
from common import show

items = flashbax.make_item_buffer(max_length=16, min_length=2, sample_batch_size=4)
state = items.init({"x": jnp.zeros(2)})
for i in range(5):
    state = items.add(state, {"x": jnp.ones(2) * i})
show("items", items.sample(state, jax.random.PRNGKey(0)).experience)

trajectories = flashbax.make_prioritised_trajectory_buffer(
    add_batch_size=2,
    sample_batch_size=2,
    sample_sequence_length=2,
    period=1,
    min_length_time_axis=2,
    max_size=20,
    priority_exponent=0.5,
)
state = trajectories.add(trajectories.init(jnp.zeros(())), jnp.arange(8.0).reshape(2, 4))
drawn = trajectories.sample(state, jax.random.PRNGKey(1))
show("trajectories", drawn.experience, drawn.probabilities)
state = trajectories.set_priorities(state, drawn.indices, jnp.array([3.0, 9.0]))
show("priorities", trajectories.sample(state, jax.random.PRNGKey(2)).experience)
