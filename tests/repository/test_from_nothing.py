"""docs/from-nothing.md: its program is short, and computes what phlox computes."""

import numpy as np
import pytest

import pages
import phlox
import phlox.numpy as jnp

PAGE = pages.REPOSITORY / "docs" / "from-nothing.md"
#: Lines of code, without empty ones: "fewer than 500 lines" is what the page says.
MOST = 500


class Names(dict):
    """The names of the page's program, as attributes."""

    __getattr__ = dict.__getitem__


@pytest.fixture(scope="module")
def small():
    """The names that the blocks of the page define, run in order."""
    names = Names(__name__="from_nothing")
    for piece in pages.pieces(PAGE.read_text()):
        if piece.code:
            exec(compile("\n" * piece.line + piece.text, str(PAGE), "exec"), names)
    return names


def test_the_program_is_short():
    code = [piece.text for piece in pages.pieces(PAGE.read_text()) if piece.code]
    lines = [line for text in code for line in text.splitlines() if line.strip()]
    assert f"fewer than {MOST} lines" in " ".join(PAGE.read_text().split())
    assert len(lines) < MOST


def test_each_step_names_the_real_thing():
    steps = PAGE.read_text().split("\n## ")[1:-1]
    assert len(steps) == 10
    assert [step.splitlines()[0] for step in steps if "**In phlox:** `packages/" not in step] == []


def polynomial(m, x):
    return m.sin(x) * x * x - m.cos(x * 2.0)


def contraction(m, x):
    """Uses the argument twice, along two axes."""
    columns = m.broadcast(m.sum(x, (0,)), x.shape, (1,))
    return m.sum(m.sin(x) * columns * m.transpose(m.transpose(x, (1, 0)), (1, 0)))


def recurrent(m, w, xs):
    def turn(h, x):
        h = m.sin(w * h + x)
        return h, h * w

    h, rows = m.scan(turn, m.zeros(()), xs)
    return h * h + m.sum(rows)


def nested(m, w, xs):
    def outer(h, x):
        inner, _ = m.scan(lambda c, y: (m.sin(c * w + y), c), h * x, xs)
        return inner, inner * h

    h, rows = m.scan(outer, m.zeros(()), xs)
    return h + m.sum(rows)


class Phlox:
    """phlox under the names of the page."""

    sin, cos, transpose = jnp.sin, jnp.cos, jnp.transpose
    grad, vmap, jit = phlox.grad, phlox.vmap, phlox.jit
    scan, zeros = phlox.lax.scan, jnp.zeros

    @staticmethod
    def sum(x, axes=None):
        return jnp.sum(x, axes)

    @staticmethod
    def broadcast(x, shape, dims):
        return phlox.lax.broadcast_in_dim(x, shape, dims)

    @staticmethod
    def jvp(fun, primals, tangents):
        return phlox.jvp(fun, [jnp.float32(x) for x in primals], [jnp.float32(t) for t in tangents])


def page_functions(small):
    """The page's functions with axes as positional arguments."""

    class Page:
        sin, cos, sum, scan, zeros = (small[name] for name in ("sin", "cos", "sum", "scan", "zeros"))
        grad, vmap, jit, jvp = (small[name] for name in ("grad", "vmap", "jit", "jvp"))

        @staticmethod
        def broadcast(x, shape, dims):
            return small.broadcast(x, shape=shape, dims=dims)

        @staticmethod
        def transpose(x, permutation):
            return small.transpose(x, permutation=permutation)

    return Page


NUMBER = np.float32(0.7)
VECTOR = np.float32([0.3, -1.2, 0.8])
MATRIX = np.float32([[0.1, 0.2, 0.3], [0.5, -0.4, 1.5]])

CASES = {
    "value": lambda m: polynomial(m, NUMBER),
    "jit": lambda m: m.jit(lambda x: polynomial(m, x))(VECTOR),
    "grad": lambda m: m.grad(lambda x: polynomial(m, x))(NUMBER),
    "third derivative": lambda m: m.grad(m.grad(m.grad(lambda x: polynomial(m, x))))(NUMBER),
    "vmap": lambda m: m.vmap(lambda x: m.sum(m.sin(x) * VECTOR))(MATRIX),
    "vmap of grad": lambda m: m.vmap(m.grad(lambda x: polynomial(m, x)))(VECTOR),
    "grad of vmap": lambda m: m.grad(lambda x: m.sum(m.vmap(lambda y: polynomial(m, y))(x)))(VECTOR),
    "jit of vmap of grad": lambda m: m.jit(m.vmap(m.grad(lambda x: polynomial(m, x))))(VECTOR),
    "grad of jit": lambda m: m.grad(m.jit(lambda x: polynomial(m, x)))(NUMBER),
    "contraction": lambda m: m.grad(lambda x: contraction(m, x))(MATRIX),
    "batch of contractions": lambda m: m.vmap(m.grad(lambda x: contraction(m, x)))(np.stack([MATRIX, MATRIX * 2])),
    "forward over reverse": lambda m: m.jvp(m.grad(lambda x: contraction(m, x)), [MATRIX], [MATRIX])[1],
    "scan": lambda m: m.jit(lambda w, xs: recurrent(m, w, xs))(NUMBER, VECTOR),
    "jvp of scan": lambda m: m.jvp(lambda w: recurrent(m, w, m.sin(VECTOR)), [NUMBER], [NUMBER])[1],
    "grad of scan by constants": lambda m: m.grad(lambda w: recurrent(m, w, m.sin(VECTOR)))(NUMBER),
    "grad of scan by rows": lambda m: m.grad(lambda xs: recurrent(m, NUMBER, xs))(VECTOR),
    "second derivative of scan": lambda m: m.grad(m.grad(lambda w: recurrent(m, w, m.sin(VECTOR))))(NUMBER),
    "vmap of grad of scan": lambda m: m.jit(m.vmap(m.grad(lambda xs: recurrent(m, NUMBER, xs))))(MATRIX),
    "grad of vmap of scan": lambda m: m.grad(lambda x: m.sum(m.vmap(lambda xs: recurrent(m, NUMBER, xs))(x)))(MATRIX),
    "nested scans": lambda m: m.grad(lambda w: nested(m, w, m.sin(VECTOR)))(NUMBER),
}


@pytest.mark.parametrize("case", CASES)
def test_the_numbers_are_those_of_phlox(small, case):
    ours, theirs = CASES[case](page_functions(small)), CASES[case](Phlox)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=1e-4, atol=1e-5)


def test_a_jitted_function_is_traced_once(small):
    traced = []
    function = small.jit(lambda x: traced.append(x) or small.sin(x))
    for values in ([1.0], [2.0], [1.0, 2.0]):
        np.testing.assert_allclose(np.asarray(function(values)), np.sin(values), rtol=1e-6)
    assert len(traced) == 2
