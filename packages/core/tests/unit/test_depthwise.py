"""Depthwise convolutions, which are sums of slices on CPUs, and their gradients beside NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import phlox
from phlox import lax

LAYOUTS = [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ("NHWC", "OIHW", "CNHW")]


def _placed(x, letters, wanted):
    return np.transpose(x, [letters.index(letter) for letter in wanted])


def _by_hand(x, w, strides, padding, gaps):
    x = np.pad(x, ((0, 0), (0, 0), *padding)).astype(np.float64)
    spans = [(k - 1) * gap + 1 for k, gap in zip(w.shape[2:], gaps, strict=True)]
    sizes = [(n - span) // stride + 1 for n, span, stride in zip(x.shape[2:], spans, strides, strict=True)]
    out = np.zeros((*x.shape[:2], *sizes))
    for i, j in np.ndindex(*w.shape[2:]):
        rows = slice(i * gaps[0], i * gaps[0] + (sizes[0] - 1) * strides[0] + 1, strides[0])
        columns = slice(j * gaps[1], j * gaps[1] + (sizes[1] - 1) * strides[1] + 1, strides[1])
        out += x[:, :, rows, columns] * w[:, 0, i, j][:, None, None]
    return out


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("strides", "padding", "gaps"),
    [((1, 1), ((1, 1), (1, 1)), (1, 1)), ((2, 1), ((0, 2), (1, 0)), (1, 1)), ((1, 2), ((2, 2), (-1, 3)), (2, 1))],
)
def test_values_and_gradients(layout, strides, padding, gaps):
    rng = np.random.default_rng(6)
    x, w = rng.normal(size=(5, 8, 13, 12)).astype(np.float32), rng.normal(size=(8, 1, 3, 2)).astype(np.float32)

    def apply(x, w):
        return lax.conv_general_dilated(
            x, w, strides, padding, rhs_dilation=gaps, dimension_numbers=layout, feature_group_count=8
        )

    given = _placed(x, "NCHW", layout[0]), _placed(w, "OIHW", layout[1])
    cut = [max(0, -low) for low, _ in padding]
    padded = tuple((max(0, low), high) for low, high in padding)
    expected = _by_hand(x[:, :, cut[0] :, cut[1] :], w, strides, padded, gaps)
    got = phlox.jit(apply)(*given)
    np.testing.assert_allclose(got, _placed(expected, "NCHW", layout[2]), atol=1e-4)
    assert "stablehlo.convolution" not in phlox.jit(apply).lower(*given).as_text()

    direction = rng.normal(size=got.shape).astype(np.float32)
    slopes = phlox.jit(phlox.grad(lambda x, w: (apply(x, w) * direction).sum(), (0, 1)))(*given)
    for i, slope in enumerate(slopes):
        step = rng.normal(size=slope.shape).astype(np.float32)
        ends = [
            (np.asarray(apply(*(v + sign * step if i == n else v for n, v in enumerate(given)))) * direction)
            for sign in (1, -1)
        ]
        change = (ends[0].astype(np.float64) - ends[1]).sum() / 2  # exact but for rounding: it is linear in each
        np.testing.assert_allclose((np.asarray(slope, np.float64) * step).sum(), change, rtol=1e-4, atol=1e-3)


def test_batches():
    rng = np.random.default_rng(6)
    x, w = rng.normal(size=(3, 4, 8, 9, 9)).astype(np.float32), rng.normal(size=(8, 1, 3, 3)).astype(np.float32)
    f = phlox.jit(lambda x: lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=8))
    np.testing.assert_allclose(phlox.vmap(f)(x), np.stack([f(part) for part in x]), atol=1e-5)
