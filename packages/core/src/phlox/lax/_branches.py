"""`cond` and `switch`: branches of the compiled program.

A Python `if` is decided while a function is traced. These functions take the branches as functions and trace all of
them; the compiled program chooses.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._api.jit import arguments
from .._api.jit.bodies import Staged, operands_of, staged, varying_results
from .._api.jit.references import closed_over
from .._api.jit.user_functions import user_call
from .._base import pytree
from .._base.errors import ArgumentError, DtypeError, OptionError, ShapeError, ShardingTypeError
from .._ir import dtypes
from .._ir.avals import typeof_value
from .._ir.dimensions import value_of
from .._ir.jaxpr import ClosedJaxpr, Var, memoized, with_constants
from .._operands.promotion import to_dtype
from .._ops.control import branch
from .._ops.elementwise import logic
from .._ops.structure.shape import as_array_or_tracer
from .._trace.axes import axis_env
from .._trace.interpret import as_function, eval_jaxpr
from .._trace.refs import Ref, accesses, values, write_all
from .._trace.trace import Tracer, typeof
from .._transform.jaxprs import restage
from .._transform.manual_axes import as_varying, widen_refs
from ..typing import ArrayLike
from ._loop_messages import have_equal_types
from ._unstaged import chosen_branch

#: the default of `operand`, which may be None
_MISSING: Any = object()


@user_call
def cond(
    pred: ArrayLike,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _MISSING,
    batching: branch.Batching = None,
) -> Any:
    """``true_fun(*operands)`` if `pred`, else ``false_fun(*operands)`` (StableHLO's ``case``).

    Both functions are traced; one of them runs. Under `vmap` with a batched `pred` either both run for all rows and
    results are selected, or each runs for chunks of the rows that take it, see `batching`. A loop in a function runs
    for the rows that take the function only.

    JAX's older form ``cond(pred, true_operand, true_fun, false_operand, false_fun)``, which has a separate operand for
    each function, is accepted too.

    Args:
      pred: condition: a bool scalar, or a real scalar, which is true unless it is 0.
      true_fun, false_fun: functions of the operands; their results have the same structure, shapes and dtypes.
      *operands: arguments passed to the function: pytrees of arrays.
      operand: a single operand, given by keyword in place of `operands`.
      batching: under `vmap` with a batched `pred`: "select" runs both functions for all rows; "split" orders rows by
        `pred` and runs each function for chunks of its rows. None chooses "split" for at least 128 rows if functions
        are expensive: if by an estimate of their operations it is 1.5 times as fast when half of the rows take each.
        JAX always selects.

    Returns:
      The result of the function that runs, a pytree of arrays.

    Raises:
      ArgumentError: `pred` is None or not a number, a function is not callable, or both `operand` and operands are
        given.
      ShapeError: `pred` is not a scalar, or the results of the functions have different shapes.
      DtypeError: `pred` is complex, or the results of the functions have different dtypes.
      TreeError: the results of the functions have different structures.
      OptionError: `batching` has another value; or it is "split" under `vmap`, and the functions have callbacks or
        collectives, or the mapped axis is split over devices.

    >>> cond(True, lambda x: x + 1, lambda x: x - 1, 3.0)
    Array(4., dtype=float32, weak_type=True)
    """
    if operand is not _MISSING:
        if operands:
            raise ArgumentError("cond: operand= together with further arguments", instead="arguments alone")
        operands = (operand,)
    if not callable(true_fun) and callable(false_fun) and len(operands) == 2:
        # As in JAX: cond(pred, true_operand, true_fun, false_operand, false_fun), each function with its own operand.
        operands, (true_fun, false_fun) = (true_fun, operands[0]), (false_fun, operands[1])
        true_fun, false_fun = _of_one("true_fun", true_fun, 0), _of_one("false_fun", false_fun, 1)
    roles = ["false_fun", "true_fun"]
    # Branch 1 is the true one, and it is traced first, as in JAX.
    return choice("cond", [false_fun, true_fun], roles, _truth(pred), operands, (1, 0), batching=batching)


def _of_one(role: str, fun: Callable[..., Any], place: int) -> Callable[..., Any]:
    """A function of all operands that calls `fun` with the operand at this position only."""
    arguments.check_callable(f"cond: {role}", fun)

    @functools.wraps(fun)
    def branch_of_one(*operands: Any) -> Any:
        return fun(operands[place])

    return branch_of_one


def _truth(pred: Any) -> Any:
    if pred is None:
        raise ArgumentError("cond predicate is None", instead="a truth value: True, or x.any()")
    if typeof_value(pred) is None:
        what = f"of type {type(pred)}"
        raise ArgumentError(
            f"cond: Pred type must be either boolean or number, got {pred!r} {what}"
            if callable(pred)
            else f"cond: Pred must be a scalar, got {pred} {what}"
        )
    aval = typeof(pred)
    if aval.shape:
        raise ShapeError(f"cond: pred must be one truth value, got {aval.short}", instead="pred.any() or pred.all()")
    if dtypes.kind(aval.dtype) not in "biuf":
        raise DtypeError(f"cond: pred must be a truth value or a number, got {aval.short}")
    if not isinstance(pred, Tracer):
        return np.int32(bool(pred))
    truth = pred if aval.dtype == dtypes.bool_ else logic.ne(pred, to_dtype(0, aval.dtype))
    return to_dtype(truth, dtypes.int32)


@user_call
def switch(
    index: ArrayLike,
    branches: Sequence[Callable[..., Any]],
    *operands: Any,
    operand: Any = _MISSING,
    batching: branch.Batching = None,
) -> Any:
    """``branches[index](*operands)``, with `index` clamped to the valid range (StableHLO's ``case``).

    All branches are traced; one of them runs. Under `vmap` with a batched `index` either all run for all rows and
    results are selected, or each runs for chunks of the rows that take it, see `cond`.

    Args:
      index: integer scalar; negative values select the first branch, too large ones the last.
      branches: sequence of at least one function of the operands; their results have the same structure, shapes and
        dtypes.
      *operands: arguments passed to the branch: pytrees of arrays.
      operand: one more argument, given by keyword.
      batching: "select", "split" or None, as in `cond`.

    Returns:
      The result of the branch that runs, a pytree of arrays.

    Raises:
      ArgumentError: `index` is not a number, or a branch is not callable.
      OptionError: `branches` is empty, or `batching` does not fit, see `cond`.
      ShapeError: `index` is not a scalar, or the results of the branches have different shapes.
      DtypeError: `index` is not an integer, or the results of the branches have different dtypes.
      TreeError: the results of the branches have different structures.

    >>> switch(1, [lambda x: x, lambda x: 10 * x], 2.0)
    Array(20., dtype=float32, weak_type=True)
    """
    if operand is not _MISSING:
        operands = (*operands, operand)
    if callable(branches) or not hasattr(branches, "__iter__"):
        raise ArgumentError(
            f"switch takes a sequence of functions, got {branches!r:.60}",
            instead="switch(index, [f, g], x)",
            argument="branches",
        )
    branches = list(branches)
    if not branches:
        raise OptionError("Empty branch sequence: switch needs at least one branch")
    for i, function in enumerate(branches):
        arguments.check_callable(f"lax.switch: branch {i}", function)
    if shape := np.shape(index):
        raise ShapeError(f"switch: Branch index must be scalar, got {index} of shape {shape}.", shapes=[shape])
    if typeof_value(index) is None:
        raise ArgumentError(f"switch: Index type must be an integer, got {index}.", argument="index", value=index)
    index = value_of(index)
    aval = typeof(index)
    if dtypes.kind(aval.dtype) not in "iu":
        raise DtypeError(f"switch: Index type must be an integer, got {aval.short}")
    last = len(branches) - 1
    if not isinstance(index, Tracer):
        branch_index: Any = np.int32(min(max(int(index), 0), last))  # type: ignore[arg-type]
    else:
        # StableHLO's `case` takes the last branch for every index out of range, a negative one included.
        branch_index = logic.clamp(np.int32(0), to_dtype(index, dtypes.int32), np.int32(last))
    roles = [f"branch {i}" for i in range(len(branches))]
    return choice("switch", branches, roles, branch_index, operands, batching=batching)


def choice(
    function: str,
    funs: Sequence[Callable[..., Any]],
    roles: Sequence[str],
    index: Any,
    operands: tuple[Any, ...],
    order: Sequence[int] | None = None,
    batching: branch.Batching = None,
) -> Any:
    """Traces the branches, in this `order` if given, and binds `cond`."""
    if batching not in (None, "select", "split"):
        raise OptionError(f"{function}: batching={batching!r}", instead="'select', 'split' or None")
    if (chosen := chosen_branch(index)) is not None:
        return funs[chosen](*operands)
    originals, order = funs, range(len(funs)) if order is None else order
    funs, operands = closed_over(function, funs, operands)

    leaves, tree = operands_of(function, originals[-1], operands)
    index_axes = typeof(index).vma
    if index_axes:  # Devices take different branches: what a derivative adds up over them, it must add up outside.
        leaves = [_vary_along(x, index_axes) for x in leaves]
    avals = [typeof(x) for x in leaves]
    # Of a known predicate too all branches are traced, and their types compared.
    staged_branches = {i: staged(function, roles[i], funs[i], tree, avals) for i in order}
    initial_values: dict[Ref, Any] = {}
    if index_axes:
        refs = [ref for one in staged_branches.values() for ref in one.refs]
        initial_values = dict(zip(refs, values(refs), strict=True))
    while any(widen_refs(one.closed.jaxpr, index_axes, True) for one in staged_branches.values()):
        staged_branches = {i: staged(function, roles[i], funs[i], tree, avals) for i in order}
    programs = [staged_branches[i] for i in range(len(funs))]
    first = programs[0]
    _check_structures(function, programs, roles)
    _check_types(function, programs, roles)
    closed = [one.closed for one in programs]
    consts_of = [one.consts for one in programs]
    if index_axes:
        consts_of = [[_vary_along(c, index_axes) for c in consts] for consts in consts_of]
        closed = [_with_varying_inputs(program, index_axes) for program in closed]
    closed = _with_equal_varying_axes(closed, index_axes)
    # With one branch there is no choice, so it is written into the program.
    if len(closed) == 1:
        outs = eval_jaxpr(closed[0].jaxpr, [], *consts_of[0], *leaves)
        return first.out_tree.unflatten([as_array_or_tracer(x) for x in outs])
    # An operand that all branches return in the same place bypasses the operation, and so does its derivative.
    returned = _returned(closed, [len(one.consts) for one in programs])
    closed = [_without_results(program, returned) for program in closed]
    consts: list[Any] = []
    branches = tuple(closed)
    if any(one.consts for one in programs):
        opened = [with_constants(program, consts) for consts, program in zip(consts_of, closed, strict=True)]
        consts, branches = branch.with_shared_constants(opened, order)
    outs = iter(branch.cond.bind(index, *consts, *leaves, **branch.cond_params(branches, batching)))
    for ref, value in initial_values.items():
        if not any(ref in accesses(one.closed.jaxpr).written for one in programs):
            write_all([ref], [value])  # which does not vary outside of the branches
    return first.out_tree.unflatten([next(outs) if i is None else as_array_or_tracer(leaves[i]) for i in returned])


def _returned(branches: Sequence[ClosedJaxpr], widths: Sequence[int]) -> list[int | None]:
    """For each result the position of the operand that all branches return for it, or None.

    `widths` are the numbers of constants that precede the operands of each branch.
    """

    def operand_indices(program: ClosedJaxpr, width: int) -> list[int | None]:
        operands = {v: i for i, v in enumerate(program.jaxpr.invars[width:])}
        return [operands.get(v) if type(v) is Var else None for v in program.jaxpr.outvars]

    columns = zip(
        *[operand_indices(program, width) for program, width in zip(branches, widths, strict=True)], strict=True
    )
    return [column[0] if len({*column}) == 1 else None for column in columns]


def _without_results(program: ClosedJaxpr, returned: Sequence[int | None]) -> ClosedJaxpr:
    """The branch without the results that are returned operands."""
    positions = [i for i, place in enumerate(returned) if place is None]
    if len(positions) == len(returned):
        return program
    jaxpr = program.jaxpr
    make = lambda: ClosedJaxpr(jaxpr.replace(outvars=[jaxpr.outvars[i] for i in positions]), program.consts)  # noqa: E731
    return memoized(jaxpr, ("results", *positions), make)


def _vary_along(x: Any, axes: frozenset[Any]) -> Any:
    """A value declared as varying along `axes` besides those along which it does."""
    aval = typeof(x)
    return as_varying(x, aval.varying(aval.vma | axes))


def _with_varying_inputs(program: ClosedJaxpr, axes: frozenset[Any]) -> ClosedJaxpr:
    """The branch with inputs that vary along `axes`."""
    avals = [a.varying(a.vma | axes) for a in program.in_avals]
    make = lambda: restage(as_function(program), avals, program.jaxpr, may_use_refs=True)  # noqa: E731
    return memoized(program.jaxpr, ("varying inputs", tuple(avals), axis_env.get()), make)


def _with_equal_varying_axes(programs: Sequence[ClosedJaxpr], chosen_by: frozenset[Any]) -> list[ClosedJaxpr]:
    """The branches with results that vary along the same mesh axes, and along those along which the choice does."""
    vma = [
        chosen_by.union(*[a.vma for a in column]) for column in zip(*[one.out_avals for one in programs], strict=True)
    ]
    return [varying_results(one, vma) for one in programs]


def _one_type_advice(kind: type[Exception], *avals: Any) -> str:
    """What to write in a branch so that all return one type."""
    if kind is DtypeError:
        if any(dtypes.is_extended(a.dtype) for a in avals):
            return "keys, or numbers, in all branches"
        dtype = next((a.dtype for a in avals if dtypes.is_inexact(a.dtype)), avals[0].dtype)
        return f"one dtype in all branches, for example by .astype({dtype.name!r})"
    if kind is ShapeError:
        return "results of one shape in all branches, for example by jnp.broadcast_to"
    return "phlox.reshard or phlox.device_put of the results"


def _check_structures(function: str, programs: Sequence[Staged], roles: Sequence[str]) -> None:
    """Raises `TreeError` if results of branches have different structures."""
    first = programs[0]
    for role, other in zip(roles[1:], programs[1:], strict=True):
        what = (
            f"{function} branch outputs must have the same pytree structure, but they differ: {role} ({other.name}) "
            f"and {roles[0]} ({first.name}) return {other.typed_result()} and {first.typed_result()}"
        )
        instead = first.advice(roles[0], "a result") or other.advice(role, "a result")
        pytree.check_same(first.out_tree, other.out_tree, what, instead)


def _check_types(function: str, programs: Sequence[Staged], roles: Sequence[str]) -> None:
    """Raises unless the branches return equal types. Weak types may differ, as in JAX."""
    columns = list(zip(*[one.out_avals for one in programs], strict=True))
    for i, column in enumerate(columns):
        for role, program, aval in zip(roles[1:], programs[1:], column[1:], strict=True):
            if not have_equal_types(aval, column[0]):
                path = pytree.named_paths(programs[0].out_tree)[i]
                same_dtype = aval.dtype == column[0].dtype
                kind = ShapeError if aval.shape != column[0].shape else ShardingTypeError if same_dtype else DtypeError
                raise kind(
                    f"{function} branches must have equal output types but they differ: {role} ({program.name}) and "
                    f"{roles[0]} ({programs[0].name}) return {aval.short} and {column[0].short} as "
                    f"result{pytree.keystr(path)}",
                    instead=_one_type_advice(kind, aval, column[0]),
                    path=path,
                    expected=column[0],
                    got=aval,
                )
