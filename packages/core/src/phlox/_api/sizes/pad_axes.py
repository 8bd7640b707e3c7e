"""`pad_axes`: one compiled program for all sizes of arguments up to a bucket, with the results of the unpadded call.

    >>> center = pad_axes(lambda x: x - x.sum() / x.shape[0], {"x": "n"})

A call does four things. (1) Each name of a size gets the length that the arguments have, and its bucket. (2) The
function is traced once for each bucket, with symbolic lengths between the last bucket and this one: ``x.shape[0]`` is a
number of the program in arithmetic. (3) `_transform.padding` rewrites the Jaxpr for arrays of the bucket's lengths. (4)
`_ops.control.padded_call` pads the arguments, runs the program and cuts the results.

What cannot be padded is compiled for its own size, with one warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..._base import config
from ..._base.pytree import PyTreeDef, flatten
from ..._base.wrapping import P, R, wraps
from ..._ir.avals import ShapedArray, shaped
from ..._ir.dimensions import SymbolicScope, is_symbolic, value_of, variable
from ..._ir.jaxpr import ClosedJaxpr, hoisted
from ..._ops.control.padded_call import Lengths, Ranges, padded_call, padded_program, warn_of_refusal
from ..._trace.staging import stage
from ..._trace.trace import Tracer
from ..export import dimensions as dimensions  # reads the constraints of scopes
from ..jit import arguments
from ..jit.caches import bounded
from ..jit.jit import jit
from ..jit.user_functions import FlatFunction, user_call
from .specs import Buckets, Names, find_lengths, leaf_names, parse_sizes


def pad_axes(
    fun: Callable[P, R],
    sizes: Mapping[str, Any],
    *,
    buckets: Sequence[int] | Mapping[str, Sequence[int]] | None = None,
) -> Callable[P, R]:
    """Makes a function that is compiled once for each bucket of lengths, not for each length.

    Results, their shapes and their derivatives are those of `fun`. Inside of other compiled functions, whose shapes are
    known, nothing is padded.

    Args:
      fun: function of arrays and pytrees of them.
      sizes: for each parameter whose axes vary in length the names of its leading axes: ``"n"``, ``"batch, n"`` or a
        tuple. An axis of the name ``_`` or None does not vary. Axes of one name have one length. Of a tree of arrays
        each leaf has these axes; a dict of names fits a dict of arrays.
      buckets: the lengths to compile for, in rising order, or such a list for each name. None: the powers of two.

    Returns:
      A function that is called as `fun` is.

    Raises:
      OptionError: `fun` has no such parameter, or `buckets` are no rising positive numbers.
      ShapeError: in a call, when axes of one name have different lengths, or an argument lacks a named axis.

    >>> center = pad_axes(lambda x: x - x.mean(), {"x": "n"})
    >>> [center(jnp.arange(float(n))).tolist() for n in (3, 4)]
    [[-1.0, 0.0, 1.0], [-1.5, -0.5, 0.5, 1.5]]
    """
    arguments.check_callable("pad_axes", fun)
    padded = _PaddedFunction(fun, sizes, Buckets(buckets))

    @wraps(fun, "{fun}, compiled once for each bucket of lengths.")
    @user_call
    def call(*args: Any, **kwargs: Any) -> Any:
        return padded(args, kwargs)

    return call


class _Program(NamedTuple):
    """A Jaxpr of symbolic shapes, and the treedef of its results."""

    closed: ClosedJaxpr
    out_tree: PyTreeDef


class _Plan(NamedTuple):
    """How arguments of certain types are called. Without a program the function is compiled for their size."""

    lengths: Lengths
    ranges: Ranges
    program: _Program | None


class _PaddedFunction:
    """A function, and its programs.

    Attributes:
      plans: the plans, by the tree and the types of arguments.
      programs: the programs, by the tree, the types without the lengths of names, and the ranges of these; None for a
        program that cannot be padded.
    """

    def __init__(self, fun: Callable[..., Any], sizes: Mapping[str, Any], buckets: Buckets):
        self.fun = fun
        self.exact = jit(fun)
        self.specs = parse_sizes(fun, sizes)
        self.buckets = buckets
        self.names: dict[PyTreeDef, list[Names]] = {}
        self.plans: dict[Any, _Plan] = {}
        self.programs: dict[Any, _Program | None] = {}
        #: why the function cannot be padded, for some bucket
        self.refusal: Exception | None = None
        self.has_warned = False

    def __call__(self, args: Any, kwargs: Any) -> Any:
        leaves, tree = flatten((args, kwargs))
        avals = arguments.check_arrays("pad_axes", self.fun, args, kwargs, leaves)
        key = (tree, tuple(avals), config.current().traced)
        plan = self.plans.get(key)
        if plan is None:
            plan = self._plan(args, kwargs, tree, avals)
            if plan.program is None or not any(isinstance(c, Tracer) for c in plan.program.closed.consts):
                bounded(self.plans)[key] = plan
        if plan.program is None:
            return self._call_exact(args, kwargs)
        closed, out_tree = plan.program
        operands = [*closed.consts, *leaves] if closed.consts else leaves
        outs = padded_call.bind(*operands, jaxpr=hoisted(closed), lengths=plan.lengths, ranges=plan.ranges)
        return out_tree.unflatten(outs)

    def _call_exact(self, args: Any, kwargs: Any) -> Any:
        """Calls the function compiled for the size of its arguments. Warns if that is for a reason, and works."""
        out = self.exact(*args, **kwargs)
        if self.refusal is not None and not self.has_warned:
            self.has_warned = True
            warn_of_refusal(arguments.fun_name(self.fun), self.refusal)
        return out

    def _plan(self, args: Any, kwargs: Any, tree: PyTreeDef, avals: Sequence[ShapedArray]) -> _Plan:
        names = self.names.get(tree)
        if names is None:
            names = self.names[tree] = leaf_names(self.fun, self.specs, tree)
        lengths = find_lengths(self.fun, avals, names, lambda: arguments.leaf_names(self.fun, args, kwargs))
        if any(is_symbolic(n) or n == 0 for n in lengths.values()):  # symbolic lengths are at least 1
            return _Plan((), (), None)
        ranges = tuple((name, *self.buckets.range_of(name, n)) for name, n in sorted(lengths.items()))
        key = (tree, *map(_type_key, avals, names), ranges, config.current().traced)
        if key not in self.programs:
            program = self._trace(tree, avals, names, ranges)
            if program is not None and any(isinstance(c, Tracer) for c in program.closed.consts):
                return _Plan(tuple(sorted(lengths.items())), ranges, program)
            self.programs[key] = program
        return _Plan(tuple(sorted(lengths.items())), ranges, self.programs[key])

    def _trace(
        self, tree: PyTreeDef, avals: Sequence[ShapedArray], names: Sequence[Names], ranges: Ranges
    ) -> _Program | None:
        """The program for all lengths in `ranges`; None with a warning if there is none."""
        varying = [(name, low, high) for name, low, high in ranges if low < high]
        bounds = [f"{name} {sign} {n}" for name, low, high in varying for sign, n in ((">=", low), ("<=", high))]
        scope = SymbolicScope(bounds)
        scope.decides = True  # a branch that some lengths do not take would give them wrong results
        symbols: dict[str | None, Any] = {name: high for name, _, high in ranges}
        symbols |= {name: variable(name, scope) for name, *_ in varying}
        types = []
        for aval, axes in zip(avals, names, strict=True):
            shape = [symbols.get(name, n) for name, n in zip(axes, aval.shape, strict=False)]
            types.append(shaped((*shape, *aval.shape[len(axes) :]), aval.dtype, aval.weak_type))
        flat = FlatFunction(lambda args, kwargs: self.fun(*args, **kwargs), tree)

        def values(*leaves: Any) -> list[Any]:
            return [value_of(x) for x in flat(*leaves)]

        try:
            closed = ClosedJaxpr(*stage(values, types, name=arguments.fun_name(self.fun)))
            padded_program(hoisted(closed), ranges)
        except Exception as error:  # if the function itself fails, the call with its own size says why
            self.refusal = error.with_traceback(None)  # whose frames hold tracers
            return None
        return _Program(closed, flat.out_tree)


def _type_key(aval: ShapedArray, axes: Names) -> Any:
    """The type without the lengths of its named axes."""
    shape = tuple(name or n for name, n in zip(axes, aval.shape, strict=False))
    return shape, aval.shape[len(axes) :], aval.dtype, aval.weak_type
