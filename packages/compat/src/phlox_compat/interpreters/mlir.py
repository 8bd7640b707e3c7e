"""``phlox.interpreters.mlir``: lowering rules in JAX's form, for rules that are functions of other operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from phlox.errors import UnsupportedError
from phlox.extend import Function, Primitive, Value, lowered_as, publish

from .._core import platform_of

__all__ = ["lower_fun", "register_lowering"]


class LowerFun(NamedTuple):
    """A lowering rule that traces a function of arrays and lowers its operations."""

    fun: Callable[..., Any]
    multiple_results: bool

    def __call__(self, ctx: Any, *args: Any, **params: Any) -> list[Any]:
        """The results of the function, inside of a rule that builds MLIR."""
        from ._mlir_rules import call_jax_function

        return call_jax_function(ctx, self.fun, args, params)


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


def register_lowering(
    prim: Primitive, rule: Any, platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> Any:
    """Sets the lowering rule of a primitive.

    A rule that builds MLIR by jaxlib's bindings fills a function of its own, which the program calls. Rules of
    `phlox.extend.Primitive` write text, which needs no bindings.

    Args:
      prim: the primitive.
      rule: a result of `lower_fun` or `phlox.ffi.ffi_lowering`, or ``rule(ctx, *operands, **params)``, which returns
        values of MLIR.
      platform: the platform that the rule is for, such as ``"cpu"`` or ``"gpu"``; None for those that have no rule.
      inline, cacheable: accepted as in JAX; not used.

    Returns:
      `rule`.

    >>> from phlox.extend.core import Primitive
    >>> doubled_p = Primitive("documentation_doubled")
    >>> _ = doubled_p.def_abstract_eval(lambda x: x)
    >>> _ = register_lowering(doubled_p, lower_fun(lambda x: x + x, multiple_results=False))
    >>> float(phlox.jit(doubled_p.bind)(3.0))
    6.0
    """
    if platform is not None and platform not in _PLATFORMS:
        raise UnsupportedError(
            f"Registering an MLIR lowering rule for primitive {prim} for an unknown platform {platform}. Known "
            f"platforms are: {', '.join(_PLATFORMS)}."
        )
    known: dict[str | None, Any] = prim.lower.rules if isinstance(prim.lower, _ByPlatform) else {None: prim.lower}
    prim.lower = _ByPlatform(prim.name, {**known, platform: _lowering(prim, rule)})
    return rule


#: "gpu" stands for both kinds of GPUs
_PLATFORMS = ("cpu", "cuda", "gpu", "rocm", "tpu")


class _ByPlatform:
    """A lowering rule that chooses by platform; the rule for None is for platforms without one."""

    def __init__(self, name: str, rules: dict[str | None, Any]):
        self._name = name
        self.rules = rules

    def __call__(self, f: Function, *args: Value, **params: Any) -> Any:
        platform = platform_of(f)
        names = (platform, "gpu", None) if platform in ("cuda", "rocm") else (platform, None)
        rule = next((rule for name in names if (rule := self.rules.get(name)) is not None), None)
        if rule is None:
            raise UnsupportedError(
                f"{self._name} has no lowering rule for {platform}",
                instead="mlir.register_lowering(prim, rule) without a platform",
                primitive=self._name,
            )
        return rule(f, *args, **params)


def _lowering(prim: Primitive, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule in phlox's form."""
    if isinstance(rule, LowerFun):
        return lowered_as(rule.fun, many=rule.multiple_results)
    if getattr(rule, "writes_text", False):
        return rule

    def lower(f: Function, *args: Value, **params: Any) -> Any:
        passed = _returned_operands(rule, args, params)
        if passed is not None:
            return passed if prim.multiple_results else passed[0]
        from ._mlir_rules import lowered_by_bindings  # imports jaxlib's bindings when it is called

        return lowered_by_bindings(prim, rule)(f, *args, **params)

    return lower


def _returned_operands(rule: Callable[..., Any], args: Sequence[Value], params: dict[str, Any]) -> list[Any] | None:
    """The results of a rule that only returns operands, as those of primitives that mark values do. None for rules
    that build something: they fail without a context."""
    try:
        out = rule(None, *args, **params)
    except Exception:
        return None
    is_passing = isinstance(out, tuple | list) and all(any(x is arg for arg in args) for x in out)
    return list(out) if is_passing else None


publish(__name__)
