"""`polyfit`: least squares fit of a polynomial."""

from __future__ import annotations

import numpy as np

from ..._base.errors import OptionError, ShapeError
from ..._base.strictness import composed
from ..._ir import dtypes
from ..._operands.checks import check, integer, type_of
from ..._operands.promotion import promote_inexact
from ...typing import Array, ArrayLike
from .._creation.from_data import asarray
from .._elementwise.binary import divide, multiply
from .._elementwise.inexact import sqrt
from .._linalg.products import dot, outer
from .._linalg.triangles import vander
from .._statistics.reductions import sum


@composed
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Array | tuple[Array, ...]:
    """The least-squares fit of a polynomial of degree `deg` to points (x, y) (as ``numpy.polyfit``).

    The coefficients minimize the sum of the squared residuals in y.

    Args:
      x: vector of n numbers.
      y: vector of n numbers, or a matrix of n rows, whose columns are fitted independently.
      deg: degree of the polynomial, not traced.
      rcond: singular values below this fraction of the largest one are treated as zero; None is ``len(x) * eps``.
      full: True returns ``(coefficients, residuals, rank, singular values, rcond)``.
      w: vector of n weights, by which the distances are multiplied; None is 1 for all.
      cov: True returns ``(coefficients, covariance matrix)``; "unscaled" does not scale the matrix by the residuals.

    Returns:
      An array of floats of shape (deg + 1,) or (deg + 1, columns of y), the highest power first; or a tuple, see `full`
      and `cov`.

    Raises:
      OptionError: `deg` is negative, or there are too few points for a covariance.
      ShapeError: `x` is not a vector or is empty, or the length of `y` or `w` differs from that of `x`.

    >>> x = jnp.arange(4.0)
    >>> jnp.round(jnp.polyfit(x, 2 * x + 1, 1), 3)
    Array([2., 1.], dtype=float32)
    """
    x, y = map(asarray, check("polyfit", x, y))
    order = integer("polyfit", "deg", deg) + 1
    if order < 1:
        raise OptionError(f"polyfit: deg={deg}", instead="a degree that is not negative")
    if x.ndim != 1 or not x.size or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        raise ShapeError(f"polyfit: takes a vector x and as many rows of y, got {x.aval.short} and {y.aval.short}")
    n = x.shape[0]
    tolerance = n * float(dtypes.finfo(dtypes.to_inexact(x.dtype)).eps) if rcond is None else float(rcond)
    powers, values = vander(x, order), y
    if w is not None:
        (w,) = promote_inexact(*check("polyfit", w))
        if type_of(w).shape != x.shape:
            raise ShapeError(f"polyfit: weights {type_of(w).short} for {x.aval.short}", shapes=[type_of(w).shape])
        powers = multiply(powers, w[:, None])
        values = multiply(values, w[:, None] if values.ndim == 2 else w)
    # Columns scaled to length one improve the condition number.
    scale = sqrt(sum(multiply(powers, powers), axis=0))
    powers = divide(powers, scale)
    from .._linalg.solving import inv, lstsq  # imported late, to keep `import phlox` fast

    coefficients, residuals, rank, singular = lstsq(powers, values, tolerance)
    coefficients = divide(coefficients, scale if coefficients.ndim == 1 else scale[:, None])
    if full:
        return coefficients, residuals, rank, singular, asarray(tolerance)
    if not cov:
        return coefficients
    spread = divide(inv(dot(powers.T, powers)), outer(scale, scale))
    if isinstance(cov, str) and cov == "unscaled":
        factor = asarray(np.float32(1))
    else:
        if n <= order:
            raise OptionError(
                f"polyfit: {n} points say nothing of the spread of {order} coefficients",
                instead="cov='unscaled', or more points",
            )
        factor = divide(residuals, n - order)
    factor = factor if factor.ndim else factor[None]
    return coefficients, multiply(spread, factor) if y.ndim == 1 else multiply(spread[:, :, None], factor)
