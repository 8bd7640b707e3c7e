"""First and second derivatives of every public function: jvp, grad and products with the Hessian, in double precision.

The judges are central differences, of values and of gradients, and the real jax. One program computes all of it, at the
point and a step to either side.
"""

import functools

import jax
import numpy as np
import pytest

import judge
import phlox
from conformance.examples import Example, examples, functions
from conformance.harness import outcome, same_kind
from conformance.programs import F
from conformance.test_batched import EXEMPT

STEP = 1e-5


def double(test):
    """A test with 64 bits in both libraries."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        with phlox.enable_x64(True), jax.enable_x64(True):
            return test(*args, **kwargs)

    return run


def leaves_of(m, tree):
    """The results that can be differentiated."""
    return [x for x in m.tree_util.tree_leaves(tree) if m.numpy.issubdtype(m.numpy.result_type(x), m.numpy.inexact)]


def total(m, example):
    """The sum of all elements, weighted: a real number. Imaginary parts count by other weights."""

    def f(*xs):
        parts = [0.0]
        for x in leaves_of(m, example.run(m, *xs)):
            w = judge.weights(x.shape)
            parts.append((m.numpy.real(x) * w).sum())
            if m.numpy.issubdtype(x.dtype, m.numpy.complexfloating):
                parts.append((m.numpy.imag(x) * (2 - w)).sum())
        return sum(parts)

    return f


def derivatives(m, example):
    """A function of the float arguments and directions that gives results, tangents, gradients, Hessian products."""

    def run(chosen, directions):
        def filled(chosen):
            xs = list(example.args)
            for i, x in zip(example.floats, chosen, strict=True):
                xs[i] = x
            return xs

        values = lambda *chosen: leaves_of(m, example.run(m, *filled(chosen)))
        gradient = m.grad(lambda *chosen: total(m, example)(*filled(chosen)), tuple(range(len(chosen))))
        out, tangents = m.jvp(values, chosen, directions)
        slope, product = m.jvp(gradient, chosen, directions)
        return out, tangents, slope, product

    return run


def direction(example, i):
    x = example.args[i]
    random = judge.rng("direction", example.what, i)
    v = random.uniform(0.5, 1.5, x.shape) * random.choice([-1, 1], x.shape)
    return (v * (1 + 0.5j) if x.dtype.kind == "c" else v).astype(x.dtype)


def near(x, y, what, bound=1e-4):
    """Of exact numbers and differences; an element whose difference is huge lies beside a pole."""
    for a, b in zip(x, y, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        same = np.isclose(
            a, b, rtol=bound, atol=bound * max(1.0, np.abs(b[np.isfinite(b)]).max(initial=0.0)), equal_nan=True
        )
        assert same.all(), f"{what}: {a[~same][0]!r}, differences give {b[~same][0]!r}"


def check(example, with_jax=True):
    point = [example.args[i] for i in example.floats]
    along = [direction(example, i) for i in example.floats]
    run = phlox.jit(derivatives(phlox, example))
    mine, error = outcome(lambda m: run(point, along), phlox, ())
    if error is not None:
        same_kind(
            error, outcome(lambda m: m.eval_shape(derivatives(jax, example), point, along), jax, ())[1], example.what
        )
        return
    after, before = (
        [np.asarray(x) for tree in run([p + s * v for p, v in zip(point, along, strict=True)], along) for x in tree]
        for s in (STEP, -STEP)
    )
    here = [np.asarray(x) for tree in mine for x in tree]
    count = len(mine[0])
    slopes = [(a - b) / (2 * STEP) for a, b in zip(after, before, strict=True)]
    near(here[count : 2 * count], slopes[:count], f"{example.what}: tangents")
    near(here[-len(point) :], slopes[2 * count : 2 * count + len(point)], f"{example.what}: Hessian product")
    weighed = sum(
        (np.real(t) * judge.weights(t.shape)).sum()
        + ((np.imag(t) * (2 - judge.weights(t.shape))).sum() if t.dtype.kind == "c" else 0)
        for t in map(np.asarray, mine[1])
    )
    met = sum(np.real(np.sum(np.asarray(g) * v)) for g, v in zip(mine[2], along, strict=True))
    np.testing.assert_allclose(met, weighed, rtol=1e-9, atol=1e-9, err_msg=f"{example.what}: gradient, of the tangents")
    if with_jax:
        theirs, error = outcome(lambda m: m.jit(derivatives(m, example))(point, along), jax, ())
        if error is None:
            judge.compare(mine, theirs, weak=False, tolerance=1e-9, what=example.what)


#: Functions whose derivative is not that of their values: they round, or say that there is none.
ROUNDED = {"numpy.astype", "lax.reduce_precision", "lax.scaled_dot", "lax.stop_gradient"}
#: jax has nan as second derivatives of these, though they are differentiable there.
OWN = {"lax.scatter_min", "lax.scatter_max"}


def sized(name):
    """A function of floats with results as long as the elements make them, cut or filled to four."""
    return lambda m, *xs: getattr(m.numpy, name)(*xs, size=4)


W = np.array([[2], [0]])
SETS = [F(4), np.array([0.25, 3.0])]
Z = F(4) + 1j * F(4, seed=1)
#: Functions that have derivatives by some of their arguments, or of other calls than those of the tables.
MORE = {
    "lax.betainc": (
        lambda m, x: m.lax.betainc(np.array([0.5, 2.0, 3.0]), np.array([1.5, 0.7, 2.0]), x),
        [np.array([0.2, 0.5, 0.9])],
    ),
    "lax.polygamma": (lambda m, x: m.lax.polygamma(np.array([0.0, 1.0, 2.0]), x), [F(3, low=0.5)]),
    "lax.real": (lambda m, x: m.lax.real(x), [Z]),
    "lax.imag": (lambda m, x: m.lax.imag(x * x), [Z]),
    "numpy.ldexp": (lambda m, x: m.numpy.ldexp(x * x, np.array([0, 3, -1])), [F(3)]),
    "numpy.put_along_axis": (
        lambda m, x, y: m.numpy.put_along_axis(x, W, y * y, 1, inplace=False),
        [F(2, 3), F(2, 1)],
    ),
    "numpy.sort_complex": (lambda m, x, z: (m.numpy.sort_complex(x), m.numpy.sort_complex(z * z)), [F(4), Z]),
    "numpy.histogram": (lambda m, x, w: m.numpy.histogram(x, 3, weights=w * w), [F(5), F(5, seed=1)]),
    "numpy.histogram_bin_edges": (lambda m, x: m.numpy.histogram_bin_edges(x * x, 3), [F(5)]),
    "numpy.ix_": (lambda m, x: m.numpy.ix_(x), [F(3)]),
    **{
        f"numpy.{name}": (sized(name), SETS[:1])
        for name in ("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values")
    },
    **{f"numpy.{name}": (sized(name), SETS) for name in ("setdiff1d", "setxor1d", "union1d")},
}

#: Functions that jax refuses to differentiate
ONLY_PHLOX = {
    "lax.igamma_grad_a": (lambda m, a, x: m.lax.igamma_grad_a(a, x * x), [F(3, low=0.5), F(3, low=0.5, seed=1)]),
    # The continued fraction, which is not chosen at the first two points, divides by zero there.
    "lax.random_gamma_grad": (
        lambda m, a, x: m.lax.random_gamma_grad(a, x),
        [np.array([3.0, 2.5, 0.7, 2.0, 1.5]), np.array([1.0, 0.5, 0.3, 3.0, 9.0])],
    ),
}

#: Functions without derivatives; test_none says that it is so.
NONE = {
    "the results are integers, bools or positions": """
        numpy.allclose numpy.argmax numpy.argmin numpy.argpartition numpy.argsort numpy.argwhere numpy.array_equal
        numpy.array_equiv numpy.bitwise_and numpy.bitwise_count numpy.bitwise_invert numpy.bitwise_left_shift
        numpy.bitwise_not numpy.bitwise_or numpy.bitwise_right_shift numpy.left_shift numpy.right_shift numpy.bitwise_xor numpy.count_nonzero numpy.digitize
        numpy.flatnonzero numpy.gcd numpy.isclose numpy.iscomplex numpy.isin numpy.isneginf numpy.isposinf
        numpy.invert numpy.isreal numpy.lcm numpy.lexsort numpy.nanargmax numpy.nanargmin numpy.nonzero numpy.packbits
        numpy.ravel_multi_index numpy.searchsorted numpy.unpackbits numpy.unravel_index numpy.linalg.matrix_rank
        lax.argmax lax.argmin lax.bitwise_and lax.bitwise_not lax.bitwise_or lax.bitwise_xor lax.clz
        lax.population_count lax.reduce_and lax.reduce_or lax.reduce_xor lax.shift_left
        lax.shift_right_arithmetic lax.shift_right_logical lax.linalg.lu_pivots_to_permutation""",
    "jax refuses to differentiate it": "lax.zeta",
}
REFUSED = NONE["jax refuses to differentiate it"].split()
WITHOUT = {name for names in NONE.values() for name in names.split()}


@pytest.mark.parametrize("path", sorted(WITHOUT))
@double
def test_none(path):
    found = examples(path, ("float32", "int32", "complex64"), 1, wide=True)
    assert found
    for example in found:
        if path in REFUSED:
            assert example.floats
            for i in example.floats:
                gradient = lambda m, i=i, e=example: m.eval_shape(m.grad(total(m, e), i), *e.args)
                judge.raises_alike(gradient)
        else:
            for m in (phlox, jax):
                assert not leaves_of(m, m.eval_shape(functools.partial(example.run, m), *example.args))


@pytest.mark.parametrize("path", MORE)
@double
def test_more(path):
    example = Example(path, *MORE[path])
    along = [direction(example, i) for i in example.floats]
    jax.eval_shape(derivatives(jax, example), example.args, along)  # which raises where jax has no derivative
    check(example)


@pytest.mark.parametrize("path", ONLY_PHLOX)
@double
def test_only_phlox(path):
    check(Example(path, *ONLY_PHLOX[path]), with_jax=False)


@pytest.mark.parametrize(
    "path", [f for f in functions() if f not in ROUNDED | EXEMPT | WITHOUT | {*MORE, *ONLY_PHLOX, "numpy.intersect1d"}]
)
@double
def test_real(path):
    """The real jax is asked about one example of what is not elementwise, as test_elementwise_transforms asks about the rest."""
    found = [e for e in examples(path, ("float32",), 1, wide=True) if e.floats and e.differentiable]
    assert found, "is differentiated nowhere: PROGRAMS in programs.py has a row, or EXEMPT names it"
    for position, example in enumerate(found):
        check(example, with_jax=not position and not example.elementwise and path not in OWN)


def test_common_elements():
    """They are common at this point alone, so that differences say nothing of their derivative."""

    def common(m, x, y):
        return m.numpy.dot(m.numpy.intersect1d(x, y, size=2), np.array([1, 2], np.float32))

    x, y = np.array([3, 1, 2], np.float32), np.array([2, 5, 1, 4], np.float32)
    judge.agree(lambda m, x, y: m.grad(lambda *xs: common(m, *xs), (0, 1))(x, y), x, y)


#: (eigenvectors are missing: their phase is nobody's promise)
COMPLEX = [
    "numpy.sin", "numpy.exp", "numpy.log", "numpy.sqrt", "numpy.power", "numpy.divide", "numpy.abs", "numpy.angle", "numpy.matmul", "numpy.prod", "numpy.cumprod", "numpy.fft.fft", "numpy.fft.ifft2", "lax.dot_general", "lax.conv_general_dilated", "lax.linalg.cholesky", "lax.linalg.qr", "lax.linalg.lu", "lax.linalg.triangular_solve", "numpy.linalg.solve", "numpy.linalg.inv", "numpy.linalg.det", "numpy.linalg.norm",
]  # fmt: skip


@pytest.mark.parametrize("path", COMPLEX)
@double
def test_complex(path):
    for example in examples(path, ("complex64",), 1, wide=True):
        check(example, with_jax=False)
