"""`JitFunction`, the object behind each jitted function: it traces, lowers, compiles and caches.

`calling` makes the function that users call, and its fast path.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ..._base import config, strictness
from ..._base.checks import retracing
from ..._base.errors import UnexpectedTracerError
from ..._base.interning import clear_if_full
from ..._base.monitoring import TRACE, on, timed
from ..._base.pytree import PyTreeDef, flatten
from ..._ir.avals import typeof_value
from ..._ir.jaxpr import ClosedJaxpr, Jaxpr, contains, hoist_consts
from ..._operands.checks import array_like
from ..._ops.control.call import jit_p
from ..._trace.axes import axis_env
from ..._trace.leaks import no_leaks, when_ended
from ..._trace.refs import (
    AbstractRef,
    Ref,
    accesses,
    is_reusable,
    is_valid_for,
    values,
    write_all,
)
from ..._trace.staging import stage
from ..._trace.trace import Tracer, check_live
from ..._xla.array import ArrayImpl
from ..._xla.placement import aval_of, is_committed, placement_for
from ..._xla.program import explain_failure
from . import arguments
from .bound_call import BoundCall, bind, join_static
from .caches import Caches, Stats, caches_for
from .calling import FAILURES, MAX_ARRAYS, specialize
from .entry import NUMBERS, Entry, call_order
from .inlining import IN_EQUATION, Inline
from .lowered_call import LoweredCall, lower_call
from .misses import check_miss
from .narrowing import check_all, dtypes_of_integers
from .options import Options
from .origins import origin
from .parameters import Parameters, parameters_of, variadic_parameters
from .programs import (
    ShapeDtypeStruct,
    as_ref,
    as_struct,
    constrained,
    key_of,
    operands_of,
    shapes_of,
    with_shardings,
    with_static,
)  # fmt: skip
from .references import ReferenceEntry, RefKey, replaced
from .traced import FunctionTrace
from .user_functions import user_call

if TYPE_CHECKING:
    from ..checks.explanation import Explanation
    from . import stages


# With the dot, so that phlox_nn and the like count as code of a user.
_PACKAGE = __name__.partition(".")[0] + "."


class JitFunction:
    """A user's function with what was traced and compiled for it.

    Attributes:
      fun: the user's function.
      calls: fast paths by call key, see `Caches`.
      has_static: whether some arguments are static.
      reports_recompiles: whether the flag `checks` reports that the function is compiled many times.
      unspecialized: holds the function that the user calls, until that gets generated code. The reference is weak, as
        the function refers to this object.
    """

    __slots__ = (
        "__weakref__", "_generated_for", "_is_ours", "_options", "_parameters", "_resolved", "_store", "calls", "fun",
        "has_static", "reports_recompiles", "unspecialized",
    )  # fmt: skip

    def __init__(self, fun: Callable[..., Any], options: Options):
        self.fun = fun
        self._options = options
        self._is_ours = str(getattr(fun, "__module__", "")).startswith(_PACKAGE)
        # The caches are shared by all uses of ``jit(f)``: a ``jit`` inside of a loop does not compile anew.
        self._store: Caches = caches_for(fun, options)
        # The same dict object for the life of the function. Generated code reads it, so `Caches.clear` empties it in
        # place.
        self.calls = self._store.calls
        self.reports_recompiles = True
        self.unspecialized: list[weakref.ref[Any]] = []
        self._parameters: Parameters | None = None
        self._generated_for: Parameters | None = None
        self._resolved: Options | None = None
        self.has_static = bool(options.static_argnums or options.static_argnames)

    def __reduce__(self) -> Any:
        # Programs are compiled anew. As a state, since the user's function may refer to its jitted form.
        functions = [function for reference in self.unspecialized if (function := reference()) is not None]
        return object.__new__, (JitFunction,), (self.fun, self._options, self._generated_for, functions)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        fun, options, generated_for, functions = state
        self.__init__(fun, options)  # type: ignore[misc]
        self._generated_for = generated_for
        self.unspecialized.extend(map(weakref.ref, functions))

    @property
    def parameters(self) -> Parameters:
        """The parameters of the user's function; ``*args, **kwargs`` if the form of a call matters.

        Once there is generated code, they are its parameters.
        """
        # Not in `_parameters`: a thread that is still computing that one would overwrite those of the generated code.
        if self._generated_for is not None:
            return self._generated_for
        if self._parameters is None:
            self._parameters = variadic_parameters(0) if self._form_matters else parameters_of(self.fun)
        return self._parameters

    @property
    def _has_donated(self) -> bool:
        """Whether some arguments are donated."""
        return bool(self._options.donate_argnums or self._options.donate_argnames)

    def _donated(self, call: BoundCall) -> frozenset[int]:
        """Indices of the donated leaves of a call."""
        # `self.options` reads the signature of the user's function, so it waits until something is donated.
        return call.donated(self.options) if self._has_donated else frozenset()

    @property
    def _form_matters(self) -> bool:
        """Whether the form of a call (by position or by name) decides which arguments are static or donated."""
        parameters, options = parameters_of(self.fun), self.options
        numbers, names = options.static_argnums, options.static_argnames
        if not (all(0 <= n < parameters.positional for n in numbers) and set(names) <= set(parameters.names)):
            return True
        both_ways = list(enumerate(parameters.names))[parameters.positional_only : parameters.positional]
        # A parameter that can be given in both ways must be static, or donated, in both; else a call's form changes its
        # meaning.
        chosen = (numbers, names), (options.donate_argnums, options.donate_argnames)
        return any((n in numbers) != (name in names) for numbers, names in chosen for n, name in both_ways)

    def specialize(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Gives the function that the user calls generated code, and returns it; None if it has that or cannot have it.

        If the user's function takes (*args, **kwargs), the code has parameters for as many arguments, and for the
        names, of this call.
        """
        if not self.unspecialized or not config.current().generated_calls:
            return None
        form_matters, parameters, options = self._form_matters, self.parameters, self.options
        if parameters.has_args and not parameters.names and len(args) + len(kwargs) <= MAX_ARRAYS:
            parameters = variadic_parameters(len(args), kwargs)
        elif form_matters:
            return None
        numbers = {n + len(args) if n < 0 else n for n in options.static_argnums}
        static = {n for n in numbers if n < parameters.positional}
        static |= {parameters.names.index(name) for name in options.static_argnames if name in parameters.names}
        try:
            function = self.unspecialized.pop()()  # only one of several threads gets the function
        except IndexError:
            return None
        # Set before the code is replaced: a thread that enters the new code already binds by these parameters.
        self._generated_for = parameters
        specialize(function, parameters, frozenset(static), form_matters)
        return function

    def _cache_size(self) -> int:
        """The number of compiled programs; JAX's jitted functions have a method of this name."""
        return len(self._store.entries)

    def explain_failure(self, entry: Entry, args: Any, kwargs: Any) -> None:
        """Raises an error that names the deleted array or the too large number, if that is why a run failed."""
        entry.consts.explain_failure()
        call = self._bind(args, kwargs)
        names = call.names()
        arguments.check_range(call.leaves, names)
        explain_failure(call.leaves, names)

    # -- the general path

    def call_flat(self, args: tuple[Any, ...], kwargs: dict[str, Any], call_key: Any = None) -> Any:
        """Calls the function, compiling if needed, and stores the fast path under `call_key`."""
        settings = config.current()
        if settings.disable_jit:
            return self.fun(*args, **kwargs)
        # A call by name and one by position share an entry.
        if kwargs:
            args, kwargs = self.parameters.in_position(args, kwargs)
        call = self._bound_call(args, kwargs)
        # Read before the function runs, which may change objects among its arguments: SciPy jits `__init__` methods.
        order = None if call_key is None else call_order((call.args, call.kwargs), iter(range(len(call.leaves))))
        # Keys of leaves hold shardings besides types: a program is compiled for the devices of its arguments. The key
        # of a trace, in `_cached_trace`, has types alone.
        key = (call.tree, call.statics, settings.call_fingerprint, *call.keys)
        entry = self._find_or_compile(key, call)
        # Calls with references stay on the general path: their values change from call to call.
        if order is not None and type(entry) is Entry:
            self._store_fast_path(call_key, settings.call_fingerprint, entry.for_leaves(call.leaves, order))
            if self._store.entries.get(key) is not entry:  # replaced, or cleared, by another thread meanwhile
                self._store.forget_calls(entry)
        if any(type(x) is ShapeDtypeStruct for x in call.leaves):
            call.check_arrays(values=entry.used_indices)
        try:
            return entry.run(call.leaves)
        except FAILURES:
            self.explain_failure(entry, args, kwargs)
            raise

    def _find_or_compile(self, key: Any, call: BoundCall) -> Entry:
        """The entry of this key; compiled if there is none, checked if its checks are due."""
        try:
            # `__eq__` of a static argument runs here if an earlier key has an equal hash, and may raise anything.
            entry = self._store.entries.get(key)
        except Exception as error:
            raise arguments.incomparable(self.fun, call.statics, error) from error
        if entry is None:
            # Another thread may have compiled the same call meanwhile. `keep` returns the entry that was first.
            entry = self._store.keep(key, self._compile_checked(key, call), self.fun)
        elif type(entry) is Entry and entry.counter.is_due():
            self._check_call(entry, call)
        # A closed-over reference is not in the key, and may have a value of another type now.
        if type(entry) is ReferenceEntry and (more := entry.other_keys()) is not None:
            key = (*key, *more)
            entry = self._store.entries.get(key) or self._store.keep(key, self._compile(call), self.fun)
        return entry

    def _store_fast_path(self, call_key: Any, fingerprint: Any, entry: Entry) -> None:
        """Stores what calls with `call_key` need, for settings with this fingerprint."""
        fast_path = entry.fast_path(fingerprint)
        # `call_key` alone finds the fast path for the latest settings: most programs never change them.
        clear_if_full(self.calls)[call_key] = self.calls[fingerprint, call_key] = fast_path

    def _leaf_key(self, x: Any, call: BoundCall) -> Any:
        """The key of a leaf that is no `ArrayImpl`; raises if it cannot be an argument."""
        kind = type(x)
        if kind in NUMBERS:
            return kind
        if isinstance(x, Tracer):
            check_live(x)
            # The tracer is alive, yet no trace is current: it was stored outside of its transformation.
            message = f"a traced value of type {x.aval.short} left its transformation"
            raise UnexpectedTracerError(message, aval=x.aval, live=x.owner.live)
        if kind is Ref:
            return RefKey(values([x])[0]._placement)
        aval = typeof_value(x)
        if aval is None:
            call.check_arrays()
        return aval

    @property
    def options(self) -> Options:
        """The options with argument numbers and names completed from the function's signature."""
        if self._resolved is None:
            options = self._options
            kinds = [(*options[:2], "static"), (*options[2:4], "donate")]
            static, donate = (arguments.complete(self.fun, *each, each[-1] in options.verbatim) for each in kinds)
            self._resolved = options._replace(
                static_argnums=static[0], static_argnames=static[1], donate_argnums=donate[0], donate_argnames=donate[1]
            )
        return self._resolved

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BoundCall:
        """The call with these arguments."""
        if not self.has_static:
            call = BoundCall(self.fun, args, kwargs)
        else:
            call = bind(self.fun, self.options, self.parameters.label, args, kwargs, self._is_ours)
        # Functions of phlox take objects with a method `__jax_array__`, as those of JAX do.
        if self._is_ours:
            call.leaves = [array_like(x) for x in call.leaves]
        return call

    def _bound_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BoundCall:
        """The call with these arguments, and the keys of its leaves."""
        call = self._bind(args, kwargs)
        # Arrays, the common case, carry their key and need no call.
        call.keys = [x._placement if type(x) is ArrayImpl else self._leaf_key(x, call) for x in call.leaves]
        return call

    # -- tracing and compiling

    def _cached_trace(self, call: BoundCall, refs: Sequence[Ref] = ()) -> FunctionTrace:
        """The function traced for leaves of the types of this call, from the cache if possible.

        Users' backward rules run later and may write to `refs`, the references among the arguments. A trace with such a
        rule is valid for these references alone.
        """
        settings, types = config.current(), call.types
        checks = self._options.checks
        # In the settings, the option holds for the functions that this one calls, too.
        if checks is not None and checks != settings.checks:
            with config.scope(checks=checks):
                return self._cached_trace(call, refs)
        # `misses.check_miss` names the first four parts in messages, in this order. The mapped axes are one of them,
        # because collectives read their sizes.
        key = (call.tree, call.statics, settings.trace_fingerprint, axis_env.get(), *types)
        cached = self._store.traces.get(key)
        # A mesh axis along which the value of a reference varies is part of its type, and may have changed since.
        if cached is not None and cached.refs and not is_valid_for(cached.refs, cached.closed.jaxpr):
            cached = None
        # Its backward rule would write to the references of the call that it was traced for.
        if cached is not None and refs and has_backward_rule(cached.closed.jaxpr):
            cached = None
        # While the checks trace again, what users' functions compute must be fresh. Functions of phlox read nothing
        # from outside.
        if cached is not None and not (retracing.get() and not self._is_ours):
            if cached.stale_values is not None and cached.stale_values.is_due():
                cached.stale_values.check(self.fun, self._retracing(call))
            return cached
        name = arguments.fun_name(self.fun)
        if settings.no_tracing or settings.explain_cache_misses:
            check_miss(self.fun, key, self._store.traces, self.parameters.label)
        if self._options.max_traces is not None:
            self._check_limit(key)
        traced = self._trace_anew(call, name, refs)
        if settings.checks != "off" and not self._is_ours and not retracing.get():
            traced = traced._replace(stale_values=_checks().traced(self, call, traced))
        if settings.debug_key_reuse:
            check_keys(traced.closed.jaxpr)
        # A trace that closed over a tracer is valid inside of that transformation only.
        if is_reusable(traced.consts, traced.refs) and not (refs and has_backward_rule(traced.closed.jaxpr)):
            clear_if_full(self._store.traces)[key] = traced
        return traced

    def _trace_anew(self, call: BoundCall, name: str, outer: Sequence[Ref] = ()) -> FunctionTrace:
        """The function traced for leaves of the types of this call.

        References among the arguments are replaced by new ones. Backward rules, which run after the trace has ended,
        reach the caller's references `outer` through those.
        """
        trees: list[PyTreeDef] = []
        refs: list[Ref] = []
        written: list[int] = []

        def source(ref: Ref) -> str:
            names = [call.names()[i] for i, passed in zip(call.ref_indices, refs, strict=True) if passed is ref]
            if names:
                return f".\n\nThe reference was passed in as the argument {names[0]}"
            return f".\n\nThe reference was created on line {ref.location}" if ref.location is not None else ""

        def flat(*tracers: Any) -> list[Any]:
            start = [tracers[i] for i in call.ref_indices]
            refs.extend(Ref(AbstractRef(x.aval), x) for x in start)
            positional, keywords = call.arguments_of(replaced(tracers, call.ref_indices, refs))
            out = strictness.run(self._is_ours, self.fun, positional, keywords)
            leaves, tree = flatten(out)
            arguments.check_outputs(self.fun, out, leaves, "jit", origin=source)
            trees.append(tree)
            # Only references whose value is another object now were written: a read leaves the tracer in place.
            written.extend(i for i, (ref, x) in enumerate(zip(refs, start, strict=True)) if ref.value is not x)
            return [*leaves, *[refs[i].value for i in written]]

        with on(self._store.account), timed(TRACE, "tracing %s for jit", name), no_leaks(name):
            jaxpr, consts = stage(flat, call.avals, name=name, arg_names=call.names, may_use_refs=True)
        if outer and has_backward_rule(jaxpr):
            for ref, argument in zip(refs, outer, strict=True):
                ref.outer = argument
        static = call.static_positions if call.statics else ()
        jaxpr.origin = origin("jit", "", self.fun, jaxpr, call.tree, trees[0], True, static)
        integer_dtypes = dtypes_of_integers(jaxpr) if self._is_ours else {}
        closed = ClosedJaxpr(hoist_consts(jaxpr))
        return FunctionTrace(closed, consts, trees[0], integer_dtypes, tuple(accesses(jaxpr).values), tuple(written))

    def _retracing(self, call: BoundCall) -> Callable[[], FunctionTrace]:
        """A function that traces the user's function anew for this call."""
        return functools.partial(self._trace_anew, call, arguments.fun_name(self.fun))

    def _check_limit(self, key: Any) -> None:
        """Raises `CheckError` if one more trace is more than `max_traces` allows."""
        known, limit = list(self._store.traces), self._options.max_traces
        if not retracing.get() and limit is not None and len(known) >= limit:
            from ..checks.recompiles import check_limit  # few functions have a limit, and fewer reach it

            check_limit(self.fun, self.parameters.label, limit, key, known, self._store.account)

    def _check_call(self, entry: Entry, call: BoundCall) -> None:
        """The checks of calls 2, 3, 4, 8, 16, … of a program."""
        entry.counter.renew()
        if entry.stale_values is not None:
            with self._with_checks():
                entry.stale_values.check(self.fun, self._retracing(call))

    def _with_checks(self) -> AbstractContextManager[None]:
        """A context with the flag `checks` as the option of this name says."""
        checks = self._options.checks
        return config.scope(checks=checks) if checks is not None else contextlib.nullcontext()

    def _compile_checked(self, key: Any, call: BoundCall) -> Entry:
        """As `_compile`, with the checks of functions of the user."""
        if self._is_ours:
            return self._compile(call)
        with self._with_checks():
            return _checks().compiled(self, key, call)

    def _compile(self, call: BoundCall) -> Entry:
        call, options = copy.copy(call), self._options
        # The program takes the values of references, so their keys count.
        if call.take_refs():
            call.keys = [key.key if type(key) is RefKey else key for key in call.keys]
        with on(self._store.account):
            lowered = self._lower(call)
            program = lowered.lowering.compile_for_calls(options.compiler_options, options.compile_effort)
        return lowered.entry(program)

    def _lower(self, call: BoundCall, placed: BoundCall | None = None, platform: str | None = None) -> LoweredCall:
        """The call traced, and lowered for the keys of `placed`, the same call with other keys."""
        # Calling a user's function with the same PRNG keys again repeats its result, and is no second use of the keys
        # under `debug_key_reuse`. A second draw by one of phlox's own functions is one.
        traced = self._cached_trace(call)
        if call.refs:
            call.check_refs(traced.refs)
        donated, repeatable = self._donated(call), not self._is_ours
        return lower_call(placed or call, traced, self._options, donated, repeatable, platform)

    # -- inside another transformation

    def call_traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call under a trace, which is one equation of the primitive `jit_p`."""
        # `disable_jit` holds inside of transformations, too, so that a debugger shows each operation with its traced
        # values.
        if self._options.inline is Inline.JAX_EARLY or config.current().disable_jit:
            return self._inlined(args, kwargs)
        if kwargs:
            args, kwargs = self.parameters.in_position(args, kwargs)
        call = self._bind(args, kwargs)
        refs = call.take_refs()
        # Under a trace only types matter: operands may be tracers, which have no placement.
        call.keys = call.check_arrays()
        traced = self._cached_trace(call, refs)
        if call.refs:
            call.check_refs(traced.refs)
        # The program cannot raise for a number that is too large.
        check_all(traced.integer_dtypes, call.leaves)
        operands = operands_of(call.leaves, traced.closed.jaxpr)
        in_shardings, out_shardings = self._options.in_shardings, self._options.out_shardings
        if in_shardings is not None and not self._options.moves_arguments:
            operands = constrained(operands, in_shardings.spread((call.args, call.kwargs)))
        closed, inline = traced.closed, IN_EQUATION[self._options.inline]
        outs = jit_p.bind(*traced.consts, *operands, jaxpr=closed, name=closed.jaxpr.name, inline=inline)
        if traced.written:
            width = traced.out_tree.num_leaves
            # New values follow the results, as in `LoweredCall`.
            write_all([refs[i] for i in traced.written], outs[width:])
            outs = outs[:width]
        if out_shardings is not None:
            outs = constrained(outs, out_shardings.spread_over(traced.out_tree, traced.out_avals))
        return traced.out_tree.unflatten(outs)

    def _inlined(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the function in the current trace, without an equation of its own."""
        ours = self._is_ours
        # Functions of users get arrays for numbers, as under `jit`.
        if self._options.inline is Inline.JAX_EARLY and not ours:
            call = self._bind(args, kwargs)
            positional, kwargs = join_static(call.statics, *arguments.as_arrays((call.args, call.kwargs)))
            args = tuple(positional)
        return arguments.as_arrays(strictness.run(ours, self.fun, args, kwargs))

    # -- tracing and lowering without running

    @user_call
    def trace(self, *args: Any, **kwargs: Any) -> stages.Traced:
        """The function traced for these arguments (arrays or `ShapeDtypeStruct`s); nothing is compiled."""
        return self._as_traced(self._call_of_stage(args, kwargs))

    @user_call
    def lower(self, *args: Any, **kwargs: Any) -> stages.Lowered:
        """The function lowered to StableHLO for these arguments (arrays or `ShapeDtypeStruct`s)."""
        return self._as_lowered(self._call_of_stage(args, kwargs))

    def _call_of_stage(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BoundCall:
        """The call with these arguments, of which types are enough, and the keys of its leaves."""
        call = self._bind(args, kwargs)
        call.leaves = [as_ref(x) for x in call.leaves]
        call.take_refs()
        call.leaves = [as_struct(x) for x in call.leaves]
        call.keys = [key_of(x, aval) for x, aval in zip(call.leaves, call.check_arrays(), strict=True)]
        return call

    def _placed(self, call: BoundCall) -> BoundCall:
        """The call of a stage, whose uncommitted arguments get their `in_shardings`.

        Calls of the stage then move no argument twice.
        """
        in_shardings = self._options.in_shardings
        if in_shardings is None:
            return call
        shardings = in_shardings.spread((call.args, call.kwargs))
        return call.with_keys(
            [
                key if sharding is None or is_committed(key) else placement_for(aval_of(key), sharding, committed=True)
                for key, sharding in zip(call.keys, shardings, strict=True)
            ]
        )

    def _as_traced(self, call: BoundCall) -> stages.Traced:
        traced, stages = self._cached_trace(call), _stages()
        bound, out_shardings = self._placed(call).without_values(), self._options.out_shardings
        signature = stages.Signature(bound, self._donated(call), traced.out_tree, traced.out_avals, out_shardings)
        described = [x.sharding if isinstance(x, ShapeDtypeStruct) else None for x in call.leaves]
        return stages.Traced(
            signature, traced.closed, traced.consts, functools.partial(self._as_lowered, call), described
        )

    def _as_lowered(self, call: BoundCall, platform: str | None = None) -> stages.Lowered:
        placed = self._placed(call)
        lowered, stages = self._lower(call, placed, platform), _stages()
        traced, num_consts = lowered.traced, len(lowered.consts)
        out_avals, out_shardings = traced.out_avals, self._options.out_shardings
        signature = stages.Signature(
            placed.without_values(), lowered.donated, traced.out_tree, out_avals, out_shardings, lowered.used_indices,
            num_consts,
        )  # fmt: skip
        # Stages must not keep the user's arrays alive.
        lowered = lowered._replace(call=lowered.call.without_values())
        return stages.Lowered(signature, lowered.lowering, lowered.entry, self._options)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of the result, with the shardings of `out_shardings`; see `phlox.eval_shape`."""
        call = self._bind(args, kwargs)
        fun = with_static(self.fun, functools.partial(join_static, call.statics)) if call.statics else self.fun
        return with_shardings(shapes_of(fun, call.args, call.kwargs), self._options.out_shardings)

    def stats(self) -> Stats:
        """How many programs were traced and compiled for this function, how long that took, and how often they ran.

        >>> f = phlox.jit(lambda x: x + 1)
        >>> float(f(1) + f(2) + f(3.0))
        9.0
        >>> f.stats().entries, f.stats().calls
        (2, 3)
        """
        return self._store.stats()

    def explain(self) -> Explanation:
        """The compiled programs of this function, as a table: types, times, calls, and why each was compiled.

        >>> import operator
        >>> f = phlox.jit(operator.neg)
        >>> float(f(1) + f(2) + f(3.0))
        -6.0
        >>> [(row.types, row.calls) for row in f.explain().rows]
        [('a: i32[] (a Python int)', 2), ('a: f32[] (a Python float)', 1)]
        """
        from ..checks.explanation import explanation  # asked for by people, not by programs

        return explanation(self.fun, self.parameters.label, self._store.history)

    def clear_cache(self) -> None:
        """Forgets what was traced and compiled for this function."""
        self._store.clear()


def has_backward_rule(jaxpr: Jaxpr) -> bool:
    """Whether a program, or one inside of it, calls a function with a backward rule of the user's."""
    return contains(jaxpr, "has backward rule", lambda primitive: primitive.name == "custom_vjp_call")


def check_keys(jaxpr: Any) -> None:
    """Raises `KeyReuseError` if a Jaxpr uses a PRNG key twice; imports the analysis, which only this flag needs."""
    from ..._trace.key_reuse import check

    check(jaxpr)


def _checks() -> Any:
    """The module `checks.hooks`, imported when first needed."""
    from ..checks import hooks

    return hooks


def _check_effects(fun: Callable[..., Any], name: str) -> None:
    _checks().transformed(fun, name)


when_ended.append(_check_effects)


def _stages() -> Any:
    """The module `stages`, imported when first needed: programs that only call functions do not pay for it."""
    from . import stages

    return stages
