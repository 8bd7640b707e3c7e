"""Optimizers of phlox_optim against plain optax on jax: parameters and states over 100 steps."""

import types
from functools import partial

import numpy as np
import optax
import pytest

import judge
import phlox
import phlox.numpy as jnp
import phlox_optim

jax = judge.jax

STEPS = 100
MINE = types.SimpleNamespace(optax=phlox_optim, jax=phlox)
THEIRS = types.SimpleNamespace(optax=optax, jax=jax)


def schedule(o):
    return o.warmup_cosine_decay_schedule(0.0, 1e-2, 10, 80, 1e-4)


#: Each makes a transformation from either optax.
OPTIMIZERS = {
    "sgd": lambda o: o.sgd(1e-2),
    "sgd, momentum": lambda o: o.sgd(1e-2, momentum=0.9),
    "sgd, nesterov": lambda o: o.sgd(1e-2, momentum=0.9, nesterov=True),
    "sgd, accumulator_dtype": lambda o: o.sgd(1e-2, momentum=0.9, accumulator_dtype="float32"),
    "adam": lambda o: o.adam(1e-2),
    "adam, options": lambda o: o.adam(1e-2, b1=0.8, b2=0.99, eps=1e-6, eps_root=1e-8, nesterov=True),
    "adamw": lambda o: o.adamw(1e-2),
    "adamw, mask": lambda o: o.adamw(1e-2, weight_decay=0.1, mask={"w": True, "b": False, "deep": [True, False]}),
    "adamw, schedule": lambda o: o.adamw(schedule(o)),
    "lion": lambda o: o.lion(1e-3),
    "lion, options": lambda o: o.lion(1e-3, b1=0.8, b2=0.9, weight_decay=0.1),
    "clip": lambda o: o.chain(o.clip(0.5), o.sgd(1e-2)),
    "clip_by_global_norm": lambda o: o.chain(o.clip_by_global_norm(1.0), o.adam(1e-2)),
    "clip_by_block_rms": lambda o: o.chain(o.clip_by_block_rms(0.7), o.sgd(1e-2)),
    "chain of parts": lambda o: o.chain(
        o.identity(), o.trace(0.9), o.add_decayed_weights(1e-3), o.scale_by_schedule(schedule(o)), o.scale(-1.0)
    ),
    "chain of scalings": lambda o: o.chain(o.scale_by_adam(), o.scale_by_learning_rate(1e-2)),
    "chain with scale_by_lion": lambda o: o.chain(o.scale_by_lion(), o.scale_by_learning_rate(1e-3)),
    "masked": lambda o: o.masked(o.adam(1e-2), {"w": True, "b": False, "deep": [False, True]}),
    "partition": lambda o: o.partition(
        {"slow": o.sgd(1e-3), "fast": o.adam(1e-2), "still": o.set_to_zero()},
        {"w": "slow", "b": "fast", "deep": ["fast", "still"]},
    ),
    "inject_hyperparams": lambda o: o.inject_hyperparams(o.adam)(learning_rate=o.linear_schedule(1e-2, 1e-3, 50)),
    "join_schedules": lambda o: o.sgd(
        o.join_schedules([o.constant_schedule(1e-2), o.exponential_decay(1e-2, 20, 0.5)], [30])
    ),
    "with_extra_args_support": lambda o: o.with_extra_args_support(o.adam(1e-2)),
}


def initial():
    random = judge.rng("parameters")
    return {
        "w": judge.array(random, (3, 4), "float32"),
        "b": judge.array(random, (4,), "float32"),
        "deep": [judge.array(random, (), "float32"), judge.array(random, (2, 1, 2), "float32")],
    }


def gradients(steps):
    """Trees whose sizes vary by step and by leaf, the same for both libraries."""
    random = judge.rng("gradients")
    draw = lambda x: (random.standard_normal(x.shape) * random.uniform(0.1, 3)).astype("float32")
    return [phlox.tree.map(draw, initial()) for _ in range(steps)]


def trajectory(library, make, grads, jit):
    """(parameters, state) before each of `grads` and after the last."""
    tx = make(library.optax)

    def step(params, state, grads):
        updates, state = tx.update(grads, state, params)
        return library.optax.apply_updates(params, updates), state

    step = library.jax.jit(step) if jit else step
    params = library.jax.tree.map(library.jax.numpy.asarray, initial())
    state = tx.init(params)
    yield params, state
    for g in grads:
        params, state = step(params, state, g)
        yield params, state


def agree(make, steps, jit):
    grads = gradients(steps)
    mine, theirs = (trajectory(library, make, grads, jit) for library in (MINE, THEIRS))
    moved = False
    for number, (here, there) in enumerate(zip(mine, theirs, strict=True)):
        judge.compare(here, there, tolerance=1e-6, what=f"step {number}")
        moved = moved or not np.allclose(here[0]["w"], initial()["w"])
    assert moved, "the optimizer did nothing"


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_hundred_steps_under_jit(name):
    agree(OPTIMIZERS[name], STEPS, jit=True)


@pytest.mark.parametrize("name", ["sgd, nesterov", "adamw, schedule", "lion", "clip_by_global_norm", "partition"])
def test_steps_without_jit(name):
    agree(OPTIMIZERS[name], 10, jit=False)


@pytest.mark.parametrize("name", ["adam", "clip_by_global_norm", "lion"])
def test_training(name):
    """Each library takes its own gradients, so that differences could build up; still the same after 100 steps."""
    random = judge.rng("regression")
    x, y = judge.array(random, (16, 3), "float32"), judge.array(random, (16, 4), "float32", -1, 1)
    results = []
    for library in (MINE, THEIRS):
        tx, np_ = OPTIMIZERS[name](library.optax), library.jax.numpy

        def loss(params, np_=np_):
            return np_.square(np_.tanh(x @ params["w"] + params["b"]) - y).mean()

        def step(params, state, library=library, loss=loss, tx=tx):
            updates, state = tx.update(library.jax.grad(loss)(params), state, params)
            return library.optax.apply_updates(params, updates), state

        step = library.jax.jit(step)
        params = {"w": np_.zeros((3, 4)), "b": np_.zeros(4)}
        state = tx.init(params)
        for _ in range(STEPS):
            params, state = step(params, state)
        results.append((params, state))
        assert float(loss(params)) < 0.9 * float(loss({"w": np_.zeros((3, 4)), "b": np_.zeros(4)}))
    judge.compare(*results, tolerance=1e-6)


def test_bfloat16_parameters_keep_their_type():
    results = []
    for library in (MINE, THEIRS):
        np_ = library.jax.numpy
        tx = library.optax.chain(library.optax.clip_by_global_norm(1.0), library.optax.adamw(1e-2))
        params = {"w": np_.linspace(-2, 2, 12, dtype=np_.bfloat16).reshape(3, 4)}
        state = tx.init(params)
        for _ in range(5):
            updates, state = tx.update(library.jax.tree.map(np_.cos, params), state, params)
            params = library.optax.apply_updates(params, updates)
        results.append((params, state))
    judge.compare(*results, tolerance=1e-2)


@pytest.mark.filterwarnings("ignore:optax.global_norm is deprecated")
def test_functions_on_trees():
    tree, other = gradients(2)
    judge.compare(phlox_optim.global_norm(tree), optax.global_norm(tree), tolerance=1e-6)
    judge.compare(phlox_optim.tree.norm(tree), optax.tree.norm(tree), tolerance=1e-6)
    judge.compare(
        phlox_optim.incremental_update(tree, other, 0.3), optax.incremental_update(tree, other, 0.3), tolerance=1e-6
    )
    judge.compare(phlox_optim.apply_updates(tree, other), optax.apply_updates(tree, other), tolerance=1e-6)


def test_data_parallel_training():
    """Four devices with a quarter of the batch each take the steps of one device with all of it."""
    random, devices = judge.rng("parallel"), 4
    x, y = judge.array(random, (16, 3), "float32"), judge.array(random, (16,), "float32")
    tx = phlox_optim.chain(phlox_optim.clip_by_global_norm(0.5), phlox_optim.adam(1e-2))

    def step(params, state, x, y, mean=lambda grads: grads):
        grads = mean(phlox.grad(lambda p: jnp.square(x @ p["w"] + p["b"] - y).mean())(params))
        updates, state = tx.update(grads, state, params)
        return phlox_optim.apply_updates(params, updates), state

    params = {"w": jnp.ones(3), "b": jnp.zeros(())}
    alone = params, tx.init(params)
    together = phlox.tree.map(lambda leaf: jnp.stack([leaf] * devices), alone)
    one = phlox.jit(step)
    many = phlox.pmap(partial(step, mean=partial(phlox.lax.pmean, axis_name="i")), axis_name="i")
    for _ in range(20):
        alone = one(*alone, x, y)
        together = many(*together, x.reshape(devices, -1, 3), y.reshape(devices, -1))
    for number in range(devices):
        judge.compare(phlox.tree.map(lambda leaf, n=number: leaf[n], together), alone, tolerance=1e-5, weak=False)


def test_vmap_over_learning_rates():
    """Optimizers are functions: a batch of them trains at once."""
    rates, x = jnp.array([1e-3, 1e-2, 1e-1]), jnp.arange(4.0)

    def train(rate, o=phlox_optim):
        tx = o.adam(rate)
        params, state = x, tx.init(x)
        for _ in range(3):
            updates, state = tx.update(2 * params, state)
            params = o.apply_updates(params, updates)
        return params

    together = phlox.jit(phlox.vmap(train))(rates)
    for rate, batched in zip(rates, together, strict=True):
        np.testing.assert_allclose(batched, train(rate, optax_on_jax()), rtol=1e-6, atol=1e-6)


def optax_on_jax():
    """Plain optax, given NumPy arrays in the place of phlox's."""
    to_host = lambda tree: phlox.tree.map(np.asarray, tree)

    def adam(rate):
        tx = optax.adam(float(rate))
        return optax.GradientTransformation(
            lambda params: tx.init(to_host(params)), lambda g, state: tx.update(to_host(g), state)
        )

    return types.SimpleNamespace(adam=adam, apply_updates=lambda p, u: optax.apply_updates(np.asarray(p), u))
