"""Kernels of the array language beside torch and NumPy: what one compiled call takes on arrays that are there.

phlox and jax hand the same compiler nearly the same operations, so the ratio to jax shows what another form gained.
What torch and NumPy take shows what is possible.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import models
from ..case import BOTH, CASES, Case

#: The line of this file in which each case is stated.
LINES: dict[str, int] = {}
#: A kernel of phlox and jax: of the library and of arrays.
Kernel = Callable[..., Any]

_FLAT, _ROWS, _CUBE = models.array(1_000_000), models.array(1000, 1000), models.array(100, 100, 100)
_POSITIVE, _UNIT = np.abs(_FLAT) + 0.01, np.tanh(_FLAT)
_DRAWN = np.random.default_rng(1)
_WHOLE, _FEW = (_DRAWN.integers(0, most, 1_000_000).astype(np.int32) for most in (1_000_000, 100))
_IMAGES, _KERNELS = models.array(16, 32, 32, 32), models.array(32, 32, 3, 3)


def kernel(
    name: str,
    f: Kernel,
    *arrays: np.ndarray,
    torch: Kernel | None = None,
    numpy: Kernel | None = None,
    numba: Callable[..., Any] | None = None,
    budget: float | None = 1.05,
) -> None:
    """States the case of a kernel.

    `torch` and `numpy` are the same there, of that library and of its arrays; `numba` is the function of arrays that it
    compiles.
    """

    def make(m: Any) -> Any:
        if m.__name__ == "numpy":
            assert numpy is not None
            return lambda: numpy(m, *arrays)
        if m.__name__ == "numba":
            compiled = m.njit(numba)
            return lambda: compiled(*arrays)
        if m.__name__ in ("torch", "torch.compile"):
            assert torch is not None
            tensors = [m.torch.as_tensor(x) for x in arrays]
            run_torch = m.compile(lambda *tensors: torch(m.torch, *tensors))
            return lambda: run_torch(*tensors)
        given = [m.numpy.asarray(x) for x in arrays]
        run = m.jit(lambda *arrays: f(m, *arrays))
        return lambda: m.block_until_ready(run(*given))

    others = {"torch": torch, "numpy": numpy, "numba": numba}
    libraries = (*BOTH, *(name for name, f in others.items() if f))
    LINES[f"kernels/{name}"] = sys._getframe(1).f_lineno
    CASES[f"kernels/{name}"] = Case(f"kernels/{name}", make, libraries=libraries, budget=budget, quick=False)


def _same(name: str, of: str = "numpy") -> dict[str, Any]:
    """A function that torch and NumPy have by this name."""
    found = {"torch": lambda t, *x: getattr(t, name)(*x), "numpy": lambda n, *x: getattr(n, name)(*x)}
    return found if of == "numpy" else {"torch": found["torch"]}


def _along(name: str, axis: int) -> dict[str, Any]:
    return {
        "torch": lambda t, x: getattr(t, name)(x, axis),
        "numpy": lambda n, x: getattr(n, name)(x, axis),
    }


# --- sorting and selection ------------------------------------------------------------------------------

for _name, _array, _axis in (("1e6", _FLAT, 0), ("rows", _ROWS, 1), ("axis 0", _ROWS, 0)):
    kernel(f"sort {_name}", lambda m, x, a=_axis: m.numpy.sort(x, a), _array, budget=0.2, **_along("sort", _axis))
kernel("sort 1e6 integers", lambda m, x: m.numpy.sort(x), _WHOLE, **_along("sort", 0))
kernel("argsort 1e6", lambda m, x: m.numpy.argsort(x), _FLAT, budget=0.2, **_along("argsort", 0))
kernel("median of rows", lambda m, x: m.numpy.median(x, 1), _ROWS, budget=0.2, **_along("median", 1))
kernel(
    "quantile of rows",
    lambda m, x: m.numpy.quantile(x, 0.3, axis=1),
    _ROWS,
    budget=0.2,
    torch=lambda t, x: t.quantile(x, 0.3, 1),
    numpy=lambda n, x: n.quantile(x, 0.3, axis=1),
)
kernel("unique", lambda m, x: m.numpy.unique(x, size=100), _FEW, **_same("unique"))
kernel("top_k of rows", lambda m, x: m.lax.top_k(x, 10), _ROWS, torch=lambda t, x: t.topk(x, 10, 1))
kernel(
    "top_k of rows of integers",
    lambda m, x: m.lax.top_k(x, 10),
    _WHOLE.reshape(1000, 1000),
    budget=0.2,
    torch=lambda t, x: t.topk(x, 10, 1),
)
kernel(
    "argpartition of rows",
    lambda m, x: m.numpy.argpartition(x, 500, 1),
    _ROWS,
    numpy=lambda n, x: n.argpartition(x, 500, 1),
)
for _name, _array, _axis in (("1e6", _FLAT, 0), ("rows", _ROWS, 1), ("axis 0", _ROWS, 0), ("1e4 x 100", _FLAT, 1)):
    _array = _array.reshape(10_000, 100) if "x" in _name else _array
    kernel(f"argmax {_name}", lambda m, x, a=_axis: m.numpy.argmax(x, a), _array, budget=0.2, **_along("argmax", _axis))
kernel("argmin rows", lambda m, x: m.numpy.argmin(x, 1), _ROWS, budget=0.2, **_along("argmin", 1))
kernel(
    "searchsorted",
    lambda m, a, x: m.numpy.searchsorted(a, x),
    np.sort(_FLAT[:10_000]),
    _FLAT[:100_000],
    budget=0.7,
    **_same("searchsorted"),
)
kernel("digitize", lambda m, x, a: m.numpy.digitize(x, a), _FLAT, np.linspace(-2, 2, 20, dtype=np.float32),
       torch=lambda t, x, a: t.bucketize(x, a), numpy=lambda n, x, a: n.digitize(x, a))  # fmt: skip
for _bins in (10, 100):
    kernel(
        f"histogram of {_bins}",
        lambda m, x, bins=_bins: m.numpy.histogram(x, bins),
        _FLAT,
        torch=lambda t, x, bins=_bins: t.histc(x, bins),
        numpy=lambda n, x, bins=_bins: n.histogram(x, bins),
    )
kernel("bincount", lambda m, x: m.numpy.bincount(x, length=100), _FEW, **_same("bincount"))
kernel("nonzero with size", lambda m, x: m.numpy.nonzero(x > 0, size=600_000), _FLAT,
       torch=lambda t, x: t.nonzero(x > 0), numpy=lambda n, x: n.nonzero(x > 0))  # fmt: skip

# --- reductions -----------------------------------------------------------------------------------------

for _op in ("cumsum", "cumprod"):
    for _name, _array, _axis in (("1e6", _FLAT, 0), ("rows", _ROWS, 1), ("axis 0", _ROWS, 0)):
        kernel(f"{_op} {_name}", lambda m, x, a=_axis, op=_op: getattr(m.numpy, op)(x, a), _array, budget=0.6,
               **_along(_op, _axis))  # fmt: skip
kernel("cummax rows", lambda m, x: m.lax.cummax(x, 1), _ROWS, torch=lambda t, x: t.cummax(x, 1),
       numpy=lambda n, x: n.maximum.accumulate(x, 1))  # fmt: skip
for _op in ("sum", "max", "var"):  # max looks a second time, for nan, which it loses in jax
    _torch = "amax" if _op == "max" else _op
    for _name, _array, _axis in (("rows", _ROWS, 1), ("axis 0", _ROWS, 0)):
        kernel(f"{_op} {_name}", lambda m, x, a=_axis, op=_op: getattr(m.numpy, op)(x, a), _array,
               budget=2.3 if _op == "max" else 1.05,
               torch=lambda t, x, a=_axis, op=_torch: getattr(t, op)(x, a),
               numpy=lambda n, x, a=_axis, op=_op: getattr(n, op)(x, a))  # fmt: skip
_POINTS, _STACKED = models.array(100_000, 3), models.array(3, 100_000)
for _name, _array, _axis in (("points", _POINTS, -1), ("three rows", _STACKED, 0)):
    kernel(
        f"norms of {_name}",
        lambda m, x, a=_axis: m.numpy.sqrt((x**2).sum(a)),
        _array,
        budget=0.3,
        torch=lambda t, x, a=_axis: (x**2).sum(a).sqrt(),
        numpy=lambda n, x, a=_axis: n.sqrt((x**2).sum(a)),
    )
kernel("softmax rows", lambda m, x: m.nn.softmax(x, 1), _ROWS, torch=lambda t, x: t.softmax(x, 1))
for _name, _indices in (("segment_sum", _FEW), ("segment_sum, sorted", np.sort(_FEW))):
    kernel(
        _name,
        lambda m, x, i: m.ops.segment_sum(x, i, 100),
        _FLAT,
        _indices,
        torch=lambda t, x, i: t.zeros(100).index_add_(0, i, x),
        numpy=lambda n, x, i: n.bincount(i, x),
    )
kernel(
    "unique with counts",
    lambda m, x: m.numpy.unique(x, size=100, return_counts=True),
    _FEW,
    torch=lambda t, x: t.unique(x, return_counts=True),
    numpy=lambda n, x: n.unique(x, return_counts=True),
)

# --- elementwise ----------------------------------------------------------------------------------------

_FORMED = {"sin": 0.4, "cos": 0.4, "tan": 0.4, "arctan": 0.4, "sinh": 0.6}
for _op in ("sin", "cos", "tan", "exp", "log", "tanh", "sqrt", "expm1", "log1p", "sinh", "arctan"):
    _array = _POSITIVE if _op in ("log", "sqrt", "log1p") else _FLAT
    kernel(f"{_op} 1e6", lambda m, x, op=_op: getattr(m.numpy, op)(x), _array, budget=_FORMED.get(_op, 1.05),
           **_same(_op))  # fmt: skip
for _op in ("arcsin", "arccos"):
    kernel(f"{_op} 1e6", lambda m, x, op=_op: getattr(m.numpy, op)(x), _UNIT, budget=0.4, **_same(_op))
kernel("cbrt 1e6", lambda m, x: m.numpy.cbrt(x), _FLAT, budget=0.4, numpy=lambda n, x: n.cbrt(x))
kernel("interp", lambda m, x, a, y: m.numpy.interp(x, a, y), _FLAT, np.linspace(-3, 3, 100, dtype=np.float32),
       _FLAT[:100], budget=0.7, numpy=lambda n, x, a, y: n.interp(x, a, y))  # fmt: skip
kernel("remainder 1e6", lambda m, x, y: x % y, _FLAT, _POSITIVE, budget=0.6, torch=lambda t, x, y: x % y,
       numpy=lambda n, x, y: x % y)  # fmt: skip
kernel("pow 1e6", lambda m, x, y: x**y, _POSITIVE, _FLAT, budget=0.6, torch=lambda t, x, y: x**y,
       numpy=lambda n, x, y: x**y)  # fmt: skip
kernel("arctan2 1e6", lambda m, x, y: m.numpy.arctan2(x, y), _POSITIVE, _FLAT, budget=0.4, **_same("arctan2"))
kernel("gelu 1e6", lambda m, x: m.nn.gelu(x), _FLAT,
       torch=lambda t, x: t.nn.functional.gelu(x, approximate="tanh"))  # fmt: skip

# --- layout and products --------------------------------------------------------------------------------

kernel("gather 1e6", lambda m, x, i: x[i], _FLAT, _WHOLE, torch=lambda t, x, i: x[i], numpy=lambda n, x, i: x[i])
kernel("transpose", lambda m, x: x.T + 0, _ROWS, torch=lambda t, x: x.T.contiguous(), numpy=lambda n, x: x.T.copy())
kernel("fft 16 x 65536", lambda m, x: m.numpy.fft.fft(x), models.array(16, 65536).astype(np.complex64),
       torch=lambda t, x: t.fft.fft(x), numpy=lambda n, x: n.fft.fft(x))  # fmt: skip
kernel("conv 3x3, NCHW", lambda m, x, w: m.lax.conv(x, w, (1, 1), "SAME"), _IMAGES, _KERNELS,
       torch=lambda t, x, w: t.nn.functional.conv2d(x, w, padding=1))  # fmt: skip
kernel(
    "depthwise conv 3x3",
    lambda m, x, w: m.lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=32),
    _IMAGES,
    _KERNELS[:, :1],
    budget=0.2,
    torch=lambda t, x, w: t.nn.functional.conv2d(x, w, padding=1, groups=32),
)
_EQUATION = models.array(200, 200) @ models.array(200, 200).T + 200 * np.eye(200, dtype=np.float32)
for _op in ("cholesky", "qr", "eigh"):
    kernel(f"{_op} 200", lambda m, x, op=_op: getattr(m.numpy.linalg, op)(x), _EQUATION,
           torch=lambda t, x, op=_op: getattr(t.linalg, op)(x),
           numpy=lambda n, x, op=_op: getattr(n.linalg, op)(x))  # fmt: skip

_MATRICES, _VECTOR = models.array(1000, 8, 8), models.array(1000)
_BYTES = _DRAWN.integers(-128, 127, (2, 512, 512)).astype(np.int8)
kernel(
    "matrix times vector",
    lambda m, a, x: a @ x,
    _ROWS,
    _VECTOR,
    torch=lambda t, a, x: a @ x,
    numpy=lambda n, a, x: a @ x,
)
kernel(
    "rotated points",
    lambda m, x, r: x @ r,
    _POINTS,
    models.array(3, 3),
    budget=0.3,
    torch=lambda t, x, r: x @ r,
    numpy=lambda n, x, r: x @ r,
)
kernel(
    "distances of 500 points",
    lambda m, x: m.numpy.sqrt(((x[:, None] - x) ** 2).sum(-1)),
    _POINTS[:500],
    budget=0.5,
    torch=lambda t, x: ((x[:, None] - x) ** 2).sum(-1).sqrt(),
    numpy=lambda n, x: n.sqrt(((x[:, None] - x) ** 2).sum(-1)),
)
kernel(
    "matmul 512",
    lambda m, a, b: a @ b,
    models.array(512, 512),
    models.array(512, 512),
    torch=lambda t, a, b: a @ b,
    numpy=lambda n, a, b: a @ b,
)
kernel(
    "1000 products of 8 x 8",
    lambda m, a, b: a @ b,
    _MATRICES,
    _MATRICES,
    torch=lambda t, a, b: a @ b,
    numpy=lambda n, a, b: a @ b,
)
kernel(
    "matmul 512, int8 to int32",
    lambda m, a, b: m.lax.dot(a, b, preferred_element_type=np.int32),
    *_BYTES,
    torch=lambda t, a, b: t._int_mm(a, b),
)
kernel(
    "conv 3x3, NHWC",
    lambda m, x, w: m.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
    np.ascontiguousarray(_IMAGES.transpose(0, 2, 3, 1)),
    np.ascontiguousarray(_KERNELS.transpose(2, 3, 1, 0)),
    torch=lambda t, x, w: t.nn.functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), padding=1),
)
kernel(
    "transpose of 4 axes",
    lambda m, x: m.numpy.transpose(x, (0, 2, 3, 1)) + 0,
    _IMAGES,
    torch=lambda t, x: x.permute(0, 2, 3, 1).contiguous(),
    numpy=lambda n, x: x.transpose(0, 2, 3, 1).copy(),
)
kernel(
    "rows by index",
    lambda m, x, i: x[i],
    _FLAT.reshape(10_000, 100),
    _WHOLE[:10_000] % 10_000,
    torch=lambda t, x, i: x[i],
    numpy=lambda n, x, i: x[i],
)
kernel(
    "sums of rows by index",
    lambda m, x, i: m.numpy.zeros((100, 100)).at[i].add(x),
    _FLAT.reshape(10_000, 100),
    _FEW[:10_000],
    torch=lambda t, x, i: t.zeros(100, 100).index_add_(0, i, x),
)

# --- random numbers -------------------------------------------------------------------------------------

kernel("uniform 1e6", lambda m: m.random.uniform(m.random.key(0), (1_000_000,)), torch=lambda t: t.rand(1_000_000),
       numpy=lambda n: _DRAWN.random(1_000_000, np.float32))  # fmt: skip
kernel("normal 1e5 x 3", lambda m: m.random.normal(m.random.key(0), (100_000, 3)), torch=lambda t: t.randn(100_000, 3),
       numpy=lambda n: _DRAWN.standard_normal((100_000, 3), np.float32))  # fmt: skip
kernel("gamma 1e5", lambda m: m.random.gamma(m.random.key(0), 2.5, (100_000,)),
       torch=lambda t: t._standard_gamma(t.full((100_000,), 2.5)),
       numpy=lambda n: _DRAWN.gamma(2.5, size=100_000))  # fmt: skip
kernel("permutation 1e5", lambda m: m.random.permutation(m.random.key(0), 100_000), budget=0.2,
       torch=lambda t: t.randperm(100_000), numpy=lambda n: _DRAWN.permutation(100_000))  # fmt: skip
kernel("categorical 1e4 x 100", lambda m, x: m.random.categorical(m.random.key(0), x), _FLAT.reshape(10_000, 100),
       torch=lambda t, x: t.multinomial(t.softmax(x, 1), 1))  # fmt: skip

# --- loops ----------------------------------------------------------------------------------------------


def _lorenz(m: Any, starts: Any) -> Any:
    """Runge-Kutta steps of 64 trajectories, of which each is three scalars that are stacked."""

    def slope(s: Any) -> Any:
        x, y, z = s
        return m.numpy.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    def step(s: Any, _: Any) -> Any:
        a = slope(s)
        b = slope(s + 0.005 * a)
        c = slope(s + 0.005 * b)
        d = slope(s + 0.01 * c)
        s = s + 0.01 / 6 * (a + 2 * b + 2 * c + d)
        return s, s

    return m.vmap(lambda s: m.lax.scan(step, s, None, length=500))(starts)


_TURNS = 100_000


def _garch(m: Any, returns: Any) -> Any:
    """The likelihood of a series whose variance follows it."""

    def step(carry: Any, r: Any) -> Any:
        total, variance = carry
        return (total + m.numpy.log(variance) + r * r / variance, 0.1 + 0.1 * r * r + 0.8 * variance), None

    return m.lax.scan(step, (m.numpy.float32(0), m.numpy.float32(1)), returns)[0][0]


def _garch_numba(returns: Any) -> Any:
    total, variance = np.float32(0), np.float32(1)
    for i in range(len(returns)):
        r = returns[i]
        total += np.log(variance) + r * r / variance
        variance = np.float32(0.1) + np.float32(0.1) * r * r + np.float32(0.8) * variance
    return total


def _filtered(m: Any, series: Any) -> Any:
    """A Kalman filter of one number, with each estimate as a result."""

    def step(carry: Any, observed: Any) -> Any:
        state, variance = carry
        gain = (variance + 0.1) / (variance + 1.1)
        state = state + gain * (observed - state)
        return (state, (1 - gain) * (variance + 0.1)), state

    return m.lax.scan(step, (m.numpy.float32(0), m.numpy.float32(1)), series)[1]


def _filtered_numba(series: Any) -> Any:
    state, variance, one, more = np.float32(0), np.float32(1), np.float32(1), np.float32(0.1)
    out = np.empty_like(series)
    for i in range(len(series)):
        gain = (variance + more) / (variance + more + one)
        state = state + gain * (series[i] - state)
        variance = (one - gain) * (variance + more)
        out[i] = state
    return out


def _orbit(m: Any, point: Any) -> Any:
    """How often the orbit of z² + c, which starts again at 0, leaves the circle of radius 2."""

    def turn(i: Any, carry: Any) -> Any:
        x, y, count = carry
        x, y = x * x - y * y + point[0], 2 * x * y + point[1]
        left = x * x + y * y > 4
        return m.numpy.where(left, 0.0, x), m.numpy.where(left, 0.0, y), count + left

    return m.lax.fori_loop(0, _TURNS, turn, (m.numpy.float32(0), m.numpy.float32(0), 0))[2]


def _orbit_numba(point: Any) -> Any:
    x, y, count = np.float32(0), np.float32(0), 0
    for _ in range(_TURNS):
        x, y = x * x - y * y + point[0], np.float32(2) * x * y + point[1]
        if x * x + y * y > np.float32(4):
            x, y, count = np.float32(0), np.float32(0), count + 1
    return count


kernel("a loop over scalars: GARCH", _garch, _FLAT[:_TURNS], numba=_garch_numba)
kernel("a loop over scalars: Kalman filter", _filtered, _FLAT[:_TURNS], numba=_filtered_numba)
kernel("a loop over scalars: orbit", _orbit, np.array([-0.5, 0.55], np.float32), numba=_orbit_numba)
kernel("Runge-Kutta steps, 64 trajectories", _lorenz, models.array(64, 3))
