"""jaxns: nested sampling."""

import jax
import jax.numpy as jnp
import tensorflow_probability.substrates.jax as tfp
from common import show
from jaxns.core import NestedSampler
from jaxns.model import Model
from jaxns.priors import Prior
from jaxns.sampling.ellipsoid import log_ellipsoid_volume

tfpd = tfp.distributions


def line(x, y, error):
    """The likelihood of a line through points."""
    intercept = Prior(tfpd.Normal(loc=0.0, scale=1.0), name="intercept").realise()
    slope = Prior(tfpd.Normal(loc=0.0, scale=2.0), name="slope").realise()
    return jnp.sum(tfpd.Normal(loc=intercept + slope * x, scale=error).log_prob(y))


model = Model(prior_model=line)
points = (jnp.linspace(0.0, 1.0, 6), jnp.asarray([0.15, 0.32, 0.83, 1.08, 1.52, 1.77]), jnp.asarray(0.15))
unit = model.sample_U(jax.random.PRNGKey(0), args=points)
show("prior", unit, model.transform_to_X(unit, args=points))
show("likelihood", model.log_likelihood(unit, args=points), model.log_joint(unit, args=points))
show("gradient", jax.grad(lambda u: model.log_likelihood(u, args=points))(unit))
results = NestedSampler(model=model).run(key=jax.random.PRNGKey(6), args=points).to_result().trim()
show("evidence", results.log_Z_mean)
show("ellipsoid", log_ellipsoid_volume(jnp.array([0.5, 2.0])))
