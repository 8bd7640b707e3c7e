"""jax-cfd: fluids on staggered grids, and by Fourier transforms."""

import jax
import jax.numpy as jnp
import jax_cfd.base as cfd
import jax_cfd.spectral as spectral
from common import show
from jax_cfd.base import grids

grid = cfd.grids.Grid((16, 16), domain=((0, 2 * jnp.pi), (0, 2 * jnp.pi)))
velocity = cfd.initial_conditions.filtered_velocity_field(jax.random.PRNGKey(0), grid, 3.0, 4)
show("initial", [u.data for u in velocity])
dt = cfd.equations.stable_time_step(3.0, 0.5, 1e-2, grid)
step = cfd.equations.semi_implicit_navier_stokes(density=1.0, viscosity=1e-2, dt=dt, grid=grid)
rollout = jax.jit(cfd.funcutils.trajectory(cfd.funcutils.repeated(step, 2), 3))
_, trajectory = rollout(velocity)
show("trajectory", [u.data for u in trajectory])
show("vorticity", cfd.finite_differences.curl_2d(velocity).data, cfd.finite_differences.divergence(velocity).data)


def energy(scale):
    moved = cfd.funcutils.repeated(step, 2)(tuple(grids.GridVariable(u.array * scale, u.bc) for u in velocity))
    return sum((u.data**2).mean() for u in moved)


show("gradient", jax.grad(energy)(1.0))
vorticity = cfd.finite_differences.curl_2d(velocity).data
equation = spectral.equations.NavierStokes2D(1e-2, grid, smooth=True)
crank = spectral.time_stepping.crank_nicolson_rk4(equation, dt)
_, steps = jax.jit(cfd.funcutils.trajectory(cfd.funcutils.repeated(crank, 2), 3))(jnp.fft.rfftn(vorticity))
show("spectral", jnp.fft.irfftn(steps, axes=(1, 2)))
