"""blackjax: HMC and its relatives, adaptation, sequential Monte Carlo, stochastic gradients, variational inference."""

import blackjax
import jax
import jax.numpy as jnp
import optax
from common import data, show

key = jax.random.key(0)
x, y = data(16)
y = y[:, 0]


def log_prior(w):
    return -0.5 * jnp.sum(w**2)


def log_likelihood(w):
    return -0.5 * jnp.sum((x @ w - y) ** 2) / 0.3


def log_density(w):
    return log_prior(w) + log_likelihood(w)


def walk(kernel, state, steps=4):
    """The states of some steps, in one program."""

    def one(state, key):
        state, _ = kernel.step(key, state)
        return state, state

    return jax.lax.scan(one, state, jax.random.split(key, steps))[1]


start = jnp.array([0.1, -0.2])
mass = jnp.ones(2)
kernels = {
    "hmc": blackjax.hmc(log_density, 0.05, mass, 4),
    "dense": blackjax.hmc(log_density, 0.05, jnp.array([[1.0, 0.3], [0.3, 2.0]]), 4),
    "nuts": blackjax.nuts(log_density, 0.1, mass),
    "mala": blackjax.mala(log_density, 0.01),
    "ghmc": blackjax.ghmc(log_density, 0.05, mass, 0.3, 0.1),
    "barker": blackjax.barker_proposal(log_density, 0.1),
    "dynamic": blackjax.dynamic_hmc(log_density, 0.05, mass),
    "mclmc": blackjax.mclmc(log_density, 0.5, 0.1),
    "elliptical": blackjax.elliptical_slice(log_likelihood, mean=jnp.zeros(2), cov=jnp.eye(2)),
    "slice": blackjax.slice_sampling(log_density) if hasattr(blackjax, "slice_sampling") else None,
    "irmh": blackjax.irmh(log_density, lambda k: jax.random.normal(k, (2,))),
}
for name, kernel in kernels.items():
    if kernel is not None:
        needs_key = name in ("ghmc", "dynamic", "mclmc")
        state = kernel.init(start, key) if needs_key else kernel.init(start)
        show(name, walk(kernel, state).position)
mapped = jax.vmap(kernels["hmc"].init)(jnp.stack([start, start + 1, start - 1]))
step = jax.jit(jax.vmap(kernels["hmc"].step))
for each in jax.random.split(key, 3):
    mapped, info = step(jax.random.split(each, 3), mapped)
show("chains", mapped.position, info.acceptance_rate)

# --- adaptation
(state, parameters), _ = blackjax.window_adaptation(blackjax.nuts, log_density).run(key, start, num_steps=20)
show("window", parameters["inverse_mass_matrix"].shape, state.position.shape)
warm = blackjax.chees_adaptation(log_density, 3)
(states, parameters), _ = warm.run(key, jnp.stack([start, start + 1, start - 1]), 0.1, optax.adam(0.02), 3)
show("chees", states.position.shape)
path, _ = blackjax.pathfinder.approximate(key, log_density, start, num_samples=20)
show("pathfinder", path.position)

# --- sequential Monte Carlo
particles = jax.random.normal(key, (8, 2))
smc = blackjax.tempered_smc(
    log_prior,
    log_likelihood,
    blackjax.hmc.build_kernel(),
    blackjax.hmc.init,
    blackjax.smc.extend_params({"step_size": 0.05, "inverse_mass_matrix": mass, "num_integration_steps": 3}),
    blackjax.smc.resampling.systematic,
    num_mcmc_steps=2,
)
state = smc.init(particles)
for i in range(2):
    state, info = jax.jit(smc.step)(jax.random.fold_in(key, i), state, 0.1 * (i + 1))
show("tempered", state.particles, state.weights)
adaptive = blackjax.adaptive_tempered_smc(
    log_prior,
    log_likelihood,
    blackjax.hmc.build_kernel(),
    blackjax.hmc.init,
    blackjax.smc.extend_params({"step_size": 0.05, "inverse_mass_matrix": mass, "num_integration_steps": 3}),
    blackjax.smc.resampling.stratified,
    0.5,
    num_mcmc_steps=1,
)
state, info = jax.jit(adaptive.step)(key, adaptive.init(particles))
show("adaptive", state.particles)
weights = jnp.arange(1.0, 9.0) / 36
for name in ("systematic", "stratified", "multinomial", "residual"):
    show(name, getattr(blackjax.smc.resampling, name)(key, weights, 8))
show("ess", blackjax.smc.ess.ess(jnp.log(weights)))

# --- stochastic gradients
gradient = blackjax.sgmcmc.gradients.grad_estimator(
    log_prior, lambda w, batch: -0.5 * jnp.sum((batch[0] @ w - batch[1]) ** 2) / 0.3, 16
)
batch = (x[:4], y[:4])
sgld, sghmc = blackjax.sgld(gradient), blackjax.sghmc(gradient, 3)
show("sgld", sgld.step(key, sgld.init(start), batch, 1e-3))
show("sghmc", sghmc.step(key, sghmc.init(start), batch, 1e-3))

# --- variational inference
fit = blackjax.meanfield_vi(log_density, optax.adam(0.05), 5)
state = fit.init(start)
for i in range(4):
    state, info = jax.jit(fit.step)(jax.random.fold_in(key, i), state)
show("mean field", state.mu, state.rho, info.elbo, fit.sample(key, state, 2))
svgd = blackjax.svgd(jax.grad(log_density), optax.sgd(0.01))
state = svgd.init(particles)
for _ in range(3):
    state = jax.jit(svgd.step)(state)
show("svgd", state.particles)

# --- diagnostics
chains = jnp.sin(jnp.arange(80.0)).reshape(2, 40)
show("diagnostics", blackjax.diagnostics.potential_scale_reduction(chains), blackjax.ess(chains), blackjax.rhat(chains))
