"""Arrays that show what a sort does to ties, signed zeros and nans, and a comparison of results to the bit."""

import numpy as np


def bits(x):
    """The bits of `x`; for nans of bfloat16 those of one payload, as XLA's sorts on CPUs leave it before jaxlib 0.12."""
    x = np.asarray(x)
    integers = x.view(np.dtype(f"u{x.dtype.itemsize}"))
    if x.dtype != "bfloat16":
        return integers
    return np.where(integers & 0x7FFF > 0x7F80, integers & 0x8000 | 0x7FC0, integers)


def drawn(random, kind, shape):
    """Any bits, so nans of many payloads, infinities and denormals; and among them many ties and signed zeros."""
    dtype = np.dtype(kind)
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    x = random.integers(0, 256, (*shape, dtype.itemsize), dtype=np.uint8).view(dtype)[..., 0]
    few = np.array([0.0, 0, 1, 3, 1]).astype(dtype)
    if dtype.kind not in "iu":
        few = np.concatenate([few, np.array([-0.0, -0.0, -1, np.inf, -np.inf, np.nan, -np.nan], dtype)])
    return np.where(random.random(shape) < 0.6, random.choice(few, shape), x)


def same(got, expected):
    got, expected = (x if isinstance(x, list | tuple) else [x] for x in (got, expected))
    assert len(got) == len(expected)
    for x, y in zip(got, expected, strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_array_equal(bits(x), bits(y))


def derivatives(m, random):
    """A gradient and tangents of sorts, by the library `m`."""
    x, weights = drawn(random, np.float32, (5, 30)), random.normal(size=(5, 30)).astype(np.float32)
    gradient = m.jit(m.grad(lambda x: (m.numpy.sort(x, axis=0) * weights).sum()))(x)
    return [gradient, *m.jvp(lambda x, y: m.lax.sort([x, y], num_keys=1), (x, weights), (weights, x))[1]]
