"""Random combinations of a transformation, an operation with a form or a kernel of its own, a dtype and a flag, against jax.

Each of them is tested alone elsewhere; here two of them meet that no one thought of together. PHLOX_TEST_CASES is how
many are drawn, see docs/random-programs.md.
"""

import random

import jax
import numpy as np
import pytest

import judge
import phlox
from phlox._base import config

CASES = max(4, round(20 * judge.FACTOR))
CHUNK = 10
TOLERANCE = {"float32": 1e-3, "float64": 1e-9, "float16": 4e-2, "bfloat16": 2e-1}

#: operations on CPUs that are native kernels of phlox-kernels or forms of phlox's own, from some hundred elements on
SMOOTH = {
    "cumsum": lambda m, x: m.numpy.cumsum(x, -1) / 16,
    "cumsum of rows": lambda m, x: m.numpy.cumsum(x, 0) / 4,
    "cumprod": lambda m, x: m.numpy.cumprod(1 + x / 64, -1),
    "cummax": lambda m, x: m.lax.cummax(x, x.ndim - 1),
    "cumlogsumexp": lambda m, x: m.lax.cumlogsumexp(x, x.ndim - 1),
    "sort": lambda m, x: m.numpy.sort(x, -1),
    "top_k": lambda m, x: m.lax.top_k(x, 5)[0],
    "max": lambda m, x: x.max(-1),
    "mean": lambda m, x: x.mean(-1),
    "sin": lambda m, x: m.numpy.sin(x),
    "tan": lambda m, x: m.numpy.tan(x / 4),
    "sinh": lambda m, x: m.numpy.sinh(x),
    "arctan": lambda m, x: m.numpy.arctan(x),
    "power": lambda m, x: (abs(x) + 1) ** 1.5,
    "softmax": lambda m, x: 9 * m.nn.softmax(x, -1),
    "logsumexp": lambda m, x: m.nn.logsumexp(x, -1),
    "interp": lambda m, x: m.numpy.interp(x, np.linspace(-3, 3, 9), np.linspace(-3, 3, 9) ** 2),
    "segments": lambda m, x: m.ops.segment_sum(x.ravel(), np.arange(x.size) % 7, 7) / 16,
    "gather": lambda m, x: m.numpy.take(x, np.arange(0, x.shape[-1], 3), -1),
    "scatter": lambda m, x: x.at[..., np.arange(0, 600, 2) % 97].add(0.5 * x[..., :300]),
}
STEPS = {
    "argsort": lambda m, x: m.numpy.argsort(x, -1),
    "argmax": lambda m, x: m.numpy.argmax(x, -1),
    "nonzero": lambda m, x: m.numpy.nonzero(x.ravel() > 0, size=500, fill_value=-1)[0],
    "searchsorted": lambda m, x: m.numpy.searchsorted(m.numpy.sort(x.ravel()), x.ravel()[:99]),
    "unique": lambda m, x: m.numpy.unique(x.ravel(), size=50, fill_value=0),
    "bincount": lambda m, x: m.numpy.bincount((x.ravel() > 0).astype(int), length=3),
    "remainder": lambda m, x: x.astype("int16") % 7,
    "comparison": lambda m, x: (x.astype("int8") < 2) & (x > 0),
}


def _weights(m, y):
    return (y * np.cos(np.arange(y.size)).reshape(y.shape).astype(y.dtype)).sum()


FORWARD = {
    "eager": lambda m, f: f,
    "jit": lambda m, f: m.jit(f),
    "vmap": lambda m, f: m.vmap(f),
    "jit of vmap": lambda m, f: m.jit(m.vmap(f, 1, -1)),
    "vmap of jit": lambda m, f: m.vmap(m.jit(f)),
    "map": lambda m, f: lambda x: m.lax.map(f, x, batch_size=4),
    "scan": lambda m, f: lambda x: m.lax.scan(lambda n, row: (n + 1, f(row)), 0, x),
    "cond": lambda m, f: lambda x: m.lax.cond(x[0, 0] > 0, f, lambda x: f(x[::-1]), x),
    "checkpoint": lambda m, f: m.checkpoint(f),
}
DERIVATIVES = {
    "grad": lambda m, f: m.grad(lambda x: _weights(m, f(x))),
    "jit of grad": lambda m, f: m.jit(m.grad(lambda x: _weights(m, f(x)))),
    "vmap of grad": lambda m, f: m.vmap(m.grad(lambda x: _weights(m, f(x)))),
    "jvp": lambda m, f: lambda x: m.jvp(f, (x,), (m.numpy.cos(x),)),
    "linearize": lambda m, f: lambda x: m.linearize(f, x)[1](m.numpy.cos(x)),
    "grad of checkpoint": lambda m, f: m.grad(lambda x: _weights(m, m.checkpoint(f)(x))),
    "grad of scan": lambda m, f: m.grad(
        lambda x: m.lax.scan(lambda c, row: (c + _weights(m, f(row)), None), x.dtype.type(0), x)[0]
    ),
}
#: settings of phlox that change how a program is made and run, and not what it computes
FLAGS = [
    {},
    {"native_kernels": False},
    {"compile_effort": "fast"},
    {"compile_effort": "tiered"},
    {"generated_calls": False},
    {"enable_checks": True},
    {"check_tracer_leaks": True},
]


def drawn(seed):
    rng = random.Random(seed)
    smooth = rng.random() < 0.7
    operations, transformations = (SMOOTH, {**FORWARD, **DERIVATIVES}) if smooth else (STEPS, FORWARD)
    dtype = rng.choice(["float32", "float32", "float64", "float16", "bfloat16"])
    return rng.choice([*operations]), rng.choice([*transformations]), dtype, rng.choice(FLAGS)


def run(case, m):
    operation, transformation, dtype, _ = case
    x = judge.array(judge.rng("pairs", case[0]), (6, 700), dtype)
    f = {**SMOOTH, **STEPS}[operation]
    with m.enable_x64(dtype == "float64"):
        return {**FORWARD, **DERIVATIVES}[transformation](m, lambda x: f(m, x))(m.numpy.asarray(x))


@pytest.mark.whole
@pytest.mark.parametrize("start", range(0, CASES, CHUNK))
def test_pairs(start):
    for seed in range(start, min(start + CHUNK, CASES)):
        case = drawn(seed)
        with config.scope(**case[3]):
            mine, error = judge.outcome(run.__get__(case), phlox, ())
        theirs, refusal = judge.outcome(run.__get__(case), jax, ())
        if error is not None or refusal is not None:
            judge.same_kind(error, refusal, f"{seed}: {case}")
            continue
        judge.compare(mine, theirs, tolerance=TOLERANCE[case[2]], weak=False, what=f"{seed}: {case}")


def test_all_pairs_are_drawn_in_the_nightly_size():
    seen = {(operation, transformation) for operation, transformation, *_ in map(drawn, range(20 * 300))}
    assert len(seen) == len(SMOOTH) * len({**FORWARD, **DERIVATIVES}) + len(STEPS) * len(FORWARD)
