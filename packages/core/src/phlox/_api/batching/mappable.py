"""Users' container types that `vmap` maps by functions registered for the type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._base.errors import ArgumentError
from ..._ir.primitive import current_trace
from ..._ops.structure.iota import iota
from ..._trace.trace import typeof
from ..._transform.batch import BatchAxis, BatchTrace, run_in


class Mappable(NamedTuple):
    """The functions by which vmap makes one example from a container, and a container from all examples.

    ``to_elt(one, index, value, spec)`` returns one example, where ``one(array, axis)`` is an example of an array and
    ``index()`` the index of the example. ``from_elt(all, size, elt, spec)`` returns the container of all examples,
    where ``all(size, elt, axis)`` is the array of all `elt`. `spec`, an object of `spec_type`, is the entry for the
    container in `in_axes` or `out_axes`.
    """

    spec_type: type
    to_elt: Callable[..., Any]
    from_elt: Callable[..., Any]


_mappable: dict[type, Mappable] = {}


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Any],
    from_elt: Callable[..., Any],
    make_iota: Callable[[Any], Any] | None,
) -> None:
    """Registers how vmap maps containers of this type (as in ``jax.interpreters.batching``).

    Args:
      data_type: the type of the containers.
      spec_type: the type of their entries in `in_axes` and `out_axes`.
      axis_size_type: the type of `axis_size`; must be int.
      to_elt: ``to_elt(one, index, value, spec)`` returns one example of `value`. ``one(array, axis)`` is an example of
        an array, and ``index()`` the index of the example.
      from_elt: ``from_elt(all, size, elt, spec)`` returns the container of all examples; ``all(size, elt, axis)`` is
        the array of all `elt`.
      make_iota: returns the indices of the examples for an `axis_size`; must be None, for ``lax.iota``.

    Raises:
      ArgumentError: `axis_size_type` is not int, or `make_iota` is not None.

    >>> class Stored:
    ...     def __init__(self, data):
    ...         self.data = data
    >>> to_elt = lambda one, index, stored, axis: one(stored.data, axis)
    >>> from_elt = lambda all, size, stored, axis: Stored(all(size, stored.data, axis))
    >>> register_vmappable(Stored, int, int, to_elt, from_elt, None)
    >>> phlox.vmap(lambda x: 2 * x, axis_size=3)(Stored(jnp.arange(3)))
    Array([0, 2, 4], dtype=int32)
    >>> unregister_vmappable(Stored)
    """
    if axis_size_type is not int or make_iota is not None:
        raise ArgumentError(f"register_vmappable: an axis_size of type {axis_size_type.__name__}", instead="int")
    _mappable[data_type] = Mappable(spec_type, to_elt, from_elt)


def unregister_vmappable(data_type: type) -> None:
    """Undoes `register_vmappable`; a type that was not registered is no error.

    Args:
      data_type: the type of the containers.

    >>> unregister_vmappable(dict)
    """
    _mappable.pop(data_type, None)


def any_mappable() -> bool:
    """Whether some type is registered."""
    return bool(_mappable)


def is_mappable(x: Any) -> bool:
    """Whether the type of `x` is registered."""
    return type(x) in _mappable


def is_spec(x: Any) -> bool:
    """Whether `x` is the entry for a registered container in `in_axes` or `out_axes`."""
    return bool(_mappable) and any(type(x) is m.spec_type for m in _mappable.values())


def run_mapped(
    fun: Callable[..., tuple[Sequence[Any], Sequence[Any]]],
    axis: BatchAxis,
    leaves: Sequence[Any],
    specs: Sequence[Any],
    place: Callable[..., Any],
) -> list[Any]:
    """The containers and arrays of all examples, from `fun` on one example of `leaves`.

    `fun` returns results and a spec for each. ``place(value, axis, out_axis, size)`` moves the batch axis of an array.
    """
    trace = BatchTrace(axis)

    def index() -> Any:
        # Made in the trace of the batch, so that it counts as one number for each example.
        return trace.join(iota.bind(dtype=np.dtype("int32"), shape=(axis.size,), dimension=0), 0)

    def to_elt(x: Any, spec: Any) -> Any:
        if is_mappable(x):
            return _mappable[type(x)].to_elt(to_elt, index, x, spec)
        if spec is None:
            return x
        # A spec counts from the end as Python does; the trace wants it from the front.
        return trace.join(x, spec % typeof(x).ndim)

    def from_elt(size: int, x: Any, spec: Any) -> Any:
        if is_mappable(x):
            return _mappable[type(x)].from_elt(from_elt, size, x, spec)
        # The result is put together outside of the batch trace, in which it would be one example.
        token = current_trace.set(trace.parent)
        try:
            return place(*trace.split(x), spec, size)
        finally:
            current_trace.reset(token)

    examples = [to_elt(x, spec) for x, spec in zip(leaves, specs, strict=True)]

    def run() -> list[Any]:
        outs, out_specs = fun(*examples)
        return [from_elt(axis.size, x, spec) for x, spec in zip(outs, out_specs, strict=True)]

    return run_in(trace, axis, run)
