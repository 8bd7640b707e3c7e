"""Primitives: the operations that Jaxprs consist of. A `Primitive` holds all rules of its operation.

Its rules are declared in `rules.py`. They may be absent: a transformation that needs an absent rule raises
`MissingRuleError` with the primitive's name. A primitive that holds programs is a `ProgramPrimitive`.

All operations go through `bind`: it hands the operation to the current trace, or executes it when there is none.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Literal

from .._base.errors import MissingRuleError, OptionError, PhloxError
from .._base.interning import clear_if_full
from . import sharding_types
from .avals import ShapedArray
from .memory_spaces import in_shared_space
from .partial_results import result_reductions
from .rules import RULES, Rules

#: The trace that interprets operations; None: operations are executed at once.
current_trace: ContextVar[Any] = ContextVar("phlox_trace", default=None)
tracing = current_trace.get

_registry: dict[str, Primitive] = {}

Series = Literal["linear", "bilinear", "quotient"]
Unfused = Literal["operation", "layout"]


class Primitive(Rules):
    """One operation and its rules.

    Attributes:
      multiple_results: whether the rules and `bind` return lists.
      remembers: whether results of the rule `types` are cached by operand types and parameters; the parameters must
        then be small and hashable. Without parameters the results are always cached.
      nan_checked: whether `checkify` looks for nan in the results: True for arithmetic, False for operations that only
        move, select or compare elements.
      light: whether recomputing the results is cheaper than storing them, as for simple elementwise arithmetic and
        changes of shape. For primitives that hold Jaxprs: a function of the parameters.
      costly: whether an element takes 1 ns or more on one core, as with `lgamma`. See `_xla.costly_values`.
      series: how the coefficients of a Taylor series are computed (`_transform.jet`): the operation is "linear" in all
        inexact operands together, "bilinear" in two operands, or the "quotient" of two; None: by the jvp rule.
      program: name of the parameter with the Jaxpr that computes the results, or None.
      operation: name of the StableHLO or CHLO operation that an elementwise primitive is lowered to, such as
        "stablehlo.sine"; None where it is several. Documentation names it.
      transposes_zeros: whether the rule `transpose` is also called where all cotangents of the results are zero, as the
        others that it returns may not be.
      unbounded: whether the operation is a loop whose number of turns depends on values, and which may never end.
      has_user_derivative: whether its derivative is a user's function, which is traced when the operation is
        differentiated, and may contain such loops.
      decomposes: whether it is a decomposition into eigenvectors or singular vectors.
      memory_in_types: whether `types` says in which memory space results are; otherwise it is that of the operands.
      unfused: whether XLA's older emitter of CPU loops suffices for a program of this operation alone: "operation" if
        its results have the same bits as those of the newer emitter, "layout" if the operation only becomes part of the
        loop of another one; None: the newer emitter is needed. See `_xla.cpu_emitter`.
    """

    __slots__ = (
        "cache",
        "costly",
        "decomposes",
        "light",
        "memory_in_types",
        "multiple_results",
        "name",
        "nan_checked",
        "operation",
        "program",
        "remembers",
        "series",
        "transposes_zeros",
        "typed",
        "unbounded",
        "has_user_derivative",
        "unfused",
        *RULES,
    )

    #: whether parameters are programs that the operation runs: see `_trace.program_primitive`
    holds_programs = False
    #: whether the operation is a call of the parameter ``call_jaxpr``: JAX's attribute, which libraries ask for
    call_primitive = False

    def __init__(
        self,
        name: str,
        *,
        multiple_results: bool = False,
        remembers: bool = False,
        nan_checked: bool | None = None,
        light: bool | Callable[[dict[str, Any]], bool] = False,
        costly: bool = False,
        series: Series | None = None,
        program: str | None = None,
        unfused: Unfused | None = None,
        operation: str | None = None,
        transposes_zeros: bool = False,
        unbounded: bool = False,
        has_user_derivative: bool = False,
        decomposes: bool = False,
        memory_in_types: bool = False,
        **rules: Callable[..., Any] | None,
    ):
        unknown = set(rules) - set(RULES)
        if unknown:
            raise PhloxError(f"primitive {name}: no such rules {sorted(unknown)}", instead=f"one of {tuple(RULES)}")
        self.name = name
        self.multiple_results = multiple_results
        self.remembers = remembers
        self.nan_checked = nan_checked
        self.light = light
        self.costly = costly
        self.series = series
        self.program = program
        self.unfused = unfused
        self.operation = operation
        self.transposes_zeros = transposes_zeros
        self.unbounded = unbounded
        self.has_user_derivative = has_user_derivative
        self.decomposes = decomposes
        for rule in RULES:
            setattr(self, rule, rules.get(rule))
        self.memory_in_types = memory_in_types or self.sharding is sharding_in_types
        #: compiled programs of this one operation, by the keys of the operands and the parameters
        self.cache: dict[Any, Any] = {}
        #: results of the rule `types`
        self.typed: dict[Any, Any] = {}
        # The first primitive of a name stays registered: user code that is run again, or that reuses a name, must not
        # replace the library's primitives.
        _registry.setdefault(name, self)

    def bind(self, *args: Any, **params: Any) -> Any:
        """Applies the operation to `args` under the current trace."""
        trace = current_trace.get()
        if trace is None:
            return _execute(self, args, params)
        return trace.process(self, args, params)

    __call__ = bind

    def apply(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """``bind(*args, **params)``, for rules and subclasses that have both as they are."""
        trace = current_trace.get()
        return _execute(self, args, params) if trace is None else trace.process(self, args, params)

    @property
    def impl(self) -> Callable[..., Any]:
        """The function that executes the operation eagerly, as ``impl(*args, **params)``."""
        return self.eager or self.compiled

    def compiled(self, *args: Any, **params: Any) -> Any:
        """Executes the operation eagerly by a compiled program, also if it has a rule `eager`."""
        return _execute(self, args, params, True)

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the function that executes the operation eagerly (JAX's decorator); returns it."""
        self.eager = None if impl == self.compiled else impl
        return impl

    def types_of(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        """The type of the result, or the list of types, for operands of these types; cached where that is possible."""
        if not params:
            key: Any = avals
        elif self.remembers:
            key = (avals, *params.values())
        else:
            return self.find_types(avals, params)
        try:
            return self.typed[key]
        except KeyError:
            result_types = self.find_types(avals, params)
            clear_if_full(self.typed)[key] = result_types
            return result_types

    def find_types(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        """The result of the rule `types`, not cached.

        If phlox's own rule fails on parameters of a wrong kind, raises an `OptionError` that names them. Exceptions of
        rules that users wrote pass unchanged.
        """
        rule = self.rule("types")
        try:
            result_types = rule(*avals, **params)
        except PhloxError:
            raise
        except RULE_FAILURES as error:
            if not defined_in_phlox(rule):
                raise
            raise parameter_error(self, avals, params, error) from error
        if (type(result_types) is ShapedArray) is self.multiple_results:
            raise OptionError(
                f"{self.name}.abstract_eval() method should return a tuple or a list iff {self.name}.multiple_results: "
                f"the rule types returned {result_types!r}",
                instead="a list of types" if self.multiple_results else "the type alone",
                primitive=self.name,
            )
        for a in avals:
            if a.annotated:
                placed = in_shared_space(self, avals, result_types)
                return self._laid(avals, params, self._varying(avals, params, placed))
        return result_types

    def _laid(self, avals: tuple[ShapedArray, ...], params: dict[str, Any], result_types: Any) -> Any:
        """The `result_types`, with the explicit mesh axes over which the results are split."""
        rule = self.sharding
        if rule is sharding_in_types or all(a.spec is None for a in avals):
            return result_types
        mesh = sharding_types.mesh_of(self.name, avals)
        outs = result_types if self.multiple_results else [result_types]
        if rule:
            entries = rule(result_types, *avals, **params)
            all_entries = entries if self.multiple_results else [entries]
        else:
            all_entries = [sharding_types.elementwise(self.name, out, avals) for out in outs]
        all_reductions = result_reductions(self, avals, outs)
        laid = [
            sharding_types.checked(self.name, avals, out, mesh, entries, reductions)
            for out, entries, reductions in zip(outs, all_entries, all_reductions, strict=True)
        ]
        return laid if self.multiple_results else laid[0]

    def _varying(self, avals: tuple[ShapedArray, ...], params: dict[str, Any], result_types: Any) -> Any:
        """The `result_types`, with the axes along which results vary. Rules on shapes need not know of them."""
        if not any(a.vma for a in avals):
            return result_types
        vma = frozenset().union(*[a.vma for a in avals]) if self.vma is None else self.vma(avals, params)
        if vma is None:
            return result_types
        return [a.varying(vma) for a in result_types] if self.multiple_results else result_types.varying(vma)

    def rule(self, name: str) -> Callable[..., Any]:
        """The rule of this name. Raises `MissingRuleError` if the primitive has none."""
        rule = getattr(self, name)
        if rule is None:
            entry = RULES[name]
            missing = entry.missing.format(repr(self.name), rule=name)
            raise MissingRuleError(
                f"{missing}: it has no {name} rule, so {entry.needed_for} cannot pass it",
                primitive=self.name,
                rule=name,
            )
        return rule

    @property
    def __name__(self) -> str:
        return self.name

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """`params` itself: in JAX, the parameters to pass to `bind` for an equation with these parameters."""
        return params

    def __repr__(self) -> str:
        return self.name


#: exceptions that a rule may raise when a parameter has the wrong kind
RULE_FAILURES = (AttributeError, IndexError, KeyError, TypeError, ValueError, ZeroDivisionError)


def defined_in_phlox(rule: Callable[..., Any]) -> bool:
    """Whether a rule is defined in phlox, and not by a user."""
    return str(getattr(rule, "__module__", "")).startswith("phlox.")


def parameter_error(
    primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any], error: Exception
) -> OptionError:
    """The error for parameters that a rule of `primitive` failed on with `error`."""
    listing = ", ".join(f"{name}={value!r:.60}" for name, value in params.items())
    return OptionError(
        f"{primitive.name} of {', '.join(a.short for a in avals) or 'nothing'} does not take the parameters {listing}: "
        f"{error}",
        primitive=primitive.name,
        params=params,
    )


def vma_in_types(avals: Sequence[ShapedArray], params: dict[str, Any]) -> None:
    """The rule `vma` of primitives whose results have the types that their Jaxprs return."""


def sharding_in_types(outs: Any, *avals: ShapedArray, **params: Any) -> Any:
    """The rule `sharding` of primitives whose rule `types` says how the results are split, or that have Jaxprs."""


#: execute(primitive, args, params, compiled=False): executes an operation by its rule `eager` if it has one; with
#: compiled=True always by a compiled program
Execute = Callable[..., Any]


def _not_installed(primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any], compiled: bool = False) -> Any:
    raise PhloxError("nothing is installed that executes operations")


_execute: Execute = _not_installed


def execute_with(run: Execute) -> None:
    """Installs the function that executes operations when no trace is current.

    The layer `_xla`, which this layer cannot import, calls it once.
    """
    global _execute
    _execute = run


def primitive(name: str) -> Primitive:
    """The primitive of this name. Transformations call it, because they cannot import `_ops`.

    Args:
      name: the name that printed Jaxprs show.

    Returns:
      A `Primitive`.

    Raises:
      KeyError: there is no such primitive, or the module that defines it is not imported yet.

    >>> float(primitive("sin").bind(0.0))
    0.0
    """
    if name not in _registry and name in _on_demand:
        importlib.import_module(_on_demand[name])
    return _registry[name]


#: the modules of `define_on_demand`, by the name of the primitive
_on_demand: dict[str, str] = {}


def define_on_demand(module: str, name: str) -> None:
    """Lets `primitive` import the module that defines the primitive of this name."""
    _on_demand[name] = module


def primitives() -> dict[str, Primitive]:
    """All primitives by name, in the order in which they were defined.

    Returns:
      A new dict. Primitives of modules that are not imported yet are missing.

    >>> "sin" in primitives()
    True
    """
    return dict(_registry)
