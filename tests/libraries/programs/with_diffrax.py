"""diffrax: ordinary and stochastic differential equations, saving, adjoints."""

import diffrax
import jax
import jax.numpy as jnp
from common import show


def field(t, y, a):
    return jnp.stack([y[1], -a * y[0]])


term, y0 = diffrax.ODETerm(field), jnp.array([1.0, 0.0])
for solver in (diffrax.Euler(), diffrax.Heun(), diffrax.Tsit5(), diffrax.Dopri5()):
    show(type(solver).__name__, diffrax.diffeqsolve(term, solver, 0.0, 1.0, 0.1, y0, args=jnp.float32(2)).ys)
adaptive = diffrax.PIDController(rtol=1e-4, atol=1e-4)
times = diffrax.SaveAt(ts=jnp.linspace(0.0, 1.0, 4))
solved = diffrax.diffeqsolve(
    term, diffrax.Tsit5(), 0.0, 1.0, 0.1, y0, args=jnp.float32(2), saveat=times, stepsize_controller=adaptive
)
show("adaptive", solved.ys, solved.stats["num_steps"])


def end(a, adjoint):
    return diffrax.diffeqsolve(
        term, diffrax.Tsit5(), 0.0, 1.0, 0.1, y0, args=a, stepsize_controller=adaptive, adjoint=adjoint
    ).ys.sum()


for adjoint in (diffrax.RecursiveCheckpointAdjoint(), diffrax.BacksolveAdjoint(), diffrax.DirectAdjoint()):
    show(type(adjoint).__name__, jax.grad(end)(jnp.float32(2), adjoint))
stiff = diffrax.diffeqsolve(
    diffrax.ODETerm(lambda t, y, _: -50 * (y - jnp.cos(t))),
    diffrax.Kvaerno5(),
    0.0,
    1.0,
    0.01,
    jnp.float32(0),
    stepsize_controller=adaptive,
)
show("stiff", stiff.ys)
brownian = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(), key=jax.random.key(0))
terms = diffrax.MultiTerm(
    diffrax.ODETerm(lambda t, y, _: -y), diffrax.ControlTerm(lambda t, y, _: jnp.float32(0.1), brownian)
)
show("stochastic", diffrax.diffeqsolve(terms, diffrax.EulerHeun(), 0.0, 1.0, 0.05, jnp.float32(1)).ys)
show(
    "vmap",
    jax.vmap(lambda a: diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 1.0, 0.1, y0, args=a).ys)(jnp.arange(3.0)),
)
event = diffrax.Event(lambda t, y, args, **_: y[0] < 0.5)
show("event", diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 5.0, 0.05, y0, args=jnp.float32(2), event=event).ts)
coefficients = diffrax.backward_hermite_coefficients(jnp.linspace(0, 1, 4), jnp.arange(4.0)[:, None] ** 2)
show("interpolation", diffrax.CubicInterpolation(jnp.linspace(0, 1, 4), coefficients).evaluate(0.4))
