"""Schedules of phlox_optim against plain optax on jax, at Python numbers of steps, arrays of them, and under jit."""

import numpy as np
import optax
import pytest

import judge
import phlox
import phlox_optim

jax = judge.jax

SCHEDULES = {
    "constant": lambda o: o.constant_schedule(0.3),
    "exponential": lambda o: o.exponential_decay(0.3, 10, 0.7, transition_begin=5, end_value=0.01),
    "exponential, staircase": lambda o: o.exponential_decay(0.3, 10, 0.7, staircase=True),
    "cosine": lambda o: o.cosine_decay_schedule(0.3, 40, alpha=0.1, exponent=1.5),
    "warmup_cosine": lambda o: o.warmup_cosine_decay_schedule(0.0, 0.3, 10, 50, 0.01),
    "warmup_constant": lambda o: o.warmup_constant_schedule(0.0, 0.3, 10),
    "warmup_exponential": lambda o: o.warmup_exponential_decay_schedule(0.0, 0.3, 10, 20, 0.5),
    "linear": lambda o: o.linear_schedule(0.3, 0.01, 40, transition_begin=7),
    "polynomial": lambda o: o.polynomial_schedule(0.3, 0.01, 2.0, 40),
    "piecewise_constant": lambda o: o.piecewise_constant_schedule(0.3, {10: 0.1, 30: 2.0}),
    "piecewise_interpolate": lambda o: o.piecewise_interpolate_schedule("cosine", 0.3, {10: 0.1, 30: 2.0}),
    "join": lambda o: o.join_schedules(
        [o.linear_schedule(0.0, 0.3, 10), o.constant_schedule(0.3), o.cosine_decay_schedule(0.3, 20)], [10, 30]
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule(name):
    mine, theirs = SCHEDULES[name](phlox_optim), SCHEDULES[name](optax)
    steps = np.arange(61, dtype=np.int32)
    together, expected = phlox.jit(phlox.vmap(mine))(steps), jax.jit(jax.vmap(theirs))(steps)
    judge.compare(together, expected, tolerance=1e-6, what="jit of vmap")
    if name != "constant":
        assert np.ptp(np.asarray(together)) > 0.05, "the schedule does not move"
    for step in (0, 9, 10, 11, 30, 60):
        judge.compare(mine(step), theirs(step), tolerance=1e-6, what=f"step {step}")
        judge.compare(
            mine(phlox.numpy.int32(step)), theirs(jax.numpy.int32(step)), tolerance=1e-6, what=f"array {step}"
        )
