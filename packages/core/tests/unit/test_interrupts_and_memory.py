"""What stands whatever happens around it: tracing that is interrupted anywhere, functions whose addresses are used
again, arrays that share no memory with what they were made of, and long sessions that do not grow.
"""

import gc
import sys

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import lax

STEPS = 60


# --- interrupts


def program():
    """A function that passes most of what a trace can meet, new each time."""

    def f(x):
        y = phlox.jit(jnp.sin)(x) * 2.0
        y, _ = lax.scan(lambda c, a: (c * a, c), y, jnp.arange(3.0))
        return lax.cond(y > 0, jnp.cos, jnp.tanh, y) + phlox.checkpoint(jnp.exp)(x)

    return phlox.jit(phlox.value_and_grad(f))


def is_ours(frame, event):
    """A call within phlox; one inside of the standard library shows how that keeps its own locks."""
    return event == "call" and "phlox" in frame.f_globals.get("__name__", "")


def interrupted(run, after):
    """Calls `run`, with a KeyboardInterrupt at its call number `after` in phlox; False when it ended before."""
    left = after

    def look(frame, event, _):
        nonlocal left
        if is_ours(frame, event):
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        run()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


def calls_of(run):
    count = 0

    def look(frame, event, _):
        nonlocal count
        count += is_ours(frame, event)

    sys.setprofile(look)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


# An interrupt inside of a destructor is only reported.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_anywhere_leaves_the_function_and_the_library_as_they_were():
    wanted = program()(0.5)
    total = calls_of(lambda: program()(0.5))
    assert total > 10 * STEPS
    stopped = 0
    for step in range(STEPS):
        f = program()
        stopped += interrupted(lambda f=f: f(0.5), 1 + step * total // STEPS)
        assert not isinstance(jnp.sin(1.0), phlox.core.Tracer)
        for found, right in zip(f(0.5), wanted, strict=True):
            np.testing.assert_array_equal(found, right)
    assert stopped > STEPS // 2


# --- addresses that are used again


def test_functions_at_addresses_that_were_used_before():
    addresses = set()
    x = jnp.zeros(())
    for n in range(1800):
        f = phlox.jit(lambda x, n=float(n): x + n)
        addresses.add(id(f.__wrapped__))
        text = str(phlox.make_jaxpr(f)(x))
        assert f"{float(n)}:f32[]" in text, text
        assert phlox.eval_shape(lambda x, n=n % 5: jnp.zeros((n,)) + x, x).shape == (n % 5,)
        if n % 100 == 0:
            assert f(x) == n and phlox.grad(lambda x, n=n: x * n)(1.0) == n
        del f
    assert len(addresses) < 900


# --- memory of others

WAYS_IN = {
    "array": jnp.array,
    "asarray, then copied": lambda x: jnp.asarray(x).copy(),
    "array with a dtype": lambda x: jnp.array(x, jnp.float32),
    "stack": lambda x: jnp.stack([x, x])[0],
    "concatenate": lambda x: jnp.concatenate([x, x])[: x.shape[0]],
    "where": lambda x: jnp.where(True, x, 0),
    "jit": lambda x: phlox.jit(lambda y: y)(x),
    "jit with a dict": lambda x: phlox.jit(lambda d: d)({"a": x})["a"],
    "jit that closes over it": lambda x: phlox.jit(lambda: jnp.asarray(x) + 0)(),
    "scan": lambda x: lax.scan(lambda c, y: (c, y), 0, x)[1],
    "while_loop": lambda x: lax.while_loop(lambda c: False, lambda c: c, x),
    "cond": lambda x: lax.cond(True, lambda y: y, lambda y: y, x),
    "copy": jnp.copy,
    "reshape": lambda x: jnp.reshape(x, (2, -1)).reshape(x.shape),
    "full": lambda x: jnp.full(x.shape, x),
    "add": lambda x: jnp.add(x, 0),
    "broadcast_to": lambda x: jnp.broadcast_to(x, x.shape),
    "array of a list of it": lambda x: jnp.array([x])[0],
    "at.set": lambda x: jnp.zeros(x.shape, x.dtype).at[:].set(x),
    "block": lambda x: jnp.block([x]),
    "device_put": lambda x: phlox.device_put(x, may_alias=False),
    "pure_callback": lambda x: phlox.pure_callback(lambda y: x, phlox.ShapeDtypeStruct(x.shape, x.dtype), 0.0),
}


@pytest.mark.parametrize("name", WAYS_IN)
def test_arrays_keep_their_values_when_what_they_are_made_of_changes(name):
    x = np.arange(1024, dtype=np.float32)  # large enough that jaxlib would share its memory
    y = WAYS_IN[name](x)
    y.block_until_ready()
    before = np.array(y)
    x[:] = -1
    np.testing.assert_array_equal(y, before)
    assert before[3] == 3


@pytest.mark.parametrize("look", [np.asarray, phlox.device_get, lambda y: np.from_dlpack(y)])
def test_what_is_read_out_cannot_change_an_array(look):
    y = jnp.arange(1024.0)
    seen = look(y)
    assert not np.asarray(seen).flags.writeable


# --- long sessions


def blocks(run, times):
    """How many blocks of memory Python holds more after `times` calls, once the first ones are over."""
    for _ in range(50):
        run()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(times):
        run()
    gc.collect()
    return sys.getallocatedblocks() - before


def refused(x, y):
    with pytest.raises(TypeError):
        x + y


X, KEY = jnp.ones(3), phlox.random.key(0)
LONG = {
    "jit": (phlox.jit(lambda x: x + 1), X),
    "dict": (phlox.jit(lambda d: d), {"a": X, "b": jnp.ones(2)}),
    "number": (phlox.jit(lambda x: x * 2), 1.5),
    "NumPy": (phlox.jit(lambda x: x * 2), np.ones(3, np.float32)),
    "eager": (lambda x: x * 2 + x, X),
    "index": (lambda x: x[1], X),
    "grad": (phlox.grad(lambda x: jnp.tanh(x) * x), 1.0),
    "vmap": (phlox.vmap(lambda x: x * 2), jnp.ones((2, 3))),
    "keys": (phlox.random.split, KEY),
    "error": (refused, X, jnp.ones(4)),
}


@pytest.mark.parametrize("name", LONG)
def test_long_sessions_do_not_grow(name):
    f, *args = LONG[name]
    assert blocks(lambda: f(*args), 4000) < 1000  # a block a call would be 4,000


def test_functions_that_are_made_anew_do_not_grow():
    def run():
        assert phlox.make_jaxpr(phlox.jit(lambda x: phlox.grad(lambda y: jnp.sin(y) * 2)(x)))(1.0).eqns

    assert blocks(run, 500) < 500


COMPILES = {
    "reduction": lambda x: x.sum(),
    "choice": lambda x: jnp.where(x > 1, x, 0),
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c + i, x),
    "branches": lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
    "decomposition": lambda x: jnp.linalg.cholesky(jnp.diag(x)),
    "derivative": phlox.grad(lambda x: jnp.sin(x).sum()),
    "linearized": lambda x: phlox.linearize(jnp.sin, x)[0],
}


@pytest.mark.parametrize("name", COMPILES)
def test_compiling_makes_no_cycles(name):
    """A collection would have to find them."""
    x = jnp.arange(1.0, 4.0)
    COMPILES[name](x)
    phlox.clear_caches()
    gc.collect()
    phlox.jit(COMPILES[name])(x)
    assert gc.collect() == 0
