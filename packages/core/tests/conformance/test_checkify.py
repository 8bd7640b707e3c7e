"""checkify: whether a check fails, and of which kind the error is, in many programs and under transformations, as in jax.

A program is a function of the library (jax or phlox), which returns a function of arrays. Messages say where a check stands, which those of jax do
not.
"""

import importlib

import jax
import jax.numpy
import jax.scipy.linalg
import numpy as np
import pytest

import phlox
import phlox.numpy
import phlox.scipy.linalg

SETS = ("user_checks", "nan_checks", "div_checks", "index_checks", "float_checks", "automatic_checks", "all_checks")


def checkify_of(lib):
    return importlib.import_module(f"{lib.__name__}.experimental.checkify")


def positive(lib):
    def f(x):
        checkify_of(lib).check(lib.numpy.all(x > 0), "not positive")
        return lib.numpy.log(x)

    return f


def with_value(lib):
    def f(x):
        checkify_of(lib).check(lib.numpy.sum(x) < 3, "sum is {s}, {}", lib.numpy.max(x), s=lib.numpy.sum(x))
        return x * 2

    return f


def two(lib):
    def f(x):
        checkify_of(lib).check(lib.numpy.all(x > 0), "first")
        checkify_of(lib).check(lib.numpy.all(x < 2), "second")
        return x

    return f


def jitted(lib):
    def f(x):
        return lib.jit(two(lib))(x) + lib.jit(positive(lib))(x)

    return f


def nested_jit(lib):
    return lambda x: lib.jit(lambda y: lib.jit(positive(lib))(y) * 2)(x + 0)


def scanned(lib):
    def body(carry, x):
        checkify_of(lib).check(carry < 2.5, "carry is {}", carry)
        return carry + lib.numpy.abs(x), lib.numpy.log(x)

    return lambda x: lib.lax.scan(body, lib.numpy.float32(0.0), x)


def scanned_over_two(lib):
    def body(carry, x):
        checkify_of(lib).check(carry < 2.5, "carry")
        checkify_of(lib).check(x < 1.5, "x is {}", x)
        return carry + x, carry

    return lambda x: lib.lax.scan(body, lib.numpy.float32(0.0), x, reverse=True)


def branches(lib):
    def f(x):
        def yes(y):
            checkify_of(lib).check(lib.numpy.all(y < 2), "yes {}", lib.numpy.max(y))
            return lib.numpy.sqrt(y)

        def no(y):
            checkify_of(lib).check(lib.numpy.all(y > -2), "no")
            return y / lib.numpy.sum(y)

        return lib.lax.cond(lib.numpy.sum(x) > 0, yes, no, x)

    return f


def looped(lib):
    def body(state):
        i, x = state
        checkify_of(lib).check(lib.numpy.all(x < 9), "too big in turn {}", i)
        return i + 1, x * 2 - lib.numpy.float32(0.5)

    return lambda x: lib.lax.while_loop(lambda s: s[0] < 3, body, (lib.numpy.int32(0), x))


def loop_condition(lib):
    def goes_on(x):
        checkify_of(lib).check(lib.numpy.all(x > -3), "in the condition")
        return lib.numpy.max(x) < 4

    return lambda x: lib.lax.while_loop(goes_on, lambda y: y * 2 + 1, x)


def counted(lib):
    return lambda x: lib.lax.fori_loop(0, 3, lambda i, y: lib.numpy.sqrt(y - 1), x)


def rematerialized(lib):
    return lambda x: lib.checkpoint(positive(lib))(x)


def custom_forward(lib):
    @lib.custom_jvp
    def f(x):
        checkify_of(lib).check(lib.numpy.all(x > 0), "in custom_jvp")
        return lib.numpy.log(x)

    f.defjvp(lambda primals, tangents: (lib.numpy.log(primals[0]), tangents[0] / primals[0]))
    return lambda x: f(x) * 2


def custom_backward(lib):
    @lib.custom_vjp
    def f(x):
        checkify_of(lib).check(lib.numpy.all(x > 0), "in custom_vjp")
        return lib.numpy.log(x)

    f.defvjp(lambda x: (lib.numpy.log(x), x), lambda x, ct: (ct / x,))
    return lambda x: f(x) * 2


def mapped(lib):
    def one(x):
        checkify_of(lib).check(x > 0, "example is {}", x)
        return lib.numpy.log(x)

    return lambda x: lib.vmap(one)(x)


def mapped_loop(lib):
    def one(x):
        return lib.lax.scan(lambda c, _: (lib.numpy.log(c), c), x, None, length=2)

    return lambda x: lib.vmap(one)(x)


def debugging(lib):
    def f(x):
        checkify_of(lib).debug_check(lib.numpy.all(x > 0), "debug {}", x[0])
        return x

    return f


def again(lib):
    def f(x):
        error, out = lib.jit(checkify_of(lib).checkify(positive(lib)))(x)
        checkify_of(lib).check_error(error)
        return out

    return f


def mapped_inside(lib):
    def one(x):
        checkify_of(lib).check(x > 0, "example is {}", x)
        return x

    def f(x):
        error, out = lib.vmap(checkify_of(lib).checkify(one))(x)
        checkify_of(lib).check_error(error)
        return out

    return f


def thrown(lib):
    def f(x):
        error, out = checkify_of(lib).checkify(positive(lib))(x)
        error.throw()
        return out

    return f


def gradient(lib):
    return lambda x: lib.grad(lambda y: lib.numpy.sum(positive(lib)(y)))(x)


def gradient_of_jit(lib):
    return lambda x: lib.grad(lambda y: lib.numpy.sum(lib.jit(with_value(lib))(y)))(x)


def gradient_of_scan(lib):
    return lambda x: lib.grad(lambda y: lib.numpy.sum(scanned(lib)(y)[0]))(x)


def reciprocal(lib):
    return lambda x: 1 / x


def logarithm(lib):
    return lambda x: lib.numpy.log(x)


def sine(lib):
    return lambda x: lib.numpy.sin(x * lib.numpy.inf)


def quotient(lib):
    return lambda x: lib.numpy.sum(x) // lib.numpy.min(x)


def integer_quotient(lib):
    return lambda x: lib.numpy.int32(7) // x.astype("int32")


def remainder(lib):
    return lambda x: x % lib.numpy.min(x)


def mean(lib):
    return lambda x: lib.numpy.mean(x) / lib.numpy.std(x)


def softmax(lib):
    return lambda x: lib.nn.softmax(x)


def product(lib):
    return lambda x: x @ (x / x)


def taken(lib):
    return lambda x: lib.numpy.arange(3.0)[x.astype("int32")]


def taken_one(lib):
    return lambda x: lib.numpy.arange(3.0)[x[1].astype("int32")]


def taken_in_matrix(lib):
    return lambda x: lib.numpy.ones((3, 2))[x.astype("int32"), 1]


def written(lib):
    return lambda x: lib.numpy.zeros(3).at[x.astype("int32")].set(1.0)


def added(lib):
    return lambda x: lib.numpy.zeros((3, 2)).at[x.astype("int32")].add(x[0])


def sliced(lib):
    return lambda x: lib.lax.dynamic_slice(lib.numpy.arange(4.0), (x[0].astype("int32"),), (2,))


def slice_written(lib):
    return lambda x: lib.lax.dynamic_update_slice(lib.numpy.arange(4.0), x[:2], (x[1].astype("int32"),))


PROGRAMS = [
    positive, with_value, two, jitted, nested_jit, scanned, scanned_over_two, branches, looped, loop_condition, counted,
    rematerialized, custom_forward, custom_backward, mapped, mapped_loop, debugging, again, mapped_inside, thrown,
    gradient, gradient_of_jit, reciprocal, logarithm, sine, quotient, integer_quotient, remainder,
    mean, softmax, product, taken, taken_one, taken_in_matrix, written, added, sliced, slice_written,
]  # fmt: skip
POINTS = [(1.0, 0.5, 0.25), (1.0, 1.5, 2.5), (-1.0, 1.0, 0.5), (0.0, 0.0, 0.0), (3.0, 5.0, 7.0), (-4.0, -4.0, 1.0)]


def outcome(lib, program, names, x, wrap):
    """(the class of the error or None, the results) of a program that is checkified."""
    checkify = checkify_of(lib)
    errors = getattr(checkify, names)
    error, out = wrap(lib, checkify.checkify(program(lib), errors))(lib.numpy.asarray(np.array(x, np.float32)))
    exception = error.get_exception()
    assert (error.get() is None) == (exception is None)
    return None if exception is None else type(exception).__name__, out


def compare(program, names, x, wrap):
    wanted, theirs = outcome(jax, program, names, x, wrap)
    got, mine = outcome(phlox, program, names, x, wrap)
    assert got == wanted, f"{names} at {x}: {got}, in jax {wanted}"
    for a, b in zip(jax.tree.leaves(theirs), phlox.tree.leaves(mine), strict=True):
        np.testing.assert_allclose(np.asarray(b), np.asarray(a), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("names", ["user_checks", "nan_checks", "div_checks", "index_checks", "all_checks"])
def test_outcomes_are_those_of_jax(program, names):
    for x in POINTS if names in ("user_checks", "all_checks") else POINTS[3:]:
        compare(program, names, x, lambda lib, f: f)


def shown(lib):
    def f(x):
        checkify_of(lib).check(False, "{} and {tree} {x:.1f}", x > 0, tree={"a": x, "b": x[0]}, x=x[0])

    return f


@pytest.mark.parametrize(
    "program",
    [shown, positive, with_value, quotient, logarithm, taken, taken_in_matrix, sliced, mapped, mapped_inside],
)
def test_messages(program):
    for x in (*POINTS, (-1.0, 2.0, -3.0, 4.0)):
        found = []
        for lib in (phlox, jax):
            checkify = checkify_of(lib)
            error, _ = checkify.checkify(program(lib), checkify.all_checks)(lib.numpy.asarray(x))
            found.append((error.get() or "").splitlines()[:1])
        mine, theirs = ([line.partition(" (`check` failed")[0].strip() for line in lines] for lines in found)
        assert mine == theirs


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_jit_of_checkify(program):
    for x in POINTS[1:4]:
        compare(program, "all_checks", x, lambda lib, f: lib.jit(f))


def test_the_derivative_of_a_scan_keeps_its_checks():
    """jax 0.10 and 0.12 lose them."""
    x = (1.0, 1.5, 2.5)
    assert outcome(phlox, scanned, "user_checks", x, lambda lib, f: f)[0] == "FailedCheckError"
    assert outcome(phlox, gradient_of_scan, "user_checks", x, lambda lib, f: f)[0] == "FailedCheckError"


@pytest.mark.parametrize(
    "program", [positive, with_value, branches, scanned, looped, reciprocal, taken, custom_forward]
)
def test_vmap_of_checkify(program):
    def run(lib):
        checkify = checkify_of(lib)
        x = lib.numpy.asarray(np.array(POINTS, np.float32))
        error, out = lib.vmap(checkify.checkify(program(lib), checkify.all_checks))(x)
        found = error.get_exception()
        return {i: type(e).__name__ for i, e in found.error_mapping.items()} if found else {}, out

    (wanted, theirs), (got, mine) = run(jax), run(phlox)
    assert got == wanted
    assert got
    for a, b in zip(jax.tree.leaves(theirs), phlox.tree.leaves(mine), strict=True):
        np.testing.assert_allclose(np.asarray(b), np.asarray(a), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", [positive, custom_forward, custom_backward, scanned, rematerialized, branches])
def test_derivatives_of_checkify(program):
    """The function is checked, and its derivative is that of the function. jax loses the errors of custom ones."""

    def run(lib, x):
        checked = checkify_of(lib).checkify(program(lib))

        def loss(y):
            error, out = checked(y)
            return sum(lib.numpy.sum(leaf) for leaf in lib.tree.leaves(out)), error

        grads, error = lib.jit(lib.grad(loss, has_aux=True))(lib.numpy.asarray(np.array(x, np.float32)))
        return error.get() is None, grads

    for x in (POINTS[0], POINTS[2]):
        (wanted, theirs), (got, mine) = run(jax, x), run(phlox, x)
        assert got == (x == POINTS[0] if program in (custom_forward, custom_backward) else wanted)
        np.testing.assert_allclose(np.asarray(mine), np.asarray(theirs), rtol=1e-5)


def test_checks_in_a_block_of_64_bits():
    checkify = checkify_of(phlox)

    def f(x):
        with phlox.enable_x64(True):
            wide = x.astype(float)
            checkify.check(wide > 0, "not positive: {x}", x=wide)
            return (phlox.numpy.arange(3.0)[x.astype(int)] + wide).astype("float32")

    loop = lambda x: phlox.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]
    for run in (f, phlox.jit(f), phlox.grad(f), loop):
        for checked in (checkify.checkify(run), phlox.jit(checkify.checkify(run, checkify.all_checks))):
            assert checked(phlox.numpy.float32(1))[0].get() is None
            assert "not positive: -1.0" in checked(phlox.numpy.float32(-1))[0].get()


def test_refusals():
    for lib in (jax, phlox):
        checkify = checkify_of(lib)
        with pytest.raises(TypeError):
            checkify.check(lib.numpy.ones(2) > 0, "many")
        with pytest.raises(TypeError, match="Formatting arguments"):
            checkify.check(True, "{}", "text")
        with pytest.raises(TypeError):
            checkify.check_error("text")
        with pytest.raises(ValueError, match="Cannot abstractly evaluate"):
            lib.jit(positive(lib))(lib.numpy.ones(2))
        with pytest.raises(checkify.JaxRuntimeError):
            positive(lib)(-lib.numpy.ones(2))
        with pytest.raises(ValueError):
            checkify.checkify(positive(lib))(-lib.numpy.ones(2))[0].throw()
        lib.jit(debugging(lib))(-lib.numpy.ones(2))


def test_sets():
    mine, theirs = checkify_of(phlox), checkify_of(jax)
    for name in SETS:
        kinds = [{kind.__name__ for kind in getattr(lib, name)} for lib in (mine, theirs)]
        assert kinds[0] == kinds[1]


KNOWN_INDICES = {
    "inside": lambda lib, x, m: x[-1],
    "above": lambda lib, x, m: x[5],
    "below": lambda lib, x, m: x[-5],
    "in a matrix": lambda lib, x, m: m[1, 9],
    "below in a matrix": lambda lib, x, m: m[1, -9],
    "a row": lambda lib, x, m: m[7],
    "beside a slice": lambda lib, x, m: m[7, ::-1],
    "beside an index": lambda lib, x, m: m[lib.numpy.int8(1), -9],
    "written": lambda lib, x, m: x.at[-5].set(1.0),
    "a slice": lambda lib, x, m: x[1:9],
    "take": lambda lib, x, m: lib.numpy.take(x, 5),
}


@pytest.mark.parametrize("name", KNOWN_INDICES)
def test_indices_that_are_known_while_tracing(name):
    found = []
    for lib in (jax, phlox):
        x, m = lib.numpy.arange(3.0), lib.numpy.arange(12.0).reshape(3, 4)
        checkify = checkify_of(lib)
        error, out = checkify.checkify(lambda: KNOWN_INDICES[name](lib, x, m), checkify.index_checks)()
        eager = KNOWN_INDICES[name](lib, x, m)
        np.testing.assert_array_equal(np.asarray(out), np.asarray(eager))
        found.append((error.get() is None, np.asarray(eager)))
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[1][1], found[0][1])


#: Operations of many kinds that make a nan, or hand one on.
NANS = {
    "solve": lambda m: m.numpy.linalg.solve(m.numpy.zeros((2, 2)), m.numpy.ones(2)),
    "inv": lambda m: m.numpy.linalg.inv(m.numpy.zeros((2, 2))),
    "det": lambda m: m.numpy.linalg.det(m.numpy.array([[np.inf, 1], [1, np.inf]])),
    "custom_linear_solve": lambda m: m.lax.custom_linear_solve(
        lambda x: 0 * x, m.numpy.ones(2), lambda mv, b: b * np.inf - np.inf
    ),
    "reduce": lambda m: m.lax.reduce(m.numpy.array([np.inf, -np.inf]), np.float32(0), m.lax.add, (0,)),
    "reduce by a function": lambda m: m.lax.reduce(
        m.numpy.array([np.inf, 1]), np.float32(0), lambda x, y: x - y * y * y + x, (0,)
    ),
    "logaddexp": lambda m: m.numpy.logaddexp(m.numpy.array(np.nan), 1.0),
    "softplus": lambda m: m.nn.softplus(m.numpy.array(np.nan)),
    "cholesky": lambda m: m.numpy.linalg.cholesky(-m.numpy.eye(2)),
    "eigh": lambda m: m.numpy.linalg.eigh(np.nan * m.numpy.eye(2)),
    "triangular_solve": lambda m: m.scipy.linalg.solve_triangular(m.numpy.zeros((2, 2)), m.numpy.zeros(2)),
    "fft": lambda m: m.numpy.fft.fft(m.numpy.array([np.inf, 1.0, -np.inf])),
    "cumsum": lambda m: m.numpy.cumsum(m.numpy.array([np.inf, -np.inf])),
    "dot": lambda m: m.numpy.dot(m.numpy.array([np.inf, 1.0]), m.numpy.array([0.0, 1.0])),
    "conv": lambda m: m.numpy.convolve(m.numpy.array([np.inf, 1.0]), m.numpy.array([0.0, 1.0])),
    "logsumexp": lambda m: m.nn.logsumexp(m.numpy.array([np.nan, -np.inf])),
    "var": lambda m: m.numpy.var(m.numpy.array([np.inf, 1])),
    "scan": lambda m: m.lax.scan(lambda c, x: (c * x, c), np.float32(0), m.numpy.array([np.inf, 1.0])),
    "pow": lambda m: m.numpy.power(m.numpy.array(-1.0), 0.5),
    "none": lambda m: m.numpy.linalg.solve(m.numpy.eye(2), m.numpy.ones(2)),
}


@pytest.mark.parametrize("name", NANS)
def test_nans_of_all_kinds_of_operations(name):
    found = {}
    for m in (phlox, jax):
        with np.errstate(all="ignore"):
            error, out = checkify_of(m).checkify(lambda m=m: NANS[name](m), errors=checkify_of(m).float_checks)()
        leaves = [np.asarray(x) for x in m.tree_util.tree_leaves(out)]
        found[m] = error.get() is not None, any(np.isnan(x).any() for x in leaves)
    assert found[phlox][0] == found[phlox][1], "what is nan is found, and nothing else"
    assert found[phlox][0] >= found[jax][0], "jax does not look at all kinds of operations"
