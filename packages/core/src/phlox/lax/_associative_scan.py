"""`associative_scan`: cumulative results of an associative function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._api.jit import arguments
from .._api.jit.bodies import operands_of
from .._api.jit.user_functions import user_call
from .._base import pytree
from .._base.errors import ArgumentError, DtypeError, ShapeError, TreeError
from .._base.pytree import flatten
from .._operands.checks import integer
from .._ops.reductions import running
from .._trace.trace import typeof
from .._transform.array_operations import move_axis
from ._structural import rev

Tree = Any


@user_call
def associative_scan(fn: Callable[[Any, Any], Any], elems: Tree, reverse: bool = False, axis: int = 0) -> Tree:
    """Cumulative results of an associative function `fn` along `axis`, in a logarithmic number of steps (as
    ``jax.lax.associative_scan``).

    Args:
      fn: associative function ``fn(a, b)`` of two pytrees like `elems`, of the same length along `axis`; it combines
        them elementwise and returns such a pytree.
      elems: pytree of arrays of the same length along `axis`.
      reverse: whether to accumulate from the end of the axis to its start.
      axis: axis number to scan along; negative numbers count from the last axis.

    Returns:
      A pytree like `elems`; the element at each index combines all elements up to that index.

    Raises:
      ArgumentError: `fn` is not callable, or `elems` has no arrays.
      ShapeError: `axis` is out of range for an array, the lengths along it differ, or `fn` changes a shape.
      DtypeError: `fn` changes a dtype.
      TreeError: `fn` returns a pytree of another structure than `elems`.

    >>> associative_scan(lambda a, b: a + b, jnp.arange(4))
    Array([0, 1, 3, 6], dtype=int32)
    """
    arguments.check_callable("associative_scan", fn)
    leaves, tree = operands_of("associative_scan", fn, (elems,))
    elems_tree = pytree.treedef_children(tree)[0]
    if not leaves:
        raise ArgumentError("associative_scan: elems has no arrays", argument="elems", value=elems)
    axis, lengths = integer("associative_scan", "axis", axis), set()
    for path, x in zip(pytree.named_paths(elems_tree), leaves, strict=True):
        aval = typeof(x)
        if not -aval.ndim <= axis < aval.ndim:
            raise ShapeError(f"associative_scan: elems{pytree.keystr(path)} is {aval.short}, which has no axis {axis}")
        lengths.add(aval.shape[axis])
    if len(lengths) > 1:
        raise ShapeError(
            f"associative_scan: elems must have the same first dimension, that along axis {axis}: {sorted(lengths)}"
        )
    axes = [axis % typeof(x).ndim for x in leaves]  # leaves may differ in rank
    front = [move_axis(rev(x, (at,)) if reverse else x, at, 0) for x, at in zip(leaves, axes, strict=True)]

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        result = fn(elems_tree.unflatten(a), elems_tree.unflatten(b))
        out, out_tree = flatten(result)
        # As in JAX, fn may return the leaves in other containers: dynamax takes named tuples and returns tuples.
        if len(out) != len(a):
            instead = f"return the combined elements at the end of fn ({arguments.fun_name(fn)}), which returns None"
            types = [typeof(x).short for x in out] if result is not None else []
            takes = pytree.typed_text(elems_tree, [typeof(x).short for x in a])
            what = (
                "associative_scan: fn returns another structure than it takes, "
                f"{pytree.typed_text(out_tree, types)} for {takes}"
            )
            pytree.check_same(elems_tree, out_tree, what, instead if result is None else "", TreeError)
        # Checked here: otherwise the scan would raise for parts of `elems`, which the user does not know.
        for path, x, y in zip(pytree.named_paths(elems_tree), a, out, strict=True):
            aval, got = typeof(x), typeof(y)
            if (aval.shape, aval.dtype) != (got.shape, got.dtype):
                kind = DtypeError if aval.shape == got.shape else ShapeError
                where = f"elems{pytree.keystr(path)} of type {aval.short}"
                raise kind(f"associative_scan: fn returns {got.short} for {where}")
        return out

    scanned = running.associative_scan(combine, front, 0)
    back = [move_axis(x, 0, at) for x, at in zip(scanned, axes, strict=True)]
    return elems_tree.unflatten([rev(x, (at,)) if reverse else x for x, at in zip(back, axes, strict=True)])
