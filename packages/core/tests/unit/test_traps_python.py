"""What Python does and compiled programs do not: iterators, formatting, assignment to elements."""

import warnings

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import errors, lax

X = jnp.arange(3.0)
_numbers = iter(range(100))


def warned(program):
    """The messages of the `CheckWarning`s that a program gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program()
    return [str(w.message) for w in caught if w.category is errors.CheckWarning]


ITERATORS = {
    "scan": lambda: lax.scan(lambda c, _: (c + next(_numbers), None), 0, None, length=10),
    "while_loop": lambda: lax.while_loop(lambda c: c < 3, lambda c: c + 1 + next(_numbers), 0),
}


@pytest.mark.parametrize("name", ["scan", "while_loop"])
def test_iterators_in_loops_are_reported(name):
    (message,) = warned(ITERATORS[name])
    assert message.startswith("iterator in a loop: ") and "_numbers" in message and name in message


def test_iterators_that_are_closed_over_are_reported():
    def program():
        numbers = iter(range(10))
        return lax.fori_loop(0, 10, lambda i, c: c + next(numbers), 0)

    (message,) = warned(program)
    assert "body_fun (<lambda>) of fori_loop reads the iterator numbers" in message


def test_other_loops_are_silent():
    rows = [1.0, 2.0]
    assert warned(lambda: lax.fori_loop(0, 2, lambda i, c: c + sum(rows), 0.0)) == []
    assert warned(lambda: lax.scan(lambda c, x: (c + x, None), 0.0, X)) == []


def test_errors_say_what_to_write():
    with pytest.raises(errors.ConcretizationTypeError, match=r"debug\.print"):
        phlox.jit(lambda x: f"{x:.2f}" and x)(1.0)
    assert phlox.jit(lambda x: x if f"{x}" else -x)(1.0) == 1.0
    with pytest.raises(errors.ArgumentError, match=r"x = x\.at\[index\]\.set\(value\)"):
        X.at[0] = 1.0
    with pytest.raises(errors.ArgumentError, match=r"x\.at\[0\]\.set"):
        X[0] = 1.0
    with pytest.raises(errors.NonConcreteBooleanIndexError, match="where"):
        phlox.jit(lambda x: x[x > 0])(X)
    with pytest.raises(errors.ArgumentError, match="array of a list"):
        jnp.sum([1, 2, 3])


def test_the_derivative_of_where_sees_both_sides():
    unsafe = phlox.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0))
    assert np.isnan(unsafe(0.0))
    with phlox.debug_nans(True), pytest.raises(FloatingPointError):
        unsafe(0.0)
