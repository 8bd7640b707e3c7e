"""Names of mapped axes: which `axis_name`s of vmap and pmap are in scope, and how long the axes are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from .._base.errors import AxisNameError

AxisName = Any
_T = TypeVar("_T")
#: name and size of each mapped axis in scope, outermost first; a tuple, so that caches can key on it
axis_env: ContextVar[tuple[tuple[AxisName, int], ...]] = ContextVar("phlox_axes", default=())


def run_with_axis(name: AxisName, size: int, fun: Callable[[], _T]) -> _T:
    """What `fun` returns, with axis `name` of this `size` in scope. A function for the reason of `Trace.run`."""
    token = axis_env.set((*axis_env.get(), (name, size)))
    try:
        return fun()
    finally:
        axis_env.reset(token)


@contextmanager
def only_axes(axes: tuple[tuple[AxisName, int], ...]) -> Iterator[None]:
    """Makes exactly `axes` visible, for tracing a program that will run elsewhere."""
    token = axis_env.set(axes)
    try:
        yield
    finally:
        axis_env.reset(token)


def axis_size(name: AxisName) -> int:
    """Length of the mapped axis `name`; of several names the product."""
    if isinstance(name, tuple):
        product = 1
        for one in name:
            product *= axis_size(one)
        return product
    for known, size in reversed(axis_env.get()):
        if known == name:
            return size
    scope = ", ".join(repr(known) for known, _ in axis_env.get()) or "none"
    raise AxisNameError(
        f"unbound axis name: {name} (axes in scope: {scope})",
        instead=f"call this inside vmap or pmap with axis_name={name!r}",
        axis=name,
    )
