"""`while_loop`, `fori_loop` and `scan`: loops of the compiled program.

A Python `for` is unrolled while a function is traced. These functions take the body as a function and trace it once;
the compiled program iterates.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._api.derivatives.remat import checkpoint
from .._api.jit import arguments
from .._api.jit.bodies import Staged, operands_of, staged
from .._api.jit.references import check_distinct, find_refs, merged
from .._api.jit.user_functions import user_call
from .._base import pytree
from .._base.errors import (
    ArgumentError,
    ConcretizationTypeError,
    DtypeError,
    InconclusiveDimensionOperation,
    OptionError,
    ShapeError,
    ShardingTypeError,
)
from .._base.pytree import PyTreeDef, flatten
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.dimensions import is_symbolic
from .._ir.jaxpr import ClosedJaxpr, memoized
from .._ir.primitive import current_trace
from .._ir.promotion import promote
from .._operands.promotion import to_dtype
from .._ops.control import loop, scan as scanning
from .._ops.control.rows import row_of
from .._ops.elementwise.arithmetic import add
from .._ops.elementwise.families import literal
from .._ops.elementwise.logic import and_, lt
from .._ops.structure.shape import own
from .._trace.refs import AbstractRef, Ref, values, write_all
from .._trace.trace import typeof
from .._transform.jaxprs import unused_inputs
from .._transform.jvp import JVPTracer
from .._transform.manual_axes import as_varying, widen_refs
from ._loop_messages import carry_text, difference, parameter_name, report_iterators
from ._progress import reporter
from ._scan_options import common_length, unroll_count
from ._structural import concatenate, reshape

if TYPE_CHECKING:
    from ..typing import ArrayLike

Carry = Any
Tree = Any


def _settle(avals: list[ShapedArray], run: Callable[[list[ShapedArray]], Staged]) -> tuple[list[ShapedArray], Staged]:
    """Traces a step with a carry of types `avals`. A weakly typed carry takes the dtype that the step returns for it,
    if promotion of both gives that dtype.

    Returns the types of the carry, and the staged step.
    """
    first = run(avals)
    if len(first.out_avals) < len(avals):  # not a carry: `_check_carry` says so
        return avals, first
    wider = [
        out.update(weak_type=False) if _promotes_to(a, out) else a
        for a, out in zip(avals, first.out_avals, strict=False)
    ]
    avals, step = (wider, run(wider)) if wider != avals else (avals, first)
    while True:  # inside of shard_map: what varies between devices after a step may do so before the next one
        wider = [a.varying(a.vma | out.vma) for a, out in zip(avals, step.out_avals, strict=False)]
        if not widen_refs(step.closed.jaxpr) and (len(wider) < len(avals) or wider == avals):
            return avals, step
        avals, step = wider, run(wider)


class _Body(NamedTuple):
    """The user's function in a loop, for messages.

    Attributes:
      function: name of the function of `phlox.lax`.
      role: name of its parameter.
      carry: name of the parameter of the user's function that is the carry.
      depth: how many keys lead from the carry of the compiled loop to the user's carry.
    """

    function: str
    role: str
    carry: str
    depth: int = 0

    def inside(self) -> _Body:
        """This function in a step that carries more than the user's carry."""
        return self._replace(depth=self.depth + 1)


def _promotes_to(start: ShapedArray, out: ShapedArray) -> bool:
    """Whether a weakly typed start value becomes one of another dtype, that of `out`, by promotion."""
    if not start.weak_type or start.shape != out.shape or start.dtype == out.dtype or dtypes.is_extended(out.dtype):
        return False
    return promote(((start.dtype, True), (out.dtype, out.weak_type)), lenient=True)[0] == out.dtype


def _check_carry(
    body: _Body, in_tree: PyTreeDef, avals: Sequence[Any], s: Staged, out_tree: PyTreeDef, returned: str
) -> None:
    """Raises unless the carry that a step returns has the structure and the types of the carry that it took.

    `returned` describes in one expression what the step should return.
    """
    function, role = body.function, f"{body.role} ({s.name})"
    if in_tree != out_tree:
        differences = pytree.differences(in_tree, out_tree)
        unlike = (
            f"{function} body function carry input and carry output must have the same pytree structure, but they "
            f"differ: the carry that {role} takes and the one it returns, {carry_text(body.depth, in_tree, avals)} and "
            f"{carry_text(body.depth, out_tree, s.out_avals)}"
        )
        instead = ""
        if any(d.got == "None" and len(d.path) == body.depth for d in differences):
            instead = f"return {returned} at the end of {role}, which returns None"
        raise pytree.tree_error(unlike, [d._replace(path=d.path[body.depth :]) for d in differences], instead)
    differ = [
        (path[body.depth :], aval, out)
        for path, aval, out in zip(pytree.named_paths(in_tree), avals, s.out_avals, strict=False)
        if (aval.shape, aval.dtype, aval.spec) != (out.shape, out.dtype, out.spec)
    ]
    if not differ:
        return
    path, aval, out = differ[0]
    what = [difference(body.carry, *one) for one in differ]
    description = f"T{what[0][1:]}." if len(what) == 1 else ";\n".join(f"  * {one}" for one in what) + "."
    kind = ShapeError if aval.shape != out.shape else DtypeError if aval.dtype != out.dtype else ShardingTypeError
    raise kind(
        f"{function} body function carry input and carry output must have equal types, but they differ:\n\n"
        f"{description}\nThis is the carry of {role}",
        instead="phlox.reshard of the start value, or of what the step returns"
        if kind is ShardingTypeError
        else f"a step that keeps the type, as by x.astype({aval.dtype.name!r}), or another start value",
        path=path,
        expected=aval,
        got=out,
    )


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
    Array(64., dtype=float32)
    """
    report_iterators("while_loop", "body_fun", body_fun)
    named = _Body("while_loop", "body_fun", parameter_name(body_fun, 0))
    check_checkpoints("while_loop", checkpoints)
    if max_steps is None and progress is None:
        return _while(cond_fun, body_fun, init_val, named, checkpoints)
    if max_steps is not None:
        if operator.index(max_steps) < 0:
            raise OptionError(f"while_loop: max_steps={max_steps} is negative")
        most = max(2, max_steps + max_steps % 2)
        if checkpoints is None or checkpoints > most:
            avals = [typeof(x) for x in flatten(init_val)[0]]
            checkpoints = min(most, loop.rows_of(avals, checkpoints))
    report = reporter("while_loop", progress, None)

    def step(both: Any) -> Any:
        report(both[0])
        return _next(both[0]), body_fun(both[1])

    step.__name__ = arguments.fun_name(body_fun)

    def goes_on(both: Any) -> Any:
        test = cond_fun(both[1])
        return test if max_steps is None else and_(lt(both[0], np.int32(max_steps)), test)

    return _while(goes_on, step, (np.int32(0), init_val), named.inside(), checkpoints)[1]


def check_checkpoints(function: str, checkpoints: int | None) -> None:
    """Raises unless `checkpoints` is None or an integer of at least 2."""
    if checkpoints is not None and operator.index(checkpoints) < 2:
        raise OptionError(
            f"{function}: checkpoints={checkpoints} is less than 2", instead="2 or more; None for the default"
        )


def _what(condition: Staged) -> str:
    """What a condition returned instead of a bool scalar, for the error."""
    if condition.out_tree.num_nodes != 1:
        return f"pytree {condition.out_tree}"
    return f"output type(s) {[aval.update(weak_type=False) for aval in condition.out_avals]}"


def _while(
    cond_fun: Callable[[Carry], Any],
    body_fun: Callable[[Carry], Carry],
    init_val: Carry,
    named: _Body,
    checkpoints: int | None,
) -> Carry:
    leaves, tree = operands_of("while_loop", body_fun, (init_val,))
    carry_tree = pytree.treedef_children(tree)[0]
    avals, body = _settle(
        [typeof(x) for x in leaves],
        lambda types: staged("while_loop", "body_fun", body_fun, tree, types),
    )
    _check_carry(named, carry_tree, avals, body, body.out_tree, "the next value")
    go_on = staged("while_loop", "cond_fun", cond_fun, tree, avals)
    answers = [a.update(weak_type=False, vma=frozenset()) for a in go_on.out_avals]
    if answers != [_BOOL] or go_on.out_tree.num_nodes != 1:
        got = ", ".join(a.short for a in go_on.out_avals)
        raise DtypeError(
            f"while_loop: cond_fun must return a boolean scalar, but got {_what(go_on)}. This {go_on.name} returned: "
            f"{got or go_on.typed_result()}",
            instead=go_on.advice("cond_fun", "a bool"),
        )
    # Devices may stop after different numbers of turns.
    while widen_refs(body.closed.jaxpr, stops := go_on.out_avals[0].vma) or not all(stops <= a.vma for a in avals):
        avals, body = _settle(
            [a.varying(a.vma | stops) for a in avals],
            lambda types: staged("while_loop", "body_fun", body_fun, tree, types),
        )
        go_on = staged("while_loop", "cond_fun", cond_fun, tree, avals)
    body = body.varying([a.vma for a in avals])
    leaves = [_as_type(x, a) for x, a in zip(leaves, avals, strict=True)]
    # A part of the carry that the body returns unchanged becomes a constant, unless the condition reads it.
    unasked = unused_inputs(go_on.closed.jaxpr)[len(go_on.consts) :]
    unchanged = {i: None for i in _kept(body, len(leaves)) if unasked[i]}
    unchanged = unchanged if len(unchanged) < len(leaves) else {}
    fixed, moving = [leaves[i] for i in unchanged], [x for i, x in enumerate(leaves) if i not in unchanged]
    outs = iter(
        loop.while_p.bind(
            *go_on.consts,
            *fixed,
            *body.consts,
            *moving,
            cond_jaxpr=_without_inputs(go_on, unchanged),
            cond_nconsts=len(go_on.consts),
            body_jaxpr=_with_fixed(body, unchanged, [*range(len(leaves))]),
            body_nconsts=len(unchanged) + len(body.consts),
            **({} if checkpoints is None else {"checkpoints": checkpoints}),
        )
    )
    return carry_tree.unflatten([own(x) if i in unchanged else next(outs) for i, x in enumerate(leaves)])


def _kept(body: Staged, count: int) -> dict[int, None]:
    """The positions of the parts of the carry (the first `count` results) that the body returns unchanged."""
    jaxpr = body.closed.jaxpr
    carry = jaxpr.invars[len(body.consts) : len(body.consts) + count]
    return {i: None for i, (v, out) in enumerate(zip(carry, jaxpr.outvars[:count], strict=True)) if v is out}


def _with_fixed(body: Staged, unchanged: dict[int, None], results: Sequence[int]) -> ClosedJaxpr:
    """The body with the parts `kept` of the carry as its first constants, and without them among its `results`."""
    jaxpr, first = body.closed.jaxpr, len(body.consts)
    positions = [i for i in results if i not in unchanged]
    if len(positions) == len(jaxpr.outvars):
        return body.closed
    fixed = dict.fromkeys(jaxpr.invars[first + i] for i in unchanged)
    invars = [*fixed, *[v for v in jaxpr.invars if v not in fixed]]
    outvars = [jaxpr.outvars[i] for i in positions]
    make = lambda: ClosedJaxpr(jaxpr.replace(invars=invars, outvars=outvars))  # noqa: E731
    return memoized(jaxpr, ("fixed", *unchanged, *positions), make)


def _without_inputs(program: Staged, unused: dict[int, None]) -> ClosedJaxpr:
    """The staged function without these inputs, which it does not use; positions count after its constants."""
    if not unused:
        return program.closed
    jaxpr, first = program.closed.jaxpr, len(program.consts)
    invars = [v for i, v in enumerate(jaxpr.invars) if i - first not in unused]
    return memoized(jaxpr, ("without", *unused), lambda: ClosedJaxpr(jaxpr.replace(invars=invars)))


_BOOL = typeof(np.bool_(True))


def _as_type(x: Any, aval: ShapedArray) -> Any:
    """An initial value converted to the type that the carry has in the loop."""
    return as_varying(x if typeof(x).dtype == aval.dtype else to_dtype(x, aval.dtype, aval.weak_type), aval)


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
      unroll: number of iterations in each step of the compiled loop; True or 0 unrolls the whole loop, None means 1. A
        value other than None requires bounds that are known while tracing.
      checkpoints: number of loop states that reverse mode stores, as in `scan` or `while_loop`. (JAX does not have it.)
      progress: name under which the running program says on stderr how far the loop is. (JAX does not have it.)

    Returns:
      The final loop state.

    Raises:
      ArgumentError: `body_fun` is not callable.
      TreeError: `body_fun` changes the structure of the loop state.
      ShapeError: `body_fun` changes a shape.
      DtypeError: the bounds are not real scalars of one dtype, or `body_fun` changes a dtype.
      OptionError: `unroll` is negative, or is given with bounds that are traced; `checkpoints` is less than 2.

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
    dtype = both[0].dtype if both[1].weak_type else both[1].dtype
    weak = all(a.weak_type for a in both)
    if any(a.dtype != dtype and not _fits(bound, a, dtype) for bound, a in zip((lower, upper), both, strict=True)):
        raise DtypeError(
            f"lower and upper arguments to fori_loop must have equal types, got {both[0].short} and {both[1].short}"
        )
    ends = _known_integers(lower, upper)
    if ends is not None:
        first = to_dtype(lower, dtype, weak) if dtypes.kind(dtype) in "iu" else np.int32(ends[0])
        length = max(0, ends[1] - ends[0])
        report = reporter("fori_loop", progress, length)

        def step(carry: Any, _: Any) -> Any:
            i, x = carry
            report(i, ends[0])
            return (_next(i), body_fun(i, x)), None

        step.__name__ = arguments.fun_name(body_fun)
        named = _Body("fori_loop", "body_fun", parameter_name(body_fun, 1), depth=1)
        at_a_time = 1 if unroll is None else unroll
        return _scan_in_segments(step, (first, init_val), None, length, False, at_a_time, named, checkpoints)[0][1]
    if unroll is not None:
        raise OptionError("fori_loop: Can only use `unroll` with bounds that are known when the program is traced")
    first = to_dtype(lower, dtype, weak)
    report = reporter("fori_loop", progress, None)

    def body(carry: Any) -> Any:
        i, end, x = carry
        report(i, first)
        return _next(i), end, body_fun(i, x)

    body.__name__ = arguments.fun_name(body_fun)
    named = _Body("fori_loop", "body_fun", parameter_name(body_fun, 1), depth=1)
    start = (first, to_dtype(upper, dtype, weak), init_val)
    return _while(lambda carry: carry[0] < carry[1], body, start, named, checkpoints)[2]


def _next(i: Any) -> Any:
    """i + 1, of the dtype of `i` also if that has 64 bits outside of 64-bit mode."""
    return add(i, literal(i, 1))


def _fits(bound: Any, aval: ShapedArray, dtype: Any) -> bool:
    """Whether a bound that is a Python number can have this dtype."""
    return aval.weak_type and dtypes.kind(aval.dtype) in "iu" and dtypes.kind(dtype) in "iu"


def _primal(x: Any) -> Any:
    while type(x) is JVPTracer:
        x = x.primal
    return x


def _known_integers(*bounds: Any) -> tuple[int, ...] | None:
    """The bounds as Python integers if their values are known, also those of tracers of eager differentiation."""
    try:
        return tuple(int(_primal(x)) for x in bounds)
    except (ConcretizationTypeError, InconclusiveDimensionOperation):
        return None


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
    named = _Body("scan", "f", parameter_name(f, 0))
    if progress is None:
        return _scan_in_segments(f, init, xs, length, reverse, unroll, named, checkpoints)
    leaves, tree = flatten(xs)
    steps = common_length(leaves, tree, length)
    report = reporter("scan", progress, None if is_symbolic(steps) else steps)

    def step(both: Any, x: Any) -> Any:
        report(both[0])
        out = f(both[1], x)
        return ((_next(both[0]), out[0]), out[1]) if _is_pair(out) else out

    step.__name__ = arguments.fun_name(f)
    start = np.int32(0), init
    (_, carry), ys = _scan_in_segments(step, start, xs, length, reverse, unroll, named.inside(), checkpoints)
    return carry, ys


def _scan_in_segments(
    f: Callable[..., Any],
    init: Carry,
    xs: Tree,
    length: int | None,
    reverse: bool,
    unroll: Any,
    named: _Body,
    checkpoints: int | None,
) -> tuple[Carry, Tree]:
    """A scan over segments whose residuals are computed again, as many as there are `checkpoints`; then the rest."""
    leaves, tree = flatten(xs)
    steps = 0 if checkpoints is None else common_length(leaves, tree, length)
    if checkpoints is None or is_symbolic(steps) or steps <= checkpoints:
        return _scan(f, init, xs, length, reverse, unroll, named)
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
    check_distinct("scan", refs)

    def step(carry: Carry, both: Any) -> Any:
        rows, rest = both
        parts = [Ref(AbstractRef(typeof(row)), row) for row in rows]
        out = f(carry, merged(tree, mine, parts, rest))
        check_distinct("scan", refs, current_trace.get().captured)
        return (out[0], (out[1], values(parts))) if _is_pair(out) else out

    step.__name__ = arguments.fun_name(f)
    rest = [x for i, x in enumerate(leaves) if i not in mine]
    carry, (ys, state) = scan(step, init, (values(refs), rest), *options)
    write_all(refs, state)
    return carry, ys


def _scan(
    f: Callable[..., Any], init: Carry, xs: Tree, length: int | None, reverse: bool, unroll: Any, named: _Body
) -> tuple[Carry, Tree]:
    leaves, xs_tree = flatten(xs)
    if ref_indices := find_refs(leaves):
        return _scan_refs(f, init, leaves, xs_tree, ref_indices, (length, reverse, unroll))
    leaves, tree = operands_of("scan", f, (init, xs))
    carry_tree, xs_tree = pytree.treedef_children(tree)
    count = carry_tree.num_leaves
    steps = common_length(leaves[count:], xs_tree, length)
    unroll = unroll_count(unroll, steps)
    row_avals = [row_of(typeof(x)) for x in leaves[count:]]
    avals, body = _settle(
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
    _check_carry(named, carry_tree, avals, body, parts[0], "the next value" if named.depth else "carry, y")
    body = body.varying([a.vma for a in avals])
    # Results that are inputs of f exist already, and parts of the carry that f returns unchanged become constants.
    start = [_as_type(x, a) for x, a in zip(leaves[:count], avals, strict=True)]
    unchanged = _kept(body, count)
    outvars = body.closed.jaxpr.outvars
    inputs = dict(zip(body.closed.jaxpr.invars[len(body.consts) + count :], leaves[count:], strict=True))
    results = [i for i, v in enumerate(outvars) if i < count or v not in inputs]
    outs = iter(
        scanning.scan.bind(
            *[start[i] for i in unchanged],
            *body.consts,
            *[x for i, x in enumerate(start) if i not in unchanged],
            *leaves[count:],
            jaxpr=_with_fixed(body, unchanged, results),
            length=steps,
            num_consts=len(unchanged) + len(body.consts),
            num_carry=count - len(unchanged),
            reverse=bool(reverse),
            unroll=unroll,
        )
    )
    carry = [own(x) if i in unchanged else next(outs) for i, x in enumerate(start)]
    ys = [own(inputs[v]) if v in inputs else next(outs) for v in outvars[count:]]
    return carry_tree.unflatten(carry), parts[1].unflatten(ys)
