"""tinygp: likelihood and predictions of Gaussian processes."""

import jax
import jax.numpy as jnp
from common import show
from tinygp import GaussianProcess, kernels
from tinygp.test_utils import assert_allclose

x = jnp.linspace(0, 1, 10)
y = jnp.sin(6 * x)


def loss(p):
    process = GaussianProcess(jnp.exp(p[0]) * kernels.Matern32(jnp.exp(p[1])), x, diag=0.01)
    return -process.log_probability(y)


show("loss", jax.jit(jax.value_and_grad(loss))(jnp.zeros(2)))
for kernel in (kernels.quasisep.Matern32(1.0), kernels.ExpSquared(0.5) + kernels.Constant(0.1)):
    _, condition = GaussianProcess(kernel, x, diag=0.01).condition(y, jnp.array([0.5, 0.7]))
    show(type(kernel).__name__, condition.mean, condition.variance)
carma = kernels.quasisep.CARMA(alpha=jnp.array([1.2, 0.6]), beta=jnp.array([1.0, 0.3]))
show("carma", GaussianProcess(carma, x, diag=0.1).log_probability(y))
precise = GaussianProcess(kernels.quasisep.Matern32(1.0), x, diag=0.01)
assert_allclose(precise.log_probability(y), GaussianProcess(kernels.Matern32(1.0), x, diag=0.01).log_probability(y))
try:
    assert_allclose(precise.variance, 2 * precise.variance)
    show("compared", 0)
except AssertionError:
    show("compared", 1, precise.variance)
