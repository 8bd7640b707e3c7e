"""``phlox.image``: resizing of images, by resampling with a kernel along each axis, as in ``jax.image``."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import numpy as jnp
from ._api.jit.jit import jit
from ._base.errors import OptionError, ShapeError
from ._base.public_names import publish
from ._operands.checks import as_shape, canonical_axes, check, check_one, type_of
from ._operands.promotion import promote_inexact
from ._ops.linalg.dot import Precision, PrecisionLike
from .typing import Array, ArrayLike

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """The interpolation between pixels.

    NEAREST takes the nearest pixel. LINEAR weights neighbours by their distance. CUBIC, LANCZOS3 and LANCZOS5 use
    smoother kernels of radius 2, 3 and 5, and CUBIC_PYTORCH that of PyTorch. AREA averages over the area of the new
    pixel.

    >>> resize(jnp.array([1.0, 2.0]), (4,), ResizeMethod.NEAREST)
    Array([1., 1., 2., 2.], dtype=float32)
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method with this name.

        Args:
          s: name of the method: 'nearest'; 'linear', 'bilinear', 'trilinear' or 'triangle'; 'cubic', 'bicubic' or
            'tricubic'; 'cubic-pytorch' or 'bicubic-pytorch'; 'lanczos3'; 'lanczos5'; 'area'.

        Returns:
          The `ResizeMethod`.

        Raises:
          OptionError: `s` is unknown.

        >>> phlox.image.ResizeMethod.from_string("bilinear")
        <ResizeMethod.LINEAR: 1>
        """
        if s not in _WORDS:
            raise OptionError(f"unknown resize method {s!r}", instead="one of " + ", ".join(_WORDS))
        return _WORDS[s]


_WORDS = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}

# --- kernels: the weight of a pixel as a function of its distance ---------------------------------------


def _triangle(x: Any) -> Any:
    return jnp.maximum(0, 1 - jnp.abs(x))


def _lanczos(radius: float) -> Callable[[Any], Any]:
    def kernel(x: Any) -> Any:
        wave = radius * jnp.sin(np.pi * x) * jnp.sin(np.pi * x / radius)
        # The quotient is 0 / 0 at 0; the bound is JAX's.
        near = x > 1e-3
        out = jnp.where(near, wave / jnp.where(x != 0, np.pi**2 * x**2, 1), 1)
        return jnp.where(x > radius, 0.0, out)

    return kernel


def _cubic(a: float) -> Callable[[Any], Any]:
    """The cubic kernel of Keys with slope `a` at distance 1."""

    def kernel(x: Any) -> Any:
        inside = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
        outside = ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
        return jnp.where(x >= 2.0, 0.0, jnp.where(x >= 1.0, outside, inside))

    return kernel


#: radius and kernel; the weights of AREA are no function of the distance
_KERNELS: dict[ResizeMethod, tuple[int, Callable[[Any], Any] | None]] = {
    ResizeMethod.LINEAR: (1, _triangle),
    ResizeMethod.LANCZOS3: (3, _lanczos(3.0)),
    ResizeMethod.LANCZOS5: (5, _lanczos(5.0)),
    ResizeMethod.CUBIC: (2, _cubic(-0.5)),
    ResizeMethod.CUBIC_PYTORCH: (2, _cubic(-0.75)),
    ResizeMethod.AREA: (1, None),
}


def _normalized(weights: Any) -> Any:
    """The weights divided by their sum for each new pixel; 0 for new pixels without old pixels in reach."""
    total = weights.sum(axis=0, keepdims=True)
    seen = jnp.abs(total) > 1000.0 * float(np.finfo(np.float32).eps)
    return jnp.where(seen, weights / jnp.where(total != 0, total, 1), 0)


def _weights(m: int, n: int, scale: Any, translation: Any, method: ResizeMethod, antialias: bool) -> Any:
    """The matrix of shape (m, n) that resamples `m` pixels along an axis to `n`."""
    radius, kernel = _KERNELS[method]
    dtype = jnp.result_type(scale, translation)
    inverse = 1.0 / scale
    # For a smaller image the kernel becomes wider, so that it reaches all pixels between two new ones.
    wider = jnp.maximum(inverse, 1.0) if antialias else 1.0
    shift = translation * inverse
    # Pixels are squares around their centres, which lie at half numbers.
    positions = (jnp.arange(n, dtype=dtype) + 0.5) * inverse - shift - 0.5
    if kernel is None:
        left = jnp.arange(n, dtype=dtype) * inverse - shift
        pixel = jnp.arange(m, dtype=dtype)[:, None]
        overlap = jnp.minimum((left + inverse)[None, :], pixel + 1.0) - jnp.maximum(left[None, :], pixel)
        weights = _normalized(jnp.maximum(0.0, overlap))
    elif method is ResizeMethod.CUBIC_PYTORCH:
        # Indices outside of the image read the pixel at the edge.
        indices = np.arange(-radius, m + radius)
        pixel_weights = kernel(jnp.abs(positions[None, :] - jnp.asarray(indices, dtype)[:, None]) / wider)
        return _normalized(jnp.zeros((m, n), dtype).at[np.clip(indices, 0, m - 1)].add(pixel_weights))
    else:
        weights = _normalized(kernel(jnp.abs(positions[None, :] - jnp.arange(m, dtype=dtype)[:, None]) / wider))
    inside = (positions >= -0.5) & (positions <= m - 0.5)
    return jnp.where(inside[None, :], weights, 0)


def _resample(
    x: Any,
    shape: Sequence[int],
    axes: Sequence[int],
    scale: Any,
    translation: Any,
    method: Any,
    antialias: bool,
    precision: Any,
) -> Any:
    if not axes:
        return jnp.asarray(x)
    # With antialias PyTorch's kernel has Keys's slope of -0.5 as well.
    if method is ResizeMethod.CUBIC_PYTORCH and antialias:
        method = ResizeMethod.CUBIC
    rank = len(shape)
    operands: list[Any] = [x, list(range(rank))]
    out = list(range(rank))
    for i, axis in enumerate(axes):
        weights = _weights(type_of(x).shape[axis], shape[axis], scale[i], translation[i], method, antialias)
        operands += [weights.astype(type_of(x).dtype), [axis, rank + i]]
        out[axis] = rank + i
    return jnp.einsum(*operands, out, precision=precision)


def _method(method: Any) -> ResizeMethod:
    return ResizeMethod.from_string(method) if isinstance(method, str) else method


# --- public functions -----------------------------------------------------------------------------------


def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = Precision.HIGHEST,
) -> Array:
    """Scales and translates an image: position ``x`` moves to ``x * scale + translation`` along each axis (as
    ``jax.image.scale_and_translate``).

    Args:
      image: array of any shape; integers become floats.
      shape: shape of the result; equal to that of the image along axes not in `spatial_dims`.
      spatial_dims: axis numbers that are resampled.
      scale, translation: vectors with a scale factor and an offset for each axis in `spatial_dims`. Pixel i covers
        positions from i to i + 1.
      method: interpolation method, a `ResizeMethod` or its name, except NEAREST.
      antialias: whether to smooth an image that is made smaller, so that all its pixels contribute.
      precision: precision of the products, as for `lax.dot_general`.

    Returns:
      An array of floats of this shape; 0 at positions outside the image.

    Raises:
      ShapeError: `shape` and the image have different numbers of axes, or different lengths along an axis that is not
        in `spatial_dims`; or `scale` or `translation` has another length than `spatial_dims`.
      AxisError: the image has no such axis.
      OptionError: `method` is NEAREST or another word.

    >>> image = jnp.array([0.0, 2.0])
    >>> phlox.image.scale_and_translate(image, (2,), (0,), jnp.array([1.0]), jnp.array([1.0]), "linear")
    Array([0., 0.], dtype=float32)
    """
    image, scale, translation = check("scale_and_translate", image, scale, translation)
    aval, shape = type_of(image), as_shape(shape)
    if len(shape) != aval.ndim:
        raise ShapeError(f"scale_and_translate: shape {shape} for {aval.short}", shapes=[aval.shape, shape])
    chosen = _method(method)
    if chosen is ResizeMethod.NEAREST:
        raise OptionError("scale_and_translate: method NEAREST", instead="resize, or another method")
    axes = canonical_axes(spatial_dims, aval.ndim, "scale_and_translate")
    if any(m != n for i, (m, n) in enumerate(zip(aval.shape, shape, strict=True)) if i not in axes):
        raise ShapeError(
            f"scale_and_translate: shape {shape} differs from {aval.short} along other axes than {axes}",
            shapes=[aval.shape, shape],
        )
    (image,) = promote_inexact(image)
    scale, translation = promote_inexact(scale, translation)
    for name, vector in (("scale", scale), ("translation", translation)):
        if type_of(vector).shape != (len(axes),):
            raise ShapeError(
                f"scale_and_translate: {name} is {type_of(vector).short}, and spatial_dims has {len(axes)} axes",
                instead="one number for each axis",
                shapes=[type_of(vector).shape],
            )
    return _resample(image, shape, axes, scale, translation, chosen, antialias, precision)


@functools.partial(jit, static_argnums=(1, 2, 3, 4))
def _resize(image: Any, shape: tuple[int, ...], method: ResizeMethod, antialias: bool, precision: Any) -> Any:
    old = type_of(image).shape
    axes = [i for i, (m, n) in enumerate(zip(old, shape, strict=True)) if m != n]
    if method is ResizeMethod.NEAREST:
        for axis in axes:
            m, n = old[axis], shape[axis]
            # float32 also in 64-bit mode, as in JAX: its rounding decides between neighbours.
            positions = jnp.floor((jnp.arange(n, dtype=np.float32) + 0.5) * m / n).astype(np.int32)
            image = image[(slice(None),) * axis + (positions,)]
        return image
    if any(old[i] == 0 for i in axes):
        raise ShapeError(f"resize: {type_of(image).short} has no pixels to make {shape} of", shapes=[old, shape])
    (image,) = promote_inexact(image)
    scale = [1.0 if shape[i] == 0 else shape[i] / old[i] for i in axes]
    return _resample(image, shape, axes, scale, [0.0] * len(axes), method, antialias, precision)


def resize(
    image: ArrayLike,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: PrecisionLike = Precision.HIGHEST,
) -> Array:
    """Resizes an image (as ``jax.image.resize``).

    Args:
      image: array of any shape.
      shape: shape of the result, with all axes; axes whose length is unchanged are not resampled.
      method: interpolation method, a `ResizeMethod` or its name: 'nearest', 'linear', 'cubic', 'cubic-pytorch',
        'lanczos3', 'lanczos5' or 'area'.
      antialias: whether to smooth an image that is made smaller, so that all its pixels contribute.
      precision: precision of the products, as for `lax.dot_general`.

    Returns:
      An array of this shape; of the dtype of the image for 'nearest'. Other methods convert integers to floats.

    Raises:
      ShapeError: `shape` and the image have different numbers of axes, or the image has no pixels.
      OptionError: `method` is unknown.

    >>> phlox.image.resize(jnp.array([0.0, 2.0]), (4,), "linear")
    Array([0. , 0.5, 1.5, 2. ], dtype=float32)
    """
    image = check_one("resize", image)
    aval, out_shape = type_of(image), as_shape(shape, "resize")
    if len(out_shape) != aval.ndim:
        raise ShapeError(f"resize: shape {out_shape} for {aval.short}", shapes=[aval.shape, out_shape])
    return _resize(image, out_shape, _method(method), antialias, precision)


publish(__name__)
