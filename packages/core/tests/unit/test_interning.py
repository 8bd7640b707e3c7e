"""Tables of types, places and settings are bounded, forget what nobody uses, and never make a second live object."""

import gc
import threading
import weakref

import numpy as np

import phlox
import phlox.numpy as jnp
from phlox._base import config, interning
from phlox._ir import avals


def test_types_in_use_stay_the_same_objects():
    x = jnp.ones((3, 1717))
    f = phlox.jit(lambda x: x + 1)
    f(x)
    phlox.clear_caches()
    gc.collect()
    assert phlox.typeof(np.ones((3, 1717), np.float32)) is phlox.typeof(x)
    assert phlox.typeof(f(x)) is phlox.typeof(x)


def test_types_that_nobody_uses_are_forgotten():
    lost = weakref.ref(avals.shaped((1719, 2), np.dtype("float32")))
    assert lost() is avals.shaped((1719, 2), np.dtype("float32"))
    phlox.clear_caches()
    gc.collect()
    assert lost() is None


def test_types_are_bounded():
    kept = avals.shaped((1721,), np.dtype("float32"))
    before = len(avals._interned)
    for n in range(2 * interning.LIMIT):
        avals.shaped((n, 3, 1), np.dtype("int8"))
    assert len(avals._interned) <= before + interning.LIMIT
    assert avals.shaped((1721,), np.dtype("float32")) is kept


def test_values_of_settings_are_forgotten():
    class Value:
        pass

    context = phlox.make_user_context(None)
    f, lost = phlox.jit(lambda x: x * 2), []
    for _ in range(5):
        value = Value()
        lost.append(weakref.ref(value))
        with context(value), phlox.default_matmul_precision("high"):
            f(jnp.ones(2))
    del value
    phlox.clear_caches()
    gc.collect()
    assert [ref() for ref in lost] == [None] * 5


def test_equal_settings_have_one_mark_after_clearing():
    with config.scope(default_matmul_precision="high"):
        inside = config.current().trace_fingerprint
    phlox.clear_caches()
    with config.scope(default_matmul_precision="high"):
        assert config.current().trace_fingerprint is inside
    marks = len(config._fingerprints)
    for _ in range(300):
        config.update("enable_x64", True)
        config.update("enable_x64", False)
    assert len(config._fingerprints) <= marks + 6


def test_threads_get_one_object():
    for n in range(50):
        found, barrier = [], threading.Barrier(4)

        def ask(n=n, found=found, barrier=barrier):
            barrier.wait()
            for m in range(20):
                found.append((m, avals.shaped((n, m, 1723), np.dtype("int8"))))
                interning.forget()

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({id(aval) for _, aval in found}) == 20
