"""``phlox.interpreters.mlir``: lowering rules as JAX states them, as far as they are made of other operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._base.errors import UnsupportedError
from .._ir.primitive import Primitive
from .._ops.elementwise.families import lowered_as

__all__ = ["lower_fun", "register_lowering"]


class LowerFun(NamedTuple):
    """A lowering rule that writes what a function of arrays does."""

    fun: Callable[..., Any]
    multiple_results: bool


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> LowerFun:
    """A lowering rule for `register_lowering`: the primitive becomes what `fun`, made of other operations, does.

    Args:
      fun: ``fun(*operands, **params)``, a function of arrays.
      multiple_results: it returns a list of results instead of one.

    Returns:
      A rule.

    >>> lower_fun(lambda x: x + x, multiple_results=False).multiple_results
    False
    """
    return LowerFun(fun, multiple_results)


def register_lowering(prim: Primitive, rule: Any, platform: str | None = None, **_options: Any) -> Any:
    """Gives a primitive its lowering rule.

    Args:
      prim: the primitive.
      rule: a result of `lower_fun`.
      platform: accepted as in JAX; the rule holds for all platforms.
      **_options: accepted as in JAX; not read.

    Returns:
      `rule`.

    Raises:
      UnsupportedError: a rule that builds MLIR: phlox writes StableHLO as text, see `phlox.extend.Primitive`.

    >>> from phlox.extend.core import Primitive
    >>> doubled_p = Primitive("documentation_doubled")
    >>> _ = doubled_p.def_abstract_eval(lambda x: x)
    >>> _ = register_lowering(doubled_p, lower_fun(lambda x: x + x, multiple_results=False))
    >>> float(phlox.jit(doubled_p.bind)(3.0))
    6.0
    """
    if not isinstance(rule, LowerFun):
        raise UnsupportedError(
            f"the lowering rule of {prim} builds MLIR, and phlox writes text",
            instead="mlir.lower_fun(f), or phlox.extend.Primitive(name, lower=...), whose rule writes StableHLO",
        )
    prim.lower = lowered_as(rule.fun, many=rule.multiple_results)
    return rule


def __dir__() -> list[str]:
    return __all__
