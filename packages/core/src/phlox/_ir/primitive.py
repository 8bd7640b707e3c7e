"""Primitives: the operations that programs consist of, each with all of its rules.

A rule that is absent is a statement: the transformation that would need it raises `MissingRuleError` with the
primitive's name. Rules, with the arguments of the operation written ``*args`` and its parameters ``**params``:

    types(*avals, **params)               -> aval, or a list of them
    lower(f, *values, **params)           -> value, or a list: writes StableHLO text into the function `f`
    jvp(primals, tangents, **params)      -> outputs, output tangents; a tangent may be a `Zero`
    linearize(trace, args, params)        -> only for primitives that hold Jaxprs, see _transform.linearize
    transpose(cotangents, *args, **params)-> a cotangent (or None) for each argument; linear ones are `Linear`
    batch(axis, args, dims, **params)     -> outputs, output dims; a dim is None where there is no batch
    extend(params, trailing, *avals)      -> params of the same operation on arrays with `trailing` more axes,
                                             which is how arrays of PRNG keys pass through
    steps(*args, **params)                -> only for primitives that hold Jaxprs: a generator of the programs that they
                                             run, as (closed Jaxpr, arguments, a name for the step), in order; it is
                                             sent the results of each
    eager(*args, **params)                -> how to run at once, where that is not "compile and execute"
    axes(params)                          -> names of the mapped axes that a collective works over
    effects(params)                       -> what it does besides computing its results, see _ir.effects; primitives
                                             that hold Jaxprs have this rule
    narrow(eqn, used)                     -> the equation, or a cheaper one for the results that are used
    divide(eqn, policy)                   -> only for primitives that hold Jaxprs: an equation with more results, the
                                             values inside that the policy of a checkpoint keeps; one that takes them as
                                             more operands and computes the other results again; their variables
    show(eqn, printer)                    -> the parameters that a printed program shows, in order

and for `checkify`, see _api.checked_programs.Checks:

    requires(checks, *args, **params)     -> None; tells `checks` what must hold of the arguments: indices inside of
                                             the array, a divisor that is not zero
    checked(checks, *args, **params)      -> a list of outputs; only for primitives that hold Jaxprs: the same operation
                                             with programs that make checks

`bind` is the one door: it hands the operation to the current trace, or runs it when there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Literal

from .._base.errors import MissingRuleError, OptionError, PhloxError
from .avals import ShapedArray

#: The interpreter that operations go to; None means "run them now".
current_trace: ContextVar[Any] = ContextVar("phlox_trace", default=None)
tracing = current_trace.get

_registry: dict[str, Primitive] = {}
_RULES = (
    "types",
    "lower",
    "jvp",
    "linearize",
    "transpose",
    "batch",
    "extend",
    "steps",
    "eager",
    "axes",
    "effects",
    "narrow",
    "divide",
    "show",
    "requires",
    "checked",
)

Series = Literal["linear", "bilinear", "quotient"]
Unfused = Literal["operation", "layout"]


class Primitive:
    """One operation. `multiple_results` says that rules and `bind` return lists.

    `remembers` says that types need not be worked out again for the same parameters, which are all small and hashable;
    where there are no parameters that is always so. `nan_checked` says whether `checkify` looks for nan in the results:
    it is true of arithmetic, and false of what only moves, chooses or compares elements. `light` says that results are
    cheaper to compute again than to store: it is true of simple arithmetic on elements and of changes of shape. Of a
    primitive that runs a program it is a function of the parameters.

    `series` says how the coefficients of a Taylor series pass: "linear" in all inexact operands together, "bilinear" in
    two operands, "quotient" of two; None where they follow from the jvp rule. `program` names the parameter that holds
    the program which computes the results. `unfused` says what XLA's older emitter of CPU loops makes of a program with
    this operation alone: with "operation" the same bits as the newer emitter, with "layout" a part of its neighbour's
    loop; None: the newer one is needed. See `_xla/pipeline.py`.
    """

    __slots__ = (
        "cache",
        "light",
        "multiple_results",
        "name",
        "nan_checked",
        "program",
        "remembers",
        "series",
        "typed",
        "unfused",
        *_RULES,
    )

    types: Any
    lower: Any
    jvp: Any
    linearize: Any
    transpose: Any
    batch: Any
    extend: Any
    steps: Any
    eager: Any
    axes: Any
    effects: Any
    narrow: Any
    divide: Any
    show: Any
    requires: Any
    checked: Any

    def __init__(
        self,
        name: str,
        *,
        multiple_results: bool = False,
        remembers: bool = False,
        nan_checked: bool | None = None,
        light: bool | Callable[[dict[str, Any]], bool] = False,
        series: Series | None = None,
        program: str | None = None,
        unfused: Unfused | None = None,
        **rules: Callable[..., Any] | None,
    ):
        unknown = set(rules) - set(_RULES)
        if unknown:
            raise PhloxError(f"primitive {name}: no such rules {sorted(unknown)}", instead=f"one of {_RULES}")
        self.name = name
        self.multiple_results = multiple_results
        self.remembers = remembers
        self.nan_checked = nan_checked
        self.light = light
        self.series = series
        self.program = program
        self.unfused = unfused
        for rule in _RULES:
            setattr(self, rule, rules.get(rule))
        #: compiled one-operation programs, by argument types and parameters
        self.cache: dict[Any, Any] = {}
        #: results of `types`
        self.typed: dict[Any, Any] = {}
        # A cell of a notebook that is run again makes its primitives anew; the library's own are found by name first.
        _registry.setdefault(name, self)

    def bind(self, *args: Any, **params: Any) -> Any:
        """Applies the operation to `args` under the current trace."""
        trace = current_trace.get()
        if trace is None:
            return _execute(self, args, params)
        return trace.process(self, args, params)

    __call__ = bind

    @property
    def impl(self) -> Callable[..., Any]:
        """What computes the operation at once, as ``impl(*args, **params)``."""
        return self.eager or self._compiled

    def _compiled(self, *args: Any, **params: Any) -> Any:
        return _execute(self, args, params, True)

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """How to compute it at once."""
        self.eager = None if impl == self._compiled else impl
        return impl

    def types_of(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        """The type of the result, or the list of types, for arguments of these types."""
        if not params:
            key: Any = avals
        elif self.remembers:
            key = (avals, *params.values())
        else:
            return self.find_types(avals, params)
        try:
            return self.typed[key]
        except KeyError:
            found = self.find_types(avals, params)
            if len(self.typed) >= _TYPED_LIMIT:
                self.typed.clear()
            self.typed[key] = found
            return found

    def find_types(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        """What the rule `types` says. Where it fails on parameters of another kind than it expects, an `OptionError`
        names them; rules of users' primitives raise what they raise."""
        rule = self.rule("types")
        try:
            found = rule(*avals, **params)
        except PhloxError:
            raise
        except MISTAKES as error:
            if not of_the_library(rule):
                raise
            raise refused_parameters(self, avals, params, error) from error
        if (type(found) is ShapedArray) is self.multiple_results:
            raise OptionError(
                f"{self.name}.abstract_eval() method should return a tuple or a list iff {self.name}.multiple_results: "
                f"the rule types returned {found!r}",
                instead="a list of types" if self.multiple_results else "the type alone",
                primitive=self.name,
            )
        return found

    def rule(self, name: str) -> Callable[..., Any]:
        """The rule of this name, or an error that says it is missing."""
        found = getattr(self, name)
        if found is None:
            missing, needed_for = _MISSING.get(name, (f"Rule {name} for {{}} not implemented", "this"))
            raise MissingRuleError(
                f"{missing.format(repr(self.name))}: it has no {name} rule, so {needed_for} cannot pass it",
                primitive=self.name,
                rule=name,
            )
        return found

    @property
    def __name__(self) -> str:
        return self.name

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """What interpreters that were written for JAX hand to `bind`: the parameters of the equation."""
        return params

    def __repr__(self) -> str:
        return self.name


#: what Python raises in a rule that was given a parameter of another kind
MISTAKES = (AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError)


def of_the_library(rule: Callable[..., Any]) -> bool:
    """Whether a rule is phlox's own, and not a user's."""
    return str(getattr(rule, "__module__", "")).startswith("phlox.")


def refused_parameters(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], error: Exception
) -> OptionError:
    """The error for parameters that a rule of `primitive` failed on with `error`."""
    given = ", ".join(f"{name}={value!r:.60}" for name, value in params.items())
    return OptionError(
        f"{primitive.name} of {', '.join(a.short for a in avals) or 'nothing'} does not take the parameters {given}: "
        f"{error}",
        primitive=primitive.name,
        params=params,
    )


_TYPED_LIMIT = 4096

#: what errors say of a missing rule, in JAX's words, and what needs it
_MISSING = {
    "types": ("Abstract evaluation for {} not implemented", "tracing"),
    "jvp": ("Differentiation rule for {} not implemented", "differentiation"),
    "transpose": (
        "Transpose rule (for reverse-mode differentiation) for {} not implemented",
        "reverse-mode differentiation",
    ),
    "batch": ("Batching rule for {} not implemented", "vmap"),
    "lower": ("Lowering rule for primitive {} not found", "compilation"),
    "eager": ("Evaluation rule for {} not implemented", "a call outside of transformations"),
    "extend": ("Rule extend for {} not implemented", "an array of PRNG keys"),
}


#: runs an operation, by its rule `eager` if it has one; with a fourth argument, compiled all the same
Execute = Callable[..., Any]


def _not_installed(primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any], compiled: bool = False) -> Any:
    raise PhloxError("nothing is installed that executes operations")


_execute: Execute = _not_installed


def execute_with(run: Execute) -> None:
    """Installs what runs operations when no trace is current; the room `_xla` calls this once."""
    global _execute
    _execute = run


def primitive(name: str) -> Primitive:
    """The primitive of this name. Transformations use it to speak of the few operations they need.

    Args:
      name: as Jaxprs show it.

    Returns:
      A `Primitive`.

    Raises:
      KeyError: there is none, or nothing has asked for its file yet.

    >>> import phlox
    >>> float(primitive("sin").bind(0.0))
    0.0
    """
    return _registry[name]


def primitives() -> dict[str, Primitive]:
    """All primitives by name, in the order in which they were stated.

    Returns:
      A new dict. Those of files that nothing has asked for yet are not in it.

    >>> "sin" in primitives()
    True
    """
    return dict(_registry)
