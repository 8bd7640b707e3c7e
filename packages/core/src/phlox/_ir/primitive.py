"""Primitives: the operations that Jaxprs consist of. A `Primitive` holds all rules of its operation.

Rules may be absent: a transformation that needs an absent rule raises `MissingRuleError` with the primitive's name.
The rules, with the operands written ``*args`` and the parameters of the equation ``**params``:

    types(*avals, **params)               -> aval, or a list of them
    lower(f, *values, **params)           -> value, or a list of them: adds StableHLO lines to the `Function` `f`
    jvp(primals, tangents, **params)      -> outputs, output tangents; a tangent may be a `Zero`
    linearize(primals, tangents, **params)-> as jvp, but computes outputs and output tangents in separate operations;
                                             only for primitives that hold Jaxprs, see _transform.linearize
    spectral(operands, out, tangent, **params)-> the tangent of the result, with its dependence on eigenvalues and
                                             eigenvectors among the operands, see _transform.spectra; only for
                                             operations with one result
    unfold(*args, **params)               -> outputs: runs the operations of a call one by one under the current trace
    decomposes(params)                    -> whether the operation, or one that it calls, is a decomposition into
                                             eigenvectors or singular vectors
    transpose(cotangents, *args, **params)-> a cotangent (or None) for each operand; linear operands are `Linear`
    batch(axis, args, dims, **params)     -> outputs, output dims; a dim is None for a value without the mapped axis
    extend(params, trailing, *avals)      -> params of the same operation on arrays with the axes `trailing` appended:
                                             the physical arrays of PRNG keys have such axes
    steps(*args, **params)                -> only for primitives that hold Jaxprs: a generator that yields the Jaxprs
                                             which the operation runs, in order, as (closed Jaxpr, arguments, a name for
                                             the step), and is sent the results of each
    expand(*args, **params)               -> outputs: the same operation by simpler ones, which recordings show
    expose(*args, **params)               -> only for primitives that map a Jaxpr over devices: for each equation of the
                                             Jaxpr its results as global arrays, with a leading axis over devices
    eager(*args, **params)                -> outputs; replaces "compile and execute" when no trace is current
    axes(params)                          -> names of the mapped axes that a collective works over
    vma(avals, params)                    -> the mesh axes along which the results vary, where that is tracked (inside
                                             of shard_map); None: the rule `types` has said it. Without this rule
                                             they vary along all axes along which an operand does
    sharding(outs, *avals, **params)      -> for each axis of the result the mesh axes that it is split over (a list of
                                             such entries for several results), where operands are split over explicit
                                             axes, see _ir.sharding_types; `outs` is what `types` has returned. Without
                                             this rule the operation is elementwise. `sharding_in_types` says that
                                             `types` has done it
    effects(params)                       -> the effects of the operation, see _ir.effects; all primitives that hold
                                             Jaxprs have this rule
    narrow(eqn, used)                     -> the equation, or a cheaper one that computes the used results only
    dependent(operands, params)           -> for each result, whether it depends on the operands that are marked; only
                                             for primitives that hold Jaxprs and have the rule `narrow`. Without it all
                                             results depend on all operands
    divide(eqn, policy)                   -> only for primitives that hold Jaxprs: (1) an equation that also returns
                                             the inner values which the policy of `checkpoint` saves; (2) an equation
                                             that takes those values as further operands and recomputes the other
                                             results; (3) the variables of the saved values
    masked(mask, *args, **params)         -> outputs; only for primitives that hold Jaxprs: the operation with
                                             loops that stop where the mask, a bool scalar, is false
    pad(padding, eqn, *args)              -> the result, or a list of them, for operands that are longer than the
                                             symbolic lengths in their types say, see _transform.padding. Without this
                                             rule a primitive that holds one Jaxpr is evaluated, and others are refused
    show(eqn, printer)                    -> the parameters that a printed Jaxpr shows, in order
    keys(eqn, uses_of)                    -> how the operation uses PRNG keys, a `KeyUses`; `uses_of(jaxpr)` says it of
                                             a Jaxpr. Without this rule it is what the Jaxpr `program` says, or else the
                                             operation consumes all keys among its operands and returns no new ones

and for `checkify`, see _api.checkify.programs.Checks:

    requires(checks, *args, **params)     -> None; adds to `checks` the conditions on the operands: indices inside the
                                             array, a divisor that is not zero
    checked(checks, *args, **params)      -> a list of outputs; only for primitives that hold Jaxprs: the same operation
                                             with checks inside its Jaxprs

All operations go through `bind`: it hands the operation to the current trace, or executes it when there is none.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Literal

from .._base.errors import MissingRuleError, OptionError, PhloxError
from . import sharding_types
from .avals import ShapedArray

#: The trace that interprets operations; None: operations are executed at once.
current_trace: ContextVar[Any] = ContextVar("phlox_trace", default=None)
tracing = current_trace.get

_registry: dict[str, Primitive] = {}
_RULES = (
    "types",
    "lower",
    "jvp",
    "linearize",
    "spectral",
    "unfold",
    "decomposes",
    "transpose",
    "batch",
    "extend",
    "steps",
    "expand",
    "expose",
    "eager",
    "axes",
    "effects",
    "narrow",
    "dependent",
    "divide",
    "masked",
    "pad",
    "show",
    "keys",
    "vma",
    "sharding",
    "requires",
    "checked",
)

Series = Literal["linear", "bilinear", "quotient"]
Unfused = Literal["operation", "layout"]


class Primitive:
    """One operation and its rules.

    Attributes:
      multiple_results: whether the rules and `bind` return lists.
      remembers: whether results of the rule `types` are cached by operand types and parameters; the parameters must
        then be small and hashable. Without parameters the results are always cached.
      nan_checked: whether `checkify` looks for nan in the results: True for arithmetic, False for operations that only
        move, select or compare elements.
      light: whether recomputing the results is cheaper than storing them, as for simple elementwise arithmetic and
        changes of shape. For primitives that hold Jaxprs: a function of the parameters.
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
      unfused: whether XLA's older emitter of CPU loops suffices for a program of this operation alone: "operation" if
        its results have the same bits as those of the newer emitter, "layout" if the operation only becomes part of the
        loop of another one; None: the newer emitter is needed. See `_xla.cpu_emitter`.
    """

    __slots__ = (
        "cache",
        "light",
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
        *_RULES,
    )

    #: whether the operation is a call of the parameter ``call_jaxpr``: JAX's attribute, which libraries ask for
    call_primitive = False

    types: Any
    lower: Any
    jvp: Any
    linearize: Any
    spectral: Any
    unfold: Any
    decomposes: Any
    transpose: Any
    batch: Any
    extend: Any
    steps: Any
    expand: Any
    expose: Any
    eager: Any
    axes: Any
    effects: Any
    narrow: Any
    dependent: Any
    divide: Any
    masked: Any
    pad: Any
    show: Any
    keys: Any
    vma: Any
    sharding: Any
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
        operation: str | None = None,
        transposes_zeros: bool = False,
        unbounded: bool = False,
        has_user_derivative: bool = False,
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
        self.operation = operation
        self.transposes_zeros = transposes_zeros
        self.unbounded = unbounded
        self.has_user_derivative = has_user_derivative
        for rule in _RULES:
            setattr(self, rule, rules.get(rule))
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
            if len(self.typed) >= _TYPED_LIMIT:
                self.typed.clear()
            self.typed[key] = result_types
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
                return self._laid(avals, params, self._varying(avals, params, result_types))
        return result_types

    def _laid(self, avals: tuple[ShapedArray, ...], params: dict[str, Any], result_types: Any) -> Any:
        """The `result_types`, with the explicit mesh axes over which the results are split."""
        rule = self.sharding
        if rule is sharding_in_types or all(a.spec is None for a in avals):
            return result_types
        mesh = sharding_types.mesh_of(self.name, avals)
        if not self.multiple_results:
            entries = (
                rule(result_types, *avals, **params)
                if rule
                else sharding_types.elementwise(self.name, result_types, avals)
            )
            return sharding_types.checked(self.name, avals, result_types, mesh, entries)
        all_entries = (
            rule(result_types, *avals, **params)
            if rule
            else [sharding_types.elementwise(self.name, out, avals) for out in result_types]
        )
        return [
            sharding_types.checked(self.name, avals, out, mesh, entries)
            for out, entries in zip(result_types, all_entries, strict=True)
        ]

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
            missing, needed_for = _MISSING.get(name, (f"Rule {name} for {{}} not implemented", "this"))
            raise MissingRuleError(
                f"{missing.format(repr(self.name))}: it has no {name} rule, so {needed_for} cannot pass it",
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


_TYPED_LIMIT = 4096


def vma_in_types(avals: Sequence[ShapedArray], params: dict[str, Any]) -> None:
    """The rule `vma` of primitives whose results have the types that their Jaxprs return."""


def sharding_in_types(outs: Any, *avals: ShapedArray, **params: Any) -> Any:
    """The rule `sharding` of primitives whose rule `types` says how the results are split, or that have Jaxprs."""


#: for each rule, the message when it is missing (in JAX's words) and the transformation that needs it
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

    >>> import phlox
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
