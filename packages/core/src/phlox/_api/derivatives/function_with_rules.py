"""The base class of `custom_jvp`, `custom_vjp` and `custom_vmap`, which are functions with rules of their own."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any, Generic

from ..._base.errors import ArgumentError, DerivativeError, UndefinedRuleError
from ..._base.wrapping import P, R, wraps
from ..jit import arguments


class FunctionWithRules(Generic[P, R]):
    """A function with rules of its own.

    Decorators may be nested: methods that set rules (`defjvp`, `def_vmap` and so on) of the inner function are also
    methods of the outer one.
    """

    fun: Callable[..., Any]

    def __init__(self, fun: Callable[P, R]):
        wraps(fun)(self)
        self.fun = fun

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        raise NotImplementedError

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Decorated functions of modules are pickled by name and copied by reference, as other functions are.
        name = getattr(self, "__qualname__", "")
        is_global = getattr(sys.modules.get(self.__module__), name, None) is self
        return name if is_global else super().__reduce_ex__(protocol)

    def __getattr__(self, name: str) -> Any:
        # Without `vars` this would call itself, while an object is unpickled or copied and has no attributes yet.
        if name.startswith("def") and isinstance(fun := vars(self).get("fun"), FunctionWithRules):
            return getattr(fun, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def no_rule(fun: Callable[..., Any], decorator: str, rule: str, how: str) -> UndefinedRuleError:
    """The error for a function called before its rule is set; `rule` names the rule and `how` the call that sets it."""
    name = arguments.fun_name(fun)
    return UndefinedRuleError(
        f"No {rule} defined for {decorator} function {name} using {how.partition('(')[0]}.",
        instead=f"{name}.{how}, before {name} is called",
        function=fun,
        rule=rule,
    )


def positional(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], decorator: str
) -> tuple[Any, ...]:
    """All arguments by position, with defaults filled in, since rules take no keyword arguments."""
    # In the signature of a partial, the parameters after one that is bound by name take names only.
    signature = None if isinstance(fun, functools.partial) else arguments.signature_of(fun)
    if signature is None:
        if not kwargs:
            return args
        unresolved = list(kwargs)
    else:
        # Nothing has to be matched: this is the usual call.
        if not kwargs and len(args) == len(signature.parameters):
            return args
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{_unresolved(fun, decorator)}\n{error}") from error
        bound.apply_defaults()
        # Parameters that take names only keep their defaults, which the function fills in itself.
        unresolved = [name for name in bound.kwargs if name in kwargs]
        if not unresolved:
            return bound.args
    raise DerivativeError(
        f"{_unresolved(fun, decorator)}\nThe following keyword arguments could not be resolved to positions: "
        f"{', '.join(sorted(unresolved))}",
        instead="positional arguments: a rule takes no others",
    )


def _unresolved(fun: Callable[..., Any], decorator: str) -> str:
    return (
        f"The input arguments to the {decorator}-decorated function {arguments.fun_name(fun)} could not be resolved to "
        "positional-only arguments. Binding failed with the error:"
    )
