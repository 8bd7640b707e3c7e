"""`map`: a function of slices, computed one slice or one batch of slices at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._api.batching.vmap import vmap
from .._api.jit import arguments
from .._api.jit.bodies import operands_of
from .._api.jit.user_functions import check_returned, user_call
from .._base import pytree
from .._base.errors import OptionError
from .._operands.checks import integer
from .._trace.trace import typeof
from ._scan import Tree, scan
from ._scan_options import common_length
from ._structural import concatenate, reshape


@user_call
def map(f: Callable[..., Any], xs: Tree, *, batch_size: int | None = None) -> Tree:
    """``stack([f(x) for x in xs])``, computed one slice at a time, which needs less memory than `vmap` (as
    ``jax.lax.map``).

    Args:
      f: function of a slice of `xs` that returns a pytree of arrays.
      xs: pytree of arrays whose first axes have the same length.
      batch_size: number of slices that are computed at once, by `vmap`; None means one slice without `vmap`, and 0
        means all.

    Returns:
      A pytree like the result of `f`, with the results for all slices stacked along a new first axis.

    Raises:
      ArgumentError: `f` is not callable.
      AxisError: an array of `xs` is a scalar.
      ShapeError: the first axes differ in length.
      OptionError: `xs` has no arrays, or `batch_size` is negative.

    >>> map(lambda x: x**2, jnp.arange(3))
    Array([0, 1, 4], dtype=int32)
    """
    arguments.check_callable("map", f)
    if batch_size is None:

        def step(_: Any, x: Any) -> Any:
            out = f(x)
            leaves, tree = pytree.flatten(out)
            # Here, as the scan knows `step` only.
            arguments.check_outputs(f, out, leaves)
            check_returned(f, tree)
            return (), out

        step.__name__ = arguments.fun_name(f)
        return scan(step, (), xs)[1]
    if integer("map", "batch_size", batch_size) < 0:
        raise OptionError(f"map: batch_size={batch_size} is negative", instead="0, for all at once")
    leaves, tree = operands_of("map", f, (xs,))
    total = common_length(leaves, pytree.treedef_children(tree)[0], None, "map")
    batches = total // batch_size if batch_size else 0
    if not batches:
        return vmap(f)(xs)
    whole = batches * batch_size
    in_batches = pytree.tree_map(lambda x: reshape(x[:whole], (batches, batch_size, *typeof(x).shape[1:])), xs)
    out = map(vmap(f), in_batches)
    out = pytree.tree_map(lambda y: reshape(y, (whole, *typeof(y).shape[2:])), out)
    if whole == total:
        return out
    # The steps of a loop have one shape, so that a shorter last batch stands after it.
    rest = vmap(f)(pytree.tree_map(lambda x: x[whole:], xs))
    return pytree.tree_map(lambda a, b: concatenate([a, b], 0), out, rest)
