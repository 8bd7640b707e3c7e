"""tfp on jax: Markov chains, bijectors, joint distributions, Gaussian processes, variational inference, optimizers."""

import jax
import jax.numpy as jnp
from common import show
from tensorflow_probability.substrates import jax as tfp

tfd, tfb = tfp.distributions, tfp.bijectors
key = jax.random.PRNGKey(0)
start = jnp.array([0.1, -0.3])


def log_density(x):
    return -0.5 * jnp.sum(x**2, -1) - 0.1 * jnp.sum(x, -1)


# --- Markov chains: the first steps, which rounding does not move
kernels = {
    "hmc": tfp.mcmc.HamiltonianMonteCarlo(log_density, step_size=0.1, num_leapfrog_steps=3),
    "nuts": tfp.mcmc.NoUTurnSampler(log_density, step_size=0.2, max_tree_depth=3),
    "mala": tfp.mcmc.MetropolisAdjustedLangevinAlgorithm(log_density, step_size=0.05),
    "walk": tfp.mcmc.RandomWalkMetropolis(log_density),
    "slice": tfp.mcmc.SliceSampler(log_density, step_size=0.5, max_doublings=2),
    "adaptive": tfp.mcmc.SimpleStepSizeAdaptation(
        tfp.mcmc.HamiltonianMonteCarlo(log_density, step_size=0.1, num_leapfrog_steps=2), num_adaptation_steps=3
    ),
    "dual": tfp.mcmc.DualAveragingStepSizeAdaptation(
        tfp.mcmc.NoUTurnSampler(log_density, step_size=0.1, max_tree_depth=2), num_adaptation_steps=3
    ),
    "transformed": tfp.mcmc.TransformedTransitionKernel(
        tfp.mcmc.HamiltonianMonteCarlo(lambda x: log_density(x), step_size=0.1, num_leapfrog_steps=2), tfb.Softplus()
    ),
}
for name, kernel in kernels.items():
    run = jax.jit(lambda key, x, kernel=kernel: tfp.mcmc.sample_chain(4, x, kernel=kernel, trace_fn=None, seed=key))
    show(name, run(key, start + 0.5))
chains = jnp.sin(jnp.arange(60.0)).reshape(20, 3)
show("diagnostics", tfp.mcmc.effective_sample_size(chains), tfp.mcmc.potential_scale_reduction(chains))

# --- bijectors
x = jnp.array([0.2, 0.5, 0.9])
for name, b in {
    "softplus": tfb.Softplus(),
    "chain": tfb.Chain([tfb.Shift(1.0), tfb.Scale(2.0), tfb.Exp()]),
    "inverse": tfb.Invert(tfb.Sigmoid()),
    "tanh": tfb.Tanh(),
    "power": tfb.Power(3.0),
    "sinh": tfb.SinhArcsinh(0.5, 1.2),
    "cholesky": tfb.Chain([tfb.FillScaleTriL()]),
    "simplex": tfb.SoftmaxCentered(),
    "cumulative": tfb.Cumsum(),
    "permute": tfb.Permute([2, 0, 1]),
    "spline": tfb.RationalQuadraticSpline(jnp.ones(3) / 1.5, jnp.array([0.5, 0.7, 0.8]), jnp.array([1.0, 2.0]), -1.0),
    "ascending": tfb.Ascending(),
    "weibull": tfb.WeibullCDF(2.0, 1.0),
}.items():
    y = b.forward(x)
    rank = b.forward_min_event_ndims
    show(name, y, b.inverse(y), b.forward_log_det_jacobian(x, rank))

# --- distributions
for d in (
    tfd.Gamma(2.0, 3.0),
    tfd.StudentT(3.0, 0.0, 1.0),
    tfd.MultivariateNormalTriL(jnp.zeros(2), jnp.array([[1.0, 0.0], [0.5, 2.0]])),
    tfd.Dirichlet(jnp.array([1.0, 2.0, 3.0])),
    tfd.Mixture(tfd.Categorical(probs=jnp.array([0.3, 0.7])), [tfd.Normal(0.0, 1.0), tfd.Normal(3.0, 1.0)]),
    tfd.LKJ(3, 1.5),
    tfd.WishartTriL(4.0, jnp.eye(2)),
    tfd.VonMises(0.0, 2.0),
    tfd.NegativeBinomial(3.0, probs=0.4),
    tfd.TruncatedNormal(0.0, 1.0, -1.0, 2.0),
    tfd.HalfNormal(2.0),
    tfd.Weibull(2.0, 1.0),
    tfd.TransformedDistribution(tfd.Normal(0.0, 1.0), tfb.Exp()),
    tfd.Sample(tfd.Normal(0.0, 1.0), 3),
    tfd.MarkovChain(tfd.Normal(0.0, 1.0), lambda _, x: tfd.Normal(0.5 * x, 1.0), num_steps=4),
    tfd.Logistic(0.0, 1.0),
):
    value = d.sample(2, seed=key)
    show(type(d).__name__, value, d.log_prob(value))
show("kl", tfd.kl_divergence(tfd.Normal(0.0, 1.0), tfd.Normal(1.0, 2.0)), tfd.Gamma(2.0, 1.0).entropy())
model = tfd.JointDistributionNamed(
    {
        "scale": tfd.Exponential(1.0),
        "mean": tfd.Normal(0.0, 1.0),
        "x": lambda mean, scale: tfd.Sample(tfd.Normal(mean, scale), 3),
    }
)
sample = model.sample(seed=key)
show("joint", sample, model.log_prob(sample), jax.grad(model.log_prob)(sample))


@tfd.JointDistributionCoroutineAutoBatched
def steps():
    first = yield tfd.Normal(0.0, 1.0, name="first")
    yield tfd.Normal(first, 1.0, name="second")


show("coroutine", steps.sample(2, seed=key), steps.log_prob(steps.sample(2, seed=key)))

# --- Gaussian processes, optimizers, quadrature
points = jnp.linspace(0, 1, 5)[:, None]
kernel = tfp.math.psd_kernels.ExponentiatedQuadratic(1.0, 0.3)
gp = tfd.GaussianProcessRegressionModel(
    kernel,
    index_points=points + 0.1,
    observation_index_points=points,
    observations=jnp.sin(points[:, 0]),
    observation_noise_variance=0.01,
)
show("gp", gp.mean(), gp.stddev(), kernel.matrix(points, points))
loss = lambda p: jnp.sum((p - jnp.array([1.0, 2.0])) ** 2) + jnp.prod(p)
found = tfp.optimizer.lbfgs_minimize(jax.value_and_grad(loss), start, tolerance=1e-6, max_iterations=10)
show("lbfgs", found.position)
show("nelder", tfp.optimizer.nelder_mead_minimize(loss, initial_vertex=start, max_iterations=10).position)
show("special", tfp.math.lambertw(x), tfp.math.betainc(2.0, 3.0, x), tfp.math.bessel_ive(1.0, x), tfp.math.log_cosh(x))
show("interpolated", tfp.math.interp_regular_1d_grid(x, 0.0, 1.0, jnp.arange(5.0)))
show(
    "statistics",
    tfp.stats.covariance(chains),
    tfp.stats.percentile(chains, 30.0),
    tfp.stats.auto_correlation(chains[:, 0]),
)
