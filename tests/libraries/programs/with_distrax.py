"""distrax: distributions and bijectors."""

import distrax
import jax
import jax.numpy as jnp
from common import show

key = jax.random.PRNGKey(0)
distributions = {
    "normal": distrax.Normal(jnp.zeros(2), 2.0),
    "categorical": distrax.Categorical(jnp.array([0.1, 0.5, 1.0])),
    "bernoulli": distrax.Bernoulli(probs=jnp.array([0.2, 0.7])),
    "gamma": distrax.Gamma(2.0, 3.0),
    "beta": distrax.Beta(2.0, 3.0),
    "uniform": distrax.Uniform(-1.0, 2.0),
    "laplace": distrax.Laplace(0.0, 1.0),
    "multivariate": distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2)),
    "full": distrax.MultivariateNormalFullCovariance(jnp.zeros(2), jnp.array([[2.0, 0.5], [0.5, 1.0]])),
    "logistic": distrax.Logistic(0.0, 1.0),
    "gumbel": distrax.Gumbel(0.0, 1.0),
    "mixture": distrax.MixtureSameFamily(
        distrax.Categorical(probs=jnp.array([0.3, 0.7])), distrax.Normal(jnp.array([-1.0, 1.0]), jnp.ones(2))
    ),
    "transformed": distrax.Transformed(distrax.Normal(0.0, 1.0), distrax.Tanh()),
    "independent": distrax.Independent(distrax.Normal(jnp.zeros(3), 1.0), 1),
}
for name, d in distributions.items():
    sample, log_prob = d.sample_and_log_prob(seed=key, sample_shape=(3,))
    show(name, sample, log_prob, d.log_prob(sample))
show(
    "kl",
    distributions["normal"].kl_divergence(distrax.Normal(jnp.ones(2), 1.0)),
    distributions["categorical"].entropy(),
)
bijector = distrax.Chain([distrax.ScalarAffine(1.0, 2.0), distrax.Sigmoid()])
show("bijector", bijector.forward_and_log_det(jnp.arange(3.0)), bijector.inverse(jnp.float32(2.0)))
spline = distrax.RationalQuadraticSpline(jnp.linspace(-1, 1, 10), -1.0, 1.0)
show("spline", spline.forward(jnp.linspace(-1, 1, 5)))
show("grad", jax.grad(lambda s: distrax.Normal(0.0, s).log_prob(1.0))(2.0))
