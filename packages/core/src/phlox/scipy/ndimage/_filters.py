"""Linear filters: correlations with small arrays of weights, which are convolutions of XLA on an extended array.

Filters are linear in the array and in the weights, and have the derivatives and batches of `phlox.lax` convolutions.
Floats narrower than float32 are computed in float32, and integers in the float dtype that
`phlox.numpy` converts them to. Results have the dtype of the array, as SciPy's, and are complex if the weights are;
those of integers drop the fraction.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ... import lax, numpy as jnp
from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import OptionError, ShapeError
from ..._base.strictness import lenient
from ..._ir import dtypes
from ..._operands.checks import canonical_axes, canonical_axis, check, integer, type_of
from ..._trace.trace import Tracer
from ...typing import Array, ArrayLike

#: SciPy's names of extensions, and NumPy's
_EXTENSIONS = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}


@functools.partial(jit, inline=True, static_argnames=("axes", "mode", "origins", "flip"))
def _filtered(x: Any, weights: Any, cval: Any, axes: Any, mode: str, origins: Any, flip: bool) -> Any:
    """The correlation along some axes with an array of as many axes; the convolution with `flip`."""
    dtype, shape = type_of(x).dtype, type_of(weights).shape
    if dtypes.kind(type_of(weights).dtype) == "c":
        dtype = dtypes.to_complex(dtypes.to_inexact(dtype))
    if not type_of(x).size:
        return x.astype(dtype)
    if flip:
        weights = weights[(slice(None, None, -1),) * len(axes)]
        # Reversed weights of even length have their middle one element further.
        origins = tuple(-o - (size % 2 == 0) for o, size in zip(origins, shape, strict=True))
    else:
        weights = jnp.conj(weights)
    wide = jnp.promote_types(dtypes.to_inexact(jnp.promote_types(dtype, type_of(weights).dtype)), np.float32)
    widths = [(0, 0)] * type_of(x).ndim
    for axis, size, origin in zip(axes, shape, origins, strict=True):
        before = size // 2 + origin
        widths[axis] = before, size - 1 - before
    more = {"constant_values": cval} if _EXTENSIONS[mode] == "constant" else {}
    padded = jnp.pad(x.astype(wide), widths, mode=_EXTENSIONS[mode], **more)
    # The other axes are a batch; the single channel is put behind it.
    first = jnp.moveaxis(padded, axes, range(-len(axes), 0))
    batch = type_of(first).shape[: -len(axes)]
    image = jnp.reshape(first, (-1, 1, *type_of(first).shape[len(batch) :]))
    out = lax.conv_general_dilated(
        image, weights.astype(wide)[None, None], (1,) * len(axes), "VALID", precision=lax.Precision.HIGHEST
    )
    out = jnp.moveaxis(jnp.reshape(out, batch + type_of(out).shape[2:]), range(-len(axes), 0), axes)
    return out.astype(dtype)


def _checked(function: str, mode: str, sizes: Sequence[int], origins: Sequence[int]) -> None:
    if mode not in _EXTENSIONS:
        raise OptionError(f"{function}: mode={mode!r}", instead="one of " + ", ".join(map(repr, _EXTENSIONS)))
    for size, origin in zip(sizes, origins, strict=True):
        if not size or not -(size // 2) <= origin <= (size - 1) // 2:
            raise OptionError(f"{function}: origin={origin} of {size} weights", instead="one inside of them")


def _several(function: str, input: Any, weights: Any, mode: str, cval: Any, origin: Any, flip: bool) -> Any:
    x, weights = map(jnp.asarray, check(function, input, weights))
    rank = type_of(x).ndim
    if type_of(weights).ndim != rank or not rank:
        raise ShapeError(
            f"{function}: weights are {type_of(weights).short} for an array of type {type_of(x).short}",
            instead="weights with as many axes, at least one",
            shapes=[type_of(x).shape, type_of(weights).shape],
        )
    origins = (origin,) * rank if np.ndim(origin) == 0 else tuple(origin)
    if len(origins) != rank:
        raise ShapeError(f"{function}: {len(origins)} origins for {rank} axes", instead="one for each axis")
    _checked(function, mode, type_of(weights).shape, origins)
    return _filtered(x, weights, cval, axes=tuple(range(rank)), mode=mode, origins=origins, flip=flip)


def _one(function: str, input: Any, weights: Any, axis: int, mode: str, cval: Any, origin: int, flip: bool) -> Any:
    x, weights = map(jnp.asarray, check(function, input, weights))
    if type_of(weights).ndim != 1:
        raise ShapeError(
            f"{function}: weights are {type_of(weights).short}", instead="a vector", shapes=[type_of(weights).shape]
        )
    axes = (canonical_axis(axis, type_of(x).ndim, function),)
    _checked(function, mode, type_of(weights).shape, (origin,))
    return _filtered(x, weights, cval, axes=axes, mode=mode, origins=(origin,), flip=flip)


@lenient
def correlate(
    input: ArrayLike,
    weights: ArrayLike,
    *,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0,
) -> Array:
    """The correlation of an array with weights (as ``scipy.ndimage.correlate``).

    Args:
      input: array with at least one axis.
      weights: array with as many axes, whose centre lies on each element of `input` in turn. Complex ones are
        conjugated.
      mode: what is outside of the array: 'reflect', the array reflected at its edge; 'mirror', at the centre of its
        last element; 'nearest', the last element; 'wrap', the array again; 'constant', `cval`.
      cval: the number outside of the array for mode 'constant'.
      origin: by how many elements the centre is moved, a number or one for each axis.

    Returns:
      An array of the shape and dtype of `input`, which is made complex if the weights are.

    Raises:
      ShapeError: `weights` or `origin` has another number of axes.
      OptionError: an unknown mode, or an origin outside of the weights.

    >>> correlate(jnp.array([1.0, 2.0, 4.0]), jnp.array([1.0, 0.0, -1.0]))
    Array([-1., -3., -2.], dtype=float32)
    """
    return _several("correlate", input, weights, mode, cval, origin, False)


@lenient
@docs_from(correlate)
def convolve(
    input: ArrayLike,
    weights: ArrayLike,
    *,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0,
) -> Array:
    """The convolution of an array with weights (as ``scipy.ndimage.convolve``): `correlate` with reversed weights.

    Args:
      weights: array with as many axes.

    >>> convolve(jnp.array([1.0, 2.0, 4.0]), jnp.array([1.0, 0.0, -1.0]))
    Array([1., 3., 2.], dtype=float32)
    """
    return _several("convolve", input, weights, mode, cval, origin, True)


@lenient
@docs_from(correlate)
def correlate1d(
    input: ArrayLike,
    weights: ArrayLike,
    axis: int = -1,
    *,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int = 0,
) -> Array:
    """The correlation along one axis (as ``scipy.ndimage.correlate1d``).

    Args:
      weights: a vector, whose centre lies on each element of `input` in turn. Complex ones are conjugated.
      axis: the axis of `input`.
      origin: by how many elements the centre is moved.

    Raises:
      AxisError: the axis number is out of range.
      ShapeError: `weights` is not a vector.

    >>> correlate1d(jnp.array([1, 2, 4]), jnp.array([1, 1]))
    Array([2, 3, 6], dtype=int32)
    """
    return _one("correlate1d", input, weights, axis, mode, cval, origin, False)


@lenient
@docs_from(correlate1d)
def convolve1d(
    input: ArrayLike,
    weights: ArrayLike,
    axis: int = -1,
    *,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int = 0,
) -> Array:
    """The convolution along one axis (as ``scipy.ndimage.convolve1d``): `correlate1d` with reversed weights.

    Args:
      weights: a vector.

    >>> convolve1d(jnp.array([1, 2, 4]), jnp.array([1, 1]))
    Array([3, 6, 8], dtype=int32)
    """
    return _one("convolve1d", input, weights, axis, mode, cval, origin, True)


@lenient
def uniform_filter1d(
    input: ArrayLike, size: int, axis: int = -1, *, mode: str = "reflect", cval: ArrayLike = 0.0, origin: int = 0
) -> Array:
    """The mean of `size` neighbours along one axis (as ``scipy.ndimage.uniform_filter1d``).

    Args:
      input: array with at least one axis.
      size: the number of elements.
      axis: the axis of `input`.
      mode: what is outside of the array: 'reflect', the array reflected at its edge; 'mirror', at the centre of its
        last element; 'nearest', the last element; 'wrap', the array again; 'constant', `cval`.
      cval: the number outside of the array for mode 'constant'.
      origin: by how many elements the centre is moved.

    Returns:
      An array of the shape and dtype of `input`.

    Raises:
      AxisError: the axis number is out of range.
      OptionError: an unknown mode, an origin outside of the neighbours, or a size that is not positive.

    >>> [round(float(x), 3) for x in uniform_filter1d(jnp.array([1.0, 2.0, 6.0]), 3)]
    [1.333, 3.0, 4.667]
    """
    (x,) = map(jnp.asarray, check("uniform_filter1d", input))
    size = integer("uniform_filter1d", "size", size)
    if size < 1:
        raise OptionError(f"uniform_filter1d: size={size}", instead="a positive number")
    dtype = type_of(x).dtype
    wide = x.astype(dtypes.to_inexact(dtype))
    ones = jnp.ones(size, jnp.promote_types(type_of(wide).dtype, np.float32))
    return (_one("uniform_filter1d", wide, ones, axis, mode, cval, origin, False) / size).astype(dtype)


def _gaussian(sigma: Any, order: int, radius: int) -> Any:
    """The Gaussian at the integers, divided by its sum, times the polynomial of its derivative."""
    x = jnp.arange(-radius, radius + 1, dtype=jnp.result_type(float))
    square = jnp.asarray(sigma, type_of(x).dtype) ** 2
    density = jnp.exp(-0.5 * x * x / square)
    # The derivative of q exp(-x**2 / (2 sigma**2)) is (q' - q x / sigma**2) times the same.
    q: list[Any] = [1.0]
    for _ in range(order):
        slope = [(i + 1) * c for i, c in enumerate(q[1:])] + [0.0, 0.0]
        q = [a - b / square for a, b in zip(slope, [0.0, *q], strict=True)]
    return density / density.sum() * lax.polynomial(x, q)


@lenient
@docs_from(uniform_filter1d)
def gaussian_filter1d(
    input: ArrayLike,
    sigma: ArrayLike,
    axis: int = -1,
    order: int = 0,
    *,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    truncate: float = 4.0,
    radius: int | None = None,
) -> Array:
    """The convolution along one axis with a Gaussian, or a derivative of it (as ``scipy.ndimage.gaussian_filter1d``).

    Args:
      sigma: standard deviation in elements; it may be traced, and has a derivative, where `radius` is given.
      order: the order of the derivative, 0 for none.
      truncate: where the Gaussian ends, in standard deviations.
      radius: where it ends in elements, in place of `truncate`.

    Raises:
      OptionError: an unknown mode, or a negative order or radius.
      ConcretizationTypeError: `sigma` is traced, and `radius` is not given.

    >>> [round(float(x), 3) for x in gaussian_filter1d(jnp.array([0.0, 0.0, 1.0, 0.0, 0.0]), 0.5)]
    [0.0, 0.106, 0.787, 0.106, 0.0]
    """
    width: Any = sigma
    reach = int(truncate * float(width) + 0.5) if radius is None else radius
    if order < 0 or reach < 0:
        raise OptionError(f"gaussian_filter1d: order={order}, radius={reach}", instead="numbers that are not negative")
    return _one("gaussian_filter1d", input, _gaussian(sigma, order, reach), axis, mode, cval, 0, True)


@lenient
@docs_from(gaussian_filter1d)
def gaussian_filter(
    input: ArrayLike,
    sigma: ArrayLike | Sequence[ArrayLike],
    order: int | Sequence[int] = 0,
    *,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    truncate: float = 4.0,
    radius: int | Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
) -> Array:
    """The convolution with a Gaussian along several axes (as ``scipy.ndimage.gaussian_filter``).

    Args:
      sigma: standard deviations in elements, a number or one for each axis.
      order: the orders of derivatives, a number or one for each axis.
      radius: where it ends in elements, a number or one for each axis.
      axes: the axes to filter; None are all.

    Raises:
      ShapeError: `axes` has an axis twice, or a sequence does not have an element for each axis.

    >>> [round(float(x), 2) for x in gaussian_filter(jnp.eye(3), 1.0)[0]]
    [0.5, 0.33, 0.17]
    """
    (x,) = map(jnp.asarray, check("gaussian_filter", input))
    for axis, s, o, m, r in _by_axis("gaussian_filter", x, axes, sigma, order, mode, radius):
        # SciPy skips axes of so small a sigma, whose Gaussian would divide by 0.
        if isinstance(s, Tracer) or float(s) > 1e-15:
            x = gaussian_filter1d(x, s, axis, o, mode=m, cval=cval, truncate=truncate, radius=r)
    return x


def _by_axis(function: str, x: Any, axes: Any, *values: Any) -> Iterator[tuple[Any, ...]]:
    """Each axis with its element of every value that is a sequence, and with the others."""
    chosen = canonical_axes(axes, type_of(x).ndim, function)
    columns = [list(v) if getattr(v, "ndim", isinstance(v, list | tuple)) else [v] * len(chosen) for v in values]
    for column in columns:
        if len(column) != len(chosen):
            raise ShapeError(f"{function}: {len(column)} values for {len(chosen)} axes", instead="one for each axis")
    return zip(chosen, *columns, strict=True)


@lenient
@docs_from(uniform_filter1d)
def uniform_filter(
    input: ArrayLike,
    size: int | Sequence[int] = 3,
    *,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0,
    axes: Sequence[int] | None = None,
) -> Array:
    """The mean of neighbours along several axes (as ``scipy.ndimage.uniform_filter``).

    Args:
      size: the number of elements, one for all axes or one for each.
      origin: by how many elements the centre is moved, a number or one for each axis.
      axes: the axes to filter; None are all.

    Raises:
      ShapeError: `axes` has an axis twice, or a sequence does not have an element for each axis.

    >>> [round(float(x)) for x in uniform_filter(jnp.eye(3) * 9)[0]]
    [5, 3, 1]
    """
    (x,) = map(jnp.asarray, check("uniform_filter", input))
    for axis, s, m, o in _by_axis("uniform_filter", x, axes, size, mode, origin):
        x = uniform_filter1d(x, s, axis, mode=m, cval=cval, origin=o)
    return x
