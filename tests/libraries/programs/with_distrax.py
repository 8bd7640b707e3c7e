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
inferred = distrax.Lambda(lambda x: jnp.tanh(2.0 * x) + 1.0)
show("lambda", inferred.forward(jnp.arange(3.0)), inferred.inverse(jnp.array([0.5, 1.0, 1.5])))
show("lambda, log det", inferred.inverse_and_log_det(jnp.array([0.5, 1.0, 1.5])))
jitted = distrax.Lambda(jax.jit(lambda x: jnp.exp(x) / 3.0))
show("lambda, jitted", jitted.inverse(jnp.array([0.5, 1.0, 1.5])))
masked = distrax.MaskedCoupling(
    mask=jnp.arange(4) % 2 == 0,
    bijector=lambda p: distrax.ScalarAffine(p[..., 0], p[..., 1]),
    conditioner=lambda x: x[..., None] * jnp.array([0.1, 2.0]),
)
show("coupling", masked.forward_and_log_det(jnp.arange(4.0)), masked.inverse(jnp.arange(4.0)))
zeros = jnp.array([0.0, 0.3, 0.7])
show("gradient of an entropy", jax.grad(lambda p: distrax.Categorical(probs=p).entropy())(zeros))
show(
    "gradient of a multinomial",
    jax.grad(lambda p: distrax.Multinomial(5, probs=p).log_prob(jnp.array([0.0, 2.0, 3.0])))(zeros),
)
show(
    "divergence",
    jax.grad(lambda p: distrax.Categorical(probs=p).kl_divergence(distrax.Categorical(probs=jnp.ones(3) / 3)))(zeros),
)
show("grad", jax.grad(lambda s: distrax.Normal(0.0, s).log_prob(1.0))(2.0))
transformed = distrax.Transformed(distrax.Normal(zeros, 1.0), distrax.Lambda(jnp.tanh))
both = jax.jit(lambda d, value: (d.log_prob(value), d))(transformed, zeros / 2)
show("a distribution as result", both[0], both[1].distribution.loc)
