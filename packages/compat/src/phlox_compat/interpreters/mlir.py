"""``phlox.interpreters.mlir``: lowering rules in JAX's form, for rules that are functions of other operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from phlox.errors import UnsupportedError
from phlox.extend import Function, Primitive, Value, lowered_as, publish

__all__ = ["lower_fun", "register_lowering"]


class LowerFun(NamedTuple):
    """A lowering rule that traces a function of arrays and lowers its operations."""

    fun: Callable[..., Any]
    multiple_results: bool


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> LowerFun:
    """A lowering rule for `register_lowering`: the primitive is lowered as the operations of `fun`.

    Args:
      fun: ``fun(*operands, **params)``, a function of arrays.
      multiple_results: whether `fun` returns a list of results instead of one.

    Returns:
      A rule.

    >>> lower_fun(lambda x: x + x, multiple_results=False).multiple_results
    False
    """
    return LowerFun(fun, multiple_results)


def register_lowering(prim: Primitive, rule: Any, platform: str | None = None, **_options: Any) -> Any:
    """Sets the lowering rule of a primitive.

    A rule that builds MLIR is accepted, so that a library with such a rule can be imported. phlox lowers to StableHLO
    as text: compiling a program with the primitive raises `UnsupportedError`, unless the rule only returns operands.
    See `phlox.extend.Primitive`.

    Args:
      prim: the primitive.
      rule: a result of `lower_fun`.
      platform: accepted as in JAX; the rule is used for all platforms.
      **_options: accepted as in JAX; not used.

    Returns:
      `rule`.

    >>> from phlox.extend.core import Primitive
    >>> doubled_p = Primitive("documentation_doubled")
    >>> _ = doubled_p.def_abstract_eval(lambda x: x)
    >>> _ = register_lowering(doubled_p, lower_fun(lambda x: x + x, multiple_results=False))
    >>> float(phlox.jit(doubled_p.bind)(3.0))
    6.0
    """
    if isinstance(rule, LowerFun):
        prim.lower = lowered_as(rule.fun, many=rule.multiple_results)
    elif platform is None or prim.lower is None:  # a rule for one platform does not replace one that can be used
        prim.lower = _passing(prim, rule)
    return rule


def _passing(prim: Primitive, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule for primitives that mark their operands, and return them. Raises where it builds anything."""

    def lower(_f: Function, *args: Value, **params: Any) -> Any:
        try:
            out = rule(None, *args, **params)
        except Exception:
            out = None
        if isinstance(out, tuple | list) and all(any(x is arg for arg in args) for x in out):
            return list(out) if prim.multiple_results else out[0]
        raise UnsupportedError(
            f"the lowering rule of {prim} builds MLIR, and phlox writes text",
            instead="mlir.lower_fun(f), or phlox.extend.Primitive(name, lower=...), whose rule writes StableHLO",
            primitive=prim.name,
        )

    return lower


publish(__name__)
