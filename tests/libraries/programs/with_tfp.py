"""TensorFlow Probability on jax: distributions, bijectors, Markov chains, without TensorFlow."""

import jax
import jax.numpy as jnp
from common import show
from tensorflow_probability.substrates import jax as tfp

tfd, tfb = tfp.distributions, tfp.bijectors
key = jax.random.PRNGKey(0)
for d in (
    tfd.Normal(0.0, 1.0), tfd.Gamma(2.0, 1.0), tfd.Beta(2.0, 2.0), tfd.StudentT(3.0, 0.0, 1.0), tfd.Poisson(3.0),
    tfd.Dirichlet(jnp.ones(3)), tfd.MultivariateNormalTriL(jnp.zeros(2), jnp.eye(2)), tfd.Categorical(jnp.zeros(3)),
    tfd.MixtureSameFamily(tfd.Categorical(jnp.zeros(2)), tfd.Normal(jnp.array([-1.0, 1.0]), 1.0)), tfd.Cauchy(0.0, 1.0),
):  # fmt: skip
    sample = d.sample(3, seed=key)
    show(d.name, sample, d.log_prob(sample))
show("kl", tfd.kl_divergence(tfd.Normal(0.0, 1.0), tfd.Normal(1.0, 2.0)))
joint = tfd.JointDistributionSequential([tfd.Normal(0.0, 1.0), lambda z: tfd.Normal(z, 1.0)])
sample = joint.sample(seed=key)
show("joint", sample, joint.log_prob(sample))
chain = tfb.Chain([tfb.Exp(), tfb.Shift(1.0), tfb.Scale(2.0)])
show(
    "bijector",
    chain.forward(jnp.arange(3.0)),
    chain.inverse(jnp.float32(3)),
    chain.forward_log_det_jacobian(jnp.float32(1), 0),
)
kernel = tfp.mcmc.HamiltonianMonteCarlo(tfd.Normal(0.0, 1.0).log_prob, step_size=0.3, num_leapfrog_steps=3)
show(
    "hmc",
    jax.jit(lambda k: tfp.mcmc.sample_chain(5, current_state=jnp.float32(1), kernel=kernel, trace_fn=None, seed=k))(
        key
    ),
)
process = tfd.GaussianProcess(
    tfp.math.psd_kernels.ExponentiatedQuadratic(), jnp.linspace(0, 1, 4)[:, None], observation_noise_variance=0.1
)
show("process", process.log_prob(jnp.arange(4.0)))
show("minimum", tfp.optimizer.lbfgs_minimize(lambda p: (jnp.sum((p - 1) ** 2), 2 * (p - 1)), jnp.zeros(2)).position)
show("statistics", tfp.stats.percentile(jnp.arange(9.0), 30.0), tfp.math.lbeta(2.0, 3.0))
