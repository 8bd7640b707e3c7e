"""traceax: estimates of the trace of a linear operator of lineax."""

import jax
import jax.numpy as jnp
import lineax
import traceax
from common import show

operator = lineax.MatrixLinearOperator(jnp.diag(jnp.arange(1.0, 6.0)) + 0.1)
for estimator in (traceax.HutchinsonEstimator(), traceax.HutchPlusPlusEstimator(), traceax.XTraceEstimator()):
    show(type(estimator).__name__, estimator.estimate(jax.random.key(0), operator, 4)[0])
