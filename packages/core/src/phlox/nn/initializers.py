"""Initializers: functions ``init(key, shape, dtype)`` that make initial values of parameters."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from .. import numpy as jnp, random
from .._api.devices.out_sharding import OutSharding, lay_out
from .._api.jit.jit import jit
from .._base.docstrings import docs_from
from .._base.errors import OptionError, ShapeError
from .._base.public_names import publish
from .._ir import dtypes
from .._operands.checks import as_shape
from .._ops.elementwise.error_functions import erf_inv
from ..typing import Array, ArrayLike, DTypeLike, Key

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]


class Initializer(Protocol):
    """The protocol of initializers."""

    def __call__(self, key: Any, shape: Sequence[int], dtype: Any = ...) -> Any:
        """Returns an array of this shape and dtype, random samples from `key`."""
        ...


def zeros(key: Key, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: OutSharding = None) -> Array:
    """An initializer: zeros.

    Args:
      key: without meaning.
      shape: of the result.
      dtype: of the result; float32 by default (float64 in x64 mode).
      out_sharding: a `NamedSharding`, or a `PartitionSpec` of the mesh of the context, by which the result is laid out.

    Returns:
      An array of this shape and dtype.

    >>> zeros(random.key(0), (2,))
    Array([0., 0.], dtype=float32)
    """
    return lay_out("zeros", jnp.zeros(shape, dtype), out_sharding)


@docs_from(zeros)
def ones(key: Key, shape: Sequence[int], dtype: DTypeLike | None = None, out_sharding: OutSharding = None) -> Array:
    """An initializer: ones.

    >>> ones(random.key(0), (2,))
    Array([1., 1.], dtype=float32)
    """
    return lay_out("ones", jnp.ones(shape, dtype), out_sharding)


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Callable[..., Any]:
    """An initializer that fills with `value`.

    Args:
      value: a number, or an array that broadcasts to the shape asked for.
      dtype: default dtype of the initializer; None: float32 (float64 in x64 mode).

    Returns:
      A function ``init(key, shape, dtype, out_sharding)``; its `key` has no meaning.

    >>> constant(3.0)(random.key(0), (2,))
    Array([3., 3.], dtype=float32)
    """
    default = dtype

    def init(key: Any, shape: Sequence[int], dtype: Any = default, out_sharding: Any = None) -> Any:
        return lay_out("constant", jnp.full(shape, value, dtypes.float_dtype(dtype)), out_sharding)

    return init


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Callable[..., Any]:
    """An initializer: numbers of the uniform distribution over [0, scale).

    Args:
      scale: upper bound, a number, or an array that broadcasts to the shape asked for.
      dtype: default dtype of the initializer, floating; None: float32 (float64 in x64 mode).

    Returns:
      A function ``init(key, shape, dtype, out_sharding)``.

    >>> bool(uniform(0.1)(random.key(0), (100,)).max() < 0.1)
    True
    """
    default = dtype

    def init(key: Any, shape: Sequence[int], dtype: Any = default, out_sharding: Any = None) -> Any:
        float_dtype = dtypes.float_dtype(dtype)
        return lay_out("uniform", random.uniform(key, shape, float_dtype) * jnp.array(scale, float_dtype), out_sharding)

    return init


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Callable[..., Any]:
    """An initializer: normal numbers of mean 0 and this standard deviation.

    Args:
      stddev: standard deviation, a number, or an array that broadcasts to the shape asked for.
      dtype: default dtype of the initializer, floating or complex; None: float32 (float64 in x64 mode).

    Returns:
      A function ``init(key, shape, dtype, out_sharding)``.

    >>> normal()(random.key(0), (3,)).shape
    (3,)
    """
    default = dtype

    def init(key: Any, shape: Sequence[int], dtype: Any = default, out_sharding: Any = None) -> Any:
        float_dtype = dtypes.float_dtype(dtype)
        drawn = _scaled_normal(key, as_shape(shape, "normal"), float_dtype, jnp.array(stddev, float_dtype))
        return lay_out("normal", drawn, out_sharding)

    return init


@functools.partial(jit, static_argnums=(1, 2))
def _scaled_normal(key: Any, shape: tuple[int, ...], dtype: Any, scale: Any) -> Any:
    """`random.normal` times `scale`, rounded as in JAX: the constant factors are multiplied first."""
    if dtypes.kind(dtype) != "f":
        return random.normal(key, shape, dtype) * scale
    # The interval starts right above -1, where erf_inv is -inf.
    low = np.nextafter(np.asarray(-1.0, dtype), np.asarray(0.0, dtype))
    return jnp.array(np.sqrt(2), dtype) * scale * erf_inv(random.uniform(key, shape, dtype, low, 1))


@docs_from(uniform)
def truncated_normal(
    stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None, lower: ArrayLike = -2.0, upper: ArrayLike = 2.0
) -> Callable[..., Any]:
    """An initializer: normal numbers between `lower` and `upper` standard deviations, times `stddev`.

    Args:
      stddev: standard deviation before truncation, a number, or an array that broadcasts to the shape asked for.
      lower, upper: bounds, in standard deviations.

    >>> truncated_normal()(random.key(0), (3,)).shape
    (3,)
    """
    default = dtype

    def init(key: Any, shape: Sequence[int], dtype: Any = default, out_sharding: Any = None) -> Any:
        float_dtype = dtypes.float_dtype(dtype)
        drawn = random.truncated_normal(key, lower, upper, shape, float_dtype)
        return lay_out("truncated_normal", drawn * jnp.array(stddev, float_dtype), out_sharding)

    return init


def _fans(shape: tuple[int, ...], in_axis: Any, out_axis: Any, batch_axis: Any) -> tuple[float, float]:
    """The numbers of inputs and outputs of each unit, multiplied by the receptive field of convolutions."""
    if len(shape) < 2 and isinstance(in_axis, int) and in_axis == -2:
        raise ShapeError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor with default in_axis. "
            "Must be at least 2D or specify in_axis explicitly.",
            instead="zeros or normal for vectors",
            shapes=[shape],
        )

    def product(axes: Any) -> int:
        listed = axes if isinstance(axes, Iterable) else (axes,)  # brax's networks for SAC pass an empty dict
        return math.prod(shape[a] for a in listed)

    fan_in, fan_out = product(in_axis), product(out_axis)
    sizes = fan_in * fan_out * product(batch_axis)
    field = math.prod(shape) / sizes if sizes else 0.0  # weights without elements
    return fan_in * field, fan_out * field


def _turned(key: Any, radius: Any) -> Any:
    """Complex numbers with these absolute values and random angles."""
    angle = 2 * np.pi * random.uniform(key, radius.shape, dtypes.real_part(radius.dtype)).astype(radius.dtype)
    return radius * jnp.exp(1j * angle)


def _disk(key: Any, shape: Sequence[int], dtype: Any) -> Any:
    """Complex numbers uniformly distributed over a disk, of variance 1."""
    moduli, directions = random.split(key)
    # If the square of the radius is uniform, the points are uniform over the disk.
    return _turned(
        directions, jnp.sqrt(2 * random.uniform(moduli, shape, jnp.zeros(0, dtype).real.dtype)).astype(dtype)
    )


def _truncated_disk(key: Any, shape: Sequence[int], dtype: Any) -> Any:
    """Complex normal numbers with absolute values up to 2, of variance 1."""
    moduli, directions = random.split(key)
    share = random.uniform(moduli, shape, dtypes.real_part(dtype)).astype(dtype)
    # The square of the absolute value of complex normal numbers is exponential, here cut at 4.
    radius = jnp.sqrt(-jnp.log(1 - (1 - jnp.exp(jnp.array(-4, dtype))) * share))
    # The standard deviation after truncation at absolute value 2.
    return _turned(directions, radius) / jnp.array(0.95311164380491208, dtype)


_IN_THE_PLANE = {"uniform": _disk, "truncated_normal": _truncated_disk}


def variance_scaling(
    scale: ArrayLike,
    mode: str,
    distribution: str,
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (),
    dtype: DTypeLike | None = None,
) -> Callable[..., Any]:
    """An initializer whose variance is `scale` divided by the number of inputs, of outputs, or their mean.

    Inputs and outputs of a unit are counted by the axes of the shape: the product of `in_axis` (of `out_axis`), times
    that of all axes that are in none of the three arguments, the receptive field of a convolution.

    Args:
      scale: the variance times the number that `mode` chooses.
      mode: 'fan_in' (inputs), 'fan_out' (outputs), 'fan_avg' (their mean) or 'fan_geo_avg' (their geometric mean).
      distribution: 'truncated_normal' (at two standard deviations), 'normal' or 'uniform'.
      in_axis, out_axis, batch_axis: which axes of the shape are inputs, outputs, and independent units.
      dtype: default dtype of the initializer, floating or complex; None: float32 (float64 in x64 mode).

    Returns:
      A function ``init(key, shape, dtype, out_sharding)``. It raises `OptionError` for an unknown `mode` or
      `distribution`, and `ShapeError` for a shape of less than two axes unless `in_axis` says which is that of inputs.

    >>> variance_scaling(1.0, "fan_in", "normal")(random.key(0), (4, 2)).shape
    (4, 2)
    """
    default = dtype

    def init(key: Any, shape: Sequence[int], dtype: Any = default, out_sharding: Any = None) -> Any:
        return lay_out("variance_scaling", draw(key, shape, dtypes.float_dtype(dtype)), out_sharding)

    def draw(key: Any, shape: Sequence[int], float_dtype: Any) -> Any:
        shape = as_shape(shape, "variance_scaling")
        fan_in, fan_out = _fans(shape, in_axis, out_axis, batch_axis)
        choices = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": (fan_in * fan_out) ** 0.5,
        }
        if mode not in choices:
            raise OptionError(f"variance_scaling: unknown mode {mode!r}", instead="one of " + ", ".join(choices))
        fan = choices[mode]
        variance = jnp.array(scale / fan if fan else 0, float_dtype)
        if distribution in _IN_THE_PLANE and dtypes.kind(float_dtype) == "c":
            return _IN_THE_PLANE[distribution](key, shape, float_dtype) * jnp.sqrt(variance)
        if distribution == "normal":
            return _scaled_normal(key, shape, float_dtype, jnp.sqrt(variance))
        if distribution == "uniform":
            # The uniform distribution over [-1, 1) has the variance 1 / 3.
            return random.uniform(key, shape, float_dtype, -1) * jnp.sqrt(3 * variance)
        if distribution == "truncated_normal":
            # The standard deviation of a standard normal distribution after truncation at 2.
            stddev = jnp.sqrt(variance) / jnp.array(0.87962566103423978, float_dtype)
            return random.truncated_normal(key, -2, 2, shape, float_dtype) * stddev
        raise OptionError(
            f"variance_scaling: unknown distribution {distribution!r}",
            instead="'truncated_normal', 'normal' or 'uniform'",
        )

    return init


def _scaled(name: str, scale: float, mode: str, distribution: str, what: str) -> Callable[..., Any]:
    def make(
        in_axis: int | Sequence[int] = -2,
        out_axis: int | Sequence[int] = -1,
        batch_axis: int | Sequence[int] = (),
        dtype: DTypeLike | None = None,
    ) -> Callable[..., Any]:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = (
        f"The initializer of {what}: `variance_scaling` with {scale}, '{mode}' and '{distribution}'.\n\n"
        "Args:\n"
        "  in_axis, out_axis, batch_axis: which axes of the shape are inputs, outputs, and independent units.\n"
        "  dtype: default dtype of the initializer, floating or complex; None: float32 (float64 in x64 mode).\n\n"
        "Returns:\n"
        "  A function ``init(key, shape, dtype, out_sharding)``. It raises `ShapeError` for a shape of less than two\n"
        "  axes unless `in_axis` says which is that of inputs.\n\n"
        f">>> {name}()(random.key(0), (4, 2)).shape\n(4, 2)\n"
    )
    return make


glorot_uniform = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform", "Glorot and Bengio, 2010")
glorot_normal = _scaled("glorot_normal", 1.0, "fan_avg", "truncated_normal", "Glorot and Bengio, 2010")
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform", "LeCun et al., 1998")
lecun_normal = _scaled("lecun_normal", 1.0, "fan_in", "truncated_normal", "LeCun et al., 1998")
he_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform", "He et al., 2015")
he_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal", "He et al., 2015")
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Callable[..., Any]:
    """An initializer of random matrices with orthonormal columns or, where these are longer, rows; times `scale`.

    Args:
      scale: a factor.
      column_axis: the axis of columns; all others together are the rows.
      dtype: default dtype of the initializer, floating or complex; None: float32 (float64 in x64 mode).

    Returns:
      A function ``init(key, shape, dtype, out_sharding)``. It raises `ShapeError` for a shape of less than two axes.

    >>> orthogonal()(random.key(0), (3, 2)).shape
    (3, 2)
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Any:
        dtype, shape = dtypes.float_dtype(dtype), as_shape(shape, "orthogonal")
        if len(shape) < 2:
            raise ShapeError(f"orthogonal: a shape of at least two axes is needed, got {shape}")
        if not math.prod(shape):
            return lay_out("orthogonal", jnp.zeros(shape, dtype), out_sharding)
        columns = shape[column_axis]
        matrix = random.orthogonal(key, math.prod(shape) // columns, (), dtype, columns)
        rows = np.delete(shape, column_axis).tolist()
        matrices = jnp.moveaxis(jnp.reshape(matrix, (*rows, columns)), -1, column_axis)
        return lay_out("orthogonal", jnp.array(scale, dtype) * matrices, out_sharding)

    return init


def delta_orthogonal(
    scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Callable[..., Any]:
    """An initializer of convolution kernels that are zero except for an orthogonal matrix in the middle.

    Deep networks of such convolutions preserve the norm of signals (Xiao and others, 2018).

    Args:
      scale: a factor.
      column_axis: the axis of columns of the matrix.
      dtype: default dtype of the initializer, floating or complex; None: float32 (float64 in x64 mode).

    Returns:
      A function ``init(key, shape, dtype, out_sharding)``. The shape is 1 to 3 spatial axes, inputs, and at least as
      many outputs; it raises `ShapeError` for others.

    >>> delta_orthogonal()(random.key(0), (3, 2, 2))[0]
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype, out_sharding: Any = None) -> Any:
        dtype, shape = dtypes.float_dtype(dtype), as_shape(shape, "delta_orthogonal")
        if not 3 <= len(shape) <= 5 or shape[-1] < shape[-2]:
            raise ShapeError(
                f"delta_orthogonal: no shape for a convolution kernel with as many outputs as inputs: {shape}",
                instead="one to three spatial axes, inputs, and at least as many outputs",
            )
        middle = tuple((size - 1) // 2 for size in shape[:-2])
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        return lay_out("delta_orthogonal", jnp.zeros(shape, dtype).at[middle].set(matrix), out_sharding)

    return init


publish(__name__)
