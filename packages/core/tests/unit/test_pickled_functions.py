"""Pickles of functions with their code, as cloudpickle makes them: what `jit`, `vmap` and their like return."""

import contextvars
import functools
import importlib
import inspect
import io
import marshal
import pickle
import sys
import types

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp


@pytest.fixture(autouse=True, params=[True, False], ids=["generated", "general"])
def way_of_calls(request):
    """Every test runs with code that is generated for the function's parameters, and without."""
    phlox.config.update("generated_calls", request.param)
    return request.param


class PicklerByValue(pickle.Pickler):
    """Stores functions that no module has under their name with their code, their variables and their attributes, as cloudpickle does."""

    def reducer_override(self, value):
        if not inspect.isfunction(value):
            return NotImplemented
        named = getattr(sys.modules[value.__module__], value.__qualname__, None)
        return NotImplemented if named is value else reduced_by_value(value)


def names_in(code):
    inner = [names_in(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return {*code.co_names}.union(*inner)


def reduced_by_value(f):
    names = names_in(f.__code__) & {*f.__globals__}
    # Modules are pickled by name in cloudpickle; here they are left out, and set by `make_function`.
    variables = {name: f.__globals__[name] for name in names if not inspect.ismodule(f.__globals__[name])}
    modules = {name: f.__globals__[name].__name__ for name in names if inspect.ismodule(f.__globals__[name])}
    cells = [cell.cell_contents for cell in f.__closure__ or ()]
    attributes = {name: getattr(f, name) for name in ("__defaults__", "__kwdefaults__", "__module__", "__qualname__")}
    state = variables, cells, {**attributes, **vars(f)}
    return make_function, (marshal.dumps(f.__code__), len(cells), modules), state, None, None, complete_function


def make_function(code, num_cells, modules):
    variables = {name: importlib.import_module(module) for name, module in modules.items()}
    closure = tuple(types.CellType() for _ in range(num_cells))
    return types.FunctionType(marshal.loads(code), variables, None, None, closure)


def complete_function(f, state):
    variables, cells, attributes = state
    f.__globals__.update(variables)
    for cell, contents in zip(f.__closure__, cells, strict=True):
        cell.cell_contents = contents
    for name, value in attributes.items():
        setattr(f, name, value)


def copied_by_value(f):
    file = io.BytesIO()
    PicklerByValue(file).dump(f)
    return pickle.loads(file.getvalue())


def calling_another():
    inner = phlox.jit(lambda x, y=2.0: x * y)
    return phlox.jit(lambda x: inner(x) + 1), 3.0


def recursive():
    @functools.partial(phlox.jit, static_argnums=0)
    def factorial(n, x):
        return x if n == 0 else n * factorial(n - 1, x)

    return factorial, 3, 2.0


@pytest.mark.parametrize("is_called_before", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        calling_another,
        recursive,
        lambda: (phlox.jit(lambda x, y=2.0, *, z=1.0: x * y + z), 3.0),
        lambda: (phlox.jit(lambda *xs, **named: sum(xs)), 1.0, 2.0),
        lambda: (phlox.jit(phlox.vmap(phlox.grad(lambda x: x**2))), np.arange(3.0)),
        lambda: (phlox.vmap(lambda x: x + 1), np.arange(3)),
        lambda: (phlox.jacrev(phlox.checkpoint(lambda x: x**2)), 3.0),
        lambda: (phlox.make_jaxpr(lambda x: x**2), 3.0),
        lambda: (phlox.jit(phlox.named_scope("layer")(lambda x: x**2)), 3.0),
        lambda: (phlox.named_call(lambda x: x**2, name="layer"), 3.0),
    ],
)
def test_functions_are_pickled_with_their_code(make, is_called_before):
    f, *arguments = make()
    if is_called_before:
        f(*arguments)
    copy = copied_by_value(f)
    for _ in range(3):  # the first call compiles, and from then on there may be generated code
        assert str(copy(*arguments)) == str(f(*arguments))
    if hasattr(f, "_cache_size"):
        assert copy is not f and copy._cache_size() == f._cache_size() == 1


def test_other_context_variables_are_not_pickled():
    with pytest.raises(TypeError, match="cannot pickle 'ContextVar' object"):
        pickle.dumps(contextvars.ContextVar("mine"))


@pytest.mark.parametrize(
    "function", [jnp.add, jnp.sin, jnp.arange, jnp.reshape, phlox.nn.relu, phlox.lax.scan, phlox.lax.map, phlox.jvp]
)
def test_public_functions_are_pickled_by_name(function):
    assert pickle.loads(pickle.dumps(function)) is function
