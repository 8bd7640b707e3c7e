"""Random elementwise programs with nan, infinite and ordinary constants, compiled, against NumPy.

Constants are where a compiler knows values, folds, and may conclude too much: ``exp(x * nan)`` gave numbers. Each
program is a tree of operations on an array and constants; PHLOX_TEST_CASES draws more of them. Compared is which elements
are nan, infinite or finite, and finite ones roughly: rounding is not the topic here.
"""

import itertools
import os
import random

import ml_dtypes
import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax
from phlox._xla.constant_nan import may_know_nan

FACTOR = float(os.environ.get("PHLOX_TEST_CASES", "1"))
PROGRAMS = max(1, round(12 * FACTOR))
DTYPES = {"float32": np.float32, "float64": np.float64, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
CONSTANTS = ["nan", "nan", "nan", "inf", "-inf", "0.0", "1.0", "-1.0", "0.5", "2.0", "-3.0"]
#: the functions whose formulas contain conversions to integers are drawn more often
EXPONENTIAL = ["m.exp({})", "m.exp2({})", "m.expm1({})", "m.sinh({})", "m.cosh({})", "m.tanh({})", "1/(1+m.exp(-({})))"]
UNARY = [
    "m.log({})",
    "m.log1p({})",
    "m.sqrt({})",
    "m.abs({})",
    "-({})",
    "m.sin({})",
    "m.cos({})",
    "m.floor({})",
    "m.sign({})",
    "m.arctan({})",
    "m.square({})",
    "m.cbrt({})",
    "m.log2({})",
    "m.isnan({})*c(2)",
    "m.arcsinh({})",
    "m.rint({})",
    "m.logaddexp({},x)",
]
BINARY = [
    "({})+({})",
    "({})-({})",
    "({})*({})",
    "({})*({})",
    "({})/({})",
    "m.maximum({},{})",
    "m.minimum({},{})",
    "m.where(x>c(0),{},{})",
    "m.where({}<c(1),{},x)",
    "m.arctan2({},{})",
    "m.hypot({},{})",
    "m.fmax({},{})",
]


def drawn(rng, depth):
    """A random expression of the array ``x`` and of constants ``c(...)``, as text."""
    if depth == 0:
        return "x" if rng.random() < 0.5 else f"c({rng.choice(CONSTANTS)})"
    if rng.random() < 0.5:
        return rng.choice(rng.choice([EXPONENTIAL, UNARY])).format(drawn(rng, depth - 1))
    return rng.choice(BINARY).format(drawn(rng, depth - 1), drawn(rng, depth - 1))


def evaluated(text, m, x):
    names = {"m": m, "x": x, "c": x.dtype.type, "nan": np.nan, "inf": np.inf}
    return eval(text, names) + x * x.dtype.type(0)


def classes(x):
    return np.where(np.isnan(x), 0, np.where(np.isinf(x), np.sign(x), 2))


def disagreement(text, dtype, shape, effort):
    """The elements in which the compiled program has another kind of result than NumPy, or None.

    Not compared are elements that overflow in this dtype, but not in float64.
    """
    x = np.linspace(-2.2, 2.4, num=max(1, int(np.prod(shape)))).reshape(shape).astype(DTYPES[dtype])
    with phlox.enable_x64(dtype == "float64"), np.errstate(all="ignore"):
        run = phlox.jit(lambda x: evaluated(text, jnp, x), compile_effort=effort)
        got = np.asarray(run(x)).astype(np.float64)
        expected = np.asarray(evaluated(text, np, x)).astype(np.float64)
        exact = np.asarray(evaluated(text, np, x.astype(np.float64)))
        near = np.isclose(expected, exact, rtol=0.05, atol=0.05, equal_nan=True)
        same = (classes(got) == classes(expected)) & np.isclose(got, expected, rtol=0.2, atol=0.2, equal_nan=True)
    wrong = near & ~same
    return (x[wrong][:3], got[wrong][:3], expected[wrong][:3]) if wrong.any() else None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (5,), (3, 700)], ids=str)
def test_constants_give_what_numpy_gives(dtype, shape):
    wrong = []
    for seed in range(PROGRAMS):
        rng = random.Random(f"{dtype}{shape}{seed}")
        text, effort = drawn(rng, rng.randint(2, 4)), rng.choice(["default", "fast"])
        if found := disagreement(text, dtype, shape, effort):
            wrong.append((seed, effort, text, *found))
    assert not wrong, "\n".join(map(str, wrong))


KNOWN = {
    "x * nan": lambda x: x * np.nan,
    "x + nan": lambda x: x + np.nan,
    "maximum(x, nan)": lambda x: jnp.maximum(x, np.nan),
    "log(-1) + x": lambda x: jnp.log(np.float32(-1)).astype(x.dtype) + x,
    "(inf - inf) x": lambda x: (jnp.full((), np.inf, x.dtype) - np.inf) * x,
    "large": lambda x: x * (jnp.finfo(x.dtype).max / 4) * (jnp.finfo(x.dtype).max / 4) * 0,
}
FUNCTIONS = [
    "exp",
    "exp2",
    "expm1",
    "sinh",
    "cosh",
    "tanh",
    "sigmoid",
    "softplus",
    "log",
    "log1p",
    "sin",
    "cos",
    "tan",
    "arctan",
    "sqrt",
    "cbrt",
    "erf",
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operand", KNOWN)
def test_functions_of_a_nan_that_the_compiler_knows(operand, dtype):
    found = [
        getattr(jnp, name, None) or getattr(phlox.nn, name, None) or getattr(phlox.lax, name) for name in FUNCTIONS
    ]
    with phlox.enable_x64(dtype == "float64"):
        for shape, effort in itertools.product([(), (7,)], ["default", "fast"]):
            run = phlox.jit(lambda x: [function(KNOWN[operand](x)) for function in found], compile_effort=effort)
            results = run(jnp.full(shape, 0.123, dtype))
            wrong = [name for name, out in zip(FUNCTIONS, results, strict=True) if not jnp.isnan(out).all()]
            assert not wrong, (shape, effort)


def test_complex_functions_of_a_nan_that_the_compiler_knows():
    """Both parts are nan."""
    names = ["exp", "exp2", "expm1", "sin", "cos", "sinh", "cosh", "tanh", "log"]
    run = phlox.jit(lambda x: [getattr(jnp, name)(x * np.nan) for name in names])
    for name, out in zip(names, run(jnp.full(3, 1 + 1j)), strict=True):
        assert np.isnan(out.real).all(), name
        assert np.isnan(out.imag).all(), name


def test_comparisons_of_a_nan_that_the_compiler_knows():
    """LLVM dropped a selection of numbers in front of the exponential, because all its uses were behind one of nan."""
    x = jnp.array([-2.2, -1.05, 0.1, 1.25, 2.4])
    for f in (jnp.exp, jnp.exp2, jnp.sinh, jnp.expm1):
        run = lambda x: jnp.where(f(jnp.log(x - np.float32(np.nan))) < 1, jnp.arctan2(x, jnp.sinh(x)), x)
        assert (phlox.jit(run)(x) == x).all(), f


_F = np.float32
_SQUARE = lax.mul, _F(1e30), _F(1e30)


def _of(tree):
    """The value of a nested tuple (operation, *operands), computed in the program."""
    return tree[0](*map(_of, tree[1:])) if isinstance(tree, tuple) else tree


#: Constants that operations of the program make, and whether the compiler may know a nan.
_CONSTANTS = {
    "overflow": ((lax.sub, _SQUARE, _SQUARE), True),
    "a quotient of zeros": ((lax.div, _F(0), (lax.sub, _F(1), _F(1))), True),
    "underflow": ((lax.div, _F(1), (lax.mul, _F(1e-30), _F(1e-30))), True),
    "a rounded divisor": (
        (
            lax.div,
            _F(0),
            (lambda x: lax.convert_element_type(lax.convert_element_type(x, "int32"), "float32"), _F(0.5)),
        ),
        True,
    ),
    "the reciprocal of a length": ((lax.div, (lax.mul, _F(1), _F(1)), _F(64)), False),
    "a guarded length": ((lax.div, _F(1), (lambda n: lax.select(lax.eq(n, _F(0)), _F(1), n), _F(64))), False),
}


@pytest.mark.parametrize("name", _CONSTANTS)
def test_which_constants_may_be_nan(name):
    tree, expected = _CONSTANTS[name]
    f = lambda x: jnp.exp(x * _of(tree))
    assert may_know_nan(phlox.make_jaxpr(f)(_F(0.123)).jaxpr) is expected
    result = float(phlox.jit(f)(_F(0.123)))
    assert np.isinf(result) if name == "underflow" else np.isnan(result) == expected
