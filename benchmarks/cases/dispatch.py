"""Calls of functions that are compiled already: what phlox itself costs."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ..case import case


@case("dispatch/one array", budget=1.0)
def one_array(m: Any) -> Any:
    f, x = m.jit(lambda x: x + 1), m.numpy.ones(8)
    return lambda: f(x)


def _tree(m: Any, leaves: int) -> Any:
    f = m.jit(lambda tree: {name: x + 1 for name, x in tree.items()})
    tree = {f"layer{i}": m.numpy.ones(8) for i in range(leaves)}
    return lambda: f(tree)


@case("dispatch/20-leaf dict", budget=1.0)
def leaves_20(m: Any) -> Any:
    return _tree(m, 20)


@case("dispatch/100-leaf dict", budget=1.0)
def leaves_100(m: Any) -> Any:
    return _tree(m, 100)


class _Adam(NamedTuple):
    count: Any
    mu: Any
    nu: Any


@case("dispatch/optimizer step", budget=1.0)
def optimizer_step(m: Any) -> Any:
    """Parameters of five layers, and state as optax keeps it: 32 leaves."""

    def layers() -> Any:
        return {f"layer{i}": {"w": m.numpy.ones((4, 4)), "b": m.numpy.ones(4)} for i in range(5)}

    @m.jit
    def step(parameters: Any, state: Any, x: Any) -> Any:
        adam, empty = state
        mu = m.tree.map(lambda old, g: 0.9 * old + 0.1 * g, adam.mu, parameters)
        nu = m.tree.map(lambda old, g: 0.99 * old + 0.01 * g * g, adam.nu, parameters)
        parameters = m.tree.map(lambda p, mean, square: p - mean / (square + 1), parameters, mu, nu)
        return parameters, (_Adam(adam.count + 1, mu, nu), empty), x.sum()

    arguments = layers(), (_Adam(m.numpy.zeros((), "int32"), layers(), layers()), ()), m.numpy.ones((8, 4))
    return lambda: step(*arguments)


@case("dispatch/100 arguments", budget=1.0)
def arguments_100(m: Any) -> Any:
    f, xs = m.jit(lambda *xs: xs[0] + xs[-1]), [m.numpy.ones(8) for _ in range(100)]
    return lambda: f(*xs)


@case("dispatch/NumPy argument", budget=1.0)
def numpy_argument(m: Any) -> Any:
    f, x = m.jit(lambda x: x + 1), np.ones(8, np.float32)
    return lambda: f(x)


@case("dispatch/Python number", budget=1.0)
def number(m: Any) -> Any:
    f, x = m.jit(lambda x, y: x + y), m.numpy.ones(8)
    return lambda: f(x, 2.5)


@case("dispatch/static argument", budget=1.0)
def static(m: Any) -> Any:
    f, x = m.jit(lambda x, n: x + n, static_argnums=1), m.numpy.ones(8)
    return lambda: f(x, 3)


@case("dispatch/keyword argument", budget=1.0)
def keyword(m: Any) -> Any:
    f, x = m.jit(lambda x, *, y: x + y), m.numpy.ones(8)
    return lambda: f(x, y=x)


@case("dispatch/method", budget=1.0)
def method(m: Any) -> Any:
    class Model:
        def __init__(self) -> None:
            self.scale = 2.0

        @functools.partial(m.jit, static_argnums=0)
        def __call__(self, x: Any) -> Any:
            return self.scale * x

    model, x = Model(), m.numpy.ones(8)
    return lambda: model(x)


@case("dispatch/donated", budget=1.0)
def donated(m: Any) -> Any:
    f = m.jit(lambda x: x + 1, donate_argnums=0)
    state = [m.numpy.ones(8)]

    def run() -> Any:
        state[0] = f(state[0])
        return state[0]

    return run


@case("dispatch/tree.map of 100 leaves", budget=1.0)
def tree_map(m: Any) -> Any:
    tree = {f"layer{i}": {"w": i, "b": (i, None)} for i in range(50)}
    return lambda: m.tree.map(abs, tree)


# What no Python in front of jaxlib can go below: its call, and the buffers of the results. Then the same with functions
# of Python that look nothing up: they take the buffers out of the arguments, and make arrays of the results.


def _bare(f: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
    """The one compiled call of a jitted function, and what jaxlib needs to run it on buffers."""
    for _ in range(3):
        f(*args, **kwargs)
    (entry,) = f._jit._store.entries.values()
    return entry, entry.program.execute, entry.program.handlers


@case("dispatch/floor: bare execute_sharded", libraries=("phlox",))
def floor(m: Any) -> Any:
    x = m.numpy.ones(8)
    _, execute, handlers = _bare(m.jit(lambda x: x + 1), x)
    bufs = [x._buf]
    return lambda: execute(bufs).consume_with_handlers(handlers)


@case("dispatch/floor: the same with 20 leaves", libraries=("phlox",))
def floor_of_leaves(m: Any) -> Any:
    xs = [m.numpy.ones(8) for _ in range(20)]
    _, execute, handlers = _bare(m.jit(lambda xs: [x + 1 for x in xs]), xs)
    bufs = [x._buf for x in xs]
    return lambda: execute(bufs).consume_with_handlers(handlers)


@case("dispatch/floor: the same with a NumPy argument", libraries=("phlox",))
def floor_of_numpy(m: Any) -> Any:
    x = np.ones(8, np.float32)
    entry, execute, handlers = _bare(m.jit(lambda x: x + 1), x)
    (filed,) = entry.variants.values()
    prepare = filed.prepare
    return lambda: execute(prepare([x])).consume_with_handlers(handlers)


def _maker(x: Any) -> Any:
    """What makes arrays like `x` of buffers."""
    kind, aval, key = type(x), x.aval, x._placement

    def made(buffer: Any) -> Any:
        array = kind()
        array._buf = buffer
        array.aval = aval
        array._placement = key
        return array

    return made


@case("dispatch/floor: Python, one array", libraries=("phlox",))
def python_one_array(m: Any) -> Any:
    x = m.numpy.ones(8)
    _, execute, handlers = _bare(m.jit(lambda x: x + 1), x)
    kind, aval, key = type(x), x.aval, x._placement

    def run(x: Any) -> Any:
        array = kind()  # `_maker` written out, as phlox does
        array._buf = execute([x._buf]).consume_with_handlers(handlers)[0]
        array.aval = aval
        array._placement = key
        return array

    return lambda: run(x)


@case("dispatch/floor: Python, static argument", libraries=("phlox",))
def python_static(m: Any) -> Any:
    x = m.numpy.ones(8)
    _, execute, handlers = _bare(m.jit(lambda x, n: x + n, static_argnums=1), x, 3)
    kind, aval, key = type(x), x.aval, x._placement

    def run(*args: Any) -> Any:
        array = kind()
        array._buf = execute([args[0]._buf]).consume_with_handlers(handlers)[0]
        array.aval = aval
        array._placement = key
        return array

    return lambda: run(x, 3)


@case("dispatch/floor: Python, keyword argument", libraries=("phlox",))
def python_keyword(m: Any) -> Any:
    x = m.numpy.ones(8)
    _, execute, handlers = _bare(m.jit(lambda x, *, y: x + y), x, y=x)
    kind, aval, key = type(x), x.aval, x._placement

    def run(x: Any, **kwargs: Any) -> Any:
        array = kind()
        array._buf = execute([x._buf, kwargs["y"]._buf]).consume_with_handlers(handlers)[0]
        array.aval = aval
        array._placement = key
        return array

    return lambda: run(x, y=x)


@case("dispatch/floor: Python, 20-leaf dict", libraries=("phlox",))
def python_leaves(m: Any) -> Any:
    tree = {f"layer{i}": m.numpy.ones(8) for i in range(20)}
    _, execute, handlers = _bare(m.jit(lambda tree: {name: x + 1 for name, x in tree.items()}), tree)
    made = _maker(tree["layer0"])

    def run(tree: Any) -> Any:
        buffers = execute([x._buf for x in tree.values()]).consume_with_handlers(handlers)
        return dict(zip(tree, map(made, buffers), strict=True))

    return lambda: run(tree)
