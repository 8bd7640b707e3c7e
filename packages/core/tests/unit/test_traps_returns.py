"""Functions without ``return``: what is reported under transformations, and what is not."""

import functools

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from check_warnings import told
from phlox import errors, lax

X = jnp.arange(3.0)
seen = []


def assigns(x):
    y = x * 2  # noqa: F841


def computes(x):
    x * 2


def calls(x):
    jnp.sum(x**2)


def updates(x):
    x.at[...].set(0.0)


def reduces(x):
    (x + 1).sum()
    x.mean()


def accumulates(x):
    total = 0.0
    for i in range(3):
        total += x * i


def prints_and_assigns(x):
    phlox.debug.print("x = {}", x)
    y = x * 2  # noqa: F841


def returns_sometimes(x):
    if x.ndim > 5:
        return x
    y = x + 1  # noqa: F841


@functools.lru_cache
def cached():
    def inner(x):
        y = x + 1  # noqa: F841

    return inner


class Model:
    def loss(self, x):
        y = (x**2).sum()  # noqa: F841

    def __call__(self, x):
        y = x + 1  # noqa: F841


REPORTED = {
    "assigns": (assigns, "return y at the end of assigns"),
    "computes": (computes, "return the result at the end of computes"),
    "calls": (calls, "return the result at the end of calls"),
    "updates": (updates, "return the result"),
    "reduces": (reduces, "return the result"),
    "accumulates": (accumulates, "return the result at the end of accumulates"),
    "prints and assigns": (prints_and_assigns, "return y"),
    "returns sometimes": (returns_sometimes, "a path through it ends without a return statement"),
    "inner function": (cached(), "return y at the end of inner"),
    "method": (Model().loss, "return y at the end of loss"),
    "callable object": (Model(), "return y at the end of __call__"),
    "partial": (functools.partial(assigns), "return y at the end of assigns"),
}
TRANSFORMATIONS = {
    "vmap": lambda f: phlox.vmap(f)(X),
    "map": lambda f: lax.map(f, X),
    "map in batches": lambda f: lax.map(f, X, batch_size=2),
    "jvp": lambda f: phlox.jvp(f, (X,), (X,)),
    "vjp": lambda f: phlox.vjp(f, X),
    "linearize": lambda f: phlox.linearize(f, X),
    "jacfwd": lambda f: phlox.jacfwd(f)(X),
    "jit": lambda f: phlox.jit(f)(X),
    "pmap": lambda f: phlox.pmap(f)(X[:1]),
    "vmap of grad's pullback": lambda f: phlox.vmap(lambda x: phlox.vjp(f, x)[0])(X),
}


@pytest.mark.parametrize("name", REPORTED)
def test_functions_without_return_are_reported(name):
    function, words = REPORTED[name]
    (text,) = told(lambda: phlox.vmap(function)(X))
    assert text.startswith("missing return: ") and "returned None" in text and "test_traps_returns.py:" in text
    assert words in text
    line = int(text.split("(line ")[1].split(")")[0])
    with open(__file__) as file:
        assert file.readlines()[line - 1].startswith("    ")


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_each_transformation_reports(name):
    (text,) = told(lambda: TRANSFORMATIONS[name](assigns))
    assert "assigns returned None: it has no return statement" in text and "return y at the end" in text
    with phlox.config.scope(checks="strict"), pytest.raises(errors.CheckError, match="assigns returned None") as raised:
        TRANSFORMATIONS[name](assigns)
    assert raised.value.check == "missing return"


@pytest.mark.parametrize("transformation", [phlox.jacrev, phlox.jacobian, phlox.hessian, phlox.grad])
def test_derivatives_by_rows_raise(transformation):
    with pytest.raises(errors.DerivativeError, match=r"assigns.* returned None"):
        transformation(assigns)(X)


def prints(x):
    phlox.debug.print("{}", x)


def calls_back(x):
    _ = phlox.experimental.io_callback(lambda x: None, None, x)


def notes_a_type(x):
    seen.append(x.dtype)


def helper(x):
    prints(x)


def returns_nothing_known(x, record={}):  # noqa: B006
    record["shape"] = x.shape


def does_nothing(x):
    """A callback that is not needed."""


def passes(x):
    pass


def returns_none(x):
    y = x + 1  # noqa: F841
    return None


def validates(x):
    rank = x.ndim
    if rank > 2:
        raise ValueError(rank)


def compares_shapes(x):
    y = x * 2
    np.testing.assert_array_equal(y.shape, x.shape)


EFFECTS = [
    prints, calls_back, notes_a_type, helper, returns_nothing_known, does_nothing, passes, returns_none, validates,
    compares_shapes,
]  # fmt: skip


@pytest.mark.parametrize("function", [*EFFECTS, lambda x: None], ids=lambda f: f.__name__)
@pytest.mark.parametrize("transformation", ["vmap", "jit", "map"])
def test_functions_with_effects_are_not(function, transformation, capsys):
    assert told(lambda: TRANSFORMATIONS[transformation](function)) == []


def test_references_are_effects():
    def write(total, x):
        total[...] += x

    total = phlox.new_ref(jnp.zeros(()))
    assert told(lambda: phlox.jit(write)(total, 1.0)) == []
    np.testing.assert_array_equal(total[...], 1.0)


def test_functions_that_return_are_silent():
    assert told(lambda: (phlox.vmap(lambda x: (x, None))(X), phlox.vmap(lambda x: ())(X))) == []
    with phlox.config.scope(checks="off"):
        assert told(lambda: phlox.vmap(assigns)(X)) == []
