"""``jax.experimental.pallas.triton``: what of it has a meaning in interpret mode."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from phlox import lax, numpy as jnp

from ..._core import RefView, Slice
from ._specs import CompilerParams as _CompilerParams, unspecified


@dataclasses.dataclass(frozen=True)
class CompilerParams(_CompilerParams):
    """Options of the compiler for GPUs; no meaning in interpret mode."""

    num_warps: int | None = None
    num_stages: int | None = None


def _with_margin(view: Any) -> tuple[Any, list[int]] | None:
    """The array that a view with slices is a part of, longer by the slices; and the lengths that were added.

    Masked accesses may begin inside of the array and end outside, where a slice would otherwise be moved to the edge.
    """
    idx = view.idx if isinstance(view.idx, tuple) else (view.idx,)
    if not any(isinstance(part, Slice) for part in idx) or Ellipsis in idx:
        return None
    margins = [part.size * max(part.stride, 1) if isinstance(part, Slice) else 0 for part in idx]
    margins += [0] * (view.ref.aval.ndim - len(margins))
    whole = view.ref[...]
    shape = [n + m for n, m in zip(whole.shape, margins, strict=True)]
    return lax.dynamic_update_slice(unspecified(shape, whole.dtype), whole, [0] * whole.ndim), margins


def load(
    ref: Any,
    *,
    mask: Any = None,
    other: Any = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: bool = False,
) -> Any:
    """The elements of a reference, or of a part of one; `other` where `mask` is False.

    Args:
      ref: reference, or ``ref.at[index]``.
      mask: bools that broadcast to the elements; elements outside of the array must be masked.
      other: number or array; None leaves the masked elements unspecified.
      cache_modifier, eviction_policy, volatile: how the hardware caches; no meaning in interpret mode.
    """
    longer = _with_margin(ref) if isinstance(ref, RefView) else None
    value = ref[...] if longer is None else longer[0][ref.idx]
    if mask is None or other is None:
        return value
    return jnp.where(mask, value, jnp.asarray(other, value.dtype))


def store(ref: Any, val: Any, *, mask: Any = None, eviction_policy: str | None = None) -> None:
    """Writes the elements of `val`, those that `mask` selects, to a reference or a part of one; see `load`."""
    longer = _with_margin(ref) if isinstance(ref, RefView) else None
    if longer is None:
        ref[...] = val if mask is None else jnp.where(mask, val, ref[...])
        return
    whole, margins = longer
    new = val if mask is None else jnp.where(mask, val, whole[ref.idx])
    changed = whole.at[ref.idx].set(new)
    ref.ref[...] = changed[tuple(slice(0, n - m) for n, m in zip(changed.shape, margins, strict=True))]


def _atomic(combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """The operation that replaces elements by ``combine(element, value)`` and returns the elements before it."""

    def update(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Any:
        before = x_ref_or_view[idx]
        after = combine(before, val)
        if isinstance(idx, tuple) and any(getattr(part, "ndim", 0) for part in idx):
            raise NotImplementedError("atomic operations with arrays of indices are not there in interpret mode")
        x_ref_or_view[idx] = after if mask is None else jnp.where(mask, after, before)
        return before

    return update


atomic_add = _atomic(lambda a, b: a + b)
atomic_max = _atomic(jnp.maximum)
atomic_min = _atomic(jnp.minimum)
atomic_and = _atomic(jnp.bitwise_and)
atomic_or = _atomic(jnp.bitwise_or)
atomic_xor = _atomic(jnp.bitwise_xor)
atomic_xchg = _atomic(lambda before, value: jnp.broadcast_to(value, before.shape).astype(before.dtype))


def atomic_cas(ref: Any, cmp: Any, val: Any) -> Any:
    """Replaces the element of a reference by `val` if it equals `cmp`; returns the element before."""
    before = ref[...]
    ref[...] = jnp.where(before == cmp, val, before)
    return before


def dot(
    a: Any, b: Any, trans_a: bool = False, trans_b: bool = False, allow_tf32: bool | None = None, precision: Any = None
) -> Any:
    """The product of two matrices, each transposed before if its flag says so, accumulated in float32."""
    a, b = (x.T if flag else x for x, flag in ((a, trans_a), (b, trans_b)))
    accumulator = jnp.int32 if jnp.issubdtype(a.dtype, jnp.integer) else jnp.float32
    return lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=accumulator)


def approx_tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return jnp.tanh(x)


def debug_barrier() -> None:
    """Waits for the threads of the hardware; in interpret mode it does nothing."""


def max_contiguous(x: Any, values: Any) -> Any:
    """`x`, which is declared to have runs of consecutive values; interpret mode makes no use of it."""
    return x
