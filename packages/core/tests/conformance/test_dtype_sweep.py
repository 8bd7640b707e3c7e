"""Shapes, dtypes and weak types of results for all dtypes of arguments, with 64-bit types on and off, by `eval_shape`.

Every function of the tables is traced with each of 15 dtypes, and with pairs of different ones where it takes two arrays.
Nothing is computed. What jax refuses may be computed here.
"""

import itertools

import jax
import ml_dtypes
import numpy as np
import pytest

import phlox
from conformance.harness import A, _slots, case_of
from conformance.test_coverage import TABLES

NAMES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
DTYPES = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in NAMES}

CALLS = {
    f"{row.path}({call})": (row, call)
    for module in TABLES
    for row in module.TABLE
    for call in row.calls[:1]
    if not row.path.startswith(("method.", "at.")) and any(type(slot) is A for slot in _slots(call, []))
}

#: What phlox refuses although jax has a type for it, by function: the kinds of dtypes, and why.
REFUSED = {
    "lax.clamp": ("c", "complex numbers have no order"),
    "scipy.special.gamma": ("c", "of complex numbers it is not there"),
    "numpy.polyval": ("b", "as in jax 0.12"),
    "scipy.special.owens_t": ("biufc", "it is a function of real numbers"),
    "scipy.special.loggamma": ("c", "of complex numbers it is not there"),
    "lax.conv_general_dilated": ("b", "sums of truth values are no numbers"),
    "lax.cumlogsumexp": ("iu", "jax gives it a type and cannot compile it"),
    "lax.random_gamma_grad": ("iufc", "operands of two dtypes, which jax cannot compile"),
}
#: Where types differ and jax's follow from how it computes: (function, dtype of the first argument).
OTHERWISE = {
    ("numpy.intersect1d", "bool"): "jax's result holds weak integers",
    ("numpy.setxor1d", "bool"): "jax's result holds weak integers",
    ("lax.linalg.cholesky", "bool"): "jax computes truth values in weak floats of 64 bits",
    ("lax.linalg.eigh", "bool"): "jax computes truth values in weak floats of 64 bits",
    ("numpy.logaddexp2.reduce", "bool"): "jax adds truth values up in the default float",
    ("scipy.special.sph_harm_y", "float16"): "with 64-bit types on, jax's result has 128 bits",
    ("scipy.special.sph_harm_y", "bfloat16"): "with 64-bit types on, jax's result has 128 bits",
    ("scipy.special.sph_harm_y", "float32"): "with 64-bit types on, jax's result has 128 bits",
    ("scipy.special.multigammaln", "bfloat16"): "a number among the arguments decides here",
    **{
        ("scipy.special.owens_t", name): "jax's result has the dtype of wide constants"
        for name in NAMES
        if name != "float64"
    },
    ("scipy.stats.sem", "complex64"): "a standard deviation is real",
    ("scipy.stats.sem", "complex128"): "a standard deviation is real",
}


def traced(m, case, args):
    """The types of the results, or the error."""
    try:
        out = m.eval_shape(lambda *xs: case(m, *xs), *args)
    except Exception as error:
        return error
    leaves = m.tree_util.tree_leaves(out)
    return [(tuple(s.shape), str(s.dtype), bool(getattr(s, "weak_type", False))) for s in leaves]


def compared(what, mine, theirs, row, name):
    if isinstance(theirs, Exception):
        return
    if isinstance(mine, Exception):
        kinds = REFUSED.get(row.path, ("", ""))[0]
        kind = {"bfloat16": "f"}.get(name, DTYPES[name].kind)
        assert kind in kinds, f"{what}: {mine}"
        return
    if (row.path, name) not in OTHERWISE:
        assert mine == theirs, f"{what}: {mine}, jax has {theirs}"


@pytest.mark.parametrize("name", CALLS)
def test_types_of_results(name):
    row, call = CALLS[name]
    slots, case = _slots(call, []), case_of(row, call)
    free = [i for i, slot in enumerate(slots) if isinstance(slot, A) and slot.dtype in (None, "other")]
    if not free:
        return
    chosen = [(dtype, dtype) for dtype in NAMES]
    if len(free) > 1:
        chosen += [(dtype, NAMES[(i * 7 + 3) % len(NAMES)]) for i, dtype in enumerate(NAMES)]
    for x64, (first, other) in itertools.product((False, True), chosen):

        def argument(m, i, first=first, other=other):
            if i not in free:
                return slots[i].make("int32" if first == "int64" else first, other, row.path, 0)
            return m.ShapeDtypeStruct(slots[i].shape, DTYPES[first if i == free[0] else other])

        with jax.enable_x64(x64), phlox.enable_x64(x64):
            mine, theirs = (traced(m, case, [argument(m, i) for i in range(len(slots))]) for m in (phlox, jax))
        compared(f"{row.path} of {first} and {other}, x64={x64}", mine, theirs, row, first)


PAIRS = {
    "lax.dot": (lambda m, a, b: m.lax.dot(a, b), (3,), (3,)),
    "lax.batch_matmul": (lambda m, a, b: m.lax.batch_matmul(a, b), (2, 2, 3), (2, 3, 2)),
    "lax.dot_general": (lambda m, a, b: m.lax.dot_general(a, b, (((0,), (0,)), ((), ()))), (3,), (3,)),
    "lax.ragged_dot": (lambda m, a, b: m.lax.ragged_dot(a, b, m.numpy.array([1, 2])), (3, 3), (2, 3, 2)),
    "numpy.cross": (lambda m, a, b: m.numpy.cross(a, b), (3,), (3,)),
    "numpy.gcd": (lambda m, a, b: m.numpy.gcd(a, b), (3,), (3,)),
    "numpy.gcd with a number": (lambda m, a, b: m.numpy.gcd(a, 2), (3,), ()),
    "numpy.matmul": (lambda m, a, b: m.numpy.matmul(a, b), (3,), (3,)),
    "numpy.angle of a number": (lambda m, a, b: m.numpy.angle(a), (), ()),
    "numpy.angle": (lambda m, a, b: m.numpy.angle(a), (3,), ()),
    "scipy.linalg.toeplitz": (lambda m, a, b: m.scipy.linalg.toeplitz(a), (3,), ()),
    "numpy.result_type": (lambda m, a, b: m.numpy.zeros(2, m.numpy.result_type(a, m.numpy.float64)), (3,), ()),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", PAIRS)
def test_all_pairs(name):
    run, *shapes = PAIRS[name]
    others = NAMES if shapes[1] else ["int32"]
    for x64, first, other, weak in itertools.product((False, True), NAMES, others, (False, True)):
        with jax.enable_x64(x64), phlox.enable_x64(x64):
            mine, theirs = (
                traced(
                    m,
                    run,
                    [
                        m.ShapeDtypeStruct(shapes[0], DTYPES[first], weak_type=weak and not shapes[1]),
                        m.ShapeDtypeStruct(shapes[1], DTYPES[other]),
                    ],
                )
                for m in (phlox, jax)
            )
        if not isinstance(theirs, Exception):
            assert mine == theirs, f"{name} of {first} and {other}, x64={x64}, weak={weak}"


_WEAK = {
    "diag": lambda m, v, a: m.numpy.diag(v, 1),
    "diagflat": lambda m, v, a: m.numpy.diagflat(v),
    "diagonal": lambda m, v, a: m.numpy.diagonal(a),
    "tril": lambda m, v, a: m.numpy.tril(a),
    "triu": lambda m, v, a: m.numpy.triu(a),
    "insert": lambda m, v, a: m.numpy.insert(v, 1, 2.0),
    "choose": lambda m, v, a: m.numpy.choose(np.zeros(3, np.int32), [v, v], mode="clip"),
    "polyval": lambda m, v, a: m.numpy.polyval(v, 1.0),
    "cross": lambda m, v, a: m.numpy.cross(v, v),
    "block_diag": lambda m, v, a: m.scipy.linalg.block_diag(a, 1.0),
    "at set": lambda m, v, a: v.at[0].set(np.float32(2)),
    "at add": lambda m, v, a: v.at[1:].add(m.numpy.ones(2)),
    "at divide": lambda m, v, a: v.at[0].divide(m.numpy.float32(2)),
    "at, into a strong type": lambda m, v, a: m.numpy.ones(3).at[0].set(1.0),
    "put": lambda m, v, a: m.numpy.put(v, 0, m.numpy.float32(2), inplace=False),
    "dynamic_update_slice": lambda m, v, a: m.lax.dynamic_update_slice(v, v[:1], (0,)),
    "diagonal, not the main one": lambda m, v, a: m.numpy.diagonal(a, 1),
    "cholesky": lambda m, v, a: m.numpy.linalg.cholesky(a),
    "eigh": lambda m, v, a: m.numpy.linalg.eigh(a),
    "symmetrized product": lambda m, v, a: m.lax.linalg.symmetric_product(a, a, symmetrize_output=True),
    "product in another type": lambda m, v, a: m.lax.dot(a, a, preferred_element_type=np.float16),
    "modf": lambda m, v, a: m.numpy.modf(v),
    "hypot": lambda m, v, a: m.numpy.hypot(v, v),
    "round": lambda m, v, a: m.numpy.round(v, 1),
    "sinc": lambda m, v, a: m.numpy.sinc(v),
    "angle": lambda m, v, a: m.numpy.angle(v, deg=True),
    "polydiv": lambda m, v, a: m.numpy.polydiv(v, v[:2]),
    "compress": lambda m, v, a: m.numpy.compress(np.ones(3, bool), v, size=2),
    "extract": lambda m, v, a: m.numpy.extract(np.ones(3, bool), v, size=2),
    "full_like": lambda m, v, a: m.numpy.full_like(v, v),
    "resize": lambda m, v, a: m.numpy.resize(v, 0),
    "argpartition": lambda m, v, a: m.numpy.argpartition(v, 1),
    "top_k": lambda m, v, a: m.lax.top_k(v, 1),
    "setdiff1d": lambda m, v, a: m.numpy.setdiff1d(v, v, size=2),
    "setxor1d": lambda m, v, a: m.numpy.setxor1d(v, v, size=2),
    "intersect1d": lambda m, v, a: m.numpy.intersect1d(v, v, size=2),
    "reduce_or": lambda m, v, a: m.lax.reduce_or(m.numpy.full(3, 1), (0,)),
    "conj": lambda m, v, a: m.lax.conj(v),
    "i0": lambda m, v, a: m.scipy.special.i0(v),
    "logit": lambda m, v, a: m.scipy.special.logit(v),
    "kl_div": lambda m, v, a: m.scipy.special.kl_div(v, v),
}


@pytest.mark.parametrize("name", _WEAK)
def test_weak_types_of_arrays(name):
    """Arrays are weak after ``full(n, 1.0)``: a kernel's diagonal, a step size times ones."""

    def types(m):
        results = m.eval_shape(lambda: _WEAK[name](m, m.numpy.full(3, 1.0), m.numpy.full((3, 3), 1.0)))
        return [(t.shape, str(t.dtype), t.weak_type) for t in m.tree.leaves(results)]

    assert types(phlox) == types(jax)
