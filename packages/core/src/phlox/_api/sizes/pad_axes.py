"""`pad_axes`: one compiled program for all sizes of arguments up to a bucket, with the results of the unpadded call.

>>> center = pad_axes(lambda x: x - x.sum() / x.shape[0], {"x": "n"})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..._base.wrapping import P, R, wraps
from ..._ir.primitive import tracing
from ..jit import arguments
from ..jit.jit import jit
from ..jit.user_functions import user_call
from .sized_function import SizedFunction


def pad_axes(
    fun: Callable[P, R],
    sizes: Mapping[str, Any],
    *,
    buckets: Sequence[int] | Mapping[str, Sequence[int]] | None = None,
) -> Callable[P, R]:
    """Makes a function that is compiled once for each bucket of lengths, not for each length.

    Results, their shapes and their derivatives are those of `fun`. Inside of other compiled functions, whose shapes are
    known, nothing is padded. `jit` with the same arguments has static arguments, donation and shardings too.

    Args:
      fun: function of arrays and pytrees of them.
      sizes: for each parameter whose axes vary in length the names of its leading axes: ``"n"``, ``"batch, n"`` or a
        tuple. An axis of the name ``_`` or None does not vary. Axes of one name have one length; ``"n + 1"`` and
        ``"2*n"`` are lengths that follow it. Of a tree of arrays each leaf has these axes; a dict of names fits a dict
        of arrays. ``"auto"`` names the leading axis of each leaf after its length.
      buckets: the lengths to compile for, in rising order, or such a list for each name. None: the powers of two from
        32 to 1024, then 1536, 2048, 2560, 3072, 3584 and 4096, and so on; of a bucket between powers of two the first
        calls use the next power of two. The length 1 always has its own program.

    Returns:
      A function that is called as `fun` is.

    Raises:
      OptionError: `fun` has no such parameter, or `buckets` are no rising positive numbers.
      ShapeError: in a call, when axes of one name have different lengths, or an argument lacks a named axis.

    >>> center = pad_axes(lambda x: x - x.mean(), {"x": "n"})
    >>> [center(jnp.arange(float(n))).tolist() for n in (3, 4)]
    [[-1.0, 0.0, 1.0], [-1.5, -0.5, 0.5, 1.5]]
    """
    arguments.check_callable("pad_axes", fun)
    padded = SizedFunction("pad_axes", jit(fun), sizes, buckets)

    @wraps(fun, "{fun}, compiled once for each bucket of lengths.")
    @user_call
    def call(*args: Any, **kwargs: Any) -> Any:
        return padded.run(args, kwargs) if tracing() is None else padded.call_traced(args, kwargs)

    return call
