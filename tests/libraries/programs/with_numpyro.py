"""numpyro: distributions, MCMC, variational inference, handlers."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from common import show
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

x = jnp.linspace(-1, 1, 20)
y = 0.5 + 2 * x


def model(x, y=None):
    a = numpyro.sample("a", dist.Normal(0.0, 1.0))
    b = numpyro.sample("b", dist.Normal(0.0, 1.0))
    sigma = numpyro.sample("sigma", dist.Exponential(1.0))
    with numpyro.plate("data", x.shape[0]):
        return numpyro.sample("y", dist.Normal(a + b * x, sigma), obs=y)


show("log density", numpyro.infer.util.log_density(model, (x, y), {}, {"a": 0.1, "b": 0.2, "sigma": 1.0})[0])
trace = numpyro.handlers.trace(numpyro.handlers.seed(model, 0)).get_trace(x)
show("trace", trace["a"]["value"], trace["y"]["value"])
mcmc = MCMC(NUTS(model), num_warmup=30, num_samples=30, progress_bar=False)
mcmc.run(jax.random.PRNGKey(0), x, y)
samples = mcmc.get_samples()
show("nuts", samples["a"].shape, abs(samples["b"].mean() - 2) < 0.5)
svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.05), Trace_ELBO())
result = svi.run(jax.random.PRNGKey(1), 20, x, y, progress_bar=False)
show("svi", result.losses)
show("predictive", Predictive(model, num_samples=2)(jax.random.PRNGKey(2), x)["y"])
for d in (
    dist.Beta(2.0, 3.0),
    dist.Gamma(2.0),
    dist.StudentT(3.0),
    dist.Poisson(2.0),
    dist.Dirichlet(jnp.ones(3)),
    dist.LKJCholesky(3),
    dist.HalfCauchy(1.0),
    dist.MultivariateNormal(jnp.zeros(2), jnp.eye(2)),
    dist.Weibull(1.0, 2.0),
    dist.TruncatedNormal(low=0.0),
):
    value = d.sample(jax.random.PRNGKey(3), (2,))
    show(type(d).__name__, value, d.log_prob(value))
show(
    "transform",
    dist.transforms.StickBreakingTransform()(jnp.array([0.1, 0.2])),
    dist.biject_to(dist.constraints.positive)(jnp.float32(1)),
)
