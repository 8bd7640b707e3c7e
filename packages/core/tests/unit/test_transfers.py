"""How often arrays move: what lies where a program needs it is not copied, and parts are read where they are."""

import re
import subprocess
import sys

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import P
from phlox._xla import transfer

X = np.arange(16000, dtype=np.float32).reshape(16, 1000)


@pytest.fixture
def moves(monkeypatch):
    """The transfers that the test makes: (way, bytes)."""
    found = []
    inside = []  # one transfer may be made of others

    def counted(name):
        real = getattr(transfer, name)

        def call(x, aval, *places):
            if not inside:
                found.append((name, aval.size * aval.dtype.itemsize))
            inside.append(name)
            try:
                return real(x, aval, *places)
            finally:
                inside.pop()

        monkeypatch.setattr(transfer, name, call)

    for name in ("put_buffer", "move_buffer", "buffer_to_numpy"):
        counted(name)
    return found


def mesh():
    return phlox.make_mesh((8,), ("x",), axis_types=(phlox.sharding.AxisType.Auto,))


def test_what_is_placed_does_not_move(moves):
    where, whole = phlox.NamedSharding(mesh(), P("x")), phlox.NamedSharding(mesh(), P())
    x, w = phlox.device_put(X, where), phlox.device_put(jnp.ones(1000), whole)
    step = phlox.jit(lambda w, x: (w - 0.1 * (x @ w) @ x, x * 2), in_shardings=(whole, where))
    w, _ = step(w, x)  # traces, and moves what the trace makes
    phlox.block_until_ready(w)
    moves.clear()
    for _ in range(3):
        w, y = step(w, x)
        assert phlox.device_put(x, where) is x
        assert phlox.lax.with_sharding_constraint(x, where) is x
        y = phlox.jit(lambda y: y.sum())(y)
    assert step.lower(w, x).compile()(w, x)[1].sharding == where
    assert phlox.pmap(lambda x: x * 2)(x.reshape(8, 2, 1000)).shape == (8, 2, 1000)
    assert moves == []


def test_compiled_ahead_for_types_alone(moves):
    where = phlox.NamedSharding(mesh(), P("x"))
    double = phlox.jit(lambda x: x * 2, in_shardings=where)
    compiled = double.lower(phlox.ShapeDtypeStruct(X.shape, X.dtype)).compile()
    x = phlox.device_put(X, where)
    moves.clear()
    found = compiled(x)
    assert moves == []
    np.testing.assert_array_equal(found, X * 2)
    np.testing.assert_array_equal(compiled(X), X * 2)


def test_an_element_moves_no_more_than_its_shard(moves):
    x = phlox.device_put(X, phlox.NamedSharding(mesh(), P("x")))
    moves.clear()
    np.testing.assert_array_equal(x[0], X[0])
    assert sum(size for _, size in moves) <= X[0].nbytes + 4  # NumPy reads the result; the index is a number
    for index in (0, -1, 5):
        text = phlox.jit(lambda x, i=index: x[i]).lower(x).compile().as_text()
        for kind, shape in re.findall(r"= f32\[([\d,]+)\]\S* (all-\w+|collective-permute)\(", text):
            assert np.prod([int(n) for n in kind.split(",")]) <= X[:2].size, shape


def test_shards_are_read_where_they_are(moves):
    x = phlox.device_put(X, phlox.NamedSharding(mesh(), P("x")))
    moves.clear()
    part = x.addressable_shards[3].data
    assert moves == []
    np.testing.assert_array_equal(part, X[6:8])
    assert part.sharding.device == phlox.devices()[3]


def test_a_sum_of_shards_reads_only_the_sum(moves):
    x = phlox.device_put(X, phlox.NamedSharding(mesh(), P("x")))
    moves.clear()
    assert float(x.sum()) == X.sum()
    assert sum(size for _, size in moves) <= 4


def test_copies_to_the_host_do_not_import_jax():
    code = "import sys, phlox.numpy as jnp; x = jnp.ones(3) * 2; x.copy_to_host_async(); print('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
