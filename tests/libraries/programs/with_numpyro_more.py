"""numpyro: sampling, inference by guides, predictions, handlers, models with structure."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import optax
from common import show
from numpyro import handlers
from numpyro.contrib.control_flow import cond, scan
from numpyro.infer import (
    HMC,
    MCMC,
    NUTS,
    SA,
    SVI,
    Predictive,
    Trace_ELBO,
    TraceMeanField_ELBO,
    autoguide,
    log_likelihood,
)
from numpyro.infer.reparam import LocScaleReparam

key = jax.random.PRNGKey(0)
effects = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
errors = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools(errors, y=None):
    mean = numpyro.sample("mean", dist.Normal(0, 5))
    spread = numpyro.sample("spread", dist.HalfCauchy(5))
    with numpyro.plate("school", len(errors)):
        effect = numpyro.sample("effect", dist.Normal(mean, spread))
        return numpyro.sample("y", dist.Normal(effect, errors), obs=y)


apart = handlers.reparam(schools, config={"effect": LocScaleReparam(0)})


def coins(n, y=None):
    bias = numpyro.sample("bias", dist.Beta(2.0, 2.0))
    with numpyro.plate("throws", n, subsample_size=8):
        if y is not None:
            y = numpyro.subsample(y, event_dim=0)
        numpyro.sample("y", dist.Bernoulli(bias), obs=y)


def walk(steps, y=None):
    drift = numpyro.sample("drift", dist.Normal(0.0, 1.0))

    def move(place, seen):
        place = numpyro.sample("place", dist.Normal(place + drift, 0.3))
        numpyro.sample("seen", dist.Normal(place, 0.5), obs=seen)
        return place, place

    return scan(move, jnp.float32(0), y, length=steps)[1]


# --- sampling: the first steps, which rounding does not move
for name, kernel in [
    ("nuts", NUTS(schools)),
    ("apart", NUTS(apart, target_accept_prob=0.9, dense_mass=True)),
    ("hmc", HMC(schools, step_size=0.1, num_steps=5, adapt_step_size=False)),
    ("sa", SA(schools)),
]:
    mcmc = MCMC(kernel, num_warmup=3, num_samples=4, progress_bar=False)
    mcmc.run(key, errors, y=effects, extra_fields=("potential_energy",))
    show(name, mcmc.get_samples(), mcmc.get_extra_fields())
mcmc = MCMC(NUTS(schools), num_warmup=200, num_samples=200, num_chains=2, chain_method="vectorized", progress_bar=False)
mcmc.run(key, errors, y=effects)
samples = mcmc.get_samples()
show("chains", samples["effect"].shape, abs(float(samples["mean"].mean()) - 4.4) < 2)
summary = numpyro.diagnostics.summary(mcmc.get_samples(group_by_chain=True))
show("summary", len(summary), summary["mean"]["r_hat"] < 1.2)
mcmc = MCMC(NUTS(walk), num_warmup=2, num_samples=3, progress_bar=False)
mcmc.run(key, 5, y=jnp.arange(5.0))
show("scan", mcmc.get_samples())

# --- guides
fixed = {"mean": jnp.float32(1), "spread": jnp.float32(2), "effect": jnp.arange(8.0)}
for guide in (
    autoguide.AutoNormal,
    autoguide.AutoDelta,
    autoguide.AutoDiagonalNormal,
    autoguide.AutoMultivariateNormal,
    autoguide.AutoLowRankMultivariateNormal,
    autoguide.AutoLaplaceApproximation,
    autoguide.AutoIAFNormal,
    autoguide.AutoBNAFNormal,
):
    made = guide(schools, init_loc_fn=numpyro.infer.init_to_value(values=fixed))
    svi = SVI(schools, made, optax.sgd(1e-4), Trace_ELBO(num_particles=2))
    result = svi.run(key, 4, errors, effects, progress_bar=False)
    show(guide.__name__, result.losses, made.sample_posterior(key, result.params, sample_shape=(2,))["mean"])
svi = SVI(coins, autoguide.AutoNormal(coins), numpyro.optim.Adam(0.05), TraceMeanField_ELBO())
flips = (jnp.arange(20) % 3 == 0).astype(jnp.float32)
show("subsampling", svi.run(key, 6, 20, flips, progress_bar=False).losses)

# --- predictions and handlers
show("prior", Predictive(schools, num_samples=3)(key, errors))
few = jax.tree.map(lambda v: v[:3], samples)
show("posterior", Predictive(schools, posterior_samples=few)(key, errors)["y"])
show("likelihood", log_likelihood(schools, few, errors, y=effects))
trace = handlers.trace(handlers.seed(handlers.substitute(schools, data=fixed), 1)).get_trace(errors)
show("substitute", trace["y"]["value"], trace["effect"]["fn"].log_prob(trace["effect"]["value"]))
changed = handlers.do(handlers.condition(schools, {"y": effects}), {"mean": jnp.float32(3)})
show("do", handlers.trace(handlers.seed(changed, 2)).get_trace(errors)["effect"]["value"])
with handlers.seed(rng_seed=3), handlers.scale(scale=0.5):
    show("block", handlers.block(schools, hide=["y"])(errors))
density, _ = numpyro.infer.util.log_density(schools, (errors, effects), {}, fixed)
show(
    "density", density, jax.grad(lambda v: numpyro.infer.util.log_density(schools, (errors, effects), {}, v)[0])(fixed)
)


def either(flag):
    return cond(
        flag,
        lambda _: numpyro.sample("z", dist.Normal(1.0)),
        lambda _: numpyro.sample("z", dist.Normal(-1.0)),
        None,
    )


with handlers.seed(rng_seed=4):
    show("cond", either(True))
info = numpyro.infer.util.initialize_model(key, schools, model_args=(errors,), model_kwargs={"y": effects})
show("initialize", info.param_info.z, info.potential_fn(info.param_info.z))

# --- distributions
for d in (
    dist.Binomial(10, probs=0.3),
    dist.NegativeBinomial2(3.0, 2.0),
    dist.ZeroInflatedPoisson(0.3, rate=2.0),
    dist.OrderedLogistic(0.3, jnp.array([-1.0, 0.5])),
    dist.VonMises(0.5, 2.0),
    dist.GaussianRandomWalk(0.5, num_steps=4),
    dist.MixtureSameFamily(dist.Categorical(jnp.array([0.3, 0.7])), dist.Normal(jnp.arange(2.0), 1.0)),
    dist.TransformedDistribution(dist.Normal(0.0, 1.0), [dist.transforms.ExpTransform()]),
    dist.Wishart(4.0, scale_matrix=jnp.eye(2)),
    dist.LogUniform(1.0, 5.0),
    dist.AsymmetricLaplace(0.0, 1.0, 2.0),
    dist.Kumaraswamy(2.0, 3.0),
    dist.DirichletMultinomial(jnp.ones(3), total_count=5),
    dist.BetaBinomial(2.0, 3.0, total_count=6),
    dist.CAR(0.0, 0.5, 1.0, jnp.array([[0.0, 1.0], [1.0, 0.0]])),
    dist.LowRankMultivariateNormal(jnp.zeros(3), jnp.ones((3, 1)), jnp.ones(3)),
    dist.MultivariateStudentT(3.0, jnp.zeros(2), jnp.eye(2)),
    dist.Levy(0.0, 1.0),
    dist.Logistic(0.0, 1.0).expand([2]).to_event(1),
    dist.TwoSidedTruncatedDistribution(dist.Normal(0.0, 1.0), -1.0, 2.0),
    dist.Delta(jnp.float32(1)),
    dist.Independent(dist.Gumbel(jnp.zeros(2), 1.0), 1),
):
    value = d.sample(key, (2,))
    show(type(d).__name__, value, d.log_prob(value))
show(
    "kl",
    dist.kl_divergence(dist.Normal(0.0, 1.0), dist.Normal(1.0, 2.0)),
    dist.kl_divergence(dist.Gamma(2.0, 1.0), dist.Gamma(3.0, 2.0)),
)
