"""`psum_scatter_start`: a collective whose result is taken later, so that a program can say what runs meanwhile."""

from __future__ import annotations

from typing import Any

from .._base import pytree
from .._ir.avals import ShapedArray
from .._trace.trace import typeof
from ..typing import Array
from ._exchange import psum_scatter
from ._parallel import AxisGroups, AxisName


@pytree.register_pytree_node_class
class Future:
    """The result of a collective that was started; `done` returns it."""

    def __init__(self, value: Any):
        self._value = value

    def done(self) -> Array:
        """The result."""
        return self._value

    aval: ShapedArray = property(lambda self: typeof(self._value))  # type: ignore[assignment]
    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)

    def __repr__(self) -> str:
        return f"Future({self.aval.short})"

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        """The result as the only child."""
        return (self._value,), None

    @classmethod
    def tree_unflatten(cls, _: None, children: tuple[Any]) -> Future:
        """The inverse of `tree_flatten`."""
        return cls(*children)


def psum_scatter_start(
    x: Any,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: AxisGroups = None,
    tiled: bool = False,
) -> Any:
    """`psum_scatter`, whose results are taken by ``future.done()`` (as ``jax.lax.psum_scatter_start``).

    XLA splits collectives into a start and an end on the platforms that have both, and moves them apart as far as the
    program permits. What is between this call and `done` need not wait for the result.

    Args:
      x, axis_name, scatter_dimension, axis_index_groups, tiled: as of `psum_scatter`.

    Returns:
      A pytree like `x` of `Future`s, which have the `shape` and `dtype` of the results.

    Raises:
      AxisNameError, AxisError, ShapeError, OptionError, UnsupportedError: as `psum_scatter`.

    >>> phlox.vmap(lambda x: psum_scatter_start(x, "i").done(), axis_name="i")(np.array([[1, 2], [10, 20]]))
    Array([11, 22], dtype=int32)
    """
    results = psum_scatter(
        x, axis_name, scatter_dimension=scatter_dimension, axis_index_groups=axis_index_groups, tiled=tiled
    )
    return pytree.tree_map(Future, results)
