"""What kernels call: their place in the grid, conditions, loops, and memory of their own."""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from phlox import lax, tree_util
from phlox.errors import OptionError
from phlox.ref import Ref, new_ref

from ..._core import axis_env
from ._specs import MemoryRef, unspecified

#: (indices, sizes) of the grid in which a kernel runs; its operations are staged once for all points
_grid: contextvars.ContextVar[tuple[Sequence[Any], Sequence[Any]] | None] = contextvars.ContextVar("grid", default=None)


@contextlib.contextmanager
def at_point(
    indices: Sequence[Any], sizes: Sequence[Any], named_axes: tuple[tuple[Any, int], ...] = ()
) -> Iterator[None]:
    """A context in which a kernel is at this point of a grid; `lax.axis_size` knows the axes that have names."""
    token, axes_token = _grid.set((indices, sizes)), axis_env.set((*axis_env.get(), *named_axes))
    try:
        yield
    finally:
        _grid.reset(token)
        axis_env.reset(axes_token)


def _point(function: str, axis: int) -> tuple[Any, Any]:
    point = _grid.get()
    if point is None:
        raise OptionError(f"{function}: no kernel of pallas_call runs here")
    if not 0 <= axis < len(point[0]):
        raise OptionError(f"{function}: axis={axis} of a grid with {len(point[0])} axes")
    return point[0][axis], point[1][axis]


def program_id(axis: int) -> Any:
    """The index of the kernel along an axis of the grid, an int32.

    Args:
      axis: number of the axis, counted from 0.

    Raises:
      OptionError: the grid has no such axis, or no kernel runs.
    """
    return _point("program_id", axis)[0]


def num_programs(axis: int) -> Any:
    """The length of the grid along an axis.

    Args:
      axis: number of the axis, counted from 0.

    Raises:
      OptionError: the grid has no such axis, or no kernel runs.
    """
    return _point("num_programs", axis)[1]


def when(condition: Any, /) -> Callable[[Callable[[], Any]], None]:
    """Decorator that runs a function without arguments at once if `condition` is true."""

    def decorator(f: Callable[[], Any]) -> None:
        if isinstance(condition, bool | np.bool_):
            if condition:
                f()
        else:
            lax.cond(condition, lambda: _nothing(f()), lambda: None)

    return decorator


def _nothing(_value: Any) -> None:
    """Drops the result of a branch."""


def loop(
    lower: Any, upper: Any, *, init_carry: Any = None, step: Any = 1, unroll: Any = None
) -> Callable[[Callable[..., Any]], Any]:
    """Decorator that runs a function of an index at once, from `lower` to below `upper`.

    Args:
      lower, upper, step: integers, which may be traced.
      init_carry: the value that the first call receives after the index; each call returns the next one, and the name
        of the function stands for the last. None: the function takes the index only.
      unroll: how many calls one iteration of the compiled loop makes.
    """

    def decorator(body: Callable[..., Any]) -> Any:
        count = (upper - lower + step - 1) // step
        if init_carry is None:
            lax.fori_loop(0, count, lambda i, _: _nothing(body(lower + i * step)), None, unroll=unroll)
            return None
        return lax.fori_loop(0, count, lambda i, carry: body(lower + i * step, carry), init_carry, unroll=unroll)

    return decorator


def _is_type(x: Any) -> bool:
    return hasattr(x, "new")


def new_refs(types: Any) -> Any:
    """References for a tree of types of memory."""
    return tree_util.tree_map(lambda ty: ty.new(), types, is_leaf=_is_type)


def run_scoped(f: Callable[..., Any], *types: Any, collective_axes: Any = (), **kw_types: Any) -> Any:
    """The result of `f`, called with references to memory that nothing has been written to.

    Args:
      f: function of references.
      *types: types of memory, such as ``pltpu.VMEM((8, 128), jnp.float32)``, or trees of them; `kw_types` by name.
      collective_axes: no meaning in interpret mode.
    """
    return f(*new_refs(list(types)), **new_refs(kw_types))


def with_scoped(*types: Any, collective_axes: Any = (), **kw_types: Any) -> Callable[..., Callable[..., Any]]:
    """Decorator form of `run_scoped`: the function receives the references after its own arguments."""

    def decorator(f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def wrapped(*args: Any) -> Any:
            return run_scoped(lambda *refs, **kw_refs: f(*args, *refs, **kw_refs), *types, **kw_types)

        return wrapped

    return decorator


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Any:
    """An array whose elements are not specified."""
    return unspecified(shape, dtype)


def empty_like(x: Any) -> Any:
    """Arrays of the types of a tree, whose elements are not specified."""
    return tree_util.tree_map(lambda a: unspecified(a.shape, a.dtype), x)


def empty_ref_like(x: Any) -> Ref:
    """A reference of the type of `x`, whose elements are not specified."""
    return x.new() if isinstance(x, MemoryRef) else new_ref(unspecified(x.shape, x.dtype))
