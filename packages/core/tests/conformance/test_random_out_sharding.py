"""phlox.random, the option out_sharding: jax's numbers, laid out over devices as asked for."""

import functools

import numpy as np
import pytest

import phlox
from conformance.test_random_rejection import SAMPLERS, F, both, near

#: All get the option by one decorator.
LAID_OUT = {
    "gamma": SAMPLERS["gamma"],
    "multivariate_normal": SAMPLERS["multivariate_normal"],
    "normal": lambda m, k, s, **o: m.random.normal(k, s, **o),
    "exponential": lambda m, k, s, **o: m.random.exponential(k, s, **o),
    "randint": lambda m, k, s, **o: m.random.randint(k, s, 0, 9, **o),
    "permutation": lambda m, k, s, **o: m.random.permutation(k, np.arange(*s), **o),
    "categorical": lambda m, k, s, **o: m.random.categorical(k, np.zeros((*s, 5), F), **o),
}


def mesh(m, shape=(4, 2), kind="Explicit"):
    return m.make_mesh(shape, ("x", "y"), axis_types=(getattr(m.sharding.AxisType, kind),) * 2)


def placed(x):
    """The elements, and which part of them lies on which device."""
    where = x.sharding.devices_indices_map(x.shape)
    return x, [(d.id, str(i)) for d, i in sorted(where.items(), key=lambda item: item[0].id)]


@pytest.mark.parametrize("name", LAID_OUT)
def test_result_lies_as_asked(name):
    def case(m, jit):
        with m.set_mesh(mesh(m)):
            draw = lambda: LAID_OUT[name](m, m.random.key(1), (8,), out_sharding=m.P("x"))
            return placed((m.jit(draw) if jit else draw)())

    for jit in (False, True):
        both(functools.partial(case, jit=jit), f"jit={jit}", jit=False, near=near(name))
    out = case(phlox, False)[0]
    assert out.sharding.spec == phlox.P("x", *[None] * (out.ndim - 1))


MISPLACED = {
    "no mesh": lambda m: m.random.normal(m.random.key(0), (8,), out_sharding=m.P("x")),
    "no sharding": lambda m: m.random.normal(m.random.key(0), (8,), out_sharding="x"),
    "a device": lambda m: m.random.normal(m.random.key(0), (8,), out_sharding=m.devices()[0]),
    "automatic axes": lambda m: m.random.normal(
        m.random.key(0), (8,), out_sharding=m.NamedSharding(mesh(m, kind="Auto"), m.P("x"))
    ),
}

MISPLACED_IN = {
    "unknown axis": lambda m: m.random.normal(m.random.key(0), (8,), out_sharding=m.P("z")),
    "does not divide": lambda m: m.random.normal(m.random.key(0), (7,), out_sharding=m.P("x")),
    "another mesh": lambda m: m.random.normal(
        m.random.key(0), (8,), out_sharding=m.NamedSharding(mesh(m, (2, 2)), m.P("x"))
    ),
}


@pytest.mark.parametrize("name", MISPLACED)
def test_wrong_out_sharding(name):
    both(MISPLACED[name], jit=False)


@pytest.mark.parametrize("name", MISPLACED_IN)
def test_wrong_out_sharding_in_a_mesh(name):
    def case(m):
        with m.set_mesh(mesh(m)):
            return MISPLACED_IN[name](m)

    both(case, jit=False)


def test_under_vmap():
    def case(m):
        with m.set_mesh(mesh(m)):
            draw = lambda k: m.random.normal(k, (8,), out_sharding=m.P("x"))
            return m.vmap(draw)(m.random.split(m.random.key(0), 3))

    both(case, jit=False)
