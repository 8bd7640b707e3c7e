"""matfree: functions of large matrices by products with vectors."""

import jax
import jax.numpy as jnp
from common import show
from matfree import decomp, funm, stochtrace

A = jnp.reshape(jnp.arange(12.0), (6, 2)) / 10
A = A @ A.T + jnp.diag(jnp.arange(1.0, 7))
sampler = stochtrace.sampler_signs(jnp.ones(6), num=4)
for problem in (
    stochtrace.monte_carlo_trace(),
    stochtrace.monte_carlo_diagonal(),
    stochtrace.monte_carlo_frobeniusnorm_squared(),
):
    estimate = stochtrace.estimator_monte_carlo(problem, sampler=sampler)
    show("estimate", jax.jit(lambda key: estimate(lambda v: A @ v, key))(jax.random.key(1)))
tridiagonal = decomp.tridiag_sym(4, reortho="full")
logdet = stochtrace.estimator_monte_carlo(funm.monte_carlo_funm_sym_logdet(tridiagonal), sampler=sampler)
show("logdet", logdet(lambda v: A @ v, jax.random.key(3)))
show("gradient", jax.grad(lambda s: logdet(lambda v, s: s * (A @ v), jax.random.key(3), s))(1.5))
