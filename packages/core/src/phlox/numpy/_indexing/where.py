"""`phlox.numpy.where`, which chooses elements, or gives positions."""

from __future__ import annotations

from typing import Any

from ..._base.errors import ArgumentError
from ..._operands.checks import check
from .._elementwise.choose import where as select_elements


def where(condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """`x` where `condition` is true, `y` elsewhere (as ``numpy.where``).

    Both `x` and `y` are computed everywhere: a nan in the one that is not selected does not appear in the result, but
    does in its derivative.

    Args:
      condition: array of bools; numbers are treated as True where they are not zero.
      x, y: arrays or numbers from which elements are chosen, broadcast against `condition`. If both are left out, the
        indices of the true elements are returned, as by `nonzero`.
      size, fill_value: as for `nonzero`, only without `x` and `y`: number of indices to return, required where
        `condition` is traced, and the index that pads the result.

    Returns:
      An array of the broadcast shape, of the dtype to which `x` and `y` are promoted. Without `x` and `y`, a tuple of
      index vectors, one for each axis of `condition`.

    Raises:
      ArgumentError: only one of `x` and `y` is given, or `size` or `fill_value` together with both.

    >>> jnp.where(jnp.array([True, False]), 1.0, 2.0)
    Array([1., 2.], dtype=float32, weak_type=True)
    """
    if x is None and y is None:
        from .places import nonzero  # on demand, to keep `import phlox` fast

        return nonzero(*check("where", condition), size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ArgumentError("where needs one argument or three", instead="phlox.numpy.where(condition, x, y)")
    if size is not None or fill_value is not None:
        what = "where: size and fill_value are for positions"
        raise ArgumentError(what, instead="phlox.numpy.where(condition, size=...)")
    return select_elements(condition, x, y)
