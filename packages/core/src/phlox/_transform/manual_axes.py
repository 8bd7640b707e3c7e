"""The axes of `shard_map` along which values vary: how a value is given a type that says so.

Inside of `shard_map`, the type of a value names the mesh axes along which devices may hold different values of it (its
`vma`). An operation on a value that is equal on all devices and on one that varies gives one that varies. In reverse
mode the cotangent of a value that is equal on all devices is the sum of what the devices find: `as_varying` adds it up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._ir.avals import ShapedArray
from .._ir.jaxpr import Jaxpr
from .._ir.memory_spaces import any_spaces
from .._ir.primitive import current_trace, primitive
from .._ir.sharding_types import any_specs, manual_reductions, reductions_of
from .._trace.axes import tracked_axes
from .._trace.refs import accesses
from .._trace.trace import typeof
from .array_operations import Zero, zeros
from .sharding_types import reshard_like


def as_varying(x: Any, aval: ShapedArray) -> Any:
    """`x`, a value or a cotangent, with the `vma` of `aval`: declared as varying where it does not, summed up over the
    devices where it varies and must not. Its reductions over manual axes become those of `aval`. A `Zero` stays as it
    is."""
    if type(x) is Zero:
        return x
    have = typeof(x)
    if have.vma == aval.vma and have.spec is aval.spec:
        return x
    if manual_reductions(have) != manual_reductions(aval):
        x = _with_manual_reductions(x, aval)
    have_vma = typeof(x).vma
    # `pvary` and `psum_invariant` are each other's transposes: a value copied to all devices has the sum of their
    # cotangents.
    more, less = in_order(aval.vma - have_vma), in_order(have_vma - aval.vma)
    if more:
        x = primitive("pvary").bind(x, axes=more)
    return primitive("psum_invariant").bind(x, axes=less, axis_index_groups=None)[0] if less else x


def _with_manual_reductions(x: Any, aval: ShapedArray) -> Any:
    """`x` with the reductions of `aval` over manual axes. All changes but a sum are declarations."""
    have, (unreduced, reduced) = typeof(x), manual_reductions(typeof(x))
    to_unreduced, to_reduced = manual_reductions(aval)
    if axes := in_order(unreduced - to_unreduced - aval.vma):
        x = primitive("unreduced_psum").bind(x, axes=axes, kind=reductions_of(have).kind)
    if axes := in_order(to_unreduced - unreduced - have.vma):
        x = _on_first(x, axes)
    changes = {
        "varying": (unreduced - to_unreduced | reduced - to_reduced) & aval.vma,
        "unreduced": to_unreduced - unreduced,
        "reduced": to_reduced - reduced,
        "invarying": reduced - to_reduced - to_unreduced - aval.vma,
    }
    for to, changed in changes.items():
        if changed:
            x = primitive("manual_cast").bind(x, axes=in_order(changed), to=to)
    return x


def _on_first(x: Any, axes: tuple[Any, ...]) -> Any:
    """`x`, which is equal on all devices along `axes`, on the first of them, and zeros on the others."""
    none = zeros(typeof(x).with_spec(None))
    for axis in axes:
        is_other = primitive("ne").bind(primitive("axis_index").bind(axis_name=axis), np.int32(0))
        x = primitive("select_n").bind(is_other, x, none)
    return x


def widen_refs(jaxpr: Jaxpr, axes: frozenset[Any] = frozenset(), read_too: bool = False) -> bool:
    """Makes references that a program writes vary along `axes`, and along those along which their new values do.

    With `read_too`, those that it only reads vary along `axes` too. Returns whether one did not vary so. Then the
    program must be traced again.
    """
    trace, state, has_widened = current_trace.get(), accesses(jaxpr), False
    for ref in state.values:
        value = ref.read(trace)
        more = axes if read_too or ref in state.written else frozenset()
        if ref in state.written:
            more |= state.written[ref].aval.vma
        if not more <= value.aval.vma:
            ref.write(trace, as_varying(value, value.aval.varying(value.aval.vma | more)))
            has_widened = True
    return has_widened


def vary_also(x: Any, axes: frozenset[Any]) -> Any:
    """`x`, varying along `axes` too."""
    aval = typeof(x)
    return x if axes <= aval.vma else as_varying(x, aval.varying(aval.vma | axes))


def vary_like(x: Any, aval: ShapedArray) -> Any:
    """`x`, a new array, declared as varying along the mapped axes in scope along which `aval` varies."""
    # A `ShapeDtypeStruct` keeps the axes of the function in which it was made.
    return vary_also(x, aval.vma.intersection(tracked_axes())) if aval.vma else x


def as_typed(x: Any, aval: ShapedArray) -> Any:
    """`x`, a value or a cotangent, with the `vma`, the `spec` and the memory space of `aval`. A `Zero` is kept."""
    return x if type(x) is Zero else reshard_like(as_varying(x, aval), aval)


def any_typed() -> bool:
    """Whether there are types for which `as_typed` changes something: few programs have any."""
    return bool(tracked_axes()) or any_specs() or any_spaces()


def as_typed_all(xs: list[Any], avals: Iterable[ShapedArray]) -> list[Any]:
    """`as_typed` of each; `avals` is not read where types need none."""
    if not any_typed():
        return xs
    return [as_typed(x, a) for x, a in zip(xs, avals, strict=True)]


def in_order(axes: frozenset[Any]) -> tuple[Any, ...]:
    """Axes as a tuple in the order in which they are in scope."""
    return tuple(axis for axis in tracked_axes() if axis in axes)
