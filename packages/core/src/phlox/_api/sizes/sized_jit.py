"""`jit` with sizes: the function that users call, its methods, and the stages of a bucket's program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..._base import config, pytree
from ..._base.errors import ShapeError
from ..._base.pytree import flatten
from ..._base.wrapping import COMPILED, wraps
from ..._ir.avals import ShapedArray, typeof_value
from ..._ir.primitive import tracing
from ..._trace.trace import not_an_array
from ..._xla.array import ArrayImpl
from ..jit import stages
from ..jit.arguments import fun_name
from ..jit.bound_call import BoundCall
from ..jit.caches import Stats
from ..jit.programs import as_struct, key_of, struct_of
from ..jit.user_functions import user_call
from .runner import Plan, Runner
from .sized_function import SizedFunction, Sizes, symbolic_types
from .specs import find_lengths

if TYPE_CHECKING:
    from ..recording.answers import Table


def sized_jit(exact: Any, sizes: Any, buckets: Any) -> Any:
    """The function that ``jit(fun, sizes=…)`` returns; `exact` is that of the other options."""
    sized = SizedJit("jit", exact, sizes, buckets)

    @wraps(exact)
    @user_call
    def call(*args: Any, **kwargs: Any) -> Any:
        return sized.run(args, kwargs) if tracing() is None else sized.call_traced(args, kwargs)

    function: Any = call
    for name in (*COMPILED, "_trace_for_export"):
        setattr(function, name, getattr(sized, name))
    function.__wrapped__ = sized.fun
    return function


class SizedJit(SizedFunction):
    """A function with the methods of jitted functions."""

    def trace(self, *args: Any, **kwargs: Any) -> stages.Traced:
        """The function traced for the size of these arguments. It is lowered as the program of a bucket."""
        traced: stages.Traced = self.exact.trace(*args, **kwargs)
        # Programs of buckets are lowered for the platform of this process, whichever is requested.
        traced._lower = lambda platform=None: self.lower(*args, **kwargs)
        return traced

    def _bound(self, args: Any, kwargs: Any) -> BoundCall:
        """The call with types in place of values."""
        call = self.jitted._bind(args, kwargs)
        call.leaves = [as_struct(x) for x in call.leaves]
        call.keys = [key_of(x, aval) for x, aval in zip(call.leaves, call.check_arrays(), strict=True)]
        return call

    def _trace_for_export(self, *args: Any, **kwargs: Any) -> stages.Traced:
        """The function traced for all sizes up to the bucket of these arguments."""
        call = self._bound(args, kwargs)
        sizes = self.sizes(call)
        if sizes is None:
            traced: stages.Traced = self.exact.trace(*args, **kwargs)
            return traced
        # From 1 on: the file has one program for all sizes.
        ranges = [(name, 1, high) for name, _, high in self.buckets.ranges(sizes.lengths, sizes.multiples)]
        types = symbolic_types(call.avals, sizes.names, tuple(ranges))
        positional, keywords = call.arguments_of([struct_of(aval) for aval in types])
        traced = self.exact.trace(*positional, **keywords)
        return traced

    def lower(self, *args: Any, **kwargs: Any) -> stages.Lowered:
        """The program of the bucket of these arguments. Compiled, it takes arguments of all sizes of the bucket."""
        call = self._bound(args, kwargs)
        sizes = self.sizes(call)
        program = None if sizes is None else self.program(call, sizes)
        if sizes is None or program is None:
            lowered: stages.Lowered = self.exact.lower(*args, **kwargs)
            return lowered
        return _Lowered(self.runner(call, sizes, program), call, sizes)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of the result; see `phlox.eval_shape`."""
        return self.exact.eval_shape(*args, **kwargs)

    def stats(self) -> Stats:
        """How many programs were traced and compiled, how long that took, and how often they ran."""
        parts = [f.stats() for f in (self.exact, *[runner.function for runner in self.runners.values()])]
        return Stats(*map(sum, zip(*parts, strict=True)))

    def clear_cache(self) -> None:
        """Forgets what was traced and compiled for this function."""
        for cache in (self.plans, self.fast_plans, self.runners, self.programs, self.trials, self.refusals):
            cache.clear()
        self.exact.clear_cache()

    def _cache_size(self) -> int:
        """The number of compiled programs."""
        return sum(f._cache_size() for f in (self.exact, *[runner.function for runner in self.runners.values()]))

    def explain(self) -> Table:
        """The programs by bucket: how often each ran, and the share of padding in its arguments and results.

        Returns:
          A table, which prints itself.

        >>> f = phlox.jit(lambda x: x.sum(), sizes={"x": "n"})
        >>> [float(f(jnp.ones(n))) for n in (3, 4, 100)]
        [3.0, 4.0, 100.0]
        >>> print(f.explain())
        <lambda> has 2 programs for 3 calls; 44% of their elements are padding
        sizes     calls  padding  compiled
        n 2–32    2      86%      ...
        n 2–128   1      22%      ...
        """
        from ..recording.answers import Table

        rows, calls, true, padded = [], 0, 0, 0
        for runner in self.runners.values():
            row = runner.figures()
            stats = runner.function.stats()
            time = f"{(stats.trace + stats.lower + stats.compile) * 1e3:.0f} ms"
            rows.append((runner.label(), str(row.calls), _percent(row.padding), time))
            calls, true, padded = calls + row.calls, true + row.elements, padded + row.padded_elements
        stats = self.exact.stats()
        if stats.entries:
            time = f"{(stats.trace + stats.lower + stats.compile) * 1e3:.0f} ms"
            rows.append((f"{stats.entries} sizes of their own", str(stats.calls), "0%", time))
        count = len(self.runners) + stats.entries
        share = _percent(1 - true / padded if padded else 0)
        title = (
            f"{fun_name(self.fun)} has {count} programs for {calls + stats.calls} calls; {share} of their elements are "
            "padding"
        )
        if self.refusals:
            title += f"\nnot padded: {next(reversed(self.refusals.values()))}".partition("\n  ")[0]
        return Table(title, ("sizes", "calls", "padding", "compiled"), rows)


def _percent(share: float) -> str:
    return f"{share * 100:.0f}%"


class _Lowered(stages.Lowered):
    """The program of a bucket, lowered. Its types of arguments and results are those of the size it was lowered for."""

    def __init__(self, runner: Runner, call: BoundCall, sizes: Sizes):
        shardings = [getattr(x, "sharding", None) for x in call.leaves]
        structs = [struct_of(a, s) for a, s in zip(runner.in_avals, shardings, strict=True)]
        inner = runner.function.lower(*[struct_of(a) for a in runner.length_avals], *structs)
        count = len(runner.ranges)
        used = inner._call.used_indices
        lengths = tuple(sorted(sizes.lengths.items()))
        # The lengths are the first arguments of the program. For the user they are hidden, as closed-over arrays are.
        signature = stages.Signature(
            call.without_values(),
            runner.donated,
            runner.out_tree,
            runner.out_types(lengths),
            None,
            [i - count for i in used if i >= count],
            inner._call.num_consts + sum(i < count for i in used),
        )
        super().__init__(signature, inner._lowering, inner._make_entry, inner._options)
        self._inner = inner
        self._runner = runner
        self._names = sizes.names

    def compile(self, *args: Any, **kwargs: Any) -> _Compiled:
        """The next stage; see `Lowered.compile`."""
        self._inner.platforms = self.platforms
        return _Compiled(self, self._inner.compile(*args, **kwargs))


class _Compiled(stages.Compiled):
    """The program of a bucket, compiled. It takes arguments of all sizes of the bucket."""

    def __init__(self, lowered: _Lowered, inner: stages.Compiled):
        super().__init__(lowered._call, inner._assignment, inner._placements, inner._entry)
        self._inner = inner
        self._runner = lowered._runner
        self._names = lowered._names
        self._plans: dict[Any, Plan] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, tree = flatten((args, kwargs))
        what = "Function compiled with input pytree does not match the input pytree it was called with"
        pytree.check_same(self.in_tree, tree, what)
        stages.refuse_tracers(leaves, "a bucket of sizes")
        avals = []
        for x in leaves:
            aval = typeof_value(x)
            if aval is None:
                raise not_an_array(x, "an argument")
            avals.append(aval)
        keys = [x._placement if type(x) is ArrayImpl else aval for x, aval in zip(leaves, avals, strict=True)]
        plan_key = (config.current().execution_fingerprint, *keys)
        plan = self._plans.get(plan_key)
        if plan is None:
            plan = self._plans[plan_key] = Plan(self._runner, self._lengths(avals), keys, self._inner)
        return plan.run(leaves)

    def _lengths(self, avals: Sequence[ShapedArray]) -> tuple[tuple[str, int], ...]:
        """The lengths of a call. Raises `ShapeError` for arguments of other types than those of the bucket."""
        lengths = find_lengths(lambda: None, avals, self._names, self._call.names)
        outside = {name for name, low, high in self._runner.ranges if not low <= lengths[name] <= high}
        for i, (aval, padded, axes) in enumerate(zip(avals, self._runner.in_avals, self._names, strict=True)):
            named = [size is not None for size in axes] + [False] * (aval.ndim - len(axes))
            fits = aval.ndim == padded.ndim and all(
                is_named or n == m for is_named, n, m in zip(named, aval.shape, padded.shape, strict=True)
            )
            is_outside = any(size is not None and size.name in outside for size in axes)
            if not fits or is_outside or aval.dtype != padded.dtype:
                name = self._call.names()[i]
                raise ShapeError(
                    f"Argument types differ from the types for which this compiled function was compiled: argument "
                    f"{name} is {aval.short}, and the bucket is {padded.short}, for {self._runner.label()}",
                    instead="the jitted function itself, which has a program for each bucket",
                    argument=name,
                    shapes=[padded.shape, aval.shape],
                )
        return tuple(sorted(lengths.items()))
