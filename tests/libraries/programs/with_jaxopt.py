"""jaxopt: solvers with implicit gradients."""

import jax
import jax.numpy as jnp
import jaxopt
from common import data, show

x, y = data()
y = y[:, 0]


def ridge(w, l2):
    return jnp.mean((x @ w - y) ** 2) + 0.5 * l2 * jnp.sum(w**2)


w0 = jnp.zeros(2)
for solver in (
    jaxopt.GradientDescent(ridge, maxiter=50),
    jaxopt.LBFGS(ridge, maxiter=20),
    jaxopt.BFGS(ridge, maxiter=20),
    jaxopt.NonlinearCG(ridge, maxiter=20),
):
    show(type(solver).__name__, solver.run(w0, l2=0.1).params)
show(
    "implicit", jax.jacobian(lambda l2: jaxopt.LBFGS(ridge, maxiter=50, implicit_diff=True).run(w0, l2=l2).params)(0.1)
)
show(
    "projection",
    jaxopt.projection.projection_simplex(jnp.array([0.5, 1.0, -0.2])),
    jaxopt.projection.projection_l1_ball(jnp.array([2.0, -3.0]), 1.0),
)
lasso = jaxopt.ProximalGradient(lambda w, d: jnp.mean((d[0] @ w - d[1]) ** 2), jaxopt.prox.prox_lasso, maxiter=50)
show("lasso", lasso.run(w0, hyperparams_prox=0.05, d=(x, y)).params)
show("bisection", jaxopt.Bisection(lambda v: v**3 - 2, 0.0, 2.0).run().params)
show("fixed point", jaxopt.FixedPointIteration(lambda v: jnp.cos(v), maxiter=60).run(jnp.float32(0.5)).params)
show("anderson", jaxopt.AndersonAcceleration(lambda v: jnp.cos(v) * jnp.ones(2), maxiter=30).run(jnp.zeros(2)).params)
show("cg", jaxopt.linear_solve.solve_cg(lambda v: jnp.array([[2.0, 0.5], [0.5, 1.0]]) @ v, jnp.ones(2)))
qp = jaxopt.EqualityConstrainedQP()
show("qp", qp.run(params_obj=(jnp.eye(2), jnp.ones(2)), params_eq=(jnp.ones((1, 2)), jnp.ones(1))).params.primal)
show(
    "osqp",
    jaxopt.BoxOSQP()
    .run(params_obj=(jnp.eye(2), jnp.ones(2)), params_eq=jnp.eye(2), params_ineq=(-jnp.ones(2), jnp.ones(2)))
    .params.primal[0],
)
show(
    "loss",
    jaxopt.loss.multiclass_logistic_loss(1, jnp.arange(3.0)),
    jaxopt.loss.multiclass_sparsemax_loss(1, jnp.arange(3.0)),
)
