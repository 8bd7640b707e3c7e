"""mctx: Monte Carlo tree search over a small made model."""

import jax
import jax.numpy as jnp
import mctx
from common import show

root = mctx.RootFnOutput(prior_logits=jnp.zeros((2, 3)), value=jnp.zeros(2), embedding=jnp.zeros((2, 1)))


def model(params, key, action, embedding):
    step = mctx.RecurrentFnOutput(
        reward=action.astype(jnp.float32),
        discount=jnp.full((2,), 0.9),
        prior_logits=jnp.zeros((2, 3)),
        value=embedding[:, 0],
    )
    return step, embedding + 1


for policy in (mctx.muzero_policy, mctx.gumbel_muzero_policy):
    found = policy((), jax.random.PRNGKey(0), root, model, num_simulations=12)
    show(policy.__name__, found.action, found.action_weights, found.search_tree.node_values)
