"""optimistix: roots, fixed points, minima and least squares, with gradients."""

import jax
import jax.numpy as jnp
import optax
import optimistix as optx
from common import show


def cubic(y, a):
    return y**3 - a


show("newton", optx.root_find(cubic, optx.Newton(1e-6, 1e-6), jnp.float32(1.0), jnp.float32(5.0)).value)
show("chord", optx.root_find(cubic, optx.Chord(1e-6, 1e-6), jnp.float32(1.5), jnp.float32(5.0)).value)
show(
    "bisection",
    optx.root_find(
        cubic, optx.Bisection(1e-6, 1e-6), jnp.float32(1.0), jnp.float32(5.0), options={"lower": 0.0, "upper": 3.0}
    ).value,
)
show(
    "fixed point",
    optx.fixed_point(
        lambda y, a: jnp.cos(a * y), optx.FixedPointIteration(1e-6, 1e-6), jnp.float32(0.5), jnp.float32(0.9)
    ).value,
)
grad = jax.grad(lambda a: optx.root_find(cubic, optx.Newton(1e-6, 1e-6), jnp.float32(1.0), a).value)
show("implicit gradient", grad(jnp.float32(5.0)))


def rosenbrock(y, args):
    return jnp.stack([10 * (y[1] - y[0] ** 2), 1 - y[0]])


start = jnp.array([-1.2, 1.0])
for solver in (optx.LevenbergMarquardt(1e-6, 1e-6), optx.GaussNewton(1e-6, 1e-6), optx.Dogleg(1e-6, 1e-6)):
    show(type(solver).__name__, optx.least_squares(rosenbrock, solver, start, max_steps=512).value)


def energy(y, args):
    return jnp.sum(rosenbrock(y, args) ** 2)


for solver in (optx.BFGS(1e-5, 1e-5), optx.NelderMead(1e-5, 1e-5), optx.OptaxMinimiser(optax.adam(0.05), 1e-4, 1e-4)):
    found = optx.minimise(energy, solver, start, max_steps=3000, throw=False)
    show(type(solver).__name__, jnp.round(found.value, 2))
