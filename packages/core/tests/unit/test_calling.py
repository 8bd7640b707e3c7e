"""Calls of jitted functions, whatever parameters they have and however arguments are given: drawn functions, which say
themselves what comes out.
"""

import functools
import threading

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from judge import FACTOR

#: names that the code of jitted functions uses itself are names like others
NAMES = (
    "x", "jitted", "p0", "p1", "leaves", "rest", "named", "kinds", "call_key", "fast_path", "fingerprint", "key", "call", "array",
)  # fmt: skip


@pytest.fixture(autouse=True, params=[True, False], ids=["generated", "general"])
def way_of_calls(request):
    """Every test runs with code that is generated for the function's parameters, and without."""
    phlox.config.update("generated_calls", request.param)
    return request.param


def weight(name):
    return NAMES.index(name) + 2


def total(weights, values):
    """The weighted sum of all leaves."""
    return sum(w * leaf for w, value in zip(weights, values, strict=True) for leaf in phlox.tree.leaves(value))


def drawn_function(rng):
    """A function with drawn parameters, and what `jit` is told of it."""
    names = list(rng.permutation(NAMES[:-2])[: rng.integers(0, 6)])
    unnamed, positional = sorted(rng.integers(0, len(names) + 1, 2))
    rest, named = (bool(rng.integers(3) == 0) for _ in range(2))
    first_optional = rng.integers(0, positional + 1)
    parts = []
    for i, name in enumerate(names):
        if i == unnamed > 0:
            parts.append("/")
        if i == positional:
            parts.append("*more" if rest else "*")
        optional = first_optional <= i if i < positional else rng.integers(2)
        parts.append(f"{name}={i + 1}" if optional else name)
    if unnamed == len(names) > 0:
        parts.append("/")
    if rest and positional == len(names):
        parts.append("*more")
    if named:
        parts.append("**others")
    chosen = [str(name) for name in names if rng.integers(4) == 0]
    values = [*names, *["more"] * rest, *["[others[k] * len(k) for k in sorted(others)]"] * named]
    weights = [weight(name) for name in names] + [31.0] * rest + [37.0] * named
    # A static argument decides in Python: an array in its place would fail.
    checks = "".join(f"    {name} = {name} + 1 if type({name}) is int and {name} > 2 else -1\n" for name in chosen)
    text = f"def drawn({', '.join(parts)}):\n{checks}    return total({weights}, [{', '.join(values)}]) * jnp.ones(2)\n"
    scope = {"total": total, "jnp": jnp}
    exec(text, scope)
    numbers = [names.index(name) for name in chosen]
    options = {}
    if any(n >= positional for n in numbers) or rng.integers(2):
        if all(n >= unnamed for n in numbers):
            options["static_argnames"] = tuple(chosen)
        else:
            chosen = [name for name in chosen if names.index(name) < positional]
            options["static_argnums"] = tuple(names.index(name) for name in chosen)
    else:
        options["static_argnums"] = tuple(numbers)
    static = {names[n] for n in options.get("static_argnums", ())} | set(options.get("static_argnames", ()))
    return scope["drawn"], options, list(map(str, names)), unnamed, positional, rest, named, static, text


def drawn_value(rng):
    kind = rng.integers(7)
    if kind < 4:
        return jnp.asarray(rng.normal(size=2), "float32")
    x = rng.normal(size=2).astype(np.float32)
    return (x, float(x[0]), {"b": jnp.asarray(x), "a": (x, [None, 3])})[kind - 4]


def drawn_call(rng, names, unnamed, positional, rest, named, static):
    """Arguments for such a function, which now and then does not take them."""
    values = {name: int(rng.integers(1, 5)) if name in static else drawn_value(rng) for name in names}
    by_position = int(rng.integers(0, positional + 1))
    args = [values[name] for name in names[:by_position]]
    kwargs = {name: values[name] for name in rng.permutation(names[max(by_position, unnamed) :]) if rng.integers(6)}
    if rest and by_position == positional:
        args += [drawn_value(rng) for _ in range(rng.integers(3))]
    if named and rng.integers(2):
        kwargs.update({str(name): drawn_value(rng) for name in rng.permutation(NAMES[-2:])})
    if rng.integers(12) == 0:
        kwargs["unknown"] = 1.0
    return tuple(args), {str(k): v for k, v in kwargs.items()}


def outcome(f, args, kwargs):
    try:
        return np.asarray(f(*args, **kwargs))
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(round(150 * FACTOR)))
def test_drawn_functions(seed):
    rng = np.random.default_rng(seed)
    fun, options, *shape, text = drawn_function(rng)
    f = phlox.jit(fun, **options)
    calls = [drawn_call(rng, *shape) for _ in range(5)]
    wanted = [outcome(fun, *call) for call in calls]
    for n in [0, 0, 0, 1, 1, 1, *rng.integers(0, len(calls), 9)]:
        found = outcome(f, *calls[n])
        if isinstance(wanted[n], str):
            assert found == wanted[n], text
        else:
            np.testing.assert_allclose(found, wanted[n], rtol=1e-4, atol=1e-4, err_msg=text)


def _kinds_of_calls():
    x, tree = jnp.arange(3.0), {"b": (jnp.ones(2), 2.0), "a": [np.ones(2, np.float32), None]}
    jit, two = phlox.jit, jnp.ones((2, 2))

    def optional(x, n=2, *, scale=None):
        return x * n if scale is None else x * scale

    class Model:
        @functools.partial(jit, static_argnums=0)
        def apply(self, x, *more, n):
            return x * n + sum(more)

    f, g, h = (
        jit(optional),
        jit(optional, static_argnames="n"),
        jit(phlox.grad(lambda x, n: (x * n).sum()), static_argnums=1),
    )
    v, w, model = jit(phlox.vmap(optional)), jit(lambda x, *more, n: x * n + sum(more), static_argnames="n"), Model()
    p = jit(functools.partial(optional, n=3))
    return {
        "one array": lambda: f(x),
        "more arrays": lambda: f(x, x),
        "by name": lambda: f(x, n=x, scale=x),
        "a number": lambda: f(2.0),
        "numpy": lambda: f(np.ones(2, np.float32)),
        "trees": lambda: jit_of_trees(tree, tree=tree),
        "static": lambda: g(x, 3),
        "static by name": lambda: g(n=3, x=x),
        "static left out": lambda: g(x, scale=x),
        "any arguments": lambda: v(x),
        "any arguments by name": lambda: v(x, scale=x),
        "static of any arguments": lambda: h(x, 3.0),
        "static behind any": lambda: w(x, x, x, n=3),
        "no more before it": lambda: w(x, n=3),
        "method": lambda: model.apply(x, x, n=x),
        "partial": lambda: p(x),
        "index": lambda: x[1],
        "slice": lambda: x[1:],
        "indices": lambda: x[np.array([0, 2])],
        "sum": lambda: jnp.sum(x),
        "sum along": lambda: two.sum(axis=0, keepdims=True),
        "product": lambda: two @ two,
        "where": lambda: jnp.where(x > 1, x, 0.0),
        "random": lambda: phlox.random.normal(KEY, (3,)),
        "split": lambda: phlox.random.split(KEY),
    }


jit_of_trees = phlox.jit(lambda x, *, tree: (x, tree))
KEY = phlox.random.key(0)


@pytest.mark.parametrize("kind", _kinds_of_calls())
def test_the_second_call_takes_the_short_way(kind, monkeypatch):
    phlox.config.update("generated_calls", True)
    call = _kinds_of_calls()[kind]
    expected = call()
    monkeypatch.setattr("phlox._api.jit.jit_function.JitFunction.call_flat", None)
    for a, b in zip(phlox.tree.leaves(call()), phlox.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(
            np.asarray(phlox.random.key_data(a) if a.dtype == KEY.dtype else a),
            np.asarray(phlox.random.key_data(b) if a.dtype == KEY.dtype else b),
        )


def test_how_arguments_are_given_makes_no_program():
    runs = []

    @functools.partial(phlox.jit, static_argnames="n")
    def f(x, y, n=2, *, z=1.0):
        runs.append(n)
        return x * n + y * z

    x, y = jnp.arange(3.0), jnp.ones(3)
    for _ in range(4):
        for out in f(x, y), f(x, y=y), f(y=y, x=x):
            np.testing.assert_array_equal(out, [1, 3, 5])
        for out in f(x, y, 3), f(x, n=3, y=y), f(n=3, y=y, x=x):
            np.testing.assert_array_equal(out, [1, 4, 7])
        for out in f(x, y, 3, z=2.0), f(z=2.0, n=3, y=y, x=x):
            np.testing.assert_array_equal(out, [2, 5, 8])
    assert runs == [2, 3, 3]
    assert f.stats().entries == 3
    assert f.stats().calls == 32


def test_equal_static_arguments_of_other_types():
    f = phlox.jit(lambda x, n: x + (n if type(n) is int else -n), static_argnums=1)
    two = phlox.jit(
        lambda x, n, m: x + (n if type(n) is int else -n) * (m if type(m) is bool else -m), static_argnums=(1, 2)
    )
    for _ in range(4):
        assert [int(f(1, n)) for n in (1, 1.0, True)] == [2, 0, 0]
        assert [int(two(1, n, m)) for n in (1, 1.0) for m in (1, True)] == [0, 2, 2, 0]


def test_functions_that_tell_how_arguments_are_given():
    def fun(*args, **kwargs):
        return len(args) * sum(args) - sum(w * kwargs[k] for w, k in enumerate(sorted(kwargs), 5))

    x, y = jnp.ones(2), jnp.arange(2.0)
    calls = [
        ((x, y), {}),
        ((x,), {"y": y}),
        ((), {"x": x, "y": y}),
        ((), {"y": y, "x": x}),
        ((x,), {}),
        ((y, x, y), {}),
    ]
    calls += [((x,) * 12, {}), ((x, {"a": y}["a"]), {"z": y}), ((x,), {"z": y})]
    wanted = [np.asarray(fun(*args, **kwargs)) for args, kwargs in calls]
    for start in range(len(calls)):
        # Written twice they share what is compiled, though their code is for other calls.
        f, g = phlox.jit(fun), phlox.jit(fun)
        for n in [start, start, start, *range(len(calls)), *range(len(calls))]:
            np.testing.assert_array_equal(f(*calls[n][0], **calls[n][1]), wanted[n])
            np.testing.assert_array_equal(g(*calls[-n][0], **calls[-n][1]), wanted[-n])


def test_static_arguments_by_place():
    def fun(*args, **kwargs):
        assert isinstance(args[-1], int)
        assert isinstance(kwargs.get("n", 1), int)
        return sum(args[:-1]) * args[-1] + kwargs.get("n", 0) + kwargs.get("z", 0.0)

    x = jnp.ones(2)
    calls = [((x, 2), {}), ((x, x, 3), {}), ((x, 2), {"n": 5}), ((x, 2), {"n": 5, "z": x}), ((x, 2), {"z": x, "n": 6})]
    calls += [((*[x] * 12, 2), {})]
    wanted = [np.asarray(fun(*args, **kwargs)) for args, kwargs in calls]
    for start in range(len(calls)):
        f = phlox.jit(fun, static_argnums=-1, static_argnames="n")
        for n in [start, start, start, *range(len(calls)), *range(len(calls))]:
            np.testing.assert_array_equal(f(*calls[n][0], **calls[n][1]), wanted[n])
        with pytest.raises(phlox.errors.StaticArgumentError):
            f(x, [2])


def test_wrapped_functions_with_other_parameters():
    def inner(x, n):
        return x * n

    @functools.wraps(inner)
    def outer(a, b=2, *, more=0.0):
        return inner(a, b) + more

    f = phlox.jit(outer)
    for _ in range(3):
        assert [float(f(3.0)), float(f(3.0, 4)), float(f(a=3.0, more=1.0))] == [6, 12, 7]


def test_methods_and_objects_that_are_called():
    class Model:
        scale = 2.0

        def apply(self, x, y=1.0):
            return self.scale * x + y

        def __call__(self, x, y=1.0):
            return self.scale * x - y

    model = Model()
    applied, called, part = phlox.jit(model.apply), phlox.jit(model), phlox.jit(functools.partial(model.apply, y=3.0))
    for _ in range(4):
        assert [float(applied(1.0)), float(applied(x=1.0, y=2.0)), float(called(1.0, y=5.0))] == [3, 4, -3]
        assert [float(part(1.0)), float(part(1.0, y=4.0))] == [5, 6]


def test_settings_that_alternate():
    f = phlox.jit(lambda x: x + 1)
    x = np.ones(2, np.float64)
    for _ in range(4):
        assert f(x).dtype == "float32"
        with phlox.enable_x64(True):
            assert f(x).dtype == "float64"
        with phlox.disable_jit():
            assert f(jnp.ones(2)).dtype == "float32"


def test_threads_that_call_for_the_first_time():
    x = jnp.ones(2)
    calls = [((x,), {}), ((x, x), {}), ((x,), {"y": x}), ((x, x, x), {}), ((), {"y": x, "x": x})]

    def fun(*args, **kwargs):
        return len(args) + sum(args) + 10 * sum(kwargs.values())

    wanted = [np.asarray(fun(*args, **kwargs)) for args, kwargs in calls]
    for _ in range(20):
        f, wrong = phlox.jit(lambda *args, **kwargs: fun(*args, **kwargs)), []

        def run(start, f=f, wrong=wrong):
            try:
                for n in (start,) * 3 + tuple(range(len(calls))):
                    np.testing.assert_array_equal(f(*calls[n][0], **calls[n][1]), wanted[n])
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=run, args=(i % len(calls),)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


def test_tracebacks_show_the_code_of_a_call():
    f = phlox.jit(lambda x: jnp.dot(x, jnp.ones(2)))
    for _ in range(3):
        f(jnp.ones(2))
    with pytest.raises(phlox.errors.PhloxError) as info:
        f(jnp.ones(3))
    assert all(str(entry.path) == __file__ for entry in info.traceback)
    with phlox.config.scope(traceback_filtering="off"), pytest.raises(phlox.errors.PhloxError) as info:
        f(jnp.ones(3))
    entry = info.traceback[1]
    assert str(entry.statement).strip()
    assert "jitted.call_flat" in str(entry.frame.code.source())


def test_the_flag_keeps_functions_from_code_of_their_own(way_of_calls):
    f = phlox.jit(lambda x: x + 1)
    before = f.__code__
    for _ in range(3):
        assert float(f(1.0)) == 2
    assert (f.__code__ is before) is not way_of_calls
    phlox.config.update("generated_calls", True)
    assert [float(f(1.0)) for _ in range(3)] == [2, 2, 2]
    assert f.__code__ is not before
