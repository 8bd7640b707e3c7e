"""`convolve` and `correlate` of vectors, by convolutions with one feature."""

from __future__ import annotations

import functools
from typing import Any

from ..._api.jit.jit import jit
from ..._base.docstrings import docs_from
from ..._base.errors import OptionError, ShapeError
from ..._ir import dtypes
from ..._operands.checks import check, type_of
from ..._operands.promotion import promote_dtypes, promote_inexact, to_dtype
from ..._ops.linalg.dot import PrecisionLike
from ..._ops.windows.conv import check_preferred
from ...typing import Array, ArrayLike, DTypeLike
from .._elementwise.unary import conj
from .._manipulation.shapes import flip


@functools.partial(jit, inline=True, static_argnames=("before", "after", "precision", "preferred"))
def _slide(a: Any, v: Any, before: int, after: int, precision: Any, preferred: Any) -> Any:
    """The sums of products of `v` and a window of `a`, which is padded with zeros, for each position of the window."""
    from ...lax import conv_general_dilated  # here, as `phlox.numpy` does not wait for lax

    out = conv_general_dilated(
        a[None, None], v[None, None], (1,), [(before, after)], precision=precision, preferred_element_type=preferred
    )
    return out[0, 0]


def _checked(function: str, a: Any, v: Any, mode: str, preferred: Any) -> list[Any]:
    a, v = check(function, a, v)
    for x in (a, v):
        if type_of(x).ndim != 1:
            raise ShapeError(f"{function} takes vectors, got {type_of(x).short}", instead="x.ravel(), or phlox.vmap")
        if not type_of(x).shape[0]:
            raise ShapeError(f"{function} of a vector without elements: {type_of(a).short} and {type_of(v).short}")
    if mode not in ("full", "same", "valid"):
        raise OptionError(f"{function}: mode={mode!r}", instead="'full', 'same' or 'valid'")
    if preferred is None:
        return promote_inexact(a, v)
    a, v = promote_dtypes(a, v)
    check_preferred(type_of(a).dtype, dtypes.user_dtype(preferred, function))
    return [a, v]


def _padding(mode: str, short: int) -> tuple[int, int]:
    if mode == "full":
        return short - 1, short - 1
    # NumPy's middle part starts at entry (short - 1) // 2 of the full result.
    return (short // 2, short - 1 - short // 2) if mode == "same" else (0, 0)


def _weaken(out: Any, weak: bool) -> Any:
    return to_dtype(out, type_of(out).dtype, weak)


@functools.partial(jit, inline=True, static_argnames=("mode", "precision", "preferred_element_type"))
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The convolution of two vectors: entry k is the sum of ``a[i] * v[k - i]`` over i (as ``numpy.convolve``).

    Args:
      a, v: vectors with at least one element, promoted to one dtype.
      mode: entries to return: 'full' returns all ``len(a) + len(v) - 1``, 'same' the middle ``max(len(a), len(v))``,
        'valid' those where the vectors overlap completely.
      precision, preferred_element_type: as for `dot`.

    Returns:
      A vector of the promoted dtype, integers becoming floats; or of `preferred_element_type`.

    Raises:
      ShapeError: `a` or `v` is not a vector, or has no elements.
      OptionError: `mode` is not one of the listed names.
      DtypeError: `preferred_element_type` cannot hold the sums.

    >>> jnp.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 0.0, 3.0]))
    Array([1., 2., 3., 6.], dtype=float32)
    """
    a, v = _checked("convolve", a, v, mode, preferred_element_type)
    # Convolution is commutative. The shorter vector becomes the window, as `_padding` supposes.
    if type_of(a).shape < type_of(v).shape:
        a, v = v, a
    before, after = _padding(mode, type_of(v).shape[0])
    weak = type_of(a).weak_type and type_of(v).weak_type and preferred_element_type is None
    # The convolution of XLA is a correlation.
    out = _slide(a, flip(v), before, after, precision=precision, preferred=preferred_element_type)
    return _weaken(out, weak)


@functools.partial(jit, inline=True, static_argnames=("mode", "precision", "preferred_element_type"))
@docs_from(convolve)
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The cross-correlation of two vectors: sums of ``a[i + k] * conj(v[i])`` over i (as ``numpy.correlate``).

    Args:
      mode: entries to return, as for `convolve`: 'valid', 'same' or 'full'.

    >>> jnp.correlate(jnp.array([1.0, 2.0, 4.0]), jnp.array([1.0, 10.0]))
    Array([21., 42.], dtype=float32)
    """
    a, v = _checked("correlate", a, v, mode, preferred_element_type)
    weak = type_of(a).weak_type and type_of(v).weak_type and preferred_element_type is None
    v = conj(v)
    # The smaller operand is the kernel. Exchanging both reverses the result, which is reversed back below.
    swapped = type_of(a).shape < type_of(v).shape
    if swapped:
        a, v = v, a
    before, after = _padding(mode, type_of(v).shape[0])
    out = _slide(a, v, before, after, precision=precision, preferred=preferred_element_type)
    return _weaken(flip(out) if swapped else out, weak)
