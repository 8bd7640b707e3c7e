"""jaxopt: constrained, stochastic and least-squares solvers, their states under jit and vmap, implicit gradients."""

import jax
import jax.numpy as jnp
import jaxopt
import optax
from common import data, show
from jaxopt import projection as p

x, y = data()
y = y[:, 0]
w0 = jnp.zeros(2)
key = jax.random.PRNGKey(0)


def squares(w, l2, x=x, y=y):
    return 0.5 * jnp.mean((x @ w - y) ** 2) + 0.5 * l2 * jnp.sum(w**2)


def logistic(w, d):
    return jnp.mean(jaxopt.loss.binary_logistic_loss(d[1], d[0] @ w)) + 0.01 * jnp.sum(w**2)


# --- constrained
for name, project, hyper in (
    ("simplex", p.projection_simplex, 1.0),
    ("box", p.projection_box, (-0.2, 0.3)),
    ("l1", p.projection_l1_ball, 0.5),
    ("l2", p.projection_l2_ball, 0.5),
    ("non-negative", p.projection_non_negative, None),
    ("hyperplane", p.projection_hyperplane, (jnp.ones(2), 0.4)),
    ("half space", p.projection_halfspace, (jnp.ones(2), 0.4)),
):
    solver = jaxopt.ProjectedGradient(squares, project, maxiter=40)
    show(name, solver.run(w0 + 0.1, hyperparams_proj=hyper, l2=0.01).params)
show("l-bfgs-b", jaxopt.LBFGSB(squares, maxiter=20).run(w0, bounds=(w0 - 0.1, w0 + 0.3), l2=0.01).params)
show(
    "box by scipy",
    jaxopt.ScipyBoundedMinimize(fun=squares, method="l-bfgs-b").run(w0, bounds=(w0 - 0.1, w0 + 0.3), l2=0.01).params,
)
show("scipy", jaxopt.ScipyMinimize(fun=squares, method="bfgs").run(w0, l2=0.01).params)
more = (
    p.projection_transport((jnp.arange(4.0).reshape(2, 2)), (jnp.array([0.4, 0.6]), jnp.array([0.5, 0.5]))),
    p.projection_birkhoff(jnp.arange(4.0).reshape(2, 2)),
    p.projection_affine_set(jnp.arange(3.0), (jnp.ones((1, 3)), jnp.ones(1))),
    p.projection_polyhedron(
        jnp.arange(3.0), (jnp.ones((1, 3)), jnp.ones(1), -jnp.eye(3), jnp.zeros(3)), check_feasible=False
    ),
)
show("sets", *more)
for name in ("prox_lasso", "prox_elastic_net", "prox_group_lasso", "prox_ridge", "prox_non_negative_ridge"):
    hyper = (0.1, 0.2) if name == "prox_elastic_net" else 0.1
    show(name, getattr(jaxopt.prox, name)(jnp.array([0.5, -1.0, 0.05]), hyper))

# --- proximal, blockwise, least squares, roots
show("fista", jaxopt.ProximalGradient(logistic, jaxopt.prox.prox_lasso, maxiter=30).run(w0, 0.01, (x, y > 0)).params)
blocks = jaxopt.BlockCoordinateDescent(jaxopt.objective.least_squares, jaxopt.prox.prox_lasso, maxiter=20)
show("blocks", blocks.run(w0, 0.01, (x, y)).params)
for solver in (
    jaxopt.GaussNewton(lambda w: jnp.tanh(x @ w) - y, maxiter=10),
    jaxopt.LevenbergMarquardt(lambda w: jnp.tanh(x @ w) - y, maxiter=10),
):
    show(type(solver).__name__, solver.run(w0 + 0.1).params)
show("broyden", jaxopt.Broyden(lambda v, a: v**3 + v - a, maxiter=20).run(jnp.ones(2), jnp.array([1.0, 3.0])).params)
show(
    "scipy root", jaxopt.ScipyRootFinding(optimality_fun=lambda v: v**3 + v - 1, method="hybr").run(jnp.ones(1)).params
)

# --- stochastic
d = (x, (y > 0).astype(jnp.float32))
batches = [(x[i : i + 8], d[1][i : i + 8]) for i in range(0, 32, 8)]
for solver in (
    jaxopt.OptaxSolver(logistic, optax.adam(0.1), maxiter=8),
    jaxopt.PolyakSGD(logistic, maxiter=8, max_stepsize=1.0),
    jaxopt.ArmijoSGD(logistic, maxiter=8),
):
    state, w = solver.init_state(w0, d=batches[0]), w0
    update = jax.jit(solver.update)
    for batch in batches:
        w, state = update(w, state, d=batch)
    show(type(solver).__name__, w, solver.l2_optimality_error(w, d=d))

# --- implicit gradients
for solver in (
    jaxopt.GradientDescent(squares, maxiter=100, tol=1e-6),
    jaxopt.LBFGS(squares, maxiter=50),
    jaxopt.NonlinearCG(squares, maxiter=50),
):
    name = type(solver).__name__
    show("d" + name, jax.jacobian(lambda l2, s=solver: s.run(w0, l2=l2).params)(0.1))
    show("vmap" + name, jax.vmap(lambda l2, s=solver: s.run(w0, l2=l2).params)(jnp.array([0.1, 1.0])))
unrolled = jaxopt.GradientDescent(squares, maxiter=20, implicit_diff=False, unroll=True)
show("unrolled", jax.jacobian(lambda l2: unrolled.run(w0, l2=l2).params)(0.1))
lasso = jaxopt.ProximalGradient(jaxopt.objective.least_squares, jaxopt.prox.prox_lasso, maxiter=100)
show("dlasso", jax.jacobian(lambda l1: lasso.run(w0, l1, (x, y)).params)(0.02))


@jaxopt.implicit_diff.custom_root(jax.grad(squares))
def ridge(init, l2):
    return jnp.linalg.solve(x.T @ x / len(x) + l2 * jnp.eye(2), x.T @ y / len(x))


@jaxopt.implicit_diff.custom_fixed_point(lambda v, a: jnp.cos(a * v))
def fixed(init, a):
    return jax.lax.fori_loop(0, 60, lambda _, v: jnp.cos(a * v), init)


show("root", jax.jacrev(ridge, argnums=1)(None, 0.1))
show("fixed point", jax.grad(lambda a: fixed(jnp.float32(0.5), a))(0.9))
show("root_vjp", jaxopt.implicit_diff.root_vjp(jax.grad(squares), ridge(None, 0.1), (0.1,), jnp.ones(2)))
show("root_jvp", jaxopt.implicit_diff.root_jvp(jax.grad(squares), ridge(None, 0.1), (0.1,), (1.0,)))
show("dbisection", jax.grad(lambda a: jaxopt.Bisection(lambda v, a: v**3 - a, 0.0, 3.0).run(a=a).params)(2.0))
show("dprojection", jax.jacobian(p.projection_simplex)(jnp.array([0.5, 0.7, -0.2])))

# --- quadratic programs
Q, c = jnp.array([[2.0, 0.5], [0.5, 1.0]]), jnp.array([1.0, 1.0])
A, b, G, h = jnp.ones((1, 2)), jnp.ones(1), -jnp.eye(2), jnp.zeros(2)
osqp = jaxopt.OSQP()
show("osqp", osqp.run(params_obj=(Q, c), params_eq=(A, b), params_ineq=(G, h)).params.primal)
show("dosqp", jax.grad(lambda c: osqp.run(params_obj=(Q, c), params_eq=(A, b), params_ineq=(G, h)).params.primal[0])(c))
show(
    "matrix-free",
    jaxopt.EqualityConstrainedQP(matvec_Q=lambda q, v: q @ v, matvec_A=lambda a, v: a @ v)
    .run(params_obj=(Q, c), params_eq=(A, b))
    .params.primal,
)
for name in ("solve_cholesky", "solve_inv", "solve_lu"):
    show(name, getattr(jaxopt.linear_solve, name)(lambda v: Q @ v, c))
for name in ("solve_cg", "solve_bicgstab", "solve_gmres", "solve_normal_cg"):
    show(name, getattr(jaxopt.linear_solve, name)(lambda v: Q @ v, c, ridge=0.1))
show("refined", jaxopt.IterativeRefinement().run(None, Q, c).params)
show("tree", jaxopt.tree_util.tree_l2_norm({"a": c, "b": Q}), jaxopt.tree_util.tree_add_scalar_mul(c, 2.0, c))
show("isotonic", jaxopt.isotonic.isotonic_l2_pav(jnp.array([3.0, 1.0, 2.0])) if hasattr(jaxopt, "isotonic") else 0)
