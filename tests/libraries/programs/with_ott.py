"""ott: optimal transport by Sinkhorn's algorithm, with gradients through its fixed point."""

import jax
import jax.numpy as jnp
from common import show
from ott.geometry import geometry, pointcloud
from ott.problems.linear import linear_problem
from ott.solvers import linear
from ott.solvers.linear import sinkhorn
from ott.tools import sinkhorn_divergence

x, y = jax.random.normal(jax.random.key(0), (6, 2)), jax.random.normal(jax.random.key(1), (5, 2)) + 1
cloud = pointcloud.PointCloud(x, y, epsilon=0.5)
solution = linear.solve(cloud)
show("cost", solution.reg_ot_cost, solution.matrix, solution.converged)
show("grad", jax.grad(lambda x: linear.solve(pointcloud.PointCloud(x, y, epsilon=0.5)).reg_ot_cost)(x))
problem = linear_problem.LinearProblem(cloud, tau_a=0.9)
show("unbalanced", jax.jit(sinkhorn.Sinkhorn())(problem).reg_ot_cost)
show("matrix", linear.solve(geometry.Geometry(jnp.abs(x[:, :1] - y[:, 0]), epsilon=0.5)).f)
show("divergence", sinkhorn_divergence.sinkdiv(x, y, epsilon=0.5)[0])
