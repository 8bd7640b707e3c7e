"""diffrax: adjoints, events with root finding, controls, save options, stochastic solvers, implicit solvers."""

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import optimistix as optx
from common import show

y0 = jnp.array([1.0, 0.5])


def field(t, y, args):
    return jnp.stack([y[1], -args * y[0] - 0.1 * y[1] + jnp.sin(t)])


term = dfx.ODETerm(field)
controller = dfx.PIDController(rtol=1e-5, atol=1e-6, pcoeff=0.2, icoeff=0.4, dcoeff=0.1)


def end(args, adjoint, solver=None, **options):
    return dfx.diffeqsolve(
        term,
        solver or dfx.Tsit5(),
        0.0,
        2.0,
        0.1,
        y0,
        args,
        stepsize_controller=controller,
        adjoint=adjoint,
        max_steps=64,
        **options,
    ).ys[-1]


for adjoint in (dfx.RecursiveCheckpointAdjoint(4), dfx.DirectAdjoint(), dfx.BacksolveAdjoint()):
    show(type(adjoint).__name__, jax.value_and_grad(lambda a: jnp.sum(end(a, adjoint)))(2.0))
show("ForwardMode", jax.jvp(lambda a: end(a, dfx.ForwardMode()), (2.0,), (1.0,)))
for solver in (dfx.Dopri8(), dfx.Heun(), dfx.Kvaerno5(), dfx.Bosh3(), dfx.ImplicitEuler()):
    out = dfx.diffeqsolve(term, solver, 0.0, 1.0, 0.05, y0, 1.5, stepsize_controller=controller)
    show(type(solver).__name__, out.ys, out.stats["num_steps"] > 0)

falls = dfx.ODETerm(lambda t, y, args: jnp.stack([y[1], jnp.float32(-9.8)]))
event = dfx.Event(lambda t, y, args, **_: y[0], optx.Newton(1e-5, 1e-5, optx.rms_norm))


@jax.jit
@jax.value_and_grad
def hits(height):
    out = dfx.diffeqsolve(
        falls, dfx.Tsit5(), 0.0, 10.0, 0.1, jnp.stack([height, 0.0 * height]), event=event, max_steps=256
    )
    return out.ts[-1]


show("event", hits(10.0))
two = dfx.Event([lambda t, y, args, **_: y[0] < 5.0, lambda t, y, args, **_: y[1] < -100])
out = dfx.diffeqsolve(falls, dfx.Euler(), 0.0, 5.0, 0.1, jnp.array([10.0, 0.0]), event=two)
show("which event", out.event_mask, out.ts, out.result == dfx.RESULTS.event_occurred)

save = dfx.SaveAt(
    subs=[dfx.SubSaveAt(t0=True, t1=True), dfx.SubSaveAt(ts=jnp.linspace(0, 1, 4), fn=lambda t, y, args: y[0] * t)]
)
out = dfx.diffeqsolve(term, dfx.Dopri5(), 0.0, 1.0, 0.1, y0, 1.0, saveat=save)
show("saved", out.ts, out.ys)
steps = dfx.diffeqsolve(term, dfx.Euler(), 0.0, 1.0, 0.25, y0, 1.0, saveat=dfx.SaveAt(steps=True), max_steps=8)
show("steps", jnp.nan_to_num(steps.ys, posinf=0.0), steps.stats["num_accepted_steps"])
dense = dfx.diffeqsolve(term, dfx.Dopri5(), 0.0, 1.0, 0.1, y0, 1.0, saveat=dfx.SaveAt(dense=True))
show("dense", jax.vmap(dense.evaluate)(jnp.linspace(0, 1, 5)), jax.vmap(dense.derivative)(jnp.linspace(0, 1, 3)))
chosen = dfx.StepTo(ts=jnp.array([0.0, 0.1, 0.5, 1.0]))
show("chosen steps", dfx.diffeqsolve(term, dfx.Ralston(), 0.0, 1.0, None, y0, 1.0, stepsize_controller=chosen).ys)
clipped = dfx.ClipStepSizeController(controller, step_ts=jnp.array([0.33]), jump_ts=jnp.array([0.5]))
show("jumps", dfx.diffeqsolve(term, dfx.Tsit5(), 0.0, 1.0, 0.1, y0, 1.0, stepsize_controller=clipped).ys)

path = dfx.VirtualBrownianTree(0.0, 1.0, 1e-2, (2,), jax.random.key(0), levy_area=dfx.SpaceTimeLevyArea)
noise = dfx.MultiTerm(dfx.ODETerm(lambda t, y, a: -y), dfx.ControlTerm(lambda t, y, a: 0.2 * jnp.eye(2), path))
for solver in (dfx.ShARK(), dfx.SPaRK(), dfx.SEA()):
    show(type(solver).__name__, dfx.diffeqsolve(noise, solver, 0.0, 1.0, 0.1, y0, None).ys)
plain = dfx.VirtualBrownianTree(0.0, 1.0, 1e-2, (), jax.random.key(1))
strat = dfx.MultiTerm(dfx.ODETerm(lambda t, y, a: -y), dfx.ControlTerm(lambda t, y, a: 0.3 * y, plain))
for solver in (dfx.EulerHeun(), dfx.ItoMilstein(), dfx.ReversibleHeun(), dfx.StratonovichMilstein()):
    show(type(solver).__name__, dfx.diffeqsolve(strat, solver, 0.0, 1.0, 0.1, y0, None).ys)
unsafe = dfx.UnsafeBrownianPath((2,), jax.random.key(2))
show("path", unsafe.evaluate(0.0, 0.3), path.evaluate(0.0, 0.3))
show("many", jax.vmap(lambda a: end(a, dfx.RecursiveCheckpointAdjoint()))(jnp.arange(1.0, 4.0)))


class Func(eqx.Module):
    mlp: eqx.nn.MLP

    def __init__(self, key):
        self.mlp = eqx.nn.MLP(2, 4, 8, 1, final_activation=jnp.tanh, key=key)

    def __call__(self, t, y, args):
        return self.mlp(y).reshape(2, 2)


ts = jnp.linspace(0, 1, 6)
signal = jnp.stack([ts, jnp.sin(3 * ts)], -1)
coeffs = dfx.backward_hermite_coefficients(ts, signal)


@eqx.filter_value_and_grad
def loss(func):
    control = dfx.CubicInterpolation(ts, coeffs)
    cde = dfx.ControlTerm(func, control).to_ode()
    out = dfx.diffeqsolve(
        cde, dfx.Tsit5(), 0.0, 1.0, 0.1, y0, stepsize_controller=controller, saveat=dfx.SaveAt(t1=True)
    )
    return jnp.sum(out.ys**2)


@eqx.filter_jit
def step(func, state):
    value, grads = loss(func)
    updates, state = optim.update(grads, state)
    return value, eqx.apply_updates(func, updates), state


func, optim = Func(jax.random.key(3)), optax.adam(1e-2)
state = optim.init(eqx.filter(func, eqx.is_inexact_array))
for _ in range(3):
    value, func, state = step(func, state)
show("cde", value, eqx.filter(func, eqx.is_inexact_array))
show("linear", dfx.LinearInterpolation(ts, signal).evaluate(0.35), dfx.rectilinear_interpolation(ts, signal)[0])
split = dfx.MultiTerm(dfx.ODETerm(lambda t, y, a: -0.5 * y), dfx.ODETerm(lambda t, y, a: -jnp.tanh(10 * y)))
show("split", dfx.diffeqsolve(split, dfx.KenCarp3(), 0.0, 1.0, 0.1, y0, stepsize_controller=controller).ys)
hamilton = (dfx.ODETerm(lambda t, v, a: v), dfx.ODETerm(lambda t, q, a: -q))
show("symplectic", dfx.diffeqsolve(hamilton, dfx.SemiImplicitEuler(), 0.0, 1.0, 0.1, (y0, -y0)).ys)
steady = dfx.diffeqsolve(
    dfx.ODETerm(lambda t, y, a: a - y),
    dfx.Tsit5(),
    0.0,
    jnp.inf,
    0.1,
    y0,
    2.0,
    stepsize_controller=controller,
    event=dfx.Event(dfx.steady_state_event()),
    max_steps=None,
)
show("steady", steady.ys)
try:
    dfx.diffeqsolve(term, dfx.Tsit5(), 0.0, 100.0, 0.1, y0, 1.0, stepsize_controller=controller, max_steps=4)
except Exception as error:
    show("too many steps", "maximum number of solver steps" in str(error))
