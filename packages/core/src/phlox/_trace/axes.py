"""The mapped axes in scope: the `axis_name`s of enclosing vmap and pmap, and the sizes of these axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from .._base.errors import AxisNameError

AxisName = Any
_T = TypeVar("_T")
#: name and size of each mapped axis in scope, outermost first; a tuple, so that it can be part of cache keys. Axes of a
#: shard_map that tracks over which axes values vary (see `_transform.manual_axes`) have True as a third entry.
axis_env: ContextVar[tuple[tuple[Any, ...], ...]] = ContextVar("phlox_axes", default=())


def run_with_axis(name: AxisName, size: int, fun: Callable[[], _T]) -> _T:
    """Calls `fun` with axis `name` of this `size` in scope; returns its result.

    A function and no context manager, for the reason that `Trace.run` gives.
    """
    token = axis_env.set((*axis_env.get(), (name, size)))
    try:
        return fun()
    finally:
        axis_env.reset(token)


@contextmanager
def only_axes(axes: tuple[tuple[Any, ...], ...]) -> Iterator[None]:
    """A context in which exactly `axes` are in scope, for tracing a program that runs elsewhere."""
    token = axis_env.set(axes)
    try:
        yield
    finally:
        axis_env.reset(token)


def tracked_axes() -> tuple[AxisName, ...]:
    """The axes in scope along which types say whether values vary (`ShapedArray.vma`)."""
    scope = axis_env.get()
    return tuple([entry[0] for entry in scope if len(entry) > 2]) if scope else ()


def axis_size(name: AxisName) -> int:
    """Size of the mapped axis `name`; for a tuple of names the product of the sizes."""
    if isinstance(name, tuple):
        return math.prod(map(axis_size, name))
    for known, size, *_ in reversed(axis_env.get()):
        if known == name:
            return size
    scope = ", ".join(repr(known) for known, *_ in axis_env.get()) or "none"
    raise AxisNameError(
        f"unbound axis name: {name} (axes in scope: {scope})",
        instead=f"call this inside vmap or pmap with axis_name={name!r}",
        axis=name,
    )
