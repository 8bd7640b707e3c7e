"""ott: optimal transport by Sinkhorn's algorithm, with gradients through its fixed point, and Gromov-Wasserstein."""

import jax
import jax.numpy as jnp
from common import show
from ott.geometry import costs, geometry, grid, pointcloud
from ott.math import utils as ott_math
from ott.problems.linear import barycenter_problem, linear_problem
from ott.problems.quadratic import quadratic_problem
from ott.solvers import linear
from ott.solvers.linear import acceleration, continuous_barycenter, sinkhorn
from ott.solvers.quadratic import gromov_wasserstein
from ott.tools import sinkhorn_divergence, unreg

x, y = jax.random.normal(jax.random.key(0), (6, 2)), jax.random.normal(jax.random.key(1), (5, 2)) + 1
cloud = pointcloud.PointCloud(x, y, epsilon=0.5)
solution = linear.solve(cloud)
show("cost", solution.reg_ot_cost, solution.matrix, solution.converged)
show("grad", jax.grad(lambda x: linear.solve(pointcloud.PointCloud(x, y, epsilon=0.5)).reg_ot_cost)(x))
problem = linear_problem.LinearProblem(cloud, tau_a=0.9)
show("unbalanced", jax.jit(sinkhorn.Sinkhorn())(problem).reg_ot_cost)
show("matrix", linear.solve(geometry.Geometry(jnp.abs(x[:, :1] - y[:, 0]), epsilon=0.5)).f)
show("divergence", sinkhorn_divergence.sinkdiv(x, y, epsilon=0.5)[0])

# --- costs with rules of their own, in one dimension, on grids
show("norm", jax.value_and_grad(lambda a: ott_math.norm(a * x, axis=1).sum())(1.5))
euclidean = lambda x: linear.solve(pointcloud.PointCloud(x, y, cost_fn=costs.Euclidean(), epsilon=0.5)).reg_ot_cost
show("euclidean", jax.value_and_grad(euclidean)(x))
line = linear.solve_univariate(pointcloud.PointCloud(x, x[::-1] + 1), return_transport=True)
show("univariate", line.ot_costs, line.mean_transport_matrix.todense())
warped = costs.SoftDTW(gamma=0.3)
show("time series", warped(x[:, 0], y[:, 0]), jax.grad(lambda a: warped(a, y[:, 0]))(x[:, 0]))
squares = grid.Grid(grid_size=(3, 4), epsilon=0.1)
show("grid", linear.solve(squares, a=jnp.arange(1.0, 13) / 78).f)
show("matching", unreg.wassdis_p(x[:5], y, p=1.5))
show("anderson", linear.solve(cloud, anderson=acceleration.AndersonAcceleration(memory=3, refresh_every=4)).g)

# --- several measures, other spaces
measures = barycenter_problem.FreeBarycenterProblem(
    jnp.concatenate([x, y]), jnp.ones(11) / 11, num_per_segment=(6, 5), max_measure_size=6, num_segments=2, epsilon=0.5
)
barycenter = continuous_barycenter.FreeWassersteinBarycenter(sinkhorn.Sinkhorn(), max_iterations=4)
show("barycenter", barycenter(measures, bar_size=4, rng=jax.random.key(2)).x)
spaces = quadratic_problem.QuadraticProblem(
    pointcloud.PointCloud(x), pointcloud.PointCloud(y), cloud, fused_penalty=2.0
)
show(
    "fused gromov",
    gromov_wasserstein.GromovWasserstein(sinkhorn.Sinkhorn(), epsilon=0.5, max_iterations=5)(spaces).matrix,
)
