"""dynamax: hidden Markov models, Kalman filters, and their fits."""

import jax
import jax.numpy as jnp
from common import show
from dynamax.hidden_markov_model import GaussianHMM
from dynamax.linear_gaussian_ssm import LinearGaussianSSM, parallel_inference

key = jax.random.PRNGKey(0)
hmm = GaussianHMM(num_states=2, emission_dim=2)
params, properties = hmm.initialize(key)
states, emissions = hmm.sample(params, key, num_timesteps=20)
show("sample", states, emissions)
show("log prob", hmm.marginal_log_prob(params, emissions))
show("viterbi", hmm.most_likely_states(params, emissions))
show("smoother", hmm.smoother(params, emissions).smoothed_probs)
fitted, losses = hmm.fit_em(params, properties, emissions, num_iters=3, verbose=False)
show("em", losses)
kalman = LinearGaussianSSM(state_dim=2, emission_dim=1)
params, properties = kalman.initialize(key)
_, emissions = kalman.sample(params, key, num_timesteps=10)
show("kalman", kalman.filter(params, emissions).filtered_means, kalman.smoother(params, emissions).smoothed_means)
show("grad", jax.grad(lambda e: kalman.marginal_log_prob(params, e))(jnp.asarray(emissions)))
show("parallel smoother", parallel_inference.lgssm_smoother(params, emissions).smoothed_means)
