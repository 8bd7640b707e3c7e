"""Sorts on CPUs, which pack keys and positions: the bits of the results are those of JAX, and other platforms keep
their form.
"""

import jax
import ml_dtypes
import numpy as np
import pytest

import judge
import phlox
from sorted_bits import derivatives, drawn, same

KINDS = [np.float32, np.float16, ml_dtypes.bfloat16, np.int32, np.uint32, np.int16, np.uint8, np.int8, np.bool_]
SHAPES = [((40,), 0), ((1,), 0), ((0, 3), 0), ((2,), 0), ((3, 33), 1), ((33, 3), 0), ((2, 17, 3), 1), ((300, 2), 0)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: np.dtype(kind).name)
def test_sorts_have_the_bits_of_jax(kind):
    random = np.random.default_rng(0)
    for shape, axis in SHAPES:
        x = drawn(random, kind, shape)
        for descending in (False, True):
            options = {"axis": axis, "descending": descending}
            same(phlox.numpy.sort(x, **options), jax.numpy.sort(x, **options))
            same(phlox.numpy.argsort(x, **options), jax.numpy.argsort(x, **options))


@pytest.mark.parametrize("num_keys", [1, 2, 3])
@pytest.mark.parametrize("is_stable", [False, True])
def test_sorts_of_several_operands_have_the_bits_of_jax(num_keys, is_stable):
    random = np.random.default_rng(1)
    for shape, axis in SHAPES:
        for _ in range(judge.CASES):
            kinds = random.choice([*map(np.dtype, KINDS), np.dtype(np.complex64)], 4)
            operands = [drawn(random, kind, shape) if kind.kind != "c" else random.normal(size=shape).astype(kind)
                        for kind in kinds]  # fmt: skip
            options = {"dimension": axis, "num_keys": num_keys, "is_stable": is_stable}
            same(phlox.lax.sort(operands, **options), jax.lax.sort(operands, **options))


def test_sorts_with_64_bit_types_have_the_bits_of_jax():
    random = np.random.default_rng(2)
    with phlox.enable_x64(True), jax.enable_x64(True):
        for kind in (np.float64, np.int64, np.uint64):
            wide, narrow = drawn(random, kind, (3, 50)), drawn(random, np.float32, (3, 50))
            for operands in ([wide, narrow], [narrow, wide], [wide]):
                same(phlox.lax.sort(operands), jax.lax.sort(operands))
            same(phlox.numpy.argsort(narrow), jax.numpy.argsort(narrow))


def test_transformed_sorts_have_the_bits_of_jax():
    random = np.random.default_rng(3)
    x, weights = drawn(random, np.float32, (5, 30)), random.normal(size=(5, 30)).astype(np.float32)

    same(*(derivatives(m, np.random.default_rng(3)) for m in (phlox, jax)))
    for axes, args in (((0, 0), (x, weights)), ((1, 0), (x.T, weights)), ((0, None), (x, weights[0]))):
        same(*(m.vmap(lambda a, b, m=m: m.lax.sort([a, b], num_keys=2), axes)(*args) for m in (phlox, jax)))


def test_the_form_depends_on_the_platform():
    x = np.ones((3, 4), np.float32)
    packed, plain = "UNSIGNED : (tensor<ui64>, tensor<ui64>)", "TOTALORDER"
    phlox.config.update("native_kernels", False)
    for f in (phlox.numpy.sort, phlox.numpy.argsort, lambda x: phlox.numpy.median(x, axis=0)):
        text = phlox.jit(f).lower(x).as_text()
        assert packed in text and plain not in text
        exported = phlox.export.export(phlox.jit(f))(x).mlir_module()
        assert packed not in exported and plain in exported


def test_sorts_that_no_64_bits_hold_and_sorts_of_integers_keep_their_form():
    phlox.config.update("native_kernels", False)
    single, pair = np.ones(4, np.float32), [np.ones(4, np.float32)] * 2
    for operands, options in ((np.ones(4, np.int32), {}), (pair, {"num_keys": 2}), (single, {"is_stable": False})):
        text = phlox.jit(lambda xs, options=options: phlox.lax.sort(xs, **options)).lower(operands).as_text()
        assert "ui64" not in text
    pair = [np.ones(4, np.float16)] * 2
    assert "ui64" in phlox.jit(lambda xs: phlox.lax.sort(xs, num_keys=2)).lower(pair).as_text()


def test_argsort_looks_up_no_position():
    """The second operand counts along the axis that is sorted: its sorted elements are the positions."""
    x = np.ones((5, 300), np.float32)
    assert "gather" not in phlox.jit(lambda x: x.argsort(1)).lower(x).compile().as_text()
    y = np.random.default_rng(2).normal(size=x.shape).astype(np.float32)
    for axis in (0, 1):  # of which only one is sorted
        count = lambda m, axis=axis: m.lax.broadcasted_iota(np.int32, x.shape, axis)
        same(*(m.jit(lambda y, m=m: m.lax.sort([y, count(m)]))(y) for m in (phlox, jax)))
