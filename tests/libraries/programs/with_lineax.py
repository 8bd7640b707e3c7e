"""lineax: linear operators and solvers, with gradients."""

import jax
import jax.numpy as jnp
import lineax as lx
from common import show

a = jnp.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
b = jnp.array([1.0, 2.0, 3.0])
symmetric = lx.MatrixLinearOperator(a, lx.positive_semidefinite_tag)
for solver in (lx.LU(), lx.QR(), lx.SVD(), lx.AutoLinearSolver(well_posed=True)):
    show(type(solver).__name__, lx.linear_solve(lx.MatrixLinearOperator(a), b, solver).value)
show("Cholesky", lx.linear_solve(symmetric, b, lx.Cholesky()).value)
for solver in (lx.CG(1e-6, 1e-6), lx.GMRES(1e-6, 1e-6), lx.BiCGStab(1e-6, 1e-6)):
    show(type(solver).__name__, lx.linear_solve(symmetric, b, solver).value)
f = lx.FunctionLinearOperator(lambda v: a @ v, jax.eval_shape(lambda: b))
show("function", f.as_matrix(), lx.linear_solve(f, b).value)
jacobian = lx.JacobianLinearOperator(lambda v, _: v**2 + a @ v, b)
show("jacobian", jacobian.as_matrix(), lx.linear_solve(jacobian, b).value)
show(
    "tridiagonal", lx.linear_solve(lx.TridiagonalLinearOperator(jnp.diag(a), jnp.diag(a, -1), jnp.diag(a, 1)), b).value
)
show("diagonal", lx.linear_solve(lx.DiagonalLinearOperator(b), b).value)
show("grad", jax.grad(lambda m: lx.linear_solve(lx.MatrixLinearOperator(m), b).value.sum())(a))
show("hessian", jax.hessian(lambda s: lx.linear_solve(lx.MatrixLinearOperator(a * s.sum()), b).value.sum())(b[:2]))
show("vmap", jax.vmap(lambda v: lx.linear_solve(symmetric, v).value)(jnp.eye(3)))
show("jit", jax.jit(lambda m: lx.linear_solve(lx.MatrixLinearOperator(m), b).value)(a))
show("least squares", lx.linear_solve(lx.MatrixLinearOperator(a[:, :2]), b, lx.QR()).value)
show("algebra", (symmetric + symmetric.T).as_matrix(), (2 * symmetric @ symmetric).mv(b))
