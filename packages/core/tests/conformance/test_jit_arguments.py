"""Which arguments of jitted functions are static or donated, and which are refused: as in jax."""

import jax
import numpy as np
import pytest

import phlox
from conformance.harness import agree, outcome, row

SAME = row("jit")
X = np.arange(4, dtype=np.float32)


def plain(a, b, c):
    return a


def named(a, b, **kwargs):
    return a


def mixed(a, /, b, c, *args, **kwargs):
    return a


class Unsigned:
    """A callable whose signature nobody knows."""

    @property
    def __signature__(self):
        raise TypeError("no signature")

    def __call__(self, *args, **kwargs):
        return args[0] * 2


CHOICES = {
    "known": (plain, ("b", "c")),
    "unknown": (plain, ("b", "d")),
    "unknown among any": (named, ("a", "b", "d")),
    "known beside a position": (mixed, ("b", "c")),
    "unknown beside a position": (mixed, ("b", "d")),
    "by position alone": (mixed, ("a", "c")),
    "the rest": (mixed, ("args", "c")),
    "without a signature": (Unsigned(), ("a",)),
}


@pytest.mark.parametrize("option", ["static_argnames", "donate_argnames"])
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.whole
def test_names(choice, option):
    fun, names = CHOICES[choice]

    def run(m):
        m.jit(fun, **{option: names})
        return 1

    agree(outcome(run, phlox, ()), outcome(run, jax, ()), SAME, choice)


@pytest.mark.whole
@pytest.mark.parametrize(
    "options",
    [
        {"static_argnums": 1, "static_argnames": ()},
        {"static_argnums": (), "static_argnames": "y"},
        {"static_argnums": (1,), "static_argnames": "x"},
        {"static_argnums": (1,)},
        {"static_argnames": "y"},
    ],
    ids=str,
)
def test_numbers_and_names_that_differ_hold_by_position_and_by_name(options):
    def seen(m):
        found = []

        def f(x, y):
            found.append((isinstance(x, m.core.Tracer), isinstance(y, m.core.Tracer)))
            return m.numpy.zeros(2)

        jitted = m.jit(f, **options)
        for _ in range(3):
            jitted(2, 3), jitted(2, y=3), jitted(x=2, y=3), jitted(y=3, x=2)
        return set(found), {call: jitted.lower(*args, **kwargs).in_tree for call, args, kwargs in CALLS}

    CALLS = (("both", (1, 2), {}), ("one", (1,), {"y": 2}), ("none", (), {"x": 1, "y": 2}))
    (mine, my_trees), (theirs, their_trees) = seen(phlox), seen(jax)
    assert mine == theirs
    assert {c: t.num_leaves for c, t in my_trees.items()} == {c: t.num_leaves for c, t in their_trees.items()}


def test_donated_by_position_and_by_name():
    def gone(m, *places, **names):
        f = m.jit(lambda a, b, c: (a * 2, b * 2, c * 2), donate_argnums=0, donate_argnames=("b", "c"))
        found = []
        for _ in range(3):
            arrays = [m.numpy.ones((2, 5)) * i for i in (2, 3, 4)]
            args = [arrays[i] for i in places]
            f(*args, **{name: arrays[i] for name, i in names.items()})
            found.append([x.is_deleted() for x in arrays])
        return found

    for places, names in (
        ((0, 1, 2), {}),
        ((0, 1), {"c": 2}),
        ((0,), {"b": 1, "c": 2}),
        ((), {"a": 0, "b": 1, "c": 2}),
    ):
        assert gone(phlox, *places, **names) == gone(jax, *places, **names)


class Incomparable:
    def __hash__(self):
        return 1

    def __eq__(self, other):
        raise NotImplementedError("cannot say")


def test_static_arguments_that_cannot_be_compared():
    for m in (phlox, jax):
        f = m.jit(lambda x, y: x + 3, static_argnums=[1])
        for _ in range(2):
            f(1, 1)
        with pytest.raises(ValueError, match="static arguments should be comparable using __eq__"):
            for _ in range(2):
                f(1, Incomparable())
        assert f(1, 1) == 4


MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[True, False, True])
TAKING = {
    "jit": lambda m, x: m.jit(lambda x: x)(x),
    "closed over": lambda m, x: m.jit(lambda y: y + x)(1.0),
    "asarray": lambda m, x: m.numpy.asarray(x),
    "numpy": lambda m, x: m.numpy.sin(x),
    "lax": lambda m, x: m.lax.neg(x),
    "operator": lambda m, x: m.numpy.ones(3) + x,
    "device_put": lambda m, x: m.device_put(x),
    "vmap": lambda m, x: m.vmap(lambda x: x)(x),
    "grad": lambda m, x: m.grad(lambda x: x.sum())(x),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", TAKING)
def test_masked_arrays(name):
    for m in (phlox, jax):
        with pytest.raises(ValueError, match="numpy masked arrays are not supported as direct inputs"):
            TAKING[name](m, MASKED)


def test_words_for_what_is_no_array():
    words = (
        "Error interpreting argument to .* as an abstract array. The problematic value is of type .* and was passed to "
        "the function at path x."
    )
    for m in (phlox, jax):
        for wrong in ("foo", m.numpy.int32):
            with pytest.raises(TypeError, match=words):
                m.jit(lambda x: x)(wrong)
        compiled = m.jit(lambda x, n: x * n, static_argnums=1).lower(X, 2).compile()
        with pytest.raises(
            TypeError, match=r"mismatches are:\nArgument 'x' compiled with.*float32.*called with.*int32"
        ):
            compiled(X.astype("int32"))
        compiled = m.jit(lambda x, y: x * y).lower(X, X).compile()
        with pytest.raises(TypeError, match=r"Argument 'x' compiled with.*\nArgument 'y' compiled with .* with int32"):
            compiled(X[:2], X.astype("int32"))


@pytest.mark.whole
@pytest.mark.parametrize(
    "options",
    [
        {"exec_time_optimization_effort": 0.0},
        {"memory_fitting_effort": 0.5},
        {"optimization_level": 19, "memory_fitting_level": 29},
        {"exec_time_compilation_effort": 0.0},
        {"xla_embed_ir_in_executable": "no"},
    ],
    ids=str,
)
def test_compiler_options(options):
    found = []
    for m in (phlox, jax):
        try:
            found.append(float(m.jit(lambda x: x + 41.0, compiler_options=options)(1.0)))
        except m.errors.JaxRuntimeError as error:
            found.append(str(error).split("INVALID_ARGUMENT: ")[1].split("\n")[0])
    assert found[0] == found[1]


@pytest.mark.whole
@pytest.mark.parametrize("where", ["nowhere", "sharding"])
@pytest.mark.parametrize("shared", [None, True, False])
def test_device_put_where_it_is(where, shared):
    found = []
    for m in (phlox, jax):
        x = m.device_put(np.arange(8), m.devices()[0])
        y = m.device_put(x, None if where == "nowhere" else x.sharding, may_alias=shared)
        found.append((y is x, y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()))
    assert found[0] == found[1]
