"""Values that a program compares with elements selected from them: ``y`` in ``y >= y.max()`` and ``y == sort(y)[0]``.

XLA on CPUs computes a value again in each loop that reads it, and LLVM joins products and sums to fused operations, in
each loop in its own way. So ``y`` and its maximum may differ in the last bit, and then no element equals the maximum.
`lower_jaxpr` passes such values through `in_memory`, so that all of their readers find the same bits. An optimization
barrier does not help: XLA removes it before it builds loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from .._ir import dtypes
from .._ir.avals import shaped
from .._ir.jaxpr import Atom, Jaxpr, JaxprEqn, Literal, Var, jaxprs_in
from .platforms import cpu_only
from .text import Function, Value, i64_array

#: Operations whose results tell apart two numbers that differ in the last bit.
_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "eq_to", "lt_to", "le_to"))
#: Functions that are not defined, or jump, where a difference of two equal numbers is rounded to the other side of 0
_AT_ZERO = frozenset(("sqrt", "rsqrt", "log", "sign"))
#: Operations whose elements are those of operands at the same positions, or exact functions of them.
_ELEMENTWISE = frozenset((
    "select_n", "clamp", "max", "min", "neg", "abs", "sign", "floor", "ceil", "round", "convert_element_type",
    "reduce_precision", "stop_gradient", "reshape", "squeeze", "copy", "stage", "optimization_barrier", "name", "real",
    "imag", "conj", "reshard", "pvary",
))  # fmt: skip
#: Operations whose elements are those of operands at other positions.
_MOVING = frozenset((
    "broadcast_in_dim", "transpose", "rev", "slice", "split", "concatenate", "pad", "gather", "dynamic_slice",
    "dynamic_update_slice", "scatter", "scatter-min", "scatter-max", "reduce_max", "reduce_min", "fast_max", "fast_min",
    "cummax", "cummin", "sort", "top_k", "approx_top_k", "reduce_window_max", "reduce_window_min",
))  # fmt: skip
#: Arithmetic by which medians and quantiles are computed from elements, and the most operations of it in a row
_MEANS, _MAX_MEANS = frozenset(("add", "sub", "mul", "div")), 4
#: Loops and branches: their programs read operands from memory.
_LOOPS = frozenset(("scan", "while", "cond", "while_states", "scan_states"))


def compared_values(jaxpr: Jaxpr) -> frozenset[Var]:
    """The variables of a Jaxpr, and of programs in it, that are compared with elements selected from them.

    Results count as compared with each other, as the caller may compare them.
    """
    pairs = list(_pairs(jaxpr, set()))
    results = [v for v in jaxpr.outvars if _is_float(v)]
    if not pairs and len(results) < 2:
        return frozenset()
    definitions = _Definitions(jaxpr)
    compared: set[Var] = set()
    for x, y in pairs:
        # Both are computed from these in one loop, as both operands of ``x == maximum(x, 0)`` are from `x`.
        shared = definitions.at_same_positions(x) & definitions.at_same_positions(y)
        compared |= _moved([definitions.sources(v, _MAX_MEANS, shared) for v in (x, y)])
    return frozenset(compared | _moved([definitions.sources(v, 0) for v in results]))


def _moved(sources: Sequence[dict[Var, bool]]) -> set[Var]:
    """The sources of several values, from which the elements of at least one of these were moved."""
    moves: dict[Var, list[bool]] = {}
    for one in sources:
        for source, is_moved in one.items():
            moves.setdefault(source, []).append(is_moved)
    return {source for source, moved in moves.items() if len(moved) > 1 and any(moved)}


def _pairs(jaxpr: Jaxpr, seen: set[Jaxpr]) -> Iterator[Sequence[Atom]]:
    """The pairs of values that a Jaxpr, and the programs in it that are not yet in `seen`, compare."""
    seen.add(jaxpr)
    differences: dict[Atom, Sequence[Atom]] = {}
    for eqn in jaxpr.eqns:
        name, operands = eqn.primitive.name, eqn.invars
        if name == "sub":
            differences[eqn.outvars[0]] = operands
        elif name in _COMPARISONS or name in _AT_ZERO:
            variables = [v for v in operands if type(v) is Var]
            if len(variables) == 1 and variables[0] in differences:  # a difference is compared with zero
                variables = [v for v in differences[variables[0]] if type(v) is Var]
            # Two operands that are one variable are a test for nan.
            if len(variables) == 2 and variables[0] is not variables[1]:
                yield variables
        for inner, _ in programs_of(eqn):
            if inner not in seen:  # layers of a network call one program many times
                yield from _pairs(inner, seen)


def programs_of(eqn: JaxprEqn) -> Sequence[tuple[Jaxpr, Sequence[Atom]]]:
    """The programs of a call, a loop or a branch, each with the operands that are its inputs."""
    name, params, operands = eqn.primitive.name, eqn.params, eqn.invars
    if not eqn.primitive.holds_programs or (eqn.primitive.program is None and name not in _LOOPS):
        return ()
    if name in ("while", "while_states"):
        first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
        condition = [*operands[:first], *operands[second:]]
        return [(params["cond_jaxpr"].jaxpr, condition), (params["body_jaxpr"].jaxpr, operands[first:])]
    inputs = operands[1:] if name == "cond" else operands
    return [(inner, inputs) for inner in jaxprs_in(params)]


class _Definitions:
    """The equations and the operands of which the variables of a program are results.

    Attributes:
      equations: the equation of a variable, and the number of the variable among its results.
      operands: the values that an input of an inner program has.
    """

    def __init__(self, jaxpr: Jaxpr):
        self.equations: dict[Atom, tuple[JaxprEqn, int]] = {}
        self.operands: dict[Atom, list[Atom]] = {}
        self._jaxprs: set[Jaxpr] = set()
        self._add(jaxpr)

    def _add(self, jaxpr: Jaxpr) -> None:
        self._jaxprs.add(jaxpr)
        for eqn in jaxpr.eqns:
            for i, v in enumerate(eqn.outvars):
                self.equations[v] = eqn, i
            for inner, inputs in programs_of(eqn):
                for v, x in zip(inner.invars, inputs, strict=False):
                    self.operands.setdefault(v, []).append(x)
                if inner not in self._jaxprs:
                    self._add(inner)

    def at_same_positions(self, v: Atom) -> set[Atom]:
        """The values whose elements `v` has at the same positions, and `v`."""
        seen, atoms = {v}, [v]
        while atoms:
            states, _ = self._before(atoms.pop(), False, 0, 0)
            new = {x for x, moved, _ in states if not moved} - seen
            seen |= new
            atoms += new
        return seen

    def sources(self, v: Atom, max_means: int, ends: Set[Atom] = frozenset()) -> dict[Var, bool]:
        """The computed values of which elements of `v` are, and whether they are at other positions there.

        Nothing before `ends` is searched."""
        sources: dict[Var, bool] = {}
        # (variable, whether elements were moved, arithmetic in a row on the way from `v`)
        states: list[tuple[Atom, bool, int]] = [(v, False, 0)]
        seen = set(states)
        while states:
            v, moved, means = states.pop()
            following, is_computed = self._before(v, moved, means, max_means)
            if is_computed and not means and type(v) is Var and _is_float(v):
                sources[v] = sources.get(v, False) or moved
            if v not in ends:
                states += [state for state in following if state not in seen]
                seen.update(following)
        return sources

    def _before(self, v: Atom, moved: bool, means: int, max_means: int) -> tuple[list[tuple[Atom, bool, int]], bool]:
        """The states of the operands that elements of `v` come from, and whether its equation computes new numbers."""
        if type(v) is Literal:
            return [], False
        if v not in self.equations:
            return [(x, moved, means) for x in self.operands.get(v, ())], False
        eqn, number = self.equations[v]
        name, operands = eqn.primitive.name, eqn.invars
        if eqn.primitive.program is not None:
            return [(_program_results(eqn)[number], moved, means)], False
        if len(eqn.outvars) > 1 and len(operands) == len(eqn.outvars):  # each result is one operand, as in `sort`
            operands = operands[number : number + 1]
        if name in _ELEMENTWISE:
            return [(x, moved, means) for x in operands], False
        if name in _MOVING:
            # Indices have another dtype, as operands and as results of `top_k`.
            return [(x, True, 0) for x in operands if x.aval.dtype == v.aval.dtype], False
        if name in _MEANS and means < max_means:
            return [(x, moved, means + 1) for x in operands], True
        return [], not eqn.primitive.holds_programs


def _program_results(eqn: JaxprEqn) -> list[Atom]:
    assert eqn.primitive.program is not None
    results: list[Atom] = eqn.params[eqn.primitive.program].jaxpr.outvars
    return results


def _is_float(v: Atom) -> bool:
    return dtypes.kind(v.aval.dtype) in "fc"


def in_memory(f: Function, x: Value) -> Value:
    """`x` as the state of a loop without turns: XLA computes it once, and does not copy it.

    A barrier and arithmetic on bits end no loop of XLA, and a branch copies `x`."""
    if not x.aval.ndim or not x.aval.size or f.module.partitions > 1 or not cpu_only(f):
        return x
    element = shaped((1,) * x.aval.ndim, x.aval.dtype)
    start = [0] * x.aval.ndim

    def goes_on(g: Function, x: Value) -> list[Value]:
        limits = f"start_indices = {i64_array(start)}, limit_indices = {i64_array([1] * x.aval.ndim)}"
        first = g.op("stablehlo.slice", [x], element, f"{limits}, strides = {i64_array([1] * x.aval.ndim)}")
        # Never, but XLA does not know it: an integer whose lowest bit is two, or a nan that is zero.
        if dtypes.kind(x.aval.dtype) in "iu":
            lowest_bit = g.same("stablehlo.and", first, g.constant(1, element))
            never = g.compare("EQ", lowest_bit, g.constant(2, element))
        else:
            is_nan, is_zero = g.compare("NE", first, first), g.compare("EQ", first, g.constant(0, element))
            never = g.same("stablehlo.and", is_nan, is_zero)
        return [g.unlike("stablehlo.reshape", never, shaped((), dtypes.bool_))]

    def turn(g: Function, x: Value) -> list[Value]:
        starts = [g.number(0, shaped((), dtypes.int32))] * x.aval.ndim
        return [g.op("stablehlo.dynamic_update_slice", [x, g.constant(0, element), *starts], x.aval)]

    regions = [f.region([x.aval], goes_on), f.region([x.aval], turn)]
    return f.op("stablehlo.while", [x], [x.aval], "", regions)[0]
