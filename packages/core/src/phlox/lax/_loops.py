"""`while_loop` and `fori_loop`: loops of the compiled program.

A Python `for` is unrolled while a function is traced. These functions take the body as a function and trace it once;
the compiled program iterates.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .._api.jit import arguments
from .._api.jit.bodies import Staged, operands_of, staged, wrapped_once
from .._api.jit.user_functions import user_call
from .._base import config, pytree
from .._base.errors import ConcretizationTypeError, DtypeError, InconclusiveDimensionOperation, OptionError
from .._base.pytree import flatten
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.jaxpr import ClosedJaxpr, memoized
from .._operands.checks import integer
from .._operands.promotion import to_dtype
from .._ops.control import loop
from .._ops.elementwise.logic import and_, lt
from .._ops.structure.shape import as_array_or_tracer
from .._trace.refs import accesses
from .._trace.trace import typeof
from .._transform.jaxprs import unused_inputs
from .._transform.manual_axes import widen_refs
from ..typing import ArrayLike
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
from ._progress import reporter, reporting_body
from ._scan import scan_in_segments
from ._unstaged import known_primal, run_while


@user_call
def while_loop(
    cond_fun: Callable[[Carry], Any],
    body_fun: Callable[[Carry], Carry],
    init_val: Carry,
    *,
    max_steps: int | None = None,
    checkpoints: int | None = None,
    progress: str | None = None,
) -> Carry:
    """Repeats ``val = body_fun(val)`` as long as ``cond_fun(val)`` is true (StableHLO's ``while``).

    The loop state keeps its structure, shapes and dtypes. Derivatives are available in both modes. Reverse mode stores
    up to `checkpoints` states of the loop and computes the others again from them, so that its memory does not grow
    with the number of iterations. The page "Control flow" has the costs.

    Args:
      cond_fun: function of the loop state that returns a bool scalar: whether to continue.
      body_fun: function of the loop state that returns the next state.
      init_val: initial loop state, a pytree of arrays.
      max_steps: largest number of iterations; the loop ends after them also if `cond_fun` is still true. None means no
        limit. Reverse mode stores no more states than this. (JAX does not have it.)
      checkpoints: number of loop states that reverse mode stores, 2 at least; None means as many as need one megabyte,
        but 64 at least and 512 at most. (JAX does not have it.)
      progress: name under which the running program says on stderr how many iterations are done. (JAX does not have
        it.)

    Returns:
      The final loop state, for which `cond_fun` returns False.

    Raises:
      ArgumentError: a function is not callable.
      TreeError: `body_fun` changes the structure of the loop state.
      ShapeError: `body_fun` changes a shape; the error's ``path`` names the array.
      DtypeError: `body_fun` changes a dtype, or `cond_fun` does not return a bool scalar.
      OptionError: `checkpoints` is less than 2, or `max_steps` is negative.

    >>> while_loop(lambda x: x < 100, lambda x: 2 * x, 3)
    Array(192, dtype=int32, weak_type=True)
    >>> phlox.grad(lambda x: while_loop(lambda x: x < 100, lambda x: 2 * x, x))(3.0)
    Array(64., dtype=float32, weak_type=True)
    """
    report_iterators("while_loop", "body_fun", body_fun)
    named = LoopBody("while_loop", "body_fun", parameter_name(body_fun, 0))
    check_checkpoints("while_loop", checkpoints)
    # The turns are counted only if something reads the count.
    if max_steps is None and progress is None:
        return _while(cond_fun, body_fun, init_val, named, checkpoints)
    if max_steps is not None:
        if integer("while_loop", "max_steps", max_steps) < 0:
            raise OptionError(f"while_loop: max_steps={max_steps} is negative")
        # The number of stored states is even, as in `stored_states`. No loop of few steps needs more rows than steps.
        most = max(2, max_steps + max_steps % 2)
        if checkpoints is None or checkpoints > most:
            avals = [typeof(x) for x in flatten(init_val)[0]]
            checkpoints = min(most, loop.stored_states(avals, checkpoints))
    report = reporter("while_loop", progress, None)

    def step(both: Any) -> Any:
        report(both[0])
        return next_index(both[0]), body_fun(both[1])

    # The name of the user's function goes into the jaxpr and into messages.
    step.__name__ = arguments.fun_name(body_fun)

    def goes_on(both: Any) -> Any:
        test = cond_fun(both[1])
        return test if max_steps is None else and_(lt(both[0], np.int32(max_steps)), test)

    return _while(goes_on, step, (np.int32(0), init_val), named.inside(), checkpoints)[1]


def _what(condition: Staged) -> str:
    """What a condition returned instead of a bool scalar, for the error."""
    if condition.out_tree.num_nodes != 1:
        return f"pytree {condition.out_tree}"
    return f"output type(s) {[aval.update(weak_type=False) for aval in condition.out_avals]}"


def _while_of_writing_condition(
    cond_fun: Callable[[Carry], Any],
    body_fun: Callable[[Carry], Carry],
    init_val: Carry,
    named: LoopBody,
    checkpoints: int | None,
) -> Carry:
    """A loop whose condition writes to references: part of the body, as only bodies return values of references."""

    def step(both: Any) -> Any:
        carry = body_fun(both[1])
        return cond_fun(carry), carry

    step.__name__ = arguments.fun_name(body_fun)
    return _while(lambda both: both[0], step, (cond_fun(init_val), init_val), named.inside(), checkpoints)[1]


def _while(
    cond_fun: Callable[[Carry], Any],
    body_fun: Callable[[Carry], Carry],
    init_val: Carry,
    named: LoopBody,
    checkpoints: int | None,
) -> Carry:
    if config.current().disable_jit:
        with contextlib.suppress(ConcretizationTypeError):  # The condition depends on unknown values.
            return run_while(cond_fun, body_fun, init_val)
    leaves, tree = operands_of("while_loop", body_fun, (init_val,))
    carry_tree = pytree.treedef_children(tree)[0]
    avals, body = settle_carry(
        [typeof(x) for x in leaves],
        lambda types: staged("while_loop", "body_fun", body_fun, tree, types),
    )
    check_carry(named, carry_tree, avals, body, body.out_tree, "the next value")
    go_on = staged("while_loop", "cond_fun", cond_fun, tree, avals)
    # A weakly typed bool, as of `True`, is a condition as well, and may vary between devices.
    answers = [a.update(weak_type=False, vma=frozenset()) for a in go_on.out_avals]
    if answers != [_BOOL] or go_on.out_tree.num_nodes != 1:
        got = ", ".join(a.short for a in go_on.out_avals)
        raise DtypeError(
            f"while_loop: cond_fun must return a boolean scalar, but got {_what(go_on)}. This {go_on.name} returned: "
            f"{got or go_on.typed_result()}",
            instead=go_on.advice("cond_fun", "a bool"),
        )
    if accesses(go_on.closed.jaxpr).written:
        return _while_of_writing_condition(cond_fun, body_fun, init_val, named, checkpoints)
    # Devices may stop after different numbers of turns.
    while widen_refs(body.closed.jaxpr, stops := go_on.out_avals[0].vma) or not all(stops <= a.vma for a in avals):
        avals, body = settle_carry(
            [a.varying(a.vma | stops) for a in avals],
            lambda types: staged("while_loop", "body_fun", body_fun, tree, types),
        )
        go_on = staged("while_loop", "cond_fun", cond_fun, tree, avals)
    body = body.varying([a.vma for a in avals])
    leaves = [initial_value(x, a) for x, a in zip(leaves, avals, strict=True)]
    # A part of the carry that the body returns unchanged becomes a constant, unless the condition reads it.
    unasked = unused_inputs(go_on.closed.jaxpr)[len(go_on.consts) :]
    unchanged = {i: None for i in unchanged_parts(body, len(leaves)) if unasked[i]}
    unchanged = unchanged if len(unchanged) < len(leaves) else {}
    fixed, moving = [leaves[i] for i in unchanged], [x for i, x in enumerate(leaves) if i not in unchanged]
    whole = loop.Loop(
        _without_inputs(go_on, unchanged),
        with_fixed_carry(body, unchanged, [*range(len(leaves))]),
        go_on.consts,
        [*fixed, *body.consts],
        moving,
        {} if checkpoints is None else {"checkpoints": checkpoints},
    )
    outs = iter(whole.bind(loop.while_p))
    return carry_tree.unflatten([as_array_or_tracer(x) if i in unchanged else next(outs) for i, x in enumerate(leaves)])


def _without_inputs(program: Staged, unused: dict[int, None]) -> ClosedJaxpr:
    """The staged function without these inputs, which it does not use; positions count after its constants."""
    if not unused:
        return program.closed
    jaxpr, first = program.closed.jaxpr, len(program.consts)
    invars = [v for i, v in enumerate(jaxpr.invars) if i - first not in unused]
    return memoized(jaxpr, ("without", *unused), lambda: ClosedJaxpr(jaxpr.replace(invars=invars)))


_BOOL = typeof(np.bool_(True))


@user_call
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, Carry], Carry],
    init_val: Carry,
    *,
    unroll: int | bool | None = None,
    checkpoints: int | None = None,
    progress: str | None = None,
) -> Carry:
    """``for i in range(lower, upper): val = body_fun(i, val)``, as a loop of the program (StableHLO's ``while``).

    With bounds that are Python numbers (or arrays whose values are known) it is a `scan`, which can be unrolled;
    otherwise a `while_loop`. Both have derivatives in both modes.

    Args:
      lower: start of the index range, an integer scalar.
      upper: end of the index range, not included; an integer scalar of the dtype of `lower`. If it is not greater than
        `lower`, the result is `init_val`.
      body_fun: function ``(i, val)`` of the index, a scalar, and the loop state; it returns the next state.
      init_val: initial loop state, a pytree of arrays; it keeps its structure, shapes and dtypes.
      unroll: number of iterations in each step of the compiled loop; True or 0 unrolls the whole loop, None means 1.
        More than 1 requires bounds that are known while tracing.
      checkpoints: number of loop states that reverse mode stores, as in `scan` or `while_loop`. (JAX does not have it.)
      progress: name under which the running program says on stderr how far the loop is. (JAX does not have it.)

    Returns:
      The final loop state.

    Raises:
      ArgumentError: `body_fun` is not callable.
      TreeError: `body_fun` changes the structure of the loop state.
      ShapeError: `body_fun` changes a shape.
      DtypeError: the bounds are not real scalars of one dtype, or `body_fun` changes a dtype.
      OptionError: `unroll` is negative, or is more than 1 with bounds that are traced; `checkpoints` is less than 2.

    >>> fori_loop(0, 5, lambda i, total: total + i, 0)
    Array(10, dtype=int32, weak_type=True)
    """
    arguments.check_callable("fori_loop: body_fun", body_fun)
    report_iterators("fori_loop", "body_fun", body_fun)
    check_checkpoints("fori_loop", checkpoints)
    for name, bound in (("lower", lower), ("upper", upper)):
        arguments.check_arrays("fori_loop", fori_loop, (bound,), {}, [bound])
        aval = typeof(bound)
        if aval.shape or dtypes.kind(aval.dtype) not in "iufb":
            raise DtypeError(f"fori_loop: {name} must be one real number, got {aval.short}")
    both = [typeof(lower), typeof(upper)]
    # A bound that is a Python number takes the dtype of the other one.
    dtype = both[0].dtype if both[1].weak_type else both[1].dtype
    if any(a.dtype != dtype and not _converts(a, dtype) for a in both):
        raise DtypeError(
            f"lower and upper arguments to fori_loop must have equal types, got {both[0].short} and {both[1].short}"
        )
    # With known bounds the loop is a scan: its reverse mode stores residuals and computes no step again, and it can be
    # unrolled.
    ends = _known_integers(lower, upper)
    if ends is not None:
        length = max(0, ends[1] - ends[0])
        # A variable, as the step does not keep the body alive.
        reported = reporting_body("fori_loop", body_fun, progress, length, ends[0])
        step = wrapped_once(_indexed_step, reported)
        named = LoopBody("fori_loop", "body_fun", parameter_name(body_fun, 1), depth=1)
        at_a_time = 1 if unroll is None else unroll
        return scan_in_segments(step, (ends[0], init_val), None, length, False, at_a_time, named, checkpoints)[0][1]
    if unroll is not None and unroll is not False and unroll != 1:
        raise OptionError("fori_loop: Can only use `unroll` with bounds that are known when the program is traced")
    first = to_dtype(lower, dtype, both[0].weak_type and both[0].dtype == dtype)
    reported = reporting_body("fori_loop", body_fun, progress, None, first)
    body = wrapped_once(_bounded_body, reported)
    named = LoopBody("fori_loop", "body_fun", parameter_name(body_fun, 1), depth=1)
    # The end is part of the carry, which is all that the condition may read.
    start = (first, to_dtype(upper, dtype, both[1].weak_type and both[1].dtype == dtype), init_val)
    return _while(_is_before_end, body, start, named, checkpoints)[2]


def _indexed_step(body_fun: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """The step of a scan whose carry is (index, loop state)."""

    def step(carry: Any, _: Any) -> Any:
        i, x = carry
        return (next_index(i), _next(body_fun(), i, x)), None

    return step


def _bounded_body(body_fun: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """The body of a `while_loop` whose state is (index, end, loop state)."""

    def body(carry: Any) -> Any:
        i, end, x = carry
        return next_index(i), end, _next(body_fun(), i, x)

    return body


def _next(body_fun: Callable[..., Any], i: Any, x: Any) -> Any:
    """The next loop state. It is checked here, as errors of the loop itself would name the function around."""
    out = body_fun(i, x)
    arguments.check_outputs(body_fun, out, pytree.tree_leaves(out))
    return out


def _is_before_end(carry: Any) -> Any:
    return carry[0] < carry[1]


def _converts(aval: ShapedArray, dtype: Any) -> bool:
    """Whether a bound is a Python integer, which may take this dtype."""
    return aval.weak_type and dtypes.kind(aval.dtype) in "iu" and dtypes.kind(dtype) in "iu"


def _known_integers(*bounds: Any) -> tuple[int, ...] | None:
    """The bounds as Python integers if their values are known, also those of tracers of eager differentiation."""
    try:
        return tuple(int(known_primal(x)) for x in bounds)
    except (ConcretizationTypeError, InconclusiveDimensionOperation):
        return None
