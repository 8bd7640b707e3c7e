"""`scan`: a loop of known length over the slices of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._api.derivatives.remat import checkpoint
from .._api.jit import arguments
from .._api.jit.bodies import operands_of, staged
from .._api.jit.references import check_distinct, find_refs, merged, names_of_refs
from .._api.jit.user_functions import user_call
from .._base import config, pytree
from .._base.errors import ArgumentError
from .._base.pytree import PyTreeDef, flatten
from .._ir.dimensions import is_symbolic
from .._ir.primitive import current_trace
from .._ops.control import scan as scanning
from .._ops.structure.shape import as_array_or_tracer
from .._trace.refs import AbstractRef, Ref, values, write_all
from .._trace.trace import typeof
from ._loop_carries import (
    Carry,
    LoopBody,
    check_carry,
    check_checkpoints,
    initial_value,
    next_index,
    settle_carry,
    unchanged_parts,
    with_fixed_carry,
)
from ._loop_messages import parameter_name, report_iterators
from ._progress import reporter
from ._scan_options import common_length, unroll_count
from ._structural import concatenate, reshape
from ._unstaged import run_scan

Tree = Any


@user_call
def scan(
    f: Callable[[Carry, Any], tuple[Carry, Any]],
    init: Carry,
    xs: Tree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
    *,
    checkpoints: int | None = None,
    progress: str | None = None,
) -> tuple[Carry, Tree]:
    """Applies `f` to the slices of `xs` along the first axis in turn, and passes a carry from step to step (StableHLO's
    ``while``).

        for x in xs: carry, y = f(carry, x)        ->   (carry, ys), the results stacked

    Reverse mode stores residuals of each step, so that its memory grows with the number of steps. With `checkpoints` it
    stores that many carries, and the residuals of ``length / checkpoints`` steps at a time, which it computes again.

    Args:
      f: function ``f(carry, x) -> (carry, y)``, where `x` is a slice of `xs`; `x` and `y` are pytrees, or None.
      init: initial carry, a pytree of arrays; it keeps its structure, shapes and dtypes.
      xs: pytree of arrays to loop over, along their first axes; None if `f` needs the carry only.
      length: number of steps; required if `xs` has no arrays. None means the length of the first axes of `xs`.
      reverse: whether to loop from the last slice to the first; each `y` is stored at the index of its slice in both
        cases.
      unroll: number of steps in each iteration of the compiled loop; True or 0 unrolls the whole loop.
      _split_transpose: accepted as in JAX, without effect.
      checkpoints: number of carries that reverse mode stores, 2 at least; the square root of the length needs the least
        memory. None means the residuals of all steps. (JAX does not have it.)
      progress: name under which the running program says on stderr how far the loop is. (JAX does not have it.)

    Returns:
      The pair (final carry, ys): `ys` is a pytree like `y`, with the results of all steps stacked along a new first
      axis.

    Raises:
      ArgumentError: `f` is not callable, or does not return a pair.
      AxisError: an array of `xs` is a scalar.
      TreeError: `f` changes the structure of the carry.
      ShapeError: the first axes and `length` are not all equal, or `f` changes a shape of the carry.
      DtypeError: `f` changes a dtype of the carry.
      OptionError: the number of steps is unknown, `unroll` is negative, or `checkpoints` is less than 2.
      ConcretizationTypeError: `length` or `unroll` is traced.

    >>> scan(lambda total, x: (total + x, total), 0, jnp.arange(4))
    (Array(6, dtype=int32), Array([0, 0, 1, 3], dtype=int32, weak_type=True))
    """
    arguments.check_callable("scan", f)
    report_iterators("scan", "f", f)
    check_checkpoints("scan", checkpoints)
    named = LoopBody("scan", "f", parameter_name(f, 0))
    if progress is None:
        return scan_in_segments(f, init, xs, length, reverse, unroll, named, checkpoints)
    leaves, tree = flatten(xs)
    steps = common_length(leaves, tree, length)
    report = reporter("scan", progress, None if is_symbolic(steps) else steps)

    def step(both: Any, x: Any) -> Any:
        report(both[0])
        out = f(both[1], x)
        return ((next_index(both[0]), out[0]), out[1]) if _is_pair(out) else out

    # The name of the user's function goes into the jaxpr and into messages.
    step.__name__ = arguments.fun_name(f)
    start = np.int32(0), init
    (_, carry), ys = scan_in_segments(step, start, xs, length, reverse, unroll, named.inside(), checkpoints)
    return carry, ys


def scan_in_segments(
    f: Callable[..., Any],
    init: Carry,
    xs: Tree,
    length: int | None,
    reverse: bool,
    unroll: Any,
    named: LoopBody,
    checkpoints: int | None,
) -> tuple[Carry, Tree]:
    """A scan over segments whose residuals are computed again, as many as there are `checkpoints`; then the rest."""
    leaves, tree = flatten(xs)
    steps = 0 if checkpoints is None else common_length(leaves, tree, length)
    if checkpoints is None or is_symbolic(steps) or steps <= checkpoints:
        return _scan(f, init, xs, length, reverse, unroll, named)
    # The segments are equally long, except that fewer steps may be left for the end.
    size = -(-steps // checkpoints)
    count, rest = divmod(steps, size)

    @checkpoint
    def segment(carry: Carry, rows: Tree) -> tuple[Carry, Tree]:
        return _scan(f, carry, rows, None if leaves else size, reverse, unroll, named)

    first = rest if reverse else 0  # where the segments begin: the last steps to be done are the rest
    rows = [x[first : first + count * size] for x in leaves]
    rows = [reshape(x, (count, size, *typeof(x).shape[1:])) for x in rows]
    carry, ys = scan(segment, init, tree.unflatten(rows), count, reverse)
    ys = pytree.tree_map(lambda y: reshape(y, (count * size, *typeof(y).shape[2:])), ys)
    if not rest:
        return carry, ys
    rows = [x[:rest] if reverse else x[count * size :] for x in leaves]
    carry, last = _scan(f, carry, tree.unflatten(rows), rest, reverse, unroll, named)
    return carry, pytree.tree_map(lambda a, b: concatenate([b, a] if reverse else [a, b], 0), ys, last)


def _is_pair(out: Any) -> bool:
    """Whether a step returned (carry, y); `_scan` refuses anything else."""
    return isinstance(out, tuple | list) and len(out) == 2


def _scan_refs(
    f: Callable[..., Any], init: Carry, leaves: list[Any], tree: PyTreeDef, mine: Sequence[int], options: Any
) -> tuple[Carry, Tree]:
    """A scan over arrays and references; each step reads and writes its slice of each reference."""
    refs = [leaves[i] for i in mine]
    name = f"{arguments.fun_name(f)} for scan"

    def names() -> list[str]:
        return names_of_refs(f, (pytree.tree_map(lambda _: 0, init), tree.unflatten(leaves)), {})

    check_distinct(name, refs, names=names)

    def step(carry: Carry, both: Any) -> Any:
        rows, rest = both
        # Inside of a step a reference stands for one row. Its final value is a result of the step, so that scan stacks
        # the rows.
        parts = [Ref(AbstractRef(typeof(row)), row) for row in rows]
        out = f(carry, merged(tree, mine, parts, rest))
        check_distinct(name, refs, current_trace.get().captured, names=names)
        return (out[0], (out[1], values(parts))) if _is_pair(out) else out

    step.__name__ = arguments.fun_name(f)
    rest = [x for i, x in enumerate(leaves) if i not in mine]
    # The step looks at the program that it is staged to, so it is staged under `disable_jit` too.
    with config.scope(disable_jit=False):
        carry, (ys, state) = scan(step, init, (values(refs), rest), *options)
    write_all(refs, state)
    return carry, ys


def _scan(
    f: Callable[..., Any], init: Carry, xs: Tree, length: int | None, reverse: bool, unroll: Any, named: LoopBody
) -> tuple[Carry, Tree]:
    leaves, xs_tree = flatten(xs)
    if ref_indices := find_refs(leaves):
        return _scan_refs(f, init, leaves, xs_tree, ref_indices, (length, reverse, unroll))
    leaves, tree = operands_of("scan", f, (init, xs))
    carry_tree, xs_tree = pytree.treedef_children(tree)
    count = carry_tree.num_leaves
    steps = common_length(leaves[count:], xs_tree, length)
    unroll = unroll_count(unroll, steps, named.function)
    # Of no steps nobody knows the types of the results, except by tracing.
    if config.current().disable_jit and not is_symbolic(steps) and steps:
        carry, rows = tree.unflatten(leaves)
        return run_scan(f, carry, rows, steps, bool(reverse))
    row_avals = [typeof(x).without_axis(0) for x in leaves[count:]]
    avals, body = settle_carry(
        [typeof(x) for x in leaves[:count]],
        lambda types: staged("scan", "f", f, tree, [*types, *row_avals]),
    )
    if body.out_tree.node_data() is None or body.out_tree.node_data()[0] not in (tuple, list):
        is_leaf = pytree.describe(body.out_tree) == "a leaf"
        got = body.out_avals[0].str_short(False) if is_leaf else body.typed_result()
        what = f"scan body output must be a pair, got {got}."
        instead = body.advice("f", "carry, y") or "return carry, None"
        raise ArgumentError(f"{what} f ({body.name}) returns (carry, y)", instead=instead)
    parts = pytree.treedef_children(body.out_tree)
    if len(parts) != 2:
        what = f"scan body output must be a pair, got {len(parts)} values."
        raise ArgumentError(f"{what} f ({body.name}) returns (carry, y)")
    check_carry(named, carry_tree, avals, body, parts[0], "the next value" if named.depth else "carry, y")
    body = body.varying([a.vma for a in avals])
    # Results that are inputs of f exist already, and parts of the carry that f returns unchanged become constants.
    start = [initial_value(x, a) for x, a in zip(leaves[:count], avals, strict=True)]
    unchanged = unchanged_parts(body, count)
    outvars = body.closed.jaxpr.outvars
    inputs = dict(zip(body.closed.jaxpr.invars[len(body.consts) + count :], leaves[count:], strict=True))
    results = [i for i, v in enumerate(outvars) if i < count or v not in inputs]
    last, rows = scanning.Scan(
        with_fixed_carry(body, unchanged, results),
        [*(start[i] for i in unchanged), *body.consts],
        [x for i, x in enumerate(start) if i not in unchanged],
        leaves[count:],
        {"length": steps, "reverse": bool(reverse), "unroll": unroll},
    ).bind()
    changed, stacked = iter(last), iter(rows)
    carry = [as_array_or_tracer(x) if i in unchanged else next(changed) for i, x in enumerate(start)]
    ys = [as_array_or_tracer(inputs[v]) if v in inputs else next(stacked) for v in outvars[count:]]
    return carry_tree.unflatten(carry), parts[1].unflatten(ys)
