"""Indices out of bounds: those that are known warn, others raise in strict mode."""

import warnings

import numpy as np
import pytest

import phlox
import phlox.numpy as jnp
from phlox import config, errors, lax

X = jnp.arange(10.0)
M = jnp.ones((3, 4))


def warned(program):
    """The messages of the `CheckWarning`s that a program gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program()
    return [str(w.message) for w in caught if w.category is errors.CheckWarning]


#: indices that are known when they are written, with the index and axis that the message has
KNOWN = {
    "read": (lambda: X[10], 10, 0),
    "from the end": (lambda: X[-11], -11, 0),
    "second axis": (lambda: M[1, 4], 4, 1),
    "behind a slice": (lambda: M[:, 4], 4, 1),
    "NumPy's array": (lambda: X[np.array([0, 12])], 12, 0),
    "NumPy's number": (lambda: X[np.int64(11)], 11, 0),
    "list of integers": (lambda: X[(np.array([1, 10]),)], 10, 0),
    "set": (lambda: X.at[10].set(1.0), 10, 0),
    "add": (lambda: X.at[np.array([1, 12])].add(1.0), 12, 0),
    "divide": (lambda: M.at[5, 0].divide(2.0), 5, 0),
    "apply": (lambda: X.at[np.array([12])].apply(jnp.sin), 12, 0),
    "get": (lambda: X.at[10].get(), 10, 0),
    "take": (lambda: jnp.take(X, 10), 10, 0),
    "take of the flattened": (lambda: jnp.take(M, 12), 12, 0),
    "take, method": (lambda: M.take(np.array([3, 4]), axis=1), 4, 1),
    "take_along_axis": (lambda: jnp.take_along_axis(M, np.array([[5], [0], [1]]), 1), 5, 1),
    "put": (lambda: jnp.put(X, 10, 1.0, inplace=False), 10, 0),
    "put of the flattened": (lambda: jnp.put(M, np.array([3, 12]), 1.0, inplace=False), 12, 0),
    "put_along_axis": (lambda: jnp.put_along_axis(M, np.array([[0], [4], [1]]), 1.0, 1, inplace=False), 4, 1),
    "put_along_axis of the flattened": (lambda: jnp.put_along_axis(M, np.array([12]), 1.0, None, inplace=False), 12, 0),
    "insert": (lambda: jnp.insert(X, 11, 1.0), 11, 0),
    "insert from the end": (lambda: jnp.insert(X, -11, 1.0), -11, 0),
    "insert at several": (lambda: jnp.insert(M, np.array([0, 5]), 1.0, axis=1), 5, 1),
    "dynamic_slice": (lambda: lax.dynamic_slice(X, (9,), (3,)), 9, 0),
    "dynamic_slice_in_dim": (lambda: lax.dynamic_slice_in_dim(M, 2, 3, axis=1), 2, 1),
    "dynamic_update_slice": (lambda: lax.dynamic_update_slice(X, jnp.ones(3), (8,)), 8, 0),
    "dynamic_index_in_dim": (lambda: lax.dynamic_index_in_dim(X, 10), 10, 0),
    "dynamic_update_index_in_dim": (lambda: lax.dynamic_update_index_in_dim(X, 1.0, 10, 0), 10, 0),
    "dynamic_update_slice_in_dim": (lambda: lax.dynamic_update_slice_in_dim(X, jnp.ones(2), 9, 0), 9, 0),
    "jit": (lambda: phlox.jit(lambda x: x[10])(X), 10, 0),
    "vmap": (lambda: phlox.vmap(lambda row: row[4])(M), 4, 0),
    "grad": (lambda: phlox.grad(lambda x: x.at[10].set(1.0).sum())(X), 10, 0),
    "scan": (lambda: lax.scan(lambda c, _: (c + X[10], None), 0.0, None, length=2), 10, 0),
    "cond": (lambda: phlox.jit(lambda p: lax.cond(p, lambda: X[11], lambda: 0.0))(True), 11, 0),
}

#: functions of an index that is an array; it is out of bounds if it is 12
COMPUTED = {
    "read": lambda i: X[i],
    "vector": lambda i: X[jnp.stack([0 * i, i])],
    "second axis": lambda i: M[1, i],
    "set": lambda i: X.at[i].set(1.0),
    "take": lambda i: jnp.take(X, i),
    "take_along_axis": lambda i: jnp.take_along_axis(X, i[None], 0),
    "put": lambda i: jnp.put(X, i, 1.0, inplace=False),
    "put_along_axis": lambda i: jnp.put_along_axis(X, i[None], 1.0, 0, inplace=False),
    "insert": lambda i: jnp.insert(X, i, 1.0),
    "dynamic_slice": lambda i: lax.dynamic_slice(X, (i,), (3,)),
    "dynamic_index_in_dim": lambda i: lax.dynamic_index_in_dim(X, i),
    "dynamic_update_slice": lambda i: lax.dynamic_update_slice(X, jnp.ones(2), (i,)),
    "vmap": lambda i: phlox.vmap(lambda j: X[j])(i[None]),
    "grad": lambda i: phlox.grad(lambda x: x[i])(X),
    "loop": lambda i: lax.fori_loop(0, 2, lambda k, c: c + X[i + k], 0.0),
    "cond": lambda i: lax.cond(i > 0, lambda: X[i], lambda: 0.0),
}

SILENT = {
    "insert at the ends": lambda: (jnp.insert(X, 10, 1.0), jnp.insert(X, -10, 1.0), jnp.insert(X, slice(5, 20), 1.0)),
    "put inside": lambda: (
        jnp.put(M, 11, 1.0, inplace=False), jnp.put(X, -10, 1.0, inplace=False),
        jnp.put_along_axis(X, np.array([-1, 9]), 1.0, 0, inplace=False),
    ),
    "inside": lambda: (X[9], X[-10], M[2, -4], X[np.array([0, 9])], X.at[9].set(1.0), jnp.take(X, -10)),
    "modes": lambda: (
        X.at[10].set(1.0, mode="drop"), X.at[10].get(mode="fill"), X.at[10].get(mode="clip"),
        jnp.take(X, 10, mode="clip"), jnp.take(X, 12, mode="wrap"),
        jnp.put(X, 10, 1.0, mode="clip", inplace=False), jnp.put(X, 12, 1.0, mode="wrap", inplace=False),
        jnp.put_along_axis(X, np.array([12]), 1.0, 0, mode="drop", inplace=False),
    ),
    "slices to the end": lambda: (X[10:], X[5:20], X[:0], X[8:8], X[-20:3], X[20:2:-1]),
    "computed": lambda: (X[jnp.array([12])], X.at[jnp.array(12)].set(1.0), jnp.take(X, jnp.array(12))),
    "exact slice": lambda: (lax.dynamic_slice(X, (7,), (3,)), lax.dynamic_slice(X, (-3,), (3,))),
    "empty index": lambda: X[np.zeros(0, np.int32)],
    "functions of phlox": lambda: (jnp.percentile(X, 50.0), jnp.roll(X, 12), jnp.interp(X, X, X), jnp.median(X)),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_known_indices_warn(name):
    program, index, axis = KNOWN[name]
    (message,) = warned(program)
    assert message.startswith("index out of bounds: ") and "test_traps_indices.py:" in message
    assert f"index {index} " in message and f"axis {axis} with size" in message


@pytest.mark.parametrize(("name", "end"), [(12, 15), (30, 20), (-30, -20)])
def test_slices_outside_warn(name, end):
    for program, happens in ((lambda: X[name:end], "nothing is read"), (lambda: X.at[name:end].set(1), "is written")):
        (message,) = warned(program)
        assert f"the slice {name}:{end} is outside of axis 0 with size 10" in message and happens in message
    assert warned(lambda: [X[name:end] for _ in range(3)]), "also if the slice is cached"


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_said(name):
    assert warned(SILENT[name]) == []


@pytest.mark.parametrize("name", KNOWN)
def test_known_indices_raise_in_strict_mode(name):
    with config.scope(checks="strict"), pytest.raises(errors.CheckError, match="out of bounds for axis"):
        KNOWN[name][0]()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", COMPUTED)
def test_computed_indices_raise_in_strict_mode(name, compiled):
    def run(i):
        return (phlox.jit(COMPUTED[name]) if compiled else COMPUTED[name])(jnp.asarray(i))

    assert warned(lambda: run(12)) == []
    with config.scope(checks="strict"):
        phlox.block_until_ready(run(1))
        with pytest.raises(errors.CheckError, match=r"index 1[23] .*shape \(") as caught:
            phlox.block_until_ready(run(12))
            phlox.effects_barrier()
    assert caught.value.where is not None and "test_traps_indices" in caught.value.where.file
    phlox.block_until_ready(run(12))


def test_the_flag_check_static_indices_raises_index_errors():
    with config.scope(check_static_indices=True):
        with pytest.raises(IndexError, match="index 10 out of bounds for axis 0 with size 10"):
            X[10]
        assert warned(lambda: X.at[10].set(1.0))


def test_checks_can_be_off():
    with config.scope(checks="off"):
        assert warned(lambda: (X[10], X.at[10].set(1.0), jnp.take(X, 10), X[12:15])) == []
