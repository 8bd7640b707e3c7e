"""`SizedFunction`: a function that is compiled once for each bucket of lengths, as `pad_axes` and `jit` with sizes do.

A call does four things. (1) Each name of a size gets the length that the arguments have, and its range, whose end is
the bucket. (2) The function is traced once for each range, with symbolic lengths in it: ``x.shape[0]`` is a number of
the program in arithmetic. (3) `_transform.padding` rewrites the Jaxpr for arrays of the bucket's lengths, and a
`Runner` compiles it. (4) A `Plan` pads the arguments, runs the program and cuts the results.

Under a trace the call is one equation of the primitive `padded_call`, whose derivatives and batches are padded calls.
What cannot be padded is compiled for its own size, with one warning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._base import config
from ..._base.errors import OptionError, PhloxError
from ..._base.interning import clear_if_full
from ..._base.pytree import PyTreeDef, flatten
from ..._ir.avals import ShapedArray, shaped
from ..._ir.dimensions import SymbolicScope, is_symbolic, variable
from ..._ir.jaxpr import ClosedJaxpr, hoisted
from ..._ir.substitution import program_for
from ..._ops.control.costs import cost
from ..._ops.control.padded_call import Lengths, Ranges, as_refusal, padded_call, padded_program, warn_of_refusal
from ..._trace.refs import Ref
from ..._trace.staging import stage
from ..._trace.trace import Tracer
from ..._xla.array import ArrayImpl
from ..._xla.placement import Placed
from ..export import dimensions as dimensions  # reads the constraints of scopes
from ..jit import arguments
from ..jit.bound_call import BoundCall, join_static
from ..jit.entry import NUMBERS
from ..jit.jit_function import JitFunction
from ..jit.references import RefKey
from ..jit.user_functions import FlatFunction
from .buckets import MAX_WIDE_TIME, WIDE_CALLS, Buckets
from .runner import Plan, Runner
from .specs import AUTO, Examples, Names, find_lengths, leaf_names, named_by_length, parse_sizes


class Program(NamedTuple):
    """A Jaxpr of symbolic shapes for lengths in `ranges`, and the treedef of its results."""

    closed: ClosedJaxpr
    out_tree: PyTreeDef
    ranges: Ranges


class Sizes(NamedTuple):
    """The sizes of a call.

    Attributes:
      names: the sizes of the leading axes of each leaf.
      lengths: the length of each name, in the order of the leaves.
      multiples: numbers that must divide the bucket of a name, because arrays are split over devices.
      ranges: the range of each name, which ends with its bucket.
      wide_ranges: the same for wide buckets.
      open_ranges: these with all shorter lengths.
    """

    names: Sequence[Names]
    lengths: dict[str, Any]
    multiples: dict[str, int]
    ranges: Ranges
    wide_ranges: Ranges
    open_ranges: Ranges

    @property
    def is_wide(self) -> bool:
        """Whether the buckets are wide ones too. Of their programs the one for most lengths is the best."""
        return self.end_with(self.wide_ranges)

    def end_with(self, ranges: Ranges) -> bool:
        """Whether arrays are as long in a program for these ranges as in that of the buckets."""
        return all(a[-1] == b[-1] for a, b in zip(self.ranges, ranges, strict=True))

    def are_in(self, ranges: Ranges) -> bool:
        """Whether a program for these ranges takes the arguments."""
        return all(
            low <= self.lengths[name] <= high and high % self.multiples.get(name, 1) == 0 for name, low, high in ranges
        )


class Trial:
    """The calls of a bucket that a program for more lengths serves, until they are enough for its own program."""

    def __init__(self, calls: int, caches: Sequence[dict[Any, Plan]]):
        self.calls_left = calls
        self._caches = caches

    def count(self) -> None:
        """Counts a call. After the last one its plans go, so that the next call makes new ones."""
        self.calls_left -= 1
        if self.calls_left == 0:
            for cache in self._caches:
                for key, plan in list(cache.items()):
                    if plan is not None and plan.trial is self:
                        cache.pop(key, None)


class SizedFunction:
    """A function, and its programs.

    Attributes:
      exact: the function compiled for the size of its arguments; its options are those of all programs.
      plans: how calls run, by the tree, the keys of leaves and the static arguments.
      fast_plans: the same by keys that are found faster, for calls by position without static arguments.
      runners: the compiled programs, by the same without the lengths of names, and the ranges of these.
      trials: whether a bucket has a program of its own yet, by the same.
      refusals: why the function is compiled for its own size, by the lengths.
    """

    def __init__(self, function: str, exact: Any, sizes: Any, buckets: Any):
        self.function = function
        self.exact = exact
        self.jitted: JitFunction = exact._jit
        self.jitted.reports_recompiles = False  # a `SizesWarning` says why each size is compiled
        self.fun = self.jitted.fun
        self.examples = Examples() if sizes == AUTO else None
        self.specs: dict[str, Any] = {} if sizes == AUTO else parse_sizes(self.fun, sizes)
        self._check_static()
        self.buckets, self.wide_buckets = Buckets(buckets), Buckets(buckets, wide=True)
        self.names: dict[Any, list[Names]] = {}
        self.plans: dict[Any, Plan | None] = {}
        self.fast_plans: dict[Any, Plan] = {}
        self.runners: dict[Any, Runner] = {}
        self.programs: dict[Any, Program | None] = {}
        self.trials: dict[Any, Trial] = {}
        self.refusals: dict[Lengths, PhloxError] = {}
        self.refusal: PhloxError | None = None
        self.has_warned = False

    def _check_static(self) -> None:
        """Raises for sizes of static arguments."""
        both = set(self.specs) & set(self.jitted.options.static_argnames)
        if both:
            raise OptionError(
                f"{self.function}: {min(both)!r} is static, and has sizes", instead="one of the two", name=min(both)
            )

    # -- calls

    def run(self, args: Any, kwargs: Any) -> Any:
        """The result of a call with values."""
        settings = config.current()
        if settings.disable_jit:
            return self.exact(*args, **kwargs)
        jitted, call_key = self.jitted, None
        if kwargs:
            args, kwargs = jitted.parameters.in_position(args, kwargs)
        elif not jitted.has_static:
            # Without static and keyword arguments, the structure and the leaves are all that a plan depends on, and the
            # call need not be bound.
            leaves, tree = flatten(args)
            call_key = (settings.call_fingerprint, tree, *map(_fast_key, leaves))
            plan = self.fast_plans.get(call_key)
            if plan is not None:
                return plan.run(leaves)
        call = jitted._bind(args, kwargs)
        call.keys = keys = [x._placement if type(x) is ArrayImpl else jitted._leaf_key(x, call) for x in call.leaves]
        key = (call.tree, call.statics, settings.call_fingerprint, *keys)
        try:
            plan = self.plans[key]
        except KeyError:
            plan = clear_if_full(self.plans)[key] = self.plan(call)
        if plan is None:
            return self.call_exact(args, kwargs)
        # A leaf of another kind has no key that is found fast.
        if call_key is not None and all(part is not None for part in call_key):
            clear_if_full(self.fast_plans)[call_key] = plan
        return plan.run(call.leaves)

    def call_traced(self, args: Any, kwargs: Any) -> Any:
        """The result of a call under a trace: one equation."""
        if config.current().disable_jit:
            return self.exact(*args, **kwargs)
        call = self.jitted._bind(args, kwargs)
        # References have no padded form.
        if any(type(x) is Ref for x in call.leaves):
            return self.call_exact(args, kwargs)
        call.keys = call.check_arrays()
        sizes = self.sizes(call)
        program = None if sizes is None else self.program(call, sizes)
        if sizes is None or program is None:
            return self.call_exact(args, kwargs)
        closed = program.closed
        operands = [*closed.consts, *call.leaves] if closed.consts else call.leaves
        lengths = tuple(sorted(sizes.lengths.items()))
        outs = padded_call.bind(*operands, jaxpr=hoisted(closed), lengths=lengths, ranges=program.ranges)
        return program.out_tree.unflatten(outs)

    def call_exact(self, args: Any, kwargs: Any) -> Any:
        """Calls the function compiled for the size of its arguments. Warns if that is for a reason, and works."""
        out = self.exact(*args, **kwargs)
        if self.refusal is not None and not self.has_warned:
            self.has_warned = True
            warn_of_refusal(arguments.fun_name(self.fun), self.refusal, self.function)
        return out

    # -- plans

    def plan(self, call: BoundCall) -> Plan | None:
        """How calls like this one run; None if the function is compiled for the size of its arguments."""
        # Arrays of several processes cannot be padded on the host.
        if any(type(key) is RefKey for key in call.keys) or not all(map(_is_readable, call.keys)):
            return None
        sizes = self.sizes(call)
        if sizes is None:
            return None
        program, trial = self._program_for_now(call, sizes)
        if program is None:
            return None
        return self.runner(call, sizes, program).plan(tuple(sorted(sizes.lengths.items())), call.keys, trial)

    def _program_for_now(self, call: BoundCall, sizes: Sizes) -> tuple[Program | None, Trial | None]:
        """The program for a call. If it is one for more lengths than the bucket's, also the count of such calls."""
        # One count for all kinds of calls in this bucket.
        key = (*self._program_key(call, sizes), sizes.ranges)
        trial = self.trials.get(key)
        if trial is None or trial.calls_left > 0:
            program = self._wider_program(call, sizes)
            if program is not None and not sizes.end_with(program.ranges):
                if trial is None:
                    caches: Any = (self.plans, self.fast_plans)
                    trial = self.trials[key] = Trial(_wide_calls(program, sizes.ranges), caches)
                if trial.calls_left > 0:
                    return program, trial
        return self.program(call, sizes), None

    def _wider_program(self, call: BoundCall, sizes: Sizes) -> Program | None:
        """The least program that is compiled and takes the arguments, or a new one, which takes shorter ones too."""
        key = self._program_key(call, sizes)
        compiled = [ranges for *others, ranges in list(self.runners) if tuple(others) == key and sizes.are_in(ranges)]
        if compiled:
            return self._program(call, sizes, min(compiled, key=lambda ranges: math.prod(high for *_, high in ranges)))
        choices = (self._program(call, sizes, ranges) for ranges in (sizes.open_ranges, sizes.wide_ranges))
        return next(filter(None, choices), None)

    def runner(self, call: BoundCall, sizes: Sizes, program: Program) -> Runner:
        """The compiled program for calls like this one."""
        key = (*self._program_key(call, sizes), program.ranges)
        runner = self.runners.get(key)
        if runner is None:
            donated: frozenset[int] = frozenset()
            if self.jitted._has_donated and call.args is not None:
                donated = call.donated(self.jitted.options)
            runner = self.runners[key] = Runner(program, self.jitted._options, call, donated)
        return runner

    def sizes(self, call: BoundCall) -> Sizes | None:
        """The sizes of a call; None if nothing varies, or has no elements."""
        avals, key = call.avals, (call.tree, call.statics)
        if self.examples is not None:
            specs = self.examples.names(key, avals)
        else:
            if key not in self.names:
                self.names[key] = leaf_names(self.fun, self.specs, call.tree, call.statics)
            specs = self.names[key]
        names = named_by_length(specs, avals)
        lengths = find_lengths(self.fun, avals, names, call.names)
        # An axis without elements has no padding that leaves results as they are.
        if not lengths or any(is_symbolic(n) or n < 1 for n in lengths.values()):  # symbolic lengths are at least 1
            return None
        multiples = self._multiples(call, names, avals)
        if multiples is None:
            return None
        together = [frozenset(size.name for size in axes if size) for axes in names if len(axes) > 1]
        ranges, wide = [b.ranges(lengths, multiples, together) for b in (self.buckets, self.wide_buckets)]
        return Sizes(names, lengths, multiples, ranges, wide, self.buckets.open(wide, multiples))

    def _multiples(
        self, call: BoundCall, names: Sequence[Names], avals: Sequence[ShapedArray]
    ) -> dict[str, int] | None:
        """The numbers that must divide the buckets of names, because devices share the axes. None if they share axes of
        lengths such as n + 1, for which there are no such buckets."""
        options = self.jitted._options
        shardings: list[Any] = [key.sharding if type(key) is Placed else None for key in call.keys]
        # Arguments are moved to these, so they decide.
        if options.in_shardings is not None:
            spread = options.in_shardings.spread((call.args, call.kwargs))
            shardings = [s or other for s, other in zip(spread, shardings, strict=True)]
        multiples: dict[str, int] = {}
        for sharding, axes, aval in zip(shardings, names, avals, strict=True):
            if sharding is not None and len(sharding.devices) > 1:
                for size, parts in zip(axes, sharding.tiles(aval.ndim), strict=False):
                    if size is not None:
                        if size.offset % parts:
                            return None
                        multiples[size.name] = math.lcm(multiples.get(size.name, 1), parts)
        if options.out_shardings is not None:
            parts = math.lcm(*[n for s in options.out_shardings.leaves if s is not None for n in _tiles(s)])
            multiples |= {s.name: math.lcm(multiples.get(s.name, 1), parts) for axes in names for s in axes if s}
        return multiples

    # -- programs

    def _program_key(self, call: BoundCall, sizes: Sizes) -> tuple[Any, ...]:
        # Lengths of named axes are left out, so that calls of all lengths in a range have one program.
        types = map(_type_key, call.avals, sizes.names)
        return (call.tree, call.statics, config.current().trace_fingerprint, *types)

    def program(self, call: BoundCall, sizes: Sizes) -> Program | None:
        """The program for the bucket of a call; None if there is none."""
        narrow = self.buckets.narrow(sizes.ranges, sizes.lengths, sizes.multiples)
        # In order of their worth: the bucket, then parts of it for which decisions of the function are the same.
        choices = [sizes.ranges, narrow]
        if sizes.is_wide:
            choices = [sizes.open_ranges, sizes.wide_ranges, *choices]
        for ranges in dict.fromkeys(choices):
            program = self._program(call, sizes, ranges)
            if program is not None:
                return program
        if self.refusal is not None:
            self.refusals[tuple(sizes.lengths.items())] = self.refusal
        return None

    def _program(self, call: BoundCall, sizes: Sizes, ranges: Ranges) -> Program | None:
        key = (*self._program_key(call, sizes), ranges)
        if key in self.programs:
            return self.programs[key]
        program = self._traced(call, sizes, ranges)
        # Refusals are stored, too: each attempt traces the function.
        if program is None or not any(isinstance(c, Tracer) for c in program.closed.consts):
            # A Jaxpr that closes over tracers is valid for this one call only.
            self.programs[key] = program
        return program

    def _traced(self, call: BoundCall, sizes: Sizes, ranges: Ranges) -> Program | None:
        """The program for all lengths in `ranges`; None if there is none."""
        types = symbolic_types(call.avals, sizes.names, ranges)

        def with_statics(args: Any, kwargs: Any) -> Any:
            positional, keywords = join_static(call.statics, args, kwargs)
            return self.fun(*positional, **keywords)

        flat = FlatFunction(with_statics, call.tree, user=self.fun)
        try:
            closed = ClosedJaxpr(*stage(flat, types, name=arguments.fun_name(self.fun)))
            padded_program(hoisted(closed), ranges)
        # Whatever fails: the call with its own size works, or raises the user's error.
        except Exception as error:  # if the function itself fails, the call with its own size says why
            self.refusal = as_refusal(error)
            return None
        return Program(closed, flat.out_tree, ranges)


def _wide_calls(program: Program, own: Ranges) -> int:
    """How many calls a program serves before the bucket, of these ranges, gets its own."""
    wide_cost, own_cost = (
        cost(program_for(program.closed, {name: high for name, _, high in ranges}).jaxpr)
        for ranges in (program.ranges, own)
    )
    # `cost` and `MAX_WIDE_TIME` are in ns. Both programs may cost the same, hence the 1.
    return int(min(WIDE_CALLS, MAX_WIDE_TIME / max(wide_cost - own_cost, 1)))


def symbolic_types(avals: Sequence[ShapedArray], names: Sequence[Names], ranges: Ranges) -> list[ShapedArray]:
    """The types with a symbolic length for each name, within its range."""
    varying = [(name, low, high) for name, low, high in ranges if low < high]
    scope = SymbolicScope(
        [f"{name} {sign} {n}" for name, low, high in varying for sign, n in ((">=", low), ("<=", high))]
    )
    scope.decides = True  # a branch that some lengths do not take would give them wrong results
    # A range of one length needs no symbol.
    symbols: dict[str, Any] = {name: high for name, _, high in ranges}
    symbols |= {name: variable(name, scope) for name, *_ in varying}
    types = []
    for aval, axes in zip(avals, names, strict=True):
        shape = [size.length(symbols[size.name]) if size else n for size, n in zip(axes, aval.shape, strict=False)]
        types.append(shaped((*shape, *aval.shape[len(axes) :]), aval.dtype, aval.weak_type))
    return types


def _tiles(sharding: Any) -> list[int]:
    """The numbers of parts that a sharding makes of axes."""
    spec = getattr(sharding, "spec", None)
    return sharding.tiles(len(spec)) if spec is not None and len(sharding.devices) > 1 else [1]


def _fast_key(x: Any) -> Any:
    """The key of a leaf among `fast_plans`; None for leaves that are read otherwise."""
    kind = type(x)
    if kind is ArrayImpl:
        return x._placement
    if kind is np.ndarray:
        return x.dtype, x.shape
    return kind if kind in NUMBERS else None


def _is_readable(key: Any) -> bool:
    """Whether this process holds all elements of an array."""
    return type(key) is not Placed or key.sharding.is_fully_addressable


def _type_key(aval: ShapedArray, axes: Names) -> Any:
    """The type without the lengths of its named axes."""
    shape = tuple(size or n for size, n in zip(axes, aval.shape, strict=False))
    return shape, aval.shape[len(axes) :], aval.dtype, aval.weak_type
