"""Derivatives in all their forms: complex numbers, integers, aux, trees, second and higher orders, vjp functions as values."""

import functools

import jax
import jax.test_util
import numpy as np
import pytest

import phlox
import phlox.test_util
from conformance.harness import agree, outcome, row

NEAR = row("derivatives", tolerance=5e-5)
X = np.array([0.5, -1.0, 2.0], np.float32)
Y = X[::-1].copy()
Z = (X + 1j * Y).astype(np.complex64)
N = np.arange(3, dtype=np.int32)


def both(case, *args, jit=True, what="", **options):
    theirs = outcome(case, jax, args)
    agree(outcome(case, phlox, args), theirs, NEAR, what, **options)
    if jit:
        mine = outcome(lambda m, *xs: m.jit(functools.partial(case, m))(*xs), phlox, args)
        agree(mine, theirs, NEAR, what + " under jit", **options)


# --- complex numbers ------------------------------------------------------------------------------------

HOLOMORPHIC = {
    "square": lambda m, z: z**2,
    "sin": lambda m, z: m.numpy.sin(z),
    "exp": lambda m, z: m.numpy.exp(1j * z),
    "quotient": lambda m, z: 1 / (z + 3),
    "tanh": lambda m, z: m.numpy.tanh(z * 0.3),
    "log": lambda m, z: m.numpy.log(z),
    "sqrt": lambda m, z: m.numpy.sqrt(z),
    "power": lambda m, z: z ** (2 + 1j),
    "product": lambda m, z: m.numpy.prod(z) * z,
    "matrix": lambda m, z: m.numpy.outer(z, z) @ z,
}


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_holomorphic(name):
    f = lambda m: functools.partial(HOLOMORPHIC[name], m)
    total = lambda m: lambda z: (f(m)(z) * np.array([1, 2j, 3], np.complex64)).sum()
    both(lambda m, z: m.grad(total(m), holomorphic=True)(z), Z, what="grad")
    both(lambda m, z: m.value_and_grad(total(m), holomorphic=True)(z), Z, what="value_and_grad")
    both(lambda m, z: m.jacfwd(f(m), holomorphic=True)(z), Z, what="jacfwd")
    both(lambda m, z: m.jacrev(f(m), holomorphic=True)(z), Z, what="jacrev")
    both(lambda m, z: m.hessian(total(m), holomorphic=True)(z), Z, what="hessian")
    both(lambda m, z: m.jvp(f(m), (z,), (z[::-1],)), Z, what="jvp")
    both(lambda m, z: m.vjp(f(m), z)[1](z[::-1]), Z, what="vjp")


CUT = (
    "arccosh",
    "arcsinh",
    "arccos",
    "arcsin",
    "arctan",
    "arctanh",
    "log1p",
    "log",
    "sqrt",
    "log2",
    "exp2",
    "expm1",
    "tanh",
)


@pytest.mark.parametrize("name", CUT)
def test_derivatives_of_complex_numbers_in_all_quadrants_and_on_both_sides_of_cuts(name):
    """Against differences of NumPy's functions, along the axes at points of the axes."""
    parts = (-2.3, -0.6, 0.4, 1.7)
    points = [complex(x, y) for x in (*parts, 0.0, -0.0) for y in (*parts, 0.0, -0.0) if x or y]
    steps = np.array([1e-6 if z.real else 1e-6j for z in points])
    up, down = (np.array(points) for _ in range(2))
    # Parts are moved one by one, as a sum of complex numbers loses the sign of a zero part.
    up.real, up.imag = up.real + steps.real, np.where(steps.imag, up.imag + steps.imag, up.imag)
    down.real, down.imag = down.real - steps.real, np.where(steps.imag, down.imag - steps.imag, down.imag)
    up.real, down.real = (np.where(steps.real, x.real, np.array(points).real) for x in (up, down))
    slopes = (getattr(np, name)(up) - getattr(np, name)(down)) / (2 * steps)
    with phlox.enable_x64():
        result = phlox.vmap(phlox.grad(getattr(phlox.numpy, name), holomorphic=True))(np.array(points))
    np.testing.assert_allclose(result, slopes, rtol=1e-7, atol=1e-8)


def test_sign_of_complex_numbers():
    """It turns by the part of the tangent that is across the number."""
    z, t = np.array([3 + 4j, -2j, 0], np.complex64), np.array([1, 1 + 1j, 1], np.complex64)
    u = np.array([0.6 + 0.8j, -1j, 0])
    expected = (t - u * (u.conj() * t).real) / np.array([5, 2, 1]) * (u != 0)
    np.testing.assert_allclose(phlox.jvp(phlox.numpy.sign, (z,), (t,))[1], expected, rtol=1e-6)


def test_derivatives_of_inverse_hyperbolic_functions_at_corners():
    grad, jnp = phlox.grad, phlox.numpy
    assert np.isnan(grad(jnp.arccosh)(-2.0)) and np.isnan(grad(jnp.arccosh)(0.5))
    np.testing.assert_allclose(grad(jnp.arccosh)(1e25), 1e-25, rtol=1e-6)
    np.testing.assert_allclose(grad(grad(jnp.tanh))(1e-9), -2e-9, rtol=1e-6)
    np.testing.assert_allclose(grad(grad(jnp.arctanh))(1e-9), 2e-9, rtol=1e-6)


NUMBERS = {
    "grad": lambda m: m.grad(lambda x: x**3)(2.0),
    "grad, holomorphic": lambda m: m.grad(lambda z: z**3, holomorphic=True)(1 + 2j),
    "grad of jacfwd": lambda m: m.grad(m.jacfwd(lambda x: x**3))(2.0),
    "grad of jacrev": lambda m: m.grad(m.jacrev(lambda x: x**3))(2.0),
    "grad of hessian": lambda m: m.grad(m.hessian(lambda x: x**4))(2.0),
    "grad of a part of jacfwd": lambda m: m.grad(lambda x: m.jacfwd(lambda xs: xs[0] ** 3 * xs[1])((x, 2.0))[0])(2.0),
    "fori_loop": lambda m: m.grad(lambda x: m.lax.fori_loop(0, 3, lambda i, c: c * x, x))(2.0),
    "scan": lambda m: m.grad(lambda x: m.lax.scan(lambda c, t: (c * x + t, c), x, m.numpy.arange(4.0))[0])(1.1),
    "scan of 1": lambda m: m.grad(lambda x: m.lax.scan(lambda c, t: (c * x, c), 1.0, m.numpy.arange(4.0))[0])(1.1),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_weak_types_of_derivatives_of_numbers(name):
    expected, result = NUMBERS[name](jax), NUMBERS[name](phlox)
    assert (result.dtype, result.weak_type) == (expected.dtype, expected.weak_type)
    np.testing.assert_allclose(result, expected, rtol=1e-6)


LOSSES = {
    "modulus": lambda m, z: m.numpy.abs(z) ** 2,
    "real": lambda m, z: m.numpy.real(z**2),
    "imag": lambda m, z: m.numpy.imag(z**3),
    "angle": lambda m, z: m.numpy.angle(z),
    "conj": lambda m, z: m.numpy.real(z * m.numpy.conj(z) + m.numpy.conj(z) ** 2),
    "norm": lambda m, z: m.numpy.linalg.norm(z) + 0 * m.numpy.real(z),
    "from real": lambda m, z: m.numpy.real(m.numpy.exp(m.lax.complex(m.numpy.real(z), m.numpy.imag(z)))),
}


@pytest.mark.parametrize("name", LOSSES)
def test_real_losses_of_complex_numbers(name):
    """The gradient is df/dx - i df/dy: the conjugate of the direction of steepest ascent."""
    total = lambda m: lambda z: (LOSSES[name](m, z) * np.array([1, 2, 3], np.float32)).sum()
    both(lambda m, z: m.grad(total(m))(z), Z, what="grad")
    both(lambda m, z: m.jvp(m.grad(total(m)), (z,), (z[::-1],)), Z, what="forward over reverse")
    x, y = Z.real.astype(np.float64), Z.imag.astype(np.float64)
    with phlox.enable_x64(True):
        f = lambda x, y: float(total(phlox)(x + 1j * y))
        slopes = [
            [
                (f(x + 1e-6 * e * re, y + 1e-6 * e * im) - f(x - 1e-6 * e * re, y - 1e-6 * e * im)) / 2e-6
                for e in np.eye(3)
            ]
            for re, im in ((1, 0), (0, 1))
        ]
    np.testing.assert_allclose(phlox.grad(total(phlox))(Z), np.array(slopes[0]) - 1j * np.array(slopes[1]), rtol=1e-3)


def test_real_arguments_of_complex_functions():
    both(lambda m, x: m.grad(lambda x: m.numpy.abs(m.numpy.exp(1j * x) + x).sum())(x), X)
    both(lambda m, x: m.jvp(lambda x: m.numpy.exp(1j * x), (x,), (Y,)), X)
    both(lambda m, x: m.vjp(lambda x: m.numpy.exp(1j * x), x)[1](Z), X)
    both(lambda m, x: m.jacfwd(lambda x: m.numpy.exp(1j * x))(x), X)


REFUSED = {
    "complex result": lambda m: m.grad(lambda z: (z**2).sum())(Z),
    "holomorphic of real": lambda m: m.grad(lambda x: (x**2).sum(), holomorphic=True)(X),
    "holomorphic to real": lambda m: m.grad(lambda z: m.numpy.real(z).sum(), holomorphic=True)(Z),
    "jacrev of complex": lambda m: m.jacrev(lambda z: z**2)(Z),
    "jacfwd of complex": lambda m: m.jacfwd(lambda z: z**2)(Z),
    "jacfwd, holomorphic of real": lambda m: m.jacfwd(lambda x: x**2, holomorphic=True)(X),
    "jacfwd, holomorphic to real": lambda m: m.jacfwd(lambda z: m.numpy.real(z), holomorphic=True)(Z),
    "jacrev, holomorphic to real": lambda m: m.jacrev(lambda z: m.numpy.real(z), holomorphic=True)(Z),
    "jacrev to integers": lambda m: m.jacrev(lambda x: x.astype("int32"))(X),
    "integer": lambda m: m.grad(lambda n: n.sum() * 1.0)(N),
    "bool": lambda m: m.grad(lambda n: n.sum() * 1.0)(X > 0),
    "integer result": lambda m: m.grad(lambda x: x.astype("int32").sum())(X),
    "jacfwd of integers": lambda m: m.jacfwd(lambda n: n * 1.0)(N),
    "jacrev of integers": lambda m: m.jacrev(lambda n: n * 1.0)(N),
    "vector": lambda m: m.grad(lambda x: x)(X),
    "tuple": lambda m: m.grad(lambda x: (x.sum(), x.sum()))(X),
    "no aux": lambda m: m.grad(lambda x: x.sum(), has_aux=True)(X),
    "three": lambda m: m.grad(lambda x: (x.sum(), 1, 2), has_aux=True)(X),
    "argnums too large": lambda m: m.grad(lambda x: x.sum(), argnums=1)(X),
    "tangent of integers": lambda m: m.jvp(lambda n: n * 1.0, (N,), (N,)),
    "tangent of other dtype": lambda m: m.jvp(lambda x: x, (X,), (X.astype("float16"),)),
    "tangent of other shape": lambda m: m.jvp(lambda x: x, (X,), (X[:2],)),
    "tangents of other structure": lambda m: m.jvp(lambda x: x, (X,), ([X],)),
    "cotangent of other dtype": lambda m: m.vjp(lambda x: x, X)[1](X.astype("float16")),
    "cotangent of other structure": lambda m: m.vjp(lambda x: x, X)[1]([X]),
    "reduce_axes of grad": lambda m: m.grad(lambda x: x.sum(), reduce_axes=("i",)),
    "reduce_axes of value_and_grad": lambda m: m.value_and_grad(lambda x: x.sum(), reduce_axes=("i",)),
    "reduce_axes of vjp": lambda m: m.vjp(lambda x: x.sum(), X, reduce_axes=("i",)),
    "reduce_axes of linear_transpose": lambda m: m.linear_transpose(lambda x: 2 * x, X, reduce_axes=("i",)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    theirs = outcome(REFUSED[name], jax, ())
    assert theirs[1] is not None
    agree(outcome(REFUSED[name], phlox, ()), theirs, NEAR, name)


# --- integers -------------------------------------------------------------------------------------------


def mixed(m, n, x):
    return {"f": (n * x).sum(), "i": n + 1}


FLOAT0 = np.zeros(3, phlox.float0)
INTEGERS = {
    "grad": lambda m: m.grad(lambda n, x: (n * x).sum(), (0, 1), allow_int=True)(N, X),
    "value_and_grad": lambda m: m.value_and_grad(lambda n, x: m.numpy.multiply(n, x).sum(), allow_int=True)(N, X),
    "grad of a tree": lambda m: m.grad(lambda t: (t["n"] * t["x"]).sum(), allow_int=True)({"n": N, "x": X, "b": X > 0}),
    "grad of uint8": lambda m: m.grad(lambda n, x: (n * x).sum(), allow_int=True)(N.astype("uint8"), X),
    "jacrev": lambda m: m.jacrev(lambda n, x: x * 2, 1, allow_int=True)(N, X),
    "jvp": lambda m: m.jvp(functools.partial(mixed, m), (N, X), (FLOAT0, Y)),
    "vjp": lambda m: m.vjp(functools.partial(mixed, m), N, X)[1]({"f": np.float32(2), "i": FLOAT0}),
    "vjp of integers alone": lambda m: m.vjp(lambda n: n + 1, N)[1](FLOAT0),
    "linearize": lambda m: m.linearize(lambda x: mixed(m, N, x), X)[1](Y),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name):
    mine, theirs = INTEGERS[name](phlox), INTEGERS[name](jax)
    assert str(phlox.tree.structure(mine)) == str(jax.tree.structure(theirs))
    for a, b in zip(phlox.tree.leaves(mine), jax.tree.leaves(theirs), strict=True):
        assert np.shape(a) == np.shape(b) and str(np.asarray(a).dtype) == str(np.asarray(b).dtype)
        if np.asarray(b).dtype != jax.float0:
            np.testing.assert_allclose(a, b, rtol=1e-6)


# --- aux and trees --------------------------------------------------------------------------------------


def with_aux(m, x, y):
    return (m.numpy.sin(x) * y).sum(), {"y": y, "text": "aux", "none": None, "n": m.numpy.sum(x)}


def vector_with_aux(m, x, y):
    return m.numpy.sin(x) * y, (y + 1, [x])


AUX = {
    "grad": lambda m, x, y: numbers(m, m.grad(functools.partial(with_aux, m), has_aux=True)(x, y)),
    "grad of both": lambda m, x, y: numbers(m, m.grad(functools.partial(with_aux, m), (0, 1), has_aux=True)(x, y)),
    "value_and_grad": lambda m, x, y: numbers(m, m.value_and_grad(functools.partial(with_aux, m), has_aux=True)(x, y)),
    "vjp": lambda m, x, y: vjp_with_aux(m, x, y),
    "jvp": lambda m, x, y: m.jvp(functools.partial(vector_with_aux, m), (x, y), (y, x), has_aux=True),
    "linearize": lambda m, x, y: linearize_with_aux(m, x, y),
    "jacfwd": lambda m, x, y: m.jacfwd(functools.partial(vector_with_aux, m), has_aux=True)(x, y),
    "jacrev": lambda m, x, y: m.jacrev(functools.partial(vector_with_aux, m), (0, 1), has_aux=True)(x, y),
    "hessian": lambda m, x, y: m.hessian(lambda x, y: ((m.numpy.sin(x) * y).sum(), y), has_aux=True)(x, y),
    "vmap of grad": lambda m, x, y: m.vmap(m.grad(lambda x, y: (m.numpy.sin(x) * y, y), has_aux=True))(x, y),
    "grad of grad": lambda m, x, y: m.grad(
        lambda x: (lambda g, aux: (g.sum(), aux))(*m.grad(lambda x: ((x**3 * y).sum(), x), has_aux=True)(x)),
        has_aux=True,
    )(x),
}


def numbers(m, tree):
    """Without what is no array, which jit does not return."""
    return [x for x in m.tree.leaves(tree) if not isinstance(x, str)]


def vjp_with_aux(m, x, y):
    out, pullback, aux = m.vjp(functools.partial(vector_with_aux, m), x, y, has_aux=True)
    return out, pullback(y), aux


def linearize_with_aux(m, x, y):
    out, derivative, aux = m.linearize(functools.partial(vector_with_aux, m), x, y, has_aux=True)
    return out, derivative(y, x), aux


@pytest.mark.parametrize("name", AUX)
def test_has_aux(name):
    both(functools.partial(lambda m, x, y: AUX[name](m, x, y)), X, Y)


def tree_function(m, t):
    return {"o": [m.numpy.sin(t["a"]) * t["b"][0], t["b"][1] ** 2], "c": (t["a"].sum(),)}


TREE = {"a": X, "b": (Y, np.float32(3))}
TANGENT = {"a": Y, "b": (X, np.float32(2))}


def test_trees():
    f = lambda m: functools.partial(tree_function, m)
    both(lambda m, p, t: m.jvp(f(m), (p,), (t,)), TREE, TANGENT)
    both(lambda m, p: m.vjp(f(m), p)[1](f(m)(p)), TREE)
    both(lambda m, p, t: m.linearize(f(m), p)[1](t), TREE, TANGENT)
    both(lambda m, p: m.jacfwd(f(m))(p), TREE)
    both(lambda m, p: m.jacrev(f(m))(p), TREE)
    both(lambda m, p: m.hessian(lambda p: sum(x.sum() for x in m.tree.leaves(f(m)(p))))(p), TREE)


# --- second and higher orders ---------------------------------------------------------------------------


def energy(m, t):
    return (m.numpy.tanh(t["a"] * t["b"][1]) * t["b"][0] ** 2).sum() + m.numpy.prod(t["a"]) * t["b"][1]


PRODUCTS = {
    "forward over reverse": lambda m, f, x, v: m.jvp(m.grad(f), (x,), (v,))[1],
    "reverse over forward": lambda m, f, x, v: m.grad(lambda x: m.jvp(f, (x,), (v,))[1])(x),
    "reverse over reverse": lambda m, f, x, v: m.vjp(m.grad(f), x)[1](v)[0],
    "linearized": lambda m, f, x, v: m.linearize(m.grad(f), x)[1](v),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_hessian_vector_products(name):
    product = PRODUCTS[name]
    both(lambda m, x, v: product(m, functools.partial(energy, m), x, v), TREE, TANGENT)
    both(lambda m, x, v: product(m, m.jit(functools.partial(energy, m)), x, v), TREE, TANGENT, what="of jit")
    f = functools.partial(energy, phlox)
    dense = phlox.hessian(lambda x: f({"a": x, "b": TREE["b"]}))(X)
    alone = product(phlox, lambda x: f({"a": x, "b": TREE["b"]}), X, Y)
    np.testing.assert_allclose(alone, dense @ Y, rtol=1e-4)


RECORDED = [3, 8, 18, 39, 88]


@functools.cache
def sizes(library):
    """Equations in the program of each derivative of tanh, as `make_jaxpr` gives it."""
    m = {"phlox": phlox, "jax": jax}[library]
    f, found = m.numpy.tanh, []
    for _ in range(5):
        f = m.grad(f)
        found.append(len(m.make_jaxpr(f)(0.7).eqns))
    return found


def test_derivatives_of_tanh_up_to_the_fifth():
    point = np.float32(0.7)
    f = {phlox: phlox.numpy.tanh, jax: jax.numpy.tanh}
    for order in range(1, 6):
        f = {m: m.grad(g) for m, g in f.items()}
        np.testing.assert_allclose(f[phlox](point), f[jax](point), rtol=1e-4, err_msg=f"order {order}")
        np.testing.assert_allclose(phlox.jit(f[phlox])(point), f[jax](point), rtol=1e-4, err_msg=f"order {order}, jit")
    forward = {m: m.numpy.tanh for m in (phlox, jax)}
    for order in range(1, 6):
        forward = {m: (lambda g, m: lambda x: m.jvp(g, (x,), (1.0,))[1])(g, m) for m, g in forward.items()}
        np.testing.assert_allclose(forward[phlox](0.7), forward[jax](0.7), rtol=1e-4, err_msg=f"forward {order}")


def test_derivatives_of_sinc_where_its_quotient_has_none():
    f = {m: m.numpy.sinc for m in (phlox, jax)}
    for order in range(1, 7):
        f = {m: m.grad(g) for m, g in f.items()}
        np.testing.assert_allclose(f[phlox](0.0), f[jax](0.0), rtol=1e-5, err_msg=f"order {order}")


@pytest.mark.parametrize("shape", [(1,), (2,), (3,), (7,), (3, 5), (5, 2, 3)])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_products_and_their_gradients_have_the_same_bits(shape, axis):
    x = np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)

    def of(m):
        return m.value_and_grad(lambda x: (m.numpy.prod(x, axis=axis) ** 2).sum())(x)

    for mine, theirs in zip(of(phlox), of(jax), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_programs_of_higher_derivatives_do_not_blow_up():
    """What each derivative of tanh adds, recorded; jax has as many equations or more."""
    assert sizes("phlox") == RECORDED
    assert all(mine <= theirs for mine, theirs in zip(sizes("phlox"), sizes("jax"), strict=True))


# --- vjp functions as values ----------------------------------------------------------------------------


def pulled(m, f, *args):
    return m.vjp(f, *args)[1]


def test_vjp_functions_are_trees():
    f = lambda m: lambda x, y: m.numpy.sin(x) * y
    for m in (phlox, jax):
        leaves, structure = m.tree.flatten(pulled(m, f(m), X, Y))
        assert sorted(np.shape(x) for x in leaves) == [(3,)] * len(leaves) and leaves
        again = structure.unflatten(leaves)
        np.testing.assert_allclose(again(X)[1], np.sin(X) * X, rtol=1e-6)
        doubled = m.tree.map(lambda r: 2 * r, pulled(m, f(m), X, Y))
        np.testing.assert_allclose(doubled(X)[1], 2 * np.sin(X) * X, rtol=1e-6)
        np.testing.assert_allclose(doubled(X)[1], 2 * np.sin(X) * X, rtol=1e-6)  # and may be called again


def test_vjp_functions_pass_jit():
    f = lambda m: lambda x, y: {"o": m.numpy.sin(x) * y, "n": y.sum()}
    cotangent = {"o": X, "n": np.float32(2)}

    def through(m, x, y):
        forward = m.jit(lambda x, y: m.vjp(f(m), x, y))
        backward = m.jit(lambda pull, ct: pull(ct))
        out, pull = forward(x, y)
        first = backward(pull, cotangent)
        return out, first, m.tree.map(lambda a, b: a - b, first, pull(cotangent))

    both(through, X, Y)
    both(lambda m, x, y: m.vmap(pulled(m, lambda x, y: f(m)(x, y)["o"], x, y))(np.stack([X, Y])), X, Y)
    both(
        lambda m, x, y: m.vmap(lambda x, y: pulled(m, m.numpy.multiply, x, y))(x, y)(np.float32(1))[0].shape,
        X,
        Y,
        jit=False,
    )
    both(lambda m, x: m.lax.scan(lambda c, _: (c, c(np.float32(1))[0]), pulled(m, m.numpy.sin, x), None, 3)[1], X[0])


def test_one_compilation_for_vjp_functions_of_one_program():
    backward_calls = []

    def backward(pull, ct):
        backward_calls.append(1)
        return pull(ct)

    forward, backward = phlox.jit(lambda x: phlox.vjp(phlox.numpy.sin, x)), phlox.jit(backward)
    for x in (X, Y, 2 * X):
        _, pull = forward(x)
        np.testing.assert_allclose(backward(pull, X)[0], np.cos(x) * X, rtol=1e-6)
    assert len(backward_calls) == 1


def test_fwd_and_bwd():
    def run(m, x, y, argnums, **options):
        f = lambda x, y: (m.numpy.sin(x["a"]) * y, {"aux": y})[slice(None) if options.get("has_aux") else 0]
        fwd, bwd = m.fwd_and_bwd(f, argnums, **options)
        out, residuals, *aux = fwd({"a": x}, y)
        return out, aux, [bwd(residuals, ct) for ct in (x, y)]

    for options in ({}, {"has_aux": True}, {"jitted": False}, {"jitted": False, "has_aux": True}):
        for argnums in (0, 1, (0, 1), (1,)):
            both(lambda m, x, y, a=argnums, o=options: run(m, x, y, a, **o), X, Y, what=f"{argnums} {options}")


def test_vmap_that_sums():
    f = lambda m: lambda x, y: {"s": x * y, "c": y}
    both(lambda m, x: m.vmap(f(m), (0, None), None, sum_match=True)(x, m.numpy.float32(2)), X)
    both(lambda m, x: m.vmap(f(m), 0, {"s": None, "c": 0}, sum_match=True)(x, x), np.stack([X, Y]))
    both(lambda m, x: m.vmap(f(m), 0, None)(x, x), np.stack([X, Y]))
    # Summed in the dtypes of `numpy.sum`: examples of int8 do not overflow, bools are counted.
    for dtype in ("bool", "int8", "uint8", "int32", "float16"):
        both(
            lambda m, x: m.vmap(lambda y: y, out_axes=None, sum_match=True)(m.numpy.asarray(x)),
            np.full((3, 2), 100, dtype),
        )


# --- phlox.test_util ------------------------------------------------------------------------------------


def wrong_jvp(m):
    f = m.custom_jvp(lambda x: m.numpy.sin(x))
    f.defjvp(lambda p, t: (f(*p), 1.1 * m.numpy.cos(p[0]) * t[0]))
    return f


def wrong_second(m):
    first = m.custom_jvp(lambda x: m.numpy.cos(x))
    first.defjvp(lambda p, t: (first(*p), m.numpy.sin(p[0]) * t[0]))
    f = m.custom_jvp(lambda x: m.numpy.sin(x))
    f.defjvp(lambda p, t: (f(*p), first(p[0]) * t[0]))
    return f


CHECKS = {
    "sin": (lambda m: m.numpy.sin, (X,), 3, {}),
    "all modes": (lambda m: m.numpy.tanh, (X,), 2, {"modes": ("fwd", "rev", "lin")}),
    "two arguments": (lambda m: lambda x, y: m.numpy.sin(x) * y.sum(), (X, Y), 2, {}),
    "trees": (lambda m: lambda t: {"o": m.numpy.sin(t["a"]) * t["b"]}, ({"a": X, "b": np.float32(2)},), 2, {}),
    "number": (lambda m: m.numpy.exp, (0.5,), 2, {}),
    "complex": (lambda m: m.numpy.sin, (Z,), 2, {}),
    "half": (lambda m: m.numpy.sin, (X.astype("float16"),), 1, {"eps": 1e-1, "atol": 0.1, "rtol": 0.1}),
    "tolerance by dtype": (lambda m: m.numpy.sin, (X,), 1, {"atol": {np.float32: 1e-2}, "rtol": {np.float32: 1e-2}}),
    "wrong": (wrong_jvp, (X,), 1, {}),
    "wrong, forward": (wrong_jvp, (X,), 1, {"modes": ["fwd"]}),
    "wrong, reverse": (wrong_jvp, (X,), 1, {"modes": ["rev"]}),
    "wrong, wide": (wrong_jvp, (X,), 1, {"atol": 1.0, "rtol": 1.0}),
    "wrong second derivative, not looked at": (wrong_second, (X,), 1, {}),
    "wrong second derivative": (wrong_second, (X,), 2, {}),
}


GOOD_ENOUGH = {"wrong, wide", "wrong second derivative, not looked at"}


@pytest.mark.parametrize("name", CHECKS)
def test_check_grads(name):
    make, args, order, options = CHECKS[name]
    found = [
        outcome(lambda m: m.test_util.check_grads(make(m), args, order, **options), m, ())[1] for m in (phlox, jax)
    ]
    passes = name in GOOD_ENOUGH or not name.startswith("wrong")
    assert [e is None or type(e) for e in found] == [passes or AssertionError] * 2, found


def test_check_jvp_and_check_vjp():
    for m in (phlox, jax):
        m.test_util.check_jvp(m.numpy.sin, functools.partial(m.jvp, m.numpy.sin), (X,))
        m.test_util.check_vjp(m.numpy.sin, functools.partial(m.vjp, m.numpy.sin), (X,))
        with pytest.raises(AssertionError, match="mine tangent"):
            m.test_util.check_jvp(m.numpy.sin, functools.partial(m.jvp, wrong_jvp(m)), (X,), err_msg="mine")
        with pytest.raises(AssertionError, match="mine cotangent projection"):
            m.test_util.check_vjp(m.numpy.sin, functools.partial(m.vjp, wrong_jvp(m)), (X,), err_msg="mine")
        with pytest.raises(AssertionError, match="primal"):
            m.test_util.check_jvp(m.numpy.cos, functools.partial(m.jvp, m.numpy.sin), (X,))


def test_checks_of_integer_arguments():
    """jax has no direction for them."""
    phlox.test_util.check_grads(lambda n, x: n * phlox.numpy.sin(x), (N, X), 1)


def test_derivatives_across_a_block_of_64_bit_numbers():
    def program(x):
        with phlox.enable_x64(True):
            y = phlox.numpy.sin(x.astype("float64") * 2) + 1
            y = y / 3.0 + phlox.numpy.cumsum(y) ** 2.5
        return (y * y).astype("float32").sum() * 2

    x = phlox.numpy.arange(3.0)
    with phlox.enable_x64(True):
        exact = phlox.grad(lambda x: program(x.astype("float32").astype("float64")))(
            phlox.numpy.arange(3.0, dtype="float64")
        )
    for how in (
        phlox.grad(program),
        phlox.jit(phlox.grad(program)),
        phlox.grad(phlox.jit(program)),
        phlox.jacfwd(program),
    ):
        np.testing.assert_allclose(how(x), exact, rtol=1e-5)
    (batched,) = phlox.vmap(phlox.grad(program))(x[None])
    np.testing.assert_allclose(batched, exact, rtol=1e-5)
    closed = phlox.make_jaxpr(program)(x)
    assert phlox.extend.core.jaxpr_as_fun(closed)(x)[0] == program(x)
