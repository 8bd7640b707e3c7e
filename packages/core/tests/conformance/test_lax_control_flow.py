"""Branches and loops of the program: each composed with every transformation, and printed, as in jax."""

import functools
import re

import jax
import jax.experimental.checkify
import jax.numpy
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import agree, outcome, row
from conformance.test_jaxprs import normal

NEAR = row("control flow", tolerance=1e-5)
X = np.array([0.3, 1.3, 2.3], np.float32)
W = judge.array(judge.rng("weights"), (3, 3), "float32")


def rows(m, x):
    return m.numpy.stack([x, x + 1, x * x, m.numpy.sin(x)])


def nested(m, x):
    def step(carry, a):
        count, c = carry
        c = m.lax.cond(
            c.sum() > a.sum(), lambda c: m.numpy.sin(c) * a, lambda c: m.lax.scan(inner, c, rows(m, a))[0], c
        )
        return (count + 1, c), {"mean": c.mean(), "count": count}

    def inner(c, r):
        return c * m.numpy.cos(r), None

    return m.lax.scan(step, (0, x), rows(m, x))


def newton(m, x):
    """The square root by iteration, until it is exact enough: forward mode alone."""
    step = lambda c: (c[0] + 1, (c[1] + x / c[1]) / 2)
    return m.lax.while_loop(lambda c: (m.numpy.abs(c[1] ** 2 - x).max() > 1e-4) & (c[0] < 20), step, (0, x + 1))


def keyed(m, x):
    def step(key, a):
        key, sub = m.random.split(key)
        return key, a + m.random.normal(sub, a.shape)

    return m.lax.scan(step, m.random.key(3), rows(m, x))[1]


PROGRAMS = {
    "cond": lambda m, x: m.lax.cond(x[0] > 0, lambda y: m.numpy.sin(y) * x, lambda y: y * 2.0, x),
    "cond of nothing": lambda m, x: m.lax.cond(x[0] > 0.5, lambda: x.sum(), lambda: x[0]),
    "cond of trees": lambda m, x: m.lax.cond(
        x.sum(), lambda t: {"a": t[0] * t[1], "b": 1.0}, lambda t: {"a": t[0] + t[1], "b": t[1].sum()}, (x, x * x)
    ),
    "cond of a number": lambda m, x: m.lax.cond(3, lambda y: y * x, lambda y: y, 2.0),
    "cond, one branch constant": lambda m, x: m.lax.cond(x[0] > 0, lambda y: y**2, lambda y: np.ones(3, np.float32), x),
    "switch": lambda m, x: m.lax.switch(
        m.numpy.int32(x.sum()), [m.numpy.sin, m.numpy.cos, lambda y: y * W[0], lambda y: y * y * y], x
    ),
    "switch of one": lambda m, x: m.lax.switch(m.numpy.int32(x[0]), [m.numpy.sin], x),
    "fori_loop": lambda m, x: m.lax.fori_loop(0, 4, lambda i, c: m.numpy.sin(c * x) + i, x),
    "fori_loop, nothing to do": lambda m, x: m.lax.fori_loop(4, 2, lambda i, c: c * 2, x),
    "fori_loop, bounds that are floats": lambda m, x: m.lax.fori_loop(1.0, 4.5, lambda i, c: c * x + i / 2, x),
    "cond, an operand for each branch": lambda m, x: m.lax.cond(
        x[0] > 0, (x, 2.0), lambda y: y[0] * x, x * 3, lambda y: y + 1
    ),
    "scan, unrolled in whole": lambda m, x: m.lax.scan(
        lambda c, a: (c * a, c + a), x, rows(m, x), unroll=0, reverse=True
    ),
    "fori_loop, unrolled in whole": lambda m, x: m.lax.fori_loop(0, 3, lambda i, c: c * x + i, x, unroll=0),
    "fori_loop, bounds of a wider dtype": lambda m, x: m.lax.fori_loop(
        np.int32(0), np.int32(4), lambda i, c: (c[0] + i, c[1] * x), (np.int8(1), x)
    ),
    "fori_loop, unrolled": lambda m, x: m.lax.fori_loop(1, 6, lambda i, c: c * x / i, x, unroll=2),
    "scan": lambda m, x: m.lax.scan(lambda c, a: (c * m.numpy.cos(a) + x.sum(), m.numpy.sin(c) * a), x * 2, rows(m, x)),
    "scan backwards": lambda m, x: m.lax.scan(
        lambda c, a: (c * m.numpy.cos(a) + x.sum(), (c, a)), x * 2, rows(m, x), reverse=True
    ),
    "scan, unrolled": lambda m, x: m.lax.scan(lambda c, a: (c @ W + a, (c, a)), x * 2, rows(m, x), unroll=3),
    "scan backwards, unrolled": lambda m, x: m.lax.scan(
        lambda c, a: (c @ W + a, {"c": c, "a": a, "s": c.sum()}), x * 2, rows(m, x), reverse=True, unroll=2
    ),
    "scan, all unrolled backwards": lambda m, x: m.lax.scan(
        lambda c, a: (c @ W + a, c * a), x, rows(m, x), reverse=True, unroll=9
    ),
    "scan, all unrolled": lambda m, x: m.lax.scan(lambda c, a: (c @ W + a, c), x * 2, rows(m, x), unroll=True),
    "scan without arrays": lambda m, x: m.lax.scan(lambda c, _: (m.numpy.tanh(c @ W), c.sum()), x, None, length=5),
    "scan without carry": lambda m, x: m.lax.scan(lambda _, a: (None, a["p"] * a["q"]), None, {"p": x, "q": x + 1}),
    "scan of nothing": lambda m, x: m.lax.scan(lambda c, a: (c + a, c * a), x, rows(m, x)[:0]),
    "scan, weak start": lambda m, x: m.lax.scan(lambda c, a: (c + a.sum(), a), 0.0, rows(m, x)),
    "scan, what is constant": lambda m, x: m.lax.scan(
        lambda c, a: (m.numpy.exp(W @ W * x) @ c * 1e-3, a), x, rows(m, x)
    ),
    "map": lambda m, x: m.lax.map(lambda a: a * m.numpy.sin(a), rows(m, x)),
    "map in batches": lambda m, x: m.lax.map(lambda a: a * m.numpy.sin(a), rows(m, x), batch_size=3),
    "map of nothing in batches": lambda m, x: m.lax.map(lambda a: a * m.numpy.sin(a), rows(m, x)[:0], batch_size=3),
    "map of all": lambda m, x: m.lax.map(lambda a: a * m.numpy.sin(a), rows(m, x), batch_size=0),
    "associative_scan": lambda m, x: m.lax.associative_scan(lambda a, b: a * b, m.numpy.concatenate([x + 1, x + 2])),
    "associative_scan, matrices": lambda m, x: m.lax.associative_scan(
        m.numpy.matmul, m.numpy.stack([W * x, W + x, W]), reverse=True
    ),
    "nested": nested,
    "keys": keyed,
}
FORWARD = {
    "while_loop": lambda m, x: m.lax.while_loop(
        lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * x + m.numpy.sin(c[1])), (0, x)
    ),
    "while_loop, until exact": newton,
    "while_loop, not once": lambda m, x: m.lax.while_loop(lambda c: c.sum() > 100, lambda c: c * 2, x),
    "fori_loop, traced bound": lambda m, x: m.lax.fori_loop(0, m.numpy.int32(x.sum()), lambda i, c: c * x + i, x),
    "fori_loop, traced bound, not unrolled": lambda m, x: m.lax.fori_loop(
        0, m.numpy.int32(x.sum()), lambda i, c: c * x + i, x, unroll=1
    ),
}


def total(m, f):
    def g(*xs):
        leaves = [x for x in m.tree.leaves(f(m, *xs)) if m.numpy.issubdtype(x.dtype, np.floating)]
        return sum((x * judge.weights(x.shape).astype("float32")).sum() for x in leaves)

    return g


BATCH = np.stack([X, -X, X[::-1] * 0.25, X * 2])
TRANSFORMS = {
    "eager": lambda m, f: f(m, m.numpy.asarray(X)),
    "jit": lambda m, f: m.jit(lambda x: f(m, x))(X),
    "jvp": lambda m, f: m.jvp(lambda x: f(m, x), (X,), (X * X,)),
    "linearize": lambda m, f: m.linearize(lambda x: f(m, x), X)[1](X * X),
    "vmap": lambda m, f: m.vmap(lambda x: f(m, x))(BATCH),
    "vmap of jvp": lambda m, f: m.jit(m.vmap(lambda x: m.jvp(lambda x: f(m, x), (x,), (x,))))(BATCH),
}
REVERSE = {
    "grad": lambda m, f: m.grad(total(m, f))(m.numpy.asarray(X)),
    "grad under jit": lambda m, f: m.jit(m.grad(total(m, f)))(X),
    "vmap of grad": lambda m, f: m.vmap(m.grad(total(m, f)))(BATCH),
    "grad of vmap": lambda m, f: m.grad(total(m, lambda m, xs: m.vmap(lambda x: f(m, x))(xs)))(BATCH),
    "grad of grad": lambda m, f: m.grad(lambda x: (m.grad(total(m, f))(x) * X).sum())(m.numpy.asarray(X)),
    "hessian": lambda m, f: m.jit(m.hessian(total(m, f)))(X),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("program", [*PROGRAMS, *FORWARD])
def test_forward(program, transform):
    f = {**PROGRAMS, **FORWARD}[program]
    run = lambda m: TRANSFORMS[transform](m, f)
    agree(outcome(run, phlox, ()), outcome(run, jax, ()), NEAR, program, weak=transform == "jit")


@pytest.mark.parametrize("transform", REVERSE)
@pytest.mark.parametrize("program", PROGRAMS)
def test_reverse(program, transform):
    run = lambda m: REVERSE[transform](m, PROGRAMS[program])
    agree(outcome(run, phlox, ()), outcome(run, jax, ()), NEAR, program, weak=False)


class ForwardOnly:
    """jax, with gradients by forward mode."""

    grad = staticmethod(jax.jacfwd)
    hessian = staticmethod(lambda f: jax.jacfwd(jax.jacfwd(f)))

    def __getattr__(self, name):
        return getattr(jax, name)


@pytest.mark.parametrize("transform", REVERSE)
@pytest.mark.parametrize("program", FORWARD)
def test_reverse_of_loops_that_jax_differentiates_forward_only(program, transform):
    run = lambda m: REVERSE[transform](m, FORWARD[program])
    agree(outcome(run, phlox, ()), outcome(run, ForwardOnly(), ()), NEAR, program, weak=False)


# --- as printed

PRINTED = {
    "cond": lambda m, x: m.lax.cond(x > 0, lambda y: y + 1, lambda y: y * 2.0, x),
    "switch": lambda m, x: m.lax.switch(m.numpy.int32(x), [m.numpy.sin, m.numpy.cos, lambda x: x], x),
    "while": lambda m, x: m.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x)),
    "scan": lambda m, x: m.lax.scan(lambda c, a: (c + a * x, c), x, m.numpy.ones(3)),
    "map": lambda m, x: m.lax.map(m.numpy.sin, m.numpy.ones(3) * x),
    "fori_loop": lambda m, x: m.lax.fori_loop(0, 3, lambda i, c: c * x, x),
}


@pytest.mark.parametrize("name", PRINTED)
def test_programs_print_alike(name):
    mine, theirs = (normal(str(m.make_jaxpr(lambda x, m=m: PRINTED[name](m, x))(1.0))) for m in (phlox, jax))
    assert re.sub(r"_split_transpose=False |linear=\([^)]*\) ", "", mine) == re.sub(
        r"_split_transpose=False |linear=\([^)]*\) ", "", theirs
    )


# --- what is refused

WRONG = [
    lambda m: m.lax.cond(X > 0, lambda x: x, lambda x: x, X),
    lambda m: m.lax.cond("yes", lambda x: x, lambda x: x, X),
    lambda m: m.lax.cond(True, lambda x: x, lambda x: (x,), X),
    lambda m: m.lax.cond(True, lambda x: x, lambda x: x.sum(), X),
    lambda m: m.lax.cond(True, lambda x: x, lambda x: x.astype("int32"), X),
    lambda m: m.lax.cond(True, 3, lambda x: x, X),
    lambda m: m.lax.switch(0, [], X),
    lambda m: m.lax.switch(0.5, [lambda x: x], X),
    lambda m: m.lax.switch(np.arange(2), [lambda x: x, lambda x: x], X),
    lambda m: m.lax.while_loop(lambda x: x, lambda x: x, X),
    lambda m: m.lax.while_loop(lambda x: True, lambda x: (x, x), X),
    lambda m: m.lax.while_loop(lambda x: x[0] < 3, lambda x: x.sum(), X),
    lambda m: m.lax.while_loop(lambda x: x < 3, lambda x: x + 0.5, np.int32(1)),
    lambda m: m.lax.while_loop(lambda x: (x < 3, True), lambda x: x, 1.0),
    lambda m: m.lax.fori_loop(0.0, 3, lambda i, x: x, 1.0),
    lambda m: m.lax.fori_loop(np.int16(0), np.int32(3), lambda i, x: x, 1.0),
    lambda m: m.lax.fori_loop(np.int16(0), 3, lambda i, x: x * 2, 1.0),
    lambda m: m.lax.fori_loop(True, 3, lambda i, x: x, 1.0),
    lambda m: m.lax.fori_loop(np.ones(2), 3, lambda i, x: x, 1.0),
    lambda m: m.lax.fori_loop(1j, 3j, lambda i, x: x, 1.0),
    lambda m: m.lax.scan(lambda c, x: (c, x), 0.0, X, unroll=-1),
    lambda m: m.jit(lambda n: m.lax.scan(lambda c, x: (c, x), 0.0, X, unroll=n))(2),
    lambda m: m.jit(lambda n: m.lax.scan(lambda c, x: (c, x), 0.0, None, length=n))(2),
    lambda m: m.lax.cond(None, lambda x: x, lambda x: x, X),
    lambda m: m.lax.cond([], lambda x: x, lambda x: x, X),
    lambda m: m.lax.cond("a", lambda x: x, lambda x: x, X),
    lambda m: m.lax.cond(lambda: True, lambda x: x, lambda x: x, X),
    lambda m: m.grad(lambda x: m.lax.fori_loop(x, x + 2.0, lambda i, c: c * 2.0, x))(np.float32(1)),
    lambda m: m.lax.fori_loop(0, 3, lambda i, x: (x, x), 1.0),
    lambda m: m.lax.scan(lambda c, x: c, 0.0, X),
    lambda m: m.lax.scan(lambda c, x: (c, x, x), 0.0, X),
    lambda m: m.lax.scan(lambda c, x: ((c, c), x), 0.0, X),
    lambda m: m.lax.scan(lambda c, x: (c.astype("int32"), x), np.float32(0), X),
    lambda m: m.lax.scan(lambda c, x: (c, x), 0.0, (X, X[:2])),
    lambda m: m.lax.scan(lambda c, x: (c, x), 0.0, X, length=2),
    lambda m: m.lax.scan(lambda c, x: (c, x), 0.0, None),
    lambda m: m.lax.scan(lambda c, x: (c, x), 0.0, np.float32(1)),
    lambda m: m.lax.scan(lambda c, x: (c, "a"), 0.0, X),
    lambda m: m.lax.scan(3, 0.0, X),
    lambda m: m.lax.associative_scan(lambda a, b: a + b, (X, X[:2])),
    lambda m: m.lax.associative_scan(3, X),
]


@pytest.mark.parametrize("position", range(len(WRONG)))
def test_wrong_use(position):
    agree(outcome(WRONG[position], phlox, ()), outcome(WRONG[position], jax, ()), NEAR, "")


CARRIES = {  # a step may give back a weak value for a carry that began strong, and the other way round
    "while": lambda m, s: m.lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[0], c[1]), (0, s, 0)),
    "while, strong moves": lambda m, s: m.lax.while_loop(
        lambda c: c[0] < 2, lambda c: (c[0] + 1, c[2], c[1]), (0, 0, s)
    ),
    "scan": lambda m, s: m.lax.scan(lambda c, x: ((c[0] + 1, c[0]), c[1]), (0, s), None, length=2),
    "fori_loop": lambda m, s: m.lax.fori_loop(0, 2, lambda i, c: i, s),
    "fori_loop, strong end": lambda m, s: m.lax.fori_loop(0, s + 3, lambda i, c: c + i, 0),
    "fori_loop, strong start": lambda m, s: m.lax.fori_loop(s, 3, lambda i, c: c + i, 0),
}


@pytest.mark.parametrize("name", CARRIES)
@pytest.mark.parametrize("transform", ["jit", "eager"])
def test_weak_types_of_carries(name, transform):
    def run(m):
        f = lambda s: CARRIES[name](m, s)
        return (m.jit(f) if transform == "jit" else f)(m.numpy.arange(1)[0])

    agree(outcome(run, phlox, ()), outcome(run, jax, ()), NEAR, name)


CHOICES = {  # s is weakly typed, 1 and the rest of the branches are not
    "cond": lambda m, s: [m.lax.cond(p, lambda x: np.int32(1), lambda x: x, s) for p in (True, False)],
    "cond, strong if false": lambda m, s: [m.lax.cond(p, lambda x: x, lambda x: np.int32(1), s) for p in (True, False)],
    "switch": lambda m, s: m.lax.switch(1, [lambda x: x, lambda x: np.int32(1), lambda x: np.int32(2)], s),
}


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("transform", ["jit", "eager"])
def test_weak_types_of_branches(name, transform):
    def run(m):
        f = lambda s: CHOICES[name](m, s)
        return (m.jit(f) if transform == "jit" else f)(m.numpy.asarray(3))

    agree(outcome(run, phlox, ()), outcome(run, jax, ()), NEAR, name)


KINDS = {"complex": 3.7 + 2j, "float": 3.7, "int": 3, "bool": True}
STRONG = {complex: np.complex64, float: np.float16, int: np.int16, bool: np.bool_}
LOOPS = {
    "fori_loop": lambda m, start, new: m.lax.fori_loop(0, 0, lambda i, c: new, start),
    "fori_loop to n": lambda m, start, new: m.jit(lambda n: m.lax.fori_loop(0, n, lambda i, c: new, start))(1),
    "scan": lambda m, start, new: m.lax.scan(lambda c, _: (new, c), start, None, length=2),
    "scan of a tuple": lambda m, start, new: m.lax.scan(lambda c, _: ((c[0] + 1, new), c), (1, start), None, length=2),
    "while_loop": lambda m, start, new: m.lax.while_loop(lambda c: False, lambda c: new, start),
    "jit": lambda m, start, new: m.jit(lambda c: m.lax.fori_loop(0, 1, lambda i, c: new, c))(start),
    "vmap": lambda m, start, new: m.vmap(lambda x: (m.lax.fori_loop(0, 1, lambda i, c: new, start), x))(
        m.numpy.ones(2)
    ),
    "checkify": lambda m, start, new: m.experimental.checkify.checkify(
        lambda: m.lax.fori_loop(0, 1, lambda i, c: new, start)
    )()[1],
}


@pytest.mark.parametrize("strong", [False, True])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_weak_carry_loses_nothing(loop, strong):
    """A start value becomes a number of a kind that holds it, and of no other; in jax too."""
    for start in KINDS.values():
        for new in KINDS.values():
            new = STRONG[type(new)](new) if strong else new
            run = lambda m: LOOPS[loop](m, start, new)
            agree(outcome(run, phlox, ()), outcome(run, jax, ()), NEAR, f"{start} -> {new!r}")


def test_tangents_of_integers_come_out_of_scan():
    """They have no elements that a loop could collect, and come back all the same."""

    def run(m):
        def step(c, x):
            out, pull = m.vjp(lambda y, n: (y * n, n), x, np.ones((2, 3), np.int32))
            return c, pull((out[0], np.zeros((2, 3), m.dtypes.float0)))

        return m.lax.scan(step, 0, np.ones((4, 2, 3), np.float32))[1]

    agree(outcome(run, phlox, ()), outcome(run, jax, ()), NEAR, "scan")


CARRY = "body function carry input and carry output must have "
REFUSED = {
    "one type": (
        lambda m: m.lax.scan(lambda x, _: (x.astype("float32"), None), np.int32(0), None, length=1),
        CARRY
        + r"equal types, but they differ:\n\nThe input carry x has type int32\[\] but the corresponding output carry "
        r"component has type float32\[\], so the dtypes do not match",
    ),
    "a type of two": (
        lambda m: m.lax.while_loop(lambda c: True, lambda c: (True, True), (np.bool_(True), np.float32(0))),
        r"The input carry component c\[1\] has type float32\[\] but the corresponding output carry component has type "
        r"bool\[\], so the dtypes do not match",
    ),
    "two types": (
        lambda m: m.lax.scan(
            lambda x, _: ((x[0] * 1.5, m.numpy.ones((1, 1)), x[2]), None), (np.int32(0),) * 3, None, length=1
        ),
        r"  \* the input carry component x\[0\] has type int32\[\] but .* has type float32\[\], so the dtypes do not match;\n"
        r"  \* the input carry component x\[1\] .* float32\[1,1\], so the dtypes do not match, and the shapes do not match",
    ),
    "structure": (
        lambda m: m.lax.scan(lambda c, x: ((0, 0, 0), x), (1, (2, 3)), np.arange(5.0)),
        CARRY + "the same pytree structure, but they differ",
    ),
    "no pair": (
        lambda m: m.lax.scan(lambda c, x: np.float32(0), 0, np.arange(5.0)),
        r"scan body output must be a pair, got float32\[\]\.",
    ),
    "condition, tree": (
        lambda m: m.lax.while_loop(lambda c: (1.0, 1.0), lambda c: c, 0.0),
        r"cond_fun must return a boolean scalar, but got pytree PyTreeDef\(\(\*, \*\)\)\.",
    ),
    "condition, type": (
        lambda m: m.lax.while_loop(lambda c: np.float32(1), lambda c: c, np.float32(0)),
        r"cond_fun must return a boolean scalar, but got output type\(s\) \[ShapedArray\(float32\[\]\)\]\.",
    ),
    "cond, structure": (
        lambda m: m.lax.cond(True, lambda x: {"a": 2.0}, lambda x: {"a": (3.0, 3.0)}, 1.0),
        "cond branch outputs must have the same pytree structure, but they differ",
    ),
    "switch, types": (
        lambda m: m.lax.switch(1, [lambda x: np.ones(1), lambda x: np.float32(1)], 1.0),
        "switch branches must have equal output types but they differ",
    ),
    "switch, no index": (
        lambda m: m.lax.switch(lambda x: True, [lambda _: 2.0, lambda _: 3.0], 1.0),
        "Index type must be an integer, got <function",
    ),
    "switch, many indices": (
        lambda m: m.lax.switch((1.0, 1.0), [lambda _: 2.0, lambda _: 3.0], 1.0),
        r"Branch index must be scalar, got \(1.0, 1.0\) of shape \(2,\)\.",
    ),
    "switch, no branch": (lambda m: m.lax.switch(0, [], 1.0), "Empty branch sequence"),
    "switch, no function": (lambda m: m.lax.switch(0, [42]), "lax.switch:.*callable"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_words_of_what_is_refused(name):
    call, words = REFUSED[name]
    for m in (phlox, jax):
        with pytest.raises((TypeError, ValueError), match=words):
            call(m)


@pytest.mark.parametrize(
    "loop",
    [
        lambda m, c: m.lax.scan(lambda c, _: (c * 1.5, None), c, None, length=3)[0],
        lambda m, c: m.lax.scan(lambda s, x: (s + c * x, None), m.numpy.float32(0), m.numpy.arange(3.0))[0],
        lambda m, c: m.lax.fori_loop(0, 3, lambda i, x: x * 1.5, c),
        lambda m, c: m.lax.map(lambda x: x * c, m.numpy.arange(3.0)).sum(),
    ],
    ids=["carry", "constant", "fori_loop", "map"],
)
def test_gradients_through_loops_are_weak_as_their_arguments(loop):
    for m in (phlox, jax):
        f = functools.partial(loop, m)
        y, backward = m.vjp(f, 2.0)
        assert m.grad(f)(2.0).weak_type and m.jit(m.grad(f))(2.0).weak_type and backward(y)[0].weak_type, m.__name__
