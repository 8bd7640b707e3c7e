"""The carry of a loop: its types, what a step may do to it, and the parts that no step changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .._api.jit.bodies import Staged
from .._base import pytree
from .._base.errors import DtypeError, FunctionTreeError, OptionError, ShapeError, ShardingTypeError
from .._base.pytree import PyTreeDef
from .._ir import dtypes
from .._ir.avals import ShapedArray
from .._ir.jaxpr import ClosedJaxpr, memoized
from .._ir.promotion import promote
from .._operands.checks import integer
from .._operands.promotion import to_dtype
from .._ops.elementwise.arithmetic import add
from .._ops.elementwise.families import literal
from .._trace.trace import typeof
from .._transform.manual_axes import as_varying, widen_refs
from ._loop_messages import carry_text, difference, have_equal_types

Carry = Any


def settle_carry(
    avals: list[ShapedArray], run: Callable[[list[ShapedArray]], Staged]
) -> tuple[list[ShapedArray], Staged]:
    """Traces a step with a carry of types `avals`. A weakly typed carry takes the dtype that the step returns for it,
    if promotion of both gives that dtype, until a step changes no type.

    Returns the types of the carry, and the staged step.
    """
    while True:
        step = run(avals)
        if len(step.out_avals) < len(avals):  # not a carry: `check_carry` says so
            return avals, step
        # A part that has become wider may widen others in the next step.
        wider = [_widened(a, out) for a, out in zip(avals, step.out_avals, strict=False)]
        if not widen_refs(step.closed.jaxpr) and wider == avals:
            return avals, step
        avals = wider


def _widened(start: ShapedArray, out: ShapedArray) -> ShapedArray:
    """The type that a part of the carry needs, if a step turns `start` into `out`."""
    if _promotes_to(start, out):
        return out.update(weak_type=False)
    # Inside of shard_map, what varies between devices after a step may do so before the next one.
    return start.varying(start.vma | out.vma)


class LoopBody(NamedTuple):
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

    def inside(self) -> LoopBody:
        """This function in a step that carries more than the user's carry."""
        return self._replace(depth=self.depth + 1)


def _promotes_to(start: ShapedArray, out: ShapedArray) -> bool:
    """Whether a weakly typed start value becomes one of another dtype, that of `out`, by promotion."""
    if not start.weak_type or start.shape != out.shape or start.dtype == out.dtype or dtypes.is_extended(out.dtype):
        return False
    return promote(((start.dtype, True), (out.dtype, out.weak_type)), lenient=True)[0] == out.dtype


def check_carry(
    body: LoopBody, in_tree: PyTreeDef, avals: Sequence[Any], s: Staged, out_tree: PyTreeDef, returned: str
) -> None:
    """Raises unless the carry that a step returns has the structure and the types of the carry that it took.

    `returned` describes in one expression what the step should return.
    """
    function, role = body.function, f"{body.role} ({s.name})"
    if not pytree.are_equal(in_tree, out_tree):
        differences = pytree.differences(in_tree, out_tree)
        unlike = (
            f"{function} body function carry input and carry output must have the same pytree structure, but they "
            f"differ: the carry that {role} takes and the one it returns, {carry_text(body.depth, in_tree, avals)} and "
            f"{carry_text(body.depth, out_tree, s.out_avals)}"
        )
        instead = ""
        if any(d.got == "None" and len(d.path) == body.depth for d in differences):
            instead = f"return {returned} at the end of {role}, which returns None"
        raise pytree.tree_error(
            unlike, [d._replace(path=d.path[body.depth :]) for d in differences], instead, FunctionTreeError
        )
    differ = [
        (path[body.depth :], aval, out)
        for path, aval, out in zip(pytree.named_paths(in_tree), avals, s.out_avals, strict=False)
        if not have_equal_types(aval, out)
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
        instead="phlox.reshard or phlox.device_put of the start value, or of what the step returns"
        if kind is ShardingTypeError
        else f"a step that keeps the type, as by x.astype({aval.dtype.name!r}), or another start value",
        path=path,
        expected=aval,
        got=out,
    )


def check_checkpoints(function: str, checkpoints: int | None) -> None:
    """Raises unless `checkpoints` is None or an integer of at least 2."""
    if checkpoints is not None and integer(function, "checkpoints", checkpoints) < 2:
        raise OptionError(
            f"{function}: checkpoints={checkpoints} is less than 2", instead="2 or more; None for the default"
        )


def unchanged_parts(body: Staged, count: int) -> dict[int, None]:
    """The positions of the parts of the carry (the first `count` results) that the body returns unchanged."""
    jaxpr = body.closed.jaxpr
    carry = jaxpr.invars[len(body.consts) : len(body.consts) + count]
    return {i: None for i, (v, out) in enumerate(zip(carry, jaxpr.outvars[:count], strict=True)) if v is out}


def with_fixed_carry(body: Staged, unchanged: dict[int, None], results: Sequence[int]) -> ClosedJaxpr:
    """The body with the `unchanged` parts of the carry as its first constants, and without them among its `results`."""
    jaxpr, first = body.closed.jaxpr, len(body.consts)
    positions = [i for i in results if i not in unchanged]
    if len(positions) == len(jaxpr.outvars):
        return body.closed
    fixed = dict.fromkeys(jaxpr.invars[first + i] for i in unchanged)
    invars = [*fixed, *[v for v in jaxpr.invars if v not in fixed]]
    outvars = [jaxpr.outvars[i] for i in positions]
    # Memoized on the jaxpr: equal loops get the same body, by whose identity later results are cached.
    make = lambda: ClosedJaxpr(jaxpr.replace(invars=invars, outvars=outvars))  # noqa: E731
    return memoized(jaxpr, ("fixed", *unchanged, *positions), make)


def initial_value(x: Any, aval: ShapedArray) -> Any:
    """An initial value converted to the type that the carry has in the loop."""
    return as_varying(x if typeof(x).dtype == aval.dtype else to_dtype(x, aval.dtype, aval.weak_type), aval)


def next_index(i: Any) -> Any:
    """i + 1, of the dtype of `i` also if that has 64 bits outside of 64-bit mode."""
    return add(i, literal(i, 1))
