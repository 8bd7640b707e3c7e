"""Bools whose bytes are not 0 and 1, as masks of image libraries have: true is 1 in every array."""

import io
import pickle

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import P
from phlox._xla import transfer

#: few elements and many, one axis and two
MASKS = [np.array([3, 1, 2, 0, 255, 128, 0, 1], np.uint8), np.full(1000, 255, np.uint8), np.arange(900) % 5 * 50 % 256]


@pytest.fixture(params=MASKS, ids=("few", "full", "many"))
def dirty(request):
    return request.param.astype(np.uint8).view(bool)


def saved(x):
    file = io.BytesIO()
    np.save(file, x)
    file.seek(0)
    return file


def sharded(x):
    mesh = phlox.make_mesh((2,), ("x",), axis_types=(phlox.sharding.AxisType.Auto,))
    return phlox.NamedSharding(mesh, P("x"))


TYPE = phlox.ShapeDtypeStruct
WAYS = {
    "asarray": jnp.asarray,
    "array": jnp.array,
    "device_put": phlox.device_put,
    "frombuffer": lambda x: jnp.frombuffer(x.tobytes(), dtype=bool),
    "memoryview": lambda x: jnp.asarray(memoryview(x)),
    "from_dlpack": jnp.from_dlpack,
    "from_dlpack, copied": lambda x: jnp.from_dlpack(x, copy=True),
    "load": lambda x: jnp.load(saved(x)),
    "pickle": lambda x: pickle.loads(pickle.dumps(jnp.asarray(x))),
    "argument of jit": lambda x: phlox.jit(lambda x: x)(x),
    "argument of jit, donated": lambda x: phlox.jit(lambda x: x, donate_argnums=0)(x),
    "constant": lambda x: phlox.jit(lambda: jnp.asarray(x))(),
    "operand": lambda x: phlox.jit(lambda y: y & x)(True),
    "view": lambda x: jnp.asarray(x.view(np.uint8)).view(bool),
    "pure_callback": lambda x: phlox.pure_callback(lambda: x, TYPE(x.shape, bool)),
    "pure_callback in jit": lambda x: phlox.jit(lambda y: phlox.pure_callback(lambda y: x, TYPE(x.shape, bool), y))(1),
    "io_callback": lambda x: phlox.jit(lambda: phlox.experimental.io_callback(lambda: x, TYPE(x.shape, bool)))(),
    "make_array_from_callback": lambda x: phlox.make_array_from_callback(x.shape, sharded(x), lambda i: x[i]),
    "sharded": lambda x: phlox.device_put(x, sharded(x)),
    "strided": lambda x: jnp.asarray(np.stack([x, x])[:, ::2].T),
    "0-d": lambda x: jnp.asarray(x[:1].reshape(())),
}


@pytest.mark.parametrize("way", WAYS)
def test_true_is_one_however_bools_come_in(way, dirty):
    expected = dirty.view(np.uint8) != 0
    x = WAYS[way](dirty)
    expected = {"strided": np.stack([expected, expected])[:, ::2].T, "0-d": expected[0]}.get(way, expected)
    np.testing.assert_array_equal(np.asarray(x).view(np.uint8), np.asarray(expected).view(np.uint8))
    assert int(jnp.sum(x)) == int(jnp.count_nonzero(x)) == expected.sum()


def test_what_is_computed_with_them(dirty):
    clean = dirty.view(np.uint8) != 0
    assert jnp.nonzero(dirty)[0].tolist() == jnp.flatnonzero(dirty).tolist() == np.flatnonzero(clean).tolist()
    assert jnp.asarray(dirty).astype(int).tolist() == clean.astype(int).tolist()
    assert jnp.arange(dirty.size)[dirty].tolist() == np.arange(dirty.size)[clean].tolist()
    assert int(jnp.sum(np.ones(dirty.size), where=dirty)) == clean.sum()
    assert bool(jnp.array_equal(dirty, clean)) and int(jnp.argmax(dirty)) == int(np.argmax(clean))
    assert jnp.sort(dirty).tolist() == np.sort(clean).tolist()


def test_results_of_foreign_functions_are_compared_with_zero():
    """The test of the kernels calls one; here is only its program, as no function of jaxlib has bools as results."""
    call = phlox.ffi.ffi_call("anything", TYPE((4,), bool))
    after = phlox.jit(call).lower(np.zeros(4, np.uint8)).as_text().split("custom_call")[1]
    assert "stablehlo.convert" in after and "stablehlo.compare" in after


def test_clean_arrays_are_not_copied():
    for size in (8, 5000):
        clean = np.ones(size, bool)
        assert transfer.clean_bools(clean) is clean
