"""optax: optimizers of contrib, wrappers with state of their own, line searches, projections, perturbations."""

import jax
import jax.numpy as jnp
import optax
from common import show

params = {"w": jnp.array([[1.0, -2.0], [3.0, 0.5]]), "b": jnp.array([0.1, -0.2])}
slope = jax.tree.map(jnp.cos, params)


def descend(optimizer, steps=4, **extra):
    state, current = optimizer.init(params), params
    for i in range(steps):
        updates, state = optimizer.update(jax.tree.map(lambda g, i=i: g * (i + 1), slope), state, current, **extra)
        current = optax.apply_updates(current, updates)
    return current, state


for name in ("prodigy", "dadapt_adamw", "schedule_free_sgd", "muon", "ademamix", "acprop"):
    show(name, descend(getattr(optax.contrib, name)(0.1))[0])
show("momo", descend(optax.contrib.momo(0.1), value=jnp.float32(2.0))[0])
normalized = optax.chain(optax.contrib.normalize(), optax.sgd(0.05))
show("sam", descend(optax.contrib.sam(optax.sgd(0.1), normalized, sync_period=2)))
opaque = optax.contrib.sam(optax.sgd(0.1), normalized, sync_period=3, opaque_mode=True)
show("sam, opaque", descend(opaque, grad_fn=lambda p, i: jax.tree.map(jnp.sin, p)))
show("low precision", descend(optax.adam(0.1, mu_dtype=jnp.bfloat16, nesterov=True)))
show("masked", descend(optax.masked(optax.adam(0.1), {"w": True, "b": False})))
labels = {"w": "train", "b": "freeze"}
show(
    "multi_transform", descend(optax.multi_transform({"train": optax.adam(0.1), "freeze": optax.set_to_zero()}, labels))
)
show("skipped", descend(optax.apply_if_finite(optax.sgd(0.1), 2)))
show("conditional", descend(optax.conditionally_transform(optax.scale(2.0), lambda step, **_: step > 1)))

steps = optax.MultiSteps(optax.adam(0.1), 2, use_grad_mean=False, should_skip_update_fn=optax.skip_not_finite)
state, current = steps.init(params), params
for i in range(5):
    updates, state = steps.update(jax.tree.map(lambda g, i=i: g * (jnp.nan if i == 1 else 1.0), slope), state, current)
    current = optax.apply_updates(current, updates)
    show("multi steps", current, steps.has_updated(state))

plateau = optax.chain(optax.sgd(0.1), optax.contrib.reduce_on_plateau(patience=1, cooldown=1, factor=0.5, rtol=0.1))
state = plateau.init(params)
for value in (1.0, 1.0, 1.0, 0.99, 0.5):
    updates, state = plateau.update(slope, state, params, value=value)
show("plateau", state)


def loss(x):
    return jnp.sum((x - jnp.arange(4.0)) ** 4) + jnp.sum(x**2)


search = optax.chain(optax.sgd(1.0), optax.scale_by_backtracking_linesearch(15, store_grad=True))
for name, optimizer in {"lbfgs": optax.lbfgs(), "backtracking": search}.items():
    x, value_and_grad = jnp.zeros(4), optax.value_and_grad_from_state(loss)
    state = optimizer.init(x)
    for _ in range(4):
        value, grad = value_and_grad(x, state=state)
        updates, state = optimizer.update(grad, state, x, value=value, grad=grad, value_fn=loss)
        x = optax.apply_updates(x, updates)
    show(name, x, value)

point = jnp.array([0.5, -1.0])
show("projections", optax.projections.projection_simplex(point), optax.projections.projection_l1_ball(point, 0.7))
show("simplex", jax.jacrev(optax.projections.projection_simplex)(point))
arg_max = optax.perturbations.make_perturbed_fun(lambda x: jax.nn.one_hot(jnp.argmax(x), 3), 50, 0.1)
show("perturbed", jax.grad(lambda x: arg_max(jax.random.key(0), x)[0])(jnp.array([1.0, 1.1, 0.9])))
