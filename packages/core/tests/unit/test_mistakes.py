"""Mistakes that people make: what the error says, and what to write instead, eagerly and inside of `jit`."""

import datetime
import functools

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import errors, jit, lax

X = jnp.ones(3)


def no_return(*args):
    """A function whose `return` was forgotten."""


#: name -> call of an array, the class of the error, words of what it says, words of what to write instead
MISTAKES = {
    "fori_loop without return": (
        lambda x: lax.fori_loop(0, 3, no_return, x), errors.TreeError, "body_fun (no_return)", "return the next value",
    ),
    "fori_loop of unknown length without return": (
        lambda x: jit(lambda n: lax.fori_loop(0, n, no_return, x))(3), errors.TreeError, "fori_loop body",
        "return the next value",
    ),
    "while_loop without return": (
        lambda x: lax.while_loop(lambda c: c[0] < 3, no_return, x), errors.TreeError, "while_loop body",
        "return the next value",
    ),
    "while_loop whose condition has no return": (
        lambda x: lax.while_loop(no_return, lambda c: c, x), errors.DtypeError, "boolean scalar", "return a bool",
    ),
    "scan without return": (
        lambda x: lax.scan(no_return, x, None, length=2), errors.ArgumentError, "must be a pair", "return carry, y",
    ),
    "scan that returns the carry only": (
        lambda x: lax.scan(lambda c, _: c, x, None, length=2), errors.ArgumentError, "must be a pair",
        "return carry, None",
    ),
    "scan that returns no carry": (
        lambda x: lax.scan(lambda c, _: (None, c), x, None, length=2), errors.TreeError, "got None", "return carry, y",
    ),
    "scan over a reference without return": (
        lambda x: lax.scan(no_return, x, phlox.new_ref(jnp.ones(2))), errors.ArgumentError, "must be a pair",
        "return carry, y",
    ),
    "cond with one branch without return": (
        lambda x: lax.cond(True, lambda x: x, no_return, x), errors.TreeError, "false_fun (no_return)",
        "return a result at the end of false_fun (no_return)",
    ),
    "cond with other dtypes": (
        lambda x: lax.cond(True, lambda x: x, lambda x: x.astype(int), x), errors.DtypeError, "f32[3] and i32[3]",
        ".astype('float32')",
    ),
    "cond with other dtypes in a dict": (
        lambda x: lax.cond(True, lambda x: {"a": x}, lambda x: {"a": x > 0}, x), errors.DtypeError, "result['a']",
        ".astype('float32')",
    ),
    "cond with other shapes": (
        lambda x: lax.cond(True, lambda x: x, lambda x: x[:1], x), errors.ShapeError, "f32[3] and f32[1]", "one shape",
    ),
    "switch of a function": (
        lambda x: lax.switch(1, lambda x: x, x), errors.ArgumentError, "sequence of functions", "[f, g]",
    ),
    "associative_scan without return": (
        lambda x: lax.associative_scan(no_return, x), errors.TreeError, "associative_scan", "return the combined",
    ),
    "reduce without return": (
        lambda x: lax.reduce(x, 0.0, no_return, (0,)), errors.TreeError, "reduce output", "return the combined",
    ),
    "custom_root without return": (
        lambda x: lax.custom_root(no_return, x, lambda f, x: x, lambda g, y: y), errors.TreeError, "custom_root",
        "return a tree",
    ),
    "grad without return": (
        lambda x: phlox.grad(no_return)(x), errors.DerivativeError, "returned None", "return the loss",
    ),
    "grad of a loss with metrics": (
        lambda x: phlox.grad(lambda x: (x.sum(), x))(x), errors.DerivativeError, "PyTreeDef((*, *))", "has_aux=True",
    ),
    "concatenate without the list": (
        lambda x: jnp.concatenate(x, x), errors.ArgumentError, "one sequence", "phlox.numpy.concatenate([a, b])",
    ),
    "stack without the list": (lambda x: jnp.stack(x, x), errors.ArgumentError, "one sequence", "stack([a, b])"),
    "hstack without the list": (lambda x: jnp.hstack(x, x), errors.ArgumentError, "one sequence", "hstack([a, b])"),
    "vstack without the list": (lambda x: jnp.vstack(x, x), errors.ArgumentError, "one sequence", "vstack([a, b])"),
    "dstack without the list": (lambda x: jnp.dstack(x, x), errors.ArgumentError, "one sequence", "dstack([a, b])"),
    "concatenate of a generator": (
        lambda x: jnp.concatenate(y for y in [x, x]), errors.ArgumentError, "got generator", "([*arrays])",
    ),
    "meshgrid of a list": (
        lambda x: jnp.meshgrid([x, x]), errors.ArgumentError, "an argument of its own", "meshgrid(*vectors)",
    ),
    "reshape with two numbers": (
        lambda x: jnp.reshape(jnp.ones(6), -1, 3), errors.OptionError, "order=3", "one argument, (2, 3)",
    ),
    "full with two numbers": (lambda x: jnp.full(2, 3, 1), errors.DtypeError, "in the place of dtype", "a tuple"),
    "sum over two axes": (lambda x: jnp.ones((2, 2)).sum(0, 1), errors.DtypeError, "in the place of dtype", "a tuple"),
    "random numbers of two lengths": (
        lambda x: phlox.random.normal(phlox.random.key(0), 3, 4), errors.DtypeError, "in the place of dtype", "a tuple",
    ),
    "out": (lambda x: jnp.add(x, x, out=x), errors.UnsupportedError, "out= is not supported", "y = phlox.numpy.add"),
    "where": (
        lambda x: jnp.add(x, x, where=x > 0), errors.UnsupportedError, "where= is not supported", "phlox.numpy.where",
    ),
    "casting": (lambda x: jnp.add(x, x, casting="no"), errors.ArgumentError, "no argument 'casting'", "astype"),
    "order": (lambda x: jnp.add(x, x, order="K"), errors.ArgumentError, "no argument 'order'", "no memory order"),
    "subok": (lambda x: jnp.add(x, x, subok=True), errors.ArgumentError, "no argument 'subok'", "no subclasses"),
    "assignment": (lambda x: x.__setitem__(0, 1), errors.ArgumentError, "in-place", "x = x.at[0].set(1)"),
    "assignment to a part": (
        lambda x: x.__setitem__((slice(1, None), None, ...), x), errors.ArgumentError, "in-place",
        "x = x.at[1:, None, ...].set(value)",
    ),
    "a list times a number": (
        lambda x: [1.0, 2.0] * jnp.asarray(2), errors.ArgumentError, "not multiplied by a list", "asarray",
    ),
    "a number times a tuple": (
        lambda x: jnp.asarray(2) * (1.0, 2.0), errors.ArgumentError, "not multiplied by a tuple", "asarray",
    ),
    "deleted position": (
        lambda x: jnp.delete(x, 9), errors.AxisError, "index 9 is out of bounds for axis 0", "an index from -",
    ),
    "deletion": (lambda x: x.__delitem__(0), errors.ArgumentError, "in place", "phlox.numpy.delete"),
    "a seed in the place of a key": (
        lambda x: phlox.random.normal(7), errors.DtypeError, "takes a PRNG key, got 7", "phlox.random.key(7)",
    ),
    "split of a seed": (lambda x: phlox.random.split(7), errors.DtypeError, "takes a PRNG key", "phlox.random.key("),
    "a number of keys that is a float": (
        lambda x: phlox.random.split(phlox.random.key(0), 2.0), errors.ArgumentError, "split", "an int",
    ),
    "a shape in the place of a key": (
        lambda x: phlox.random.normal((3,)), errors.ArgumentError, "takes a key first", "phlox.random.key(0)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    call, kind, says, instead = MISTAKES[name]
    for run in (call, jit(lambda x: call(x))):
        with pytest.raises(kind) as caught:
            run(X)
        error = caught.value
        assert says in error.what, error
        assert instead in error.instead, error
        assert error.where.file == __file__


#: values that are no arrays, and what to write instead of them
NO_ARRAYS = {
    "text": ("a", "float(x)"),
    "bytes": (b"a", "float(x)"),
    "set": ({1.0, 2.0}, "sorted(x)"),
    "generator": ((i for i in range(3)), "list(x)"),
    "map": (map(float, [1]), "list(x)"),
    "date": (datetime.date(2020, 1, 1), "seconds or days"),
    "datetime": (datetime.datetime(2020, 1, 1), "seconds or days"),
    "datetime64": (np.datetime64("2020-01-01"), "seconds or days"),
    "function": (abs, "f(x)"),
    "object": (object(), "a number or an array"),
    "type": (int, "a number or an array"),
}
FUNCTIONS = {
    "exp": lambda bad: jnp.exp(bad),
    "add": lambda bad: jnp.add(X, bad),
    "sum": lambda bad: jnp.sum(bad),
    "dot": lambda bad: jnp.dot(X, bad),
    "where": lambda bad: jnp.where(X > 0, X, bad),
    "array": lambda bad: jnp.array(bad),
    "lax": lambda bad: lax.sin(bad),
    "softmax": lambda bad: phlox.nn.softmax(bad),
    "special": lambda bad: phlox.scipy.special.erf(bad),
    "solve": lambda bad: jnp.linalg.norm(bad),
    "set": lambda bad: X.at[0].set(bad),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", NO_ARRAYS)
def test_values_that_are_no_arrays(name, function):
    bad, instead = NO_ARRAYS[name]
    call = functools.partial(FUNCTIONS[function], bad)
    for run in (call, jit(call)):
        with pytest.raises(errors.PhloxError) as caught:
            run()
        error = caught.value
        assert type(bad).__name__ in error.what, error
        assert "static" not in error.instead
        assert instead in error.instead, error


@pytest.mark.parametrize("name", ["list", "dict"])
def test_containers_in_the_place_of_arrays(name):
    bad = {"list": [X, X], "dict": {"a": X}}[name]
    for function in (jnp.exp, jnp.negative, phlox.nn.relu):
        for run in (function, jit(lambda x, function=function: function(x))):
            with pytest.raises(errors.ArgumentError, match=name) as caught:
                run(bad)
            assert "Tracer" not in str(caught.value)
            assert "phlox.numpy.array" in caught.value.instead


def test_axes():
    for axis in (5, (0, 0), 0.5, "a"):
        for run in (jnp.sum, jit(lambda x, axis=axis: jnp.sum(x, axis=axis))):
            with pytest.raises(errors.PhloxError, match="axis"):
                run(X, axis=axis) if run is jnp.sum else run(X)
    with pytest.raises(errors.ConcretizationTypeError, match="axis must be known while") as caught:
        jit(lambda x, axis: jnp.sum(x, axis=axis))(X, 0)
    assert "static_argnames" in caught.value.instead
