"""``phlox.experimental.buffer_callback``: Python functions that write their results into memory that they are given."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from phlox import pure_callback, typeof
from phlox.errors import OptionError
from phlox.experimental import io_callback
from phlox.extend import publish
from phlox.tree_util import tree_flatten, tree_leaves

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]


class ExecutionStage(enum.Enum):
    """What the runtime calls a function for."""

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


@dataclasses.dataclass(frozen=True)
class ExecutionContext:
    """What a function is called for, and the stream of the GPU that it may use; None on the host."""

    stage: ExecutionStage = ExecutionStage.EXECUTE
    stream: int | None = None


class Buffer:
    """Memory of the host that an array occupies during the call: ``np.asarray(buffer)`` is a view of it."""

    __slots__ = ("_view",)

    def __init__(self, view: np.ndarray):
        self._view = view

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self._view.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the array."""
        return self._view.dtype

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return self._view.ndim

    @property
    def writeable(self) -> bool:
        """Whether it may be written to: results may."""
        return bool(self._view.flags.writeable)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        converted = self._view if dtype is None else self._view.astype(dtype, copy=False)
        return converted.copy() if copy else converted

    def __dlpack__(self, **options: Any) -> Any:
        return self._view.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._view.__dlpack_device__()

    def __repr__(self) -> str:
        return f"Buffer({self.dtype}{list(self.shape)}, writeable={self.writeable})"


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: Mapping[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """A function that calls `callback` from inside of a program, which writes the results into memory it is given.

    Args:
      callback: is called as ``callback(context, out, *args, **kwargs)``: with an `ExecutionContext`, the tree of
        results and the trees of arguments, each array a `Buffer`; results are writeable. It returns nothing.
      result_shape_dtypes: the result as a tree of objects with `shape` and `dtype` (`phlox.ShapeDtypeStruct`).
      has_side_effect: False: calls whose results are not used may be left out, as with `pure_callback`.
      vmap_method: how vmap maps it, as with `pure_callback`.
      input_output_aliases: by the number of an argument among all arrays, the number of a result that holds the
        elements of this argument when `callback` is called. Others hold anything.
      command_buffer_compatible: accepted as in JAX; there are no command buffers on the host.

    Returns:
      A function of trees of arrays, which returns a tree of arrays of the types `result_shape_dtypes`.

    Raises:
      OptionError: a number in `input_output_aliases` does not exist, or the types of the two differ; or
        `has_side_effect` and `vmap_method` are both given.

    >>> def double(context, out, x):
    ...     np.multiply(x, 2, out=np.asarray(out))
    >>> call = buffer_callback(double, phlox.ShapeDtypeStruct((3,), "float32"))
    >>> phlox.jit(call)(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """
    results, out_tree = tree_flatten(result_shape_dtypes)
    aliases = {int(i): int(o) for i, o in (input_output_aliases or {}).items()}
    if has_side_effect and vmap_method is not None:
        raise OptionError(
            "buffer_callback: effects are not mapped, so vmap_method has no meaning with has_side_effect",
            instead="one of the two",
        )

    def fill(ranks: list[int], *args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = tree_flatten((args, kwargs))
        arrays = [np.asarray(x) for x in leaves]
        # Mapped arguments have further axes in front, and so have the results.
        batch = np.broadcast_shapes((), *(x.shape[: x.ndim - rank] for x, rank in zip(arrays, ranks, strict=True)))
        outs = [np.empty((*batch, *result.shape), result.dtype) for result in results]
        for source, target in aliases.items():
            outs[target][...] = arrays[source]
        views = [x.view() for x in arrays]
        for view in views:
            view.flags.writeable = False
        called_args, called_kwargs = in_tree.unflatten([Buffer(view) for view in views])
        callback(ExecutionContext(), out_tree.unflatten([Buffer(x) for x in outs]), *called_args, **called_kwargs)
        return out_tree.unflatten(outs)

    def call(*args: Any, **kwargs: Any) -> Any:
        types = [typeof(x) for x in tree_leaves((args, kwargs))]
        _check_aliases(aliases, types, results)
        ranks = [aval.ndim for aval in types]

        def filled(*args: Any, **kwargs: Any) -> Any:
            return fill(ranks, *args, **kwargs)

        if has_side_effect:
            return io_callback(filled, result_shape_dtypes, *args, **kwargs)
        return pure_callback(filled, result_shape_dtypes, *args, vmap_method=vmap_method, **kwargs)

    return call


def _check_aliases(aliases: dict[int, int], types: list[Any], results: list[Any]) -> None:
    for source, target in aliases.items():
        for number, count, what in ((source, len(types), "input"), (target, len(results), "output")):
            if not 0 <= number < count:
                raise OptionError(
                    f"buffer_callback: input_output_aliases has {what} index {number} outside the range [0, {count})"
                )
        mine, theirs = types[source], results[target]
        if (mine.shape, mine.dtype) != (tuple(theirs.shape), np.dtype(theirs.dtype)):
            raise OptionError(
                f"buffer_callback: input {source} is {mine.short}, output {target} is "
                f"{np.dtype(theirs.dtype)}{list(theirs.shape)}; aliases must have one type"
            )


publish(__name__)
