"""The library does not obey the user's strict flags: what works works under them too, and gives the same.

Every function of the tables is called once with ``numpy_rank_promotion="raise"`` and ``numpy_dtype_promotion="strict"``.
Where jax computes, phlox must; what a user mixes himself is refused by both.
"""

import warnings

import jax
import numpy as np
import pytest

import judge
import phlox
import phlox.numpy as jnp
from conformance.harness import agree, case_of, inputs, outcome, row
from conformance.test_coverage import TABLES
from phlox import lax
from phlox._base import config
from phlox.errors import ShapeError, TypePromotionError

CALLS = {f"{row.path}({call})": (row, call) for module in TABLES for row in module.TABLE for call in row.calls[:1]}
MORE = {"numpy.heaviside(A[2,3],A[3])"}  # jax's checks nothing


def strict(m, run):
    with m.numpy_rank_promotion("raise"), m.numpy_dtype_promotion("strict"):
        return run()


@pytest.mark.parametrize("name", sorted(set(CALLS) - MORE))
def test_functions(name):
    row, call = CALLS[name]
    args = inputs(row, call, "float32" if "float32" in row.dtypes else row.dtypes[0])
    case = case_of(row, call)
    given = lambda m: [m.numpy.asarray(x) if isinstance(x, np.ndarray) else x for x in args]
    theirs = strict(jax, lambda: outcome(case, jax, given(jax)))
    if theirs[1] is None:
        agree(strict(phlox, lambda: outcome(case, phlox, given(phlox))), theirs, row, "under strict flags")


NEAR = row("strict flags")
MATRIX = np.array([[4.0, 1.0, 2.0], [1.0, 3.0, 0.5], [2.0, 0.5, 5.0]], np.float32)
MADE_OF_OTHERS = {
    "ragged_dot": lambda m: m.lax.ragged_dot(m.numpy.ones((5, 3)), m.numpy.ones((2, 3, 4)), m.numpy.array([2, 3])),
    "lu": lambda m: m.vmap(m.scipy.linalg.lu)(m.numpy.stack([MATRIX, MATRIX.T])),
    "gradient of lu": lambda m: m.grad(lambda a: m.scipy.linalg.lu(a)[2].sum())(m.numpy.asarray(MATRIX)),
    "solve_sylvester": lambda m: m.scipy.linalg.solve_sylvester(MATRIX, MATRIX, MATRIX),
    "histogram": lambda m: m.numpy.histogram(m.numpy.arange(7.0), bins=3, weights=m.numpy.arange(7)),
    "histogramdd": lambda m: m.numpy.histogramdd(m.numpy.arange(8.0).reshape(4, 2), bins=3),
    "polyfit": lambda m: m.numpy.polyfit(m.numpy.arange(5.0), m.numpy.arange(5.0) ** 2, 2),
    "packbits": lambda m: m.numpy.packbits(m.numpy.arange(16).reshape(2, 8) % 2 == 0, axis=1),
    "unpackbits": lambda m: m.numpy.unpackbits(m.numpy.arange(5, dtype="uint8")),
    "union1d": lambda m: m.numpy.union1d(m.numpy.arange(3), m.numpy.arange(5)),
    "isin": lambda m: m.numpy.isin(m.numpy.arange(6).reshape(2, 3), m.numpy.array([1, 2])),
    "attention": lambda m: m.nn.dot_product_attention(*[m.numpy.ones((1, 4, 2, 8))] * 3, is_causal=True),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", MADE_OF_OTHERS)
def test_functions_made_of_others(name):
    run = MADE_OF_OTHERS[name]
    agree(strict(phlox, lambda: outcome(run, phlox, ())), strict(jax, lambda: outcome(run, jax, ())), NEAR, name)


MIXED = {
    "ranks": lambda m, x: x["f"] + x["v"],
    "dtypes": lambda m, x: x["f"] + x["i"],
    "under jit": lambda m, x: m.jit(lambda a, b: a * b)(x["f"], x["i"]),
    "dot": lambda m, x: m.numpy.dot(x["f"], x["i"]),
    "where": lambda m, x: m.numpy.where(x["f"] > 0, x["f"], x["i"]),
    "concatenate": lambda m, x: m.numpy.concatenate([x["f"], x["i"]]),
    "a user's function within vmap": lambda m, x: m.vmap(lambda a: a + x["i"][0])(x["f"]),
    "in scan": lambda m, x: m.lax.scan(lambda c, a: (c, a + x["i"][0]), 0, x["f"]),
    "in cond": lambda m, x: m.lax.cond(True, lambda a: a + x["v"], lambda a: a, x["f"]),
    "in while_loop": lambda m, x: m.lax.while_loop(lambda a: False, lambda a: a + x["v"], x["f"]),
    "in a gradient": lambda m, x: m.grad(lambda a: (a * x["v"]).sum())(x["f"]),
    "in a custom rule": lambda m, x: m.grad(lambda a: m.checkpoint(lambda b: (b + x["v"]).sum())(a))(x["f"]),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", MIXED)
def test_what_the_user_mixes_is_refused(name):
    def run(m):
        x = {"f": m.numpy.ones((2, 2)), "v": m.numpy.ones(2), "i": m.numpy.ones((2, 2), int)}
        return MIXED[name](m, x)

    agree(strict(phlox, lambda: outcome(run, phlox, ())), strict(jax, lambda: outcome(run, jax, ())), NEAR, name)
    with pytest.raises((ShapeError, TypePromotionError)):
        strict(phlox, lambda: run(phlox))
    run(phlox)


def test_the_flags_hold_again_behind_a_library_function():
    with phlox.numpy_rank_promotion("raise"):
        jnp.histogram(jnp.arange(4.0), bins=2)
        with pytest.raises(ShapeError):
            jnp.ones((2, 2)) + jnp.ones(2)
        with pytest.raises(ShapeError):
            jnp.vectorize(lambda a: a + jnp.ones((2, 2)), signature="(n)->(n,n)")(jnp.ones(2))
        lax.map(lambda a: a * 2, jnp.ones(3))
    jnp.ones((2, 2)) + jnp.ones(2)


# --- every other strict flag, on another tenth of the functions each day

#: the tenth of the rows; PHLOX_TEST_ROTATION=3 runs the fourth one again
TENTH = judge.DAY % 10
FLAGS = {
    "debug_nans": True,
    "debug_infs": True,
    "check_tracer_leaks": True,
    "enable_checks": True,
    "check_static_indices": True,
    "debug_key_reuse": True,
    "legacy_prng_key": "error",
    "allow_f16_reductions": False,
    "disable_jit": True,
}


def _computed(name):
    """(result, error) of the first call of a row, on arrays that are on the device already."""
    row, call = CALLS[name]
    args = inputs(row, call, "float32" if "float32" in row.dtypes else row.dtypes[0])
    args = [phlox.numpy.asarray(x) if isinstance(x, np.ndarray) else x for x in args]
    return lambda: outcome(case_of(row, call), phlox, args)


def _excused(flag, plain, error):
    """Whether the user's own call does what the flag reports: its result has a nan, or an infinity."""
    test = {"debug_nans": np.isnan, "debug_infs": np.isinf}.get(flag)
    if test is None or not isinstance(error, FloatingPointError):
        return False
    leaves = [x for x in phlox.tree.leaves(plain) if phlox.dtypes.issubdtype(phlox.numpy.result_type(x), np.inexact)]
    return any(test(np.asarray(x).astype(complex)).any() for x in leaves)


def _differ(x, y):
    try:
        for a, b in zip(phlox.tree.leaves(x), phlox.tree.leaves(y), strict=True):
            assert phlox.typeof(a) == phlox.typeof(b)
            if not phlox.dtypes.issubdtype(phlox.typeof(a).dtype, phlox.dtypes.extended):
                judge.same_values(np.asarray(a), np.asarray(b))
    except AssertionError as error:
        return error
    return None


@pytest.mark.whole
@pytest.mark.parametrize("flag", FLAGS)
def test_functions_under_each_flag(flag):
    """A flag that reports mistakes of users changes no result, and reports nothing that is inside of the library."""
    wrong = {}
    for name in sorted(CALLS)[TENTH::10][:: max(1, round(1 / judge.FACTOR))]:
        run = _computed(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain, error = run()
            with config.scope(**{flag: FLAGS[flag]}):
                result, strict_error = run()
        if strict_error is not None or error is not None:
            if type(error) is not type(strict_error) and not _excused(flag, plain, strict_error):
                wrong[name] = strict_error or error
            continue
        if difference := _differ(plain, result):
            wrong[name] = difference
    assert not wrong, f"PHLOX_TEST_ROTATION={TENTH}: " + "; ".join(f"{n}: {str(e)[:200]}" for n, e in wrong.items())
