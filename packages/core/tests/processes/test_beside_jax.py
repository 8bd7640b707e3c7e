"""The core of phlox does the same with jax blocked, with jax imported first, and with jax imported last.

`CORE` exercises every package; it prints what it computed, and all orders must print the same.
"""

import pytest

from core_processes import BLOCK_JAX, run

CORE = """
import numpy as np
import phlox, phlox.numpy as jnp
from phlox import grad, jit, vmap, pmap, random, lax

def show(*xs):
    for x in xs:
        for leaf in phlox.tree.leaves(x):
            print(leaf.dtype, leaf.shape, np.asarray(leaf).astype(float).round(4).tolist())

def exercise():
    key = random.PRNGKey(42)
    w, x = random.normal(key, (3, 3)), np.arange(6.0, dtype=np.float32).reshape(2, 3)
    loss = lambda w, x: jnp.sum(phlox.nn.selu(x @ w) ** 2)
    show(loss(w, x), jit(grad(loss))(w, x), grad(jit(loss))(w, x), vmap(grad(loss), (None, 0))(w, x))
    show(phlox.hessian(lambda v: jnp.prod(v))(x[1]), phlox.jacfwd(jnp.cumprod)(x[1]))
    show(pmap(lambda v: v / lax.psum(v, "i"), axis_name="i")(np.arange(4.0)))
    show(x[:, 1], jnp.asarray(x)[1, ::-1], jnp.asarray(x).at[0].set(7), jnp.sort(w), jnp.einsum("ij,kj->ik", x, w))
    show(random.split(key), random.permutation(key, 5), random.bits(random.key(1), (2,), "uint8"))
    show(jnp.ones(2, "bfloat16") * 1.5, jnp.arange(3) // 2, jnp.array([True]) | False)
    with phlox.enable_x64(True):
        show(jnp.ones(2) / 3)
    _, pull = phlox.vjp(lambda v: {"a": v, "b": v * v}, 3.0)
    show(pull({"a": 1.0, "b": 2.0}), phlox.linearize(jnp.sin, 0.0)[1](1.0))
    show(jnp.from_dlpack(np.arange(3, dtype=np.float32)), jnp.asarray(np.from_dlpack(jnp.arange(2))))
    donated = jit(lambda v: v + 1, donate_argnums=0)
    v = jnp.ones(3)
    donated(v)
    print(v.is_deleted())
    try:
        v + 1
    except phlox.errors.DeletedArrayError as error:
        print(error.what)
"""

JAX = """
import jax, jax.numpy
def jax_works():
    f = jax.jit(jax.grad(lambda x: (jax.numpy.sin(x) ** 2).sum()))
    assert f(jax.numpy.arange(3.0)).shape == (3,)
    assert jax.pmap(lambda x: x + 1)(jax.numpy.ones(2))[0] == 2
    assert jax.numpy.asarray([1.5]).dtype == "float32"
    assert isinstance(jax.numpy.ones(2), jax.Array)
"""


@pytest.fixture(scope="module")
def alone():
    return run(BLOCK_JAX + CORE + "exercise()").stdout


def test_with_jax_blocked(alone):
    assert alone.splitlines()[-1].startswith("Array has been deleted with shape=float32[3]: argument x")
    assert len(alone.splitlines()) > 20


def test_with_jax_imported_first(alone):
    assert run(JAX + "jax_works()\n" + CORE + "exercise(); jax_works(); exercise()").stdout == alone * 2


def test_with_jax_imported_last(alone):
    assert run(CORE + "exercise()\n" + JAX + "jax_works()\nexercise(); jax_works()").stdout == alone * 2


def test_arrays_cross_over():
    program = (
        CORE
        + JAX
        + """
ours, theirs = jnp.arange(3.0), jax.numpy.arange(3.0)
show(ours + jnp.asarray(theirs), jnp.from_dlpack(theirs))
print(type(jax.numpy.asarray(ours)).__name__, isinstance(ours, jax.Array), isinstance(theirs, phlox.Array))
print((jax.numpy.asarray(ours) == theirs).all())
with jax.enable_x64(True):
    print(jnp.ones(1).dtype)
with phlox.enable_x64(True):
    print(jax.numpy.ones(1).dtype)
"""
    )
    lines = run(program).stdout.splitlines()
    assert lines[:2] == ["float32 (3,) [0.0, 2.0, 4.0]", "float32 (3,) [0.0, 1.0, 2.0]"]
    assert lines[2:] == ["ArrayImpl False False", "True", "float32", "float32"]


def test_both_dispatch_from_several_threads():
    program = (
        CORE
        + JAX
        + """
from concurrent.futures import ThreadPoolExecutor
f, g = jit(lambda x: jnp.sin(x) * 2), jax.jit(lambda x: jax.numpy.sin(x) * 2)
def one(k):
    x = np.full(k % 5 + 1, 0.5, np.float32)
    return float(np.asarray(f(x)).sum() - np.asarray(g(x)).sum()) + float((jnp.asarray(x) + 1).sum())
with ThreadPoolExecutor(4) as pool:
    print(sum(abs(v - 1.5 * (k % 5 + 1)) < 1e-5 for k, v in enumerate(pool.map(one, range(200)))))
"""
    )
    assert run(program).stdout.strip() == "200"
