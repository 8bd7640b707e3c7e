"""What the Python array API standard asks of a namespace, beside what NumPy has as well."""

import importlib
import inspect

import jax
import numpy as np
import pytest

import phlox

KINDS = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]


@pytest.mark.parametrize("x64", [False, True])
def test_inspection(x64):
    with jax.enable_x64(x64), phlox.enable_x64(x64):
        mine, theirs = (m.numpy.__array_namespace_info__() for m in (phlox, jax))
        assert mine.capabilities() == theirs.capabilities()
        assert mine.default_device() is theirs.default_device() is None
        assert mine.default_dtypes() == theirs.default_dtypes()
        for kind in [None, *KINDS, ("bool", "integral")]:
            assert mine.dtypes(kind=kind) == theirs.dtypes(kind=kind), kind
    assert mine.devices() == [None, *phlox.devices()]
    with pytest.raises(phlox.errors.OptionError, match="real floating"):
        mine.dtypes(kind="floating")


def test_the_namespace_of_an_array():
    x = phlox.numpy.ones(3)
    assert x.__array_namespace__() is phlox.numpy
    newest = jax.numpy.__array_api_version__ if jax.__version_info__ >= (0, 12) else "2025.12"
    assert phlox.numpy.__array_api_version__ <= newest  # newer ones follow newer standards
    assert x.__array_namespace__(api_version=phlox.numpy.__array_api_version__) is phlox.numpy
    with pytest.raises(ValueError, match=r"1812\.07"):
        x.__array_namespace__(api_version="1812.07")


def test_results_that_are_tuples():
    """As the standard and NumPy 2 have it; jax 0.10 returns lists here."""
    x, y = np.arange(3.0, dtype=np.float32), np.ones((2, 1), np.float32)
    for mine, theirs in (
        (phlox.numpy.meshgrid(x, x[:2]), np.meshgrid(x, x[:2])),
        (phlox.numpy.broadcast_arrays(x, y), np.broadcast_arrays(x, y)),
    ):
        assert type(mine) is type(theirs) is tuple
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


def test_numbers_as_arguments():
    jnp = phlox.numpy
    assert jnp.searchsorted(jnp.arange(5), 2.5) == 3
    for args in [(np.float32, 1.0), (1, np.int8), (True, 1j), (np.int16, 2, 3.0), (2, 3)]:
        assert jnp.result_type(*args) == jax.numpy.result_type(*args), args


@pytest.mark.skipif(jax.__version_info__ >= (0, 11), reason="later jax has more arguments")
@pytest.mark.parametrize("space", ["numpy", "numpy.linalg", "numpy.fft"])
def test_names_and_keywords(space):
    """Every function that jax has is there, and takes its arguments by the same names."""
    theirs, mine = (importlib.import_module(f"{library}.{space}") for library in ("jax", "phlox"))
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for name in dir(theirs):
        function = getattr(theirs, name)
        if name.startswith("_") or not callable(function):
            continue
        assert hasattr(mine, name), name
        if isinstance(function, type) or name == "set_printoptions":  # NumPy's own, by position or by name
            continue
        wanted = {p.name for p in inspect.signature(function).parameters.values() if p.kind in by_name}
        missing = wanted - set(inspect.signature(getattr(mine, name)).parameters)
        assert not missing, f"{name}: {missing}"
