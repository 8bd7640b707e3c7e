"""rlax: losses and returns of reinforcement learning."""

import jax
import jax.numpy as jnp
import rlax
from common import show

q, q_next = jnp.array([[1.0, 2.0], [0.5, -1.0]]), jnp.array([[0.3, 0.2], [1.0, 2.0]])
actions, rewards, discounts = jnp.array([0, 1]), jnp.array([1.0, -1.0]), jnp.array([0.9, 0.0])
show("q-learning", jax.vmap(rlax.q_learning)(q, actions, rewards, discounts, q_next))
show("double q", jax.vmap(rlax.double_q_learning)(q, actions, rewards, discounts, q_next, q))
show("sarsa", jax.vmap(rlax.sarsa)(q, actions, rewards, discounts, q_next, actions))
series = jnp.linspace(-1, 1, 6)
show(
    "returns",
    rlax.lambda_returns(series, jnp.full(6, 0.9), series, 0.8),
    rlax.discounted_returns(series, jnp.full(6, 0.9), series),
)
show("advantages", rlax.truncated_generalized_advantage_estimation(series[:5], jnp.full(5, 0.9), 0.9, series))
show("v-trace", rlax.vtrace_td_error_and_advantage(series[:5], series[1:], series[:5], jnp.full(5, 0.9), jnp.ones(5)))
logits = jnp.linspace(-1, 1, 12).reshape(4, 3)
show(
    "policy",
    rlax.policy_gradient_loss(logits, jnp.array([0, 1, 2, 0]), jnp.ones(4), jnp.ones(4)),
    rlax.entropy_loss(logits, jnp.ones(4)),
)
show("l2", rlax.l2_loss(series), rlax.huber_loss(series), rlax.signed_hyperbolic(series))
d = rlax.epsilon_greedy(0.1)
show("epsilon", d.sample(jax.random.PRNGKey(0), q), d.probs(q), rlax.softmax().logprob(actions, q))
show("categorical", rlax.categorical_l2_project(jnp.linspace(0, 1, 5), jnp.full(5, 0.2), jnp.linspace(0, 1, 5) * 0.5))
show("entropy of a policy", rlax.softmax(0.5).entropy(q), jax.grad(lambda x: rlax.softmax().entropy(x).sum())(q))
show("divergence", jax.grad(lambda x: rlax.categorical_kl_divergence(x, q_next).sum())(q))
show("gradient", jax.grad(lambda p: rlax.q_learning(p, 0, 1.0, 0.9, q_next[0]) ** 2)(q[0]))
