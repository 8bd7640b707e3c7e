"""custom_vmap and sequential_vmap: when the rule is called, with what, and how it composes, as in jax."""

import functools

import jax
import jax.custom_batching
import numpy as np
import pytest

import phlox
from conformance.harness import agree, outcome, row

NEAR = row("custom batching")
X = np.array([0.5, -1.0, 2.0], np.float32)
Y = X[::-1].copy()
TWO = np.float32(2)
M = np.stack([X, 2 * X])


def both(case, *args, jit=True, what=""):
    theirs = outcome(case, jax, args)
    agree(outcome(case, phlox, args), theirs, NEAR, what)
    if jit:
        agree(
            outcome(lambda m, *xs: m.jit(functools.partial(case, m))(*xs), phlox, args),
            theirs,
            NEAR,
            what + " under jit",
        )


def marked(m, seen=None):
    """A product whose rule adds a mark, and tells what it was called with."""

    @m.custom_batching.custom_vmap
    def f(x, y):
        return {"p": m.numpy.sin(x["a"]) * y, "n": y}

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        if seen is not None:
            seen.append((axis_size, in_batched, np.shape(x["a"]), np.shape(y)))
        (with_x, with_y) = in_batched[0]["a"], in_batched[1]
        return {"p": m.numpy.sin(x["a"]) * y + 100 * axis_size, "n": y}, {"p": with_x or with_y, "n": with_y}

    return lambda x, y: f({"a": x}, y)


def consistent(m):
    """A product whose rule does what vmap would."""

    @m.custom_batching.custom_vmap
    def f(x, y):
        return m.numpy.sin(x) * y

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        if not any(in_batched):  # so it is called by jax where directions alone are batched
            return m.numpy.sin(x) * y, False
        return m.vmap(lambda x, y: m.numpy.sin(x) * y, tuple(0 if b else None for b in in_batched))(x, y), True

    return f


CALLS = {
    "value": lambda m, f: f(X, Y),
    "both": lambda m, f: m.vmap(f)(X, Y),
    "first": lambda m, f: m.vmap(f, (0, None))(X, 2.0),
    "second": lambda m, f: m.vmap(f, (None, 0))(2.0, X),
    "other axes": lambda m, f: m.vmap(f, (1, 0), 1)(M, Y[:, None] * np.ones((3, 2), np.float32)),
    "twice": lambda m, f: m.vmap(m.vmap(f))(M, M),
    "twice, one each": lambda m, f: m.vmap(lambda x: m.vmap(lambda y: f(x, y))(Y))(X),
    "of jit": lambda m, f: m.vmap(m.jit(f))(X, Y),
    "jit inside": lambda m, f: m.jit(m.vmap(f))(X, Y),
    "loop": lambda m, f: m.vmap(lambda x: m.lax.fori_loop(0, 3, lambda i, a: f(a, 2.0)["p"], x))(X),
}


@pytest.mark.parametrize("name", CALLS)
def test_values(name):
    both(lambda m: CALLS[name](m, marked(m)))


@pytest.mark.parametrize("name", CALLS)
def test_what_rules_are_given(name):
    if name == "loop":
        return  # how often a body is batched is nobody's business
    seen = {}
    for m in (phlox, jax):
        seen[m] = []
        CALLS[name](m, marked(m, seen[m]))
    assert list(map(repr, seen[phlox])) == list(map(repr, seen[jax]))


DERIVATIVES = {
    "jvp": lambda m, f: m.jvp(f, (X, Y), (Y, X)),
    "jvp of one": lambda m, f: m.jvp(lambda x: f(x, Y), (X,), (Y,)),
    "jacfwd": lambda m, f: m.jacfwd(f)(X, Y),
    "jvp of vmap": lambda m, f: m.jvp(m.vmap(f), (X, Y), (Y, X)),
    "vmap of jvp": lambda m, f: m.vmap(lambda x, y: m.jvp(f, (x, y), (y, x)))(X, Y),
    "vmap of jvp, values": lambda m, f: m.vmap(lambda x: m.jvp(f, (x, x), (2.0, 3.0)))(X),
    "vmap of jvp, directions": lambda m, f: m.vmap(lambda t: m.jvp(lambda x: f(x, TWO), (TWO,), (t,)))(X),
    "vmap of jacfwd": lambda m, f: m.vmap(m.jacfwd(f))(M, M),
    "second": lambda m, f: m.jvp(lambda x: m.jvp(lambda x: f(x, Y), (x,), (Y,))[1], (X,), (Y,)),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_forward_derivatives(name):
    both(lambda m: DERIVATIVES[name](m, consistent(m)))


def test_the_derivative_of_a_rule():
    both(lambda m: m.vmap(lambda x, y: m.jvp(marked(m), (x, y), (y, x)))(X, Y))
    both(lambda m: m.jvp(m.vmap(marked(m)), (X, Y), (Y, X)))


def other(m, seen=None):
    """A function that is another one in a batch: the sine is a cosine there."""
    f = m.custom_batching.custom_vmap(m.numpy.sin)

    @f.def_vmap
    def rule(axis_size, in_batched, x):
        if seen is not None:
            seen.append((axis_size, in_batched))
        return m.numpy.cos(x), in_batched[0]

    return f


#: derivatives where no value is batched together with its tangent: the rule is one of the single example
APART = {
    "directions": lambda m, f: m.vmap(lambda x, t: m.jvp(f, (x,), (t,)), (None, 0), (None, 0))(TWO, X),
    "points": lambda m, f: m.vmap(lambda x, t: m.jvp(f, (x,), (t,)), (0, None))(X, TWO),
    "jacfwd": lambda m, f: m.jacfwd(f)(X),
    "points and directions": lambda m, f: m.vmap(lambda x, t: m.jvp(f, (x,), (t,)))(X, Y),
}


@pytest.mark.parametrize("name", APART)
def test_the_rule_decides_also_where_values_or_directions_alone_are_batched(name):
    both(lambda m: APART[name](m, other(m)))
    seen = {}
    for m in (phlox, jax):
        seen[m] = []
        APART[name](m, other(m, seen[m]))
    assert seen[phlox] == seen[jax]


def test_directions_of_a_linear_rule_stay_one_for_all():
    def linear(m):
        f = m.custom_batching.custom_vmap(lambda x: 7 * x)
        f.def_vmap(lambda size, in_batched, x: (11 * x, in_batched[0]))
        return f

    run = lambda m, f: m.vmap(lambda x, t: m.jvp(f(m), (x,), (t,)), (0, None), (0, None))(X, TWO)
    both(lambda m: run(m, linear))
    for m in (phlox, jax):
        with pytest.raises(ValueError, match="at vmap out_axes"):
            run(m, other)


def test_rules_that_always_return_a_batch():
    """jax takes such results for a batch where they are none."""
    f = phlox.custom_batching.custom_vmap(phlox.numpy.sin)
    f.def_vmap(lambda size, in_batched, x: (phlox.numpy.sin(x), True))
    np.testing.assert_allclose(phlox.jacfwd(f)(X), np.diag(np.cos(X)), rtol=1e-6)
    points = phlox.vmap(lambda x: phlox.jvp(f, (x,), (TWO,)))(X)
    np.testing.assert_allclose(points, (np.sin(X), 2 * np.cos(X)), rtol=1e-6)


def test_words_of_wrong_rules():
    def named(result):
        f = phlox.custom_batching.custom_vmap(lambda x: x * 2)

        @f.def_vmap
        def doubled(size, in_batched, x):
            return result(x)

        return lambda: phlox.vmap(f)(X)

    with pytest.raises(ValueError, match=r"returned by custom vmap rule \(doubled\) do not match"):
        named(lambda x: ([x, x], True))()
    with pytest.raises(ValueError, match=r"rule \(doubled\) does not match that of original custom-vmapped function"):
        named(lambda x: ([x], [True]))()
    with pytest.raises(ValueError, match="Linearization failed to produce known values for all output primals"):
        phlox.grad(other(phlox))(TWO)


def test_values_with_an_axis_and_directions_without():
    """jax gives such results one axis too many; here both are batched for the rule."""
    f = lambda x, y: phlox.jvp(consistent(phlox), (x, y), (x, phlox.numpy.float32(3)))
    mine = phlox.vmap(f)(X, Y)
    one = phlox.vmap(lambda x, y: phlox.jvp(lambda x: consistent(phlox)(x, y), (x,), (y,)))(X, Y)
    np.testing.assert_allclose(one[1], np.cos(X) * Y * Y, rtol=1e-6)
    np.testing.assert_allclose(mine[1], np.cos(X) * X * Y + 3 * np.sin(X), rtol=1e-6)
    assert mine[0].shape == (3,)


def test_linearize():
    """jax refuses it, as it refuses reverse mode."""
    directions = phlox.linearize(consistent(phlox), X, Y)[1](Y, X)
    np.testing.assert_allclose(directions, phlox.jvp(consistent(phlox), (X, Y), (Y, X))[1], rtol=1e-6)


def test_reverse_mode():
    for m in (phlox, jax):
        with pytest.raises((TypeError, ValueError, NotImplementedError)):
            m.grad(lambda x, m=m: consistent(m)(x, Y).sum())(X)
    both(lambda m: m.grad(lambda x: m.vmap(consistent(m))(x, Y).sum())(X))

    def with_vjp(m):
        f = m.custom_vjp(consistent(m))
        f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda r, ct: (10 * ct * r[1], ct))
        return f

    both(lambda m: m.vmap(m.grad(with_vjp(m)))(X, Y))
    both(lambda m: m.grad(lambda x: m.vmap(with_vjp(m))(x, Y).sum())(X))


def test_arguments_by_name():
    def f(m):
        made = m.custom_batching.custom_vmap(lambda x, y=TWO: x * y)
        made.def_vmap(lambda size, in_batched, x, y: (x * y + 10, True))
        return made

    both(lambda m: m.vmap(lambda x: f(m)(x))(X))
    both(lambda m: m.vmap(lambda x: f(m)(y=np.float32(3), x=x))(X))


def test_without_a_rule():
    for m, error in ((phlox, phlox.errors.MissingRuleError), (jax, AttributeError)):
        bare = m.custom_batching.custom_vmap(lambda x: x * 2)
        with pytest.raises(error):
            bare(X)
        with pytest.raises(
            AttributeError, match="No batching rule defined for custom_vmap function <lambda> using def_vmap"
        ):
            bare(X)


def test_arguments_that_cannot_be_given_by_position():
    def called(m, *args, **kwargs):
        @m.custom_batching.custom_vmap
        def f(x, y, *, z=None):
            return x * y

        f.def_vmap(lambda size, in_batched, x, y: (x, True))
        return lambda: f(*args, **kwargs)

    for m in (phlox, jax):
        begin = r"The input arguments to the custom_vmap-decorated function .*f.*\n"
        with pytest.raises(TypeError, match=begin + "missing a required argument: 'y'"):
            called(m, 0.5)()
        with pytest.raises(
            TypeError, match=begin + "The following keyword arguments could not be resolved to positions: z"
        ):
            called(m, 0.5, 0.1, z=1.0)()
    both(lambda m, x: called(m, x, 2.0)(), X)


def test_without_a_transformation_the_function_sees_and_returns_arrays():
    def changed(m, x):
        f = m.custom_batching.custom_vmap(lambda x: (x.at[0].set(5), x.astype("int32"), np.ones(2)))
        f.def_vmap(lambda size, in_batched, x: (x, True))
        return f(x)

    both(changed, X)
    both(lambda m, x: m.custom_batching.sequential_vmap(lambda x: x.at[0].set(5))(x), X)


def test_decorators_on_one_another_have_all_methods():
    for m in (phlox, jax):
        for inner, outer in (
            (m.custom_jvp, m.custom_batching.custom_vmap),
            (m.custom_batching.custom_vmap, m.custom_vjp),
        ):
            f = outer(inner(lambda x: x))
            assert callable(f.def_vmap)
            assert callable(getattr(f, "defjvp" if inner is m.custom_jvp else "defvjp"))
            with pytest.raises(AttributeError):
                f.default_rule

    def documented(m):
        @m.custom_vjp
        @m.custom_batching.custom_vmap
        def f(x, y):
            return m.numpy.sin(x) * y

        f.def_vmap(lambda size, in_batched, x, y: (m.numpy.cos(x) * y, True))
        f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda r, ct: (ct * r[1], ct))
        return f

    both(lambda m: m.vmap(documented(m))(X, Y))
    both(lambda m: m.grad(documented(m))(TWO, TWO))


WRONG = {
    "no pair": lambda m, x: x,
    "three": lambda m, x: (x, True, True),
    "structure": lambda m, x: ((x, x), (True, True)),
    "structure of out_batched": lambda m, x: (x, (True, True)),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rules(name):
    def f(m):
        made = m.custom_batching.custom_vmap(lambda x: x * 2)
        made.def_vmap(lambda size, in_batched, x: WRONG[name](m, x))
        return made

    both(lambda m: m.vmap(f(m))(X), jit=False)
    with pytest.raises(phlox.errors.TreeError, match=r"vmap rule (of )?\(?<lambda>"):
        phlox.vmap(f(phlox))(X)


#: what rules return that is no batch of what the function returns
OTHER_TYPES = {
    "dtype": lambda m, x: (x.astype("int32"), True),
    "more axes": lambda m, x: (m.numpy.stack([x, x], 1), True),
    "the axis twice": lambda m, x: (x, False),
}


@pytest.mark.parametrize("name", OTHER_TYPES)
def test_rules_may_return_other_types(name):
    def f(m):
        made = m.custom_batching.custom_vmap(lambda x: x * 2)
        made.def_vmap(lambda size, in_batched, x: OTHER_TYPES[name](m, x))
        return made

    axes = None if name == "the axis twice" else 0
    both(lambda m: m.vmap(f(m), out_axes=axes)(X))
    both(lambda m: m.vmap(m.jit(f(m)), out_axes=axes)(X))
    with pytest.raises(
        phlox.errors.PhloxError, match=r"vmap: output 1 of .* is f32\[\], and .* a custom batching rule"
    ):
        phlox.vmap(lambda x: phlox.lax.fori_loop(0, 2, lambda i, a: f(phlox)(a), x))(X)


def test_a_batch_without_its_axis_is_named():
    """jax takes it as it is."""
    f = phlox.custom_batching.custom_vmap(lambda x: {"a": x * 2})
    f.def_vmap(lambda size, in_batched, x: ({"a": x[1:]}, {"a": True}))
    with pytest.raises(
        phlox.errors.ShapeError, match=r"f32\[2\] for result\['a'\], and True .* no batch axis of length 3"
    ):
        phlox.vmap(f)(X)
    with pytest.raises(phlox.errors.UnexpectedTracerError, match="as an argument"):
        phlox.vmap(lambda y: run_closed(y))(X)


def run_closed(y):
    f = phlox.custom_batching.custom_vmap(lambda x: x * y)
    f.def_vmap(lambda size, in_batched, x: (x, True))
    return f(2.0)


def one_by_one(m):
    @m.custom_batching.sequential_vmap
    def f(x, y):
        return m.numpy.cumsum(x["a"]) * y, m.numpy.sin(y)

    return lambda x, y: f({"a": x}, y)


SEQUENTIAL = {
    "value": lambda m, f: f(X, Y),
    "both": lambda m, f: m.vmap(f)(M, M[:, 0]),
    "first": lambda m, f: m.vmap(f, (0, None))(M, Y),
    "second": lambda m, f: m.vmap(f, (None, 0))(X, M),
    "columns": lambda m, f: m.vmap(f, (1, None))(M, 2.0),
    "twice": lambda m, f: m.vmap(m.vmap(f, (None, 0)), (0, None))(M, X),
    "jvp of vmap": lambda m, f: m.jvp(m.vmap(f), (M, M), (M, M)),
    "grad of vmap": lambda m, f: m.grad(lambda x: m.vmap(f)(x, x)[0].sum())(M),
    "of jit": lambda m, f: m.vmap(m.jit(f))(M, M),
}


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_one_example_after_the_other(name):
    both(lambda m: SEQUENTIAL[name](m, one_by_one(m)))


def test_a_sequential_batch_is_a_loop():
    for m in (phlox, jax):
        names = [e.primitive.name for e in m.make_jaxpr(m.vmap(one_by_one(m)))(M, M).eqns]
        assert "scan" in names
