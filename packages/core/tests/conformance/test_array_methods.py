"""Every attribute of jax's arrays and tracers is there on phlox's, and gives the same: eagerly, on tracers, under vmap."""

import functools
import inspect

import jax
import numpy as np
import pytest

import judge
import phlox
from conformance.harness import agree, outcome, row

NEAR = row("methods")
X = judge.array(judge.rng("methods"), (2, 3), "float32")
V = judge.array(judge.rng("vector"), (4,), "float32")
N = np.array([2, 0, 1, 3], np.int32)
PUBLIC = sorted(n for n in dir(jax.Array) if not n.startswith("_"))

#: Methods and properties whose results are arrays or trees of them: (array, arguments).
CALLS = {
    "T": [X], "mT": [X], "real": [X], "imag": [X * 1j], "all": [X], "any": [X], "argmax": [X, 1], "argmin": [X, 0], "argpartition": [V, 1],
    "argsort": [X, 0], "astype": [X, "int32"], "byteswap": [X], "choose": [N % 2, (V, V * 2)], "clip": [X, -1.0, 1.0],
    "compress": [X, np.array([True, False, True]), 1], "conj": [X * 1j], "conjugate": [X], "copy": [X], "cumprod": [X, 1], "cumsum": [X, 0],
    "diagonal": [X], "dot": [X, X[0]], "flatten": [X], "max": [X, 1], "mean": [X, 0], "min": [X], "prod": [X, 1], "ptp": [X, 0],
    "ravel": [X], "repeat": [X, 2, 1], "reshape": [X, 3, 2], "round": [X, 1], "searchsorted": [np.sort(V), 0.5], "sort": [X, 0],
    "squeeze": [X[None], 0], "std": [X, 1], "sum": [X, 0], "swapaxes": [X, 0, 1], "take": [X, np.array([1, 0]), 1], "trace": [X],
    "transpose": [X, 1, 0], "var": [X], "view": [X, "int32"],
}  # fmt: skip
SHAPES = ["dtype", "itemsize", "nbytes", "ndim", "shape", "size", "weak_type"]
#: What depends on elements has a length that tracing does not know, unless it is given.
EAGER = {"nonzero": [X], "item": [V[:1]], "tolist": [X], "flat": [X]}
DEVICES = {
    "addressable_data": lambda x: x.addressable_data(0),
    "addressable_shards": lambda x: [s.data for s in x.addressable_shards],
    "global_shards": lambda x: [(s.data, s.replica_id, s.device.id) for s in x.global_shards],
    "committed": lambda x: x.committed,
    "copy_to_host_async": lambda x: x.copy_to_host_async(),
    "block_until_ready": lambda x: x.block_until_ready(),
    "is_fully_addressable": lambda x: x.is_fully_addressable,
    "is_fully_replicated": lambda x: x.is_fully_replicated,
    "is_deleted": lambda x: x.is_deleted(),
    "devices": lambda x: sorted(d.id for d in x.devices()),
    "device": lambda x: str(x.device),
    "sharding": lambda x: x.sharding.num_devices,
    "delete": lambda x: (x + 1).delete(),
    "is_ready": lambda x: x.block_until_ready().is_ready(),
    "to_device": lambda x: x.to_device(next(iter(x.devices()))),
    "unsafe_buffer_pointer": lambda x: x.unsafe_buffer_pointer() > 0,
    "aval": lambda x: (x.aval.shape, x.aval.dtype, x.aval.weak_type),
    "traceback": None,  # where jax made the array; phlox does not keep it
}


def test_every_attribute_is_compared():
    """`at` has its tests in test_indexing."""
    named = {*CALLS, *SHAPES, *EAGER, *DEVICES, "at"}
    assert not set(PUBLIC) - named, "no test of these"


def test_special_methods_are_there():
    special = {n for n in dir(jax.Array) if n.startswith("__")} - set(dir(phlox.Array))
    assert special <= {"__numpy_dtype__"}, special  # which is deprecated in jax


def use(m, name, args):
    found = getattr(args[0], name)
    return found(*args[1:]) if callable(found) else found


@pytest.mark.parametrize("name", CALLS)
def test_result(name):
    x, *rest = CALLS[name]

    def case(m, x):
        return use(m, name, [m.numpy.asarray(x), *rest])

    agree(outcome(case, phlox, [x]), outcome(case, jax, [x]), NEAR, "eager")
    staged = lambda m, x: m.jit(functools.partial(case, m))(x)
    agree(outcome(staged, phlox, [x]), outcome(staged, jax, [x]), NEAR, "under jit")
    batch = np.stack([x, x[::-1]]) if name != "searchsorted" else np.stack([x, x + 1])
    mapped = lambda m, xs: m.vmap(functools.partial(case, m))(m.numpy.asarray(xs))
    agree(outcome(mapped, phlox, [batch]), outcome(mapped, jax, [batch]), NEAR, "under vmap")


@pytest.mark.parametrize("name", SHAPES)
def test_types(name):
    for wrap in (lambda m, f: f, lambda m, f: lambda x: m.eval_shape(f, x), lambda m, f: lambda x: m.vmap(f)(x[None])):
        found = []
        for m in (phlox, jax):

            def see(x, m=m, found=found):
                found.append(getattr(m.numpy.asarray(x), name))
                return m.numpy.zeros(1)

            wrap(m, see)(X)
        assert found[0] == found[1]


@pytest.mark.parametrize("name", EAGER)
def test_what_is_for_arrays_alone(name):
    x = EAGER[name][0]
    case = lambda m, x: use(m, name, [m.numpy.asarray(x)])
    agree(outcome(case, phlox, [x]), outcome(case, jax, [x]), NEAR, name)
    staged = lambda m, x: m.jit(functools.partial(case, m))(x)
    agree(outcome(staged, phlox, [x]), outcome(staged, jax, [x]), NEAR, f"{name} under jit")


@pytest.mark.parametrize("name", [n for n in DEVICES if DEVICES[n]])
def test_places(name):
    case = lambda m, x: DEVICES[name](m.numpy.asarray(x))
    mine, theirs = outcome(case, phlox, [X]), outcome(case, jax, [X])
    agree(mine, theirs, NEAR, name)
    if name == "device":  # None of a tracer, where jax has no such attribute: libraries pass it on to zeros
        assert phlox.jit(lambda x: x.device is None)(X)
        return
    staged = lambda m, x: m.jit(lambda x: (case(m, x), x)[1])(x)
    agree(outcome(staged, phlox, [X]), outcome(staged, jax, [X]), NEAR, f"{name} under jit")


def test_membership():
    for wanted in (2, 2.0, 7, np.int32(1), np.nan):
        case = lambda m, x, w=wanted: bool(w in m.numpy.asarray(x))
        agree(outcome(case, phlox, [N]), outcome(case, jax, [N]), NEAR, str(wanted))
    for wrong in (None, "a", [1], np.arange(2)):
        judge.raises_alike(lambda m, w=wrong: w in m.numpy.asarray(N))
    judge.raises_alike(lambda m: 1 in m.numpy.asarray(X))
    judge.raises_alike(lambda m: m.jit(lambda x: 1 in x)(N))


def test_namespace():
    assert phlox.numpy.ones(1).__array_namespace__() is phlox.numpy
    assert phlox.jit(lambda x: x.__array_namespace__(api_version="2024.12").sin(x))(0.0) == 0.0
    judge.raises_alike(lambda m: m.numpy.ones(1).__array_namespace__(api_version="1999"))


def same_arguments(theirs, ours):
    """Compares the arguments of public methods by name, kind and default (more are allowed); returns how many."""
    compared = 0
    for name in sorted(set(dir(theirs)) & set(dir(ours))):
        if name.startswith("_") or not inspect.isroutine(getattr(theirs, name)):
            continue
        try:
            wanted = list(inspect.signature(getattr(theirs, name)).parameters.values())[1:]
        except ValueError:  # written in C++
            continue
        have = {p.name: p for p in list(inspect.signature(getattr(ours, name)).parameters.values())[1:]}
        for p in wanted:
            assert p.name in have, (name, p.name)
            assert have[p.name].kind == p.kind, (name, p.name)
            if p.default is not p.empty:
                assert have[p.name].default == p.default, (name, p.name)
        compared += 1
    return compared


def test_methods_take_the_arguments_of_jax():
    assert same_arguments(type(jax.numpy.ones(1)), phlox.Array) > 35


def test_updates_take_the_arguments_of_jax():
    assert same_arguments(type(jax.numpy.ones(1).at[0]), type(phlox.numpy.ones(1).at[0])) == 11
