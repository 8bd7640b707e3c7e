"""Arrays of phlox in functions of the real jax, and the reverse: the error says whose they are, and what to write."""

import sys
import types

import jax
import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import errors

X = jnp.ones(3)
HOST = np.ones(3, np.float32)

JAX_TRACERS = {
    "function": lambda x: jnp.sin(x).sum(),
    "operator": lambda x: (jnp.ones(3) * x).sum(),
    "lax": lambda x: phlox.lax.sin(x).sum(),
    "jitted": phlox.jit(lambda x: x.sum()),
    "conversion": lambda x: jnp.asarray(x).sum(),
    "method": lambda x: jnp.ones(3).dot(x),
    "index": lambda x: jnp.ones(3).at[0].set(x[0]).sum(),
    "list": lambda x: jnp.stack([x, x]).sum(),
}
TRANSFORMATIONS = {
    "grad": jax.grad,
    "jit": jax.jit,
    "vmap": lambda f: lambda x: jax.vmap(f)(np.stack([x, x])),
}


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("name", JAX_TRACERS)
def test_a_transformation_of_jax_around_functions_of_phlox(name, transformation):
    with pytest.raises(errors.ArgumentError, match="is a tracer of jax") as caught:
        TRANSFORMATIONS[transformation](JAX_TRACERS[name])(HOST)
    assert "phlox.grad" in caught.value.instead


FOREIGN = {
    "grad": lambda: jax.grad(lambda x: x.sum())(X),
    "jit": lambda: jax.jit(lambda x: x + 1)(X),
    "vmap": lambda: jax.vmap(lambda x: x)(X),
    "scan": lambda: jax.lax.scan(lambda c, _: (c, None), X, None, length=2),
    "function": lambda: jax.numpy.sin(X),
    "zeros_like": lambda: jax.numpy.zeros_like(X),
    "operator": lambda: jax.numpy.ones(3) + X,
    "key": lambda: jax.random.normal(phlox.random.key(0)),
    "in phlox.jit": lambda: phlox.jit(lambda x: jax.numpy.sin(x))(X),
    "in phlox.grad": lambda: phlox.grad(lambda x: jax.numpy.sum(x))(X),
    "array of a tracer": lambda: phlox.jit(lambda x: jax.numpy.asarray(x))(X),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_functions_of_jax_with_arrays_of_phlox(name):
    with pytest.raises(errors.ForeignArrayError, match=r"jax got an? (array|tracer)") as caught:
        FOREIGN[name]()
    assert caught.value.where.file == __file__
    assert "in phlox" in caught.value.instead


def test_arrays_of_jax_in_functions_of_phlox():
    foreign = jax.numpy.ones(3)
    for run in (
        lambda: jnp.sin(foreign), lambda: X + foreign, lambda: phlox.jit(lambda x: x)(foreign),
        lambda: phlox.grad(lambda x: (x * foreign).sum())(X), lambda: phlox.random.normal(jax.random.key(0)),
    ):  # fmt: skip
        with pytest.raises(errors.ArgumentError, match="is an array of jax"):
            run()


def test_values_are_handed_over_by_asarray():
    assert type(jnp.asarray(jax.numpy.arange(3))) is type(X)
    np.testing.assert_array_equal(jnp.asarray(jax.numpy.arange(3)), np.arange(3))
    np.testing.assert_array_equal(jax.numpy.asarray(jnp.arange(3)), np.arange(3))
    assert not hasattr(X, "__jax_array__")


def test_a_library_that_imports_jax_is_named(monkeypatch):
    library = types.ModuleType("some_optimizers")
    code = "import jax\n\ndef update(p):\n    return jax.tree.map(lambda x: jax.numpy.square(x), p)\n"
    exec(compile(code, f"{sys.prefix}/site-packages/some_optimizers.py", "exec"), vars(library))
    with pytest.raises(errors.ForeignArrayError) as caught:
        library.update({"w": X})
    assert caught.value.instead == "phlox.adopt('some_optimizers'), which runs some_optimizers on phlox"
    assert caught.value.where.file == __file__
