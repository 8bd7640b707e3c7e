"""``phlox.extend.core``: Jaxprs and helpers for them under the names of ``jax.extend.core``, for ported code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..._base.errors import ConcretizationTypeError, InconclusiveDimensionOperation, JaxprTypeError
from ..._base.public_names import publish
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped, typeof_value
from ..._ir.debug_info import DebugInfo
from ..._ir.effects import Effect, Effects, no_effects
from ..._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, jaxprs_in
from ..._ir.primitive import Primitive as _Primitive
from ..._trace.checks import check_jaxpr
from ..._trace.interpret import as_function
from ..._trace.trace import Tracer
from ..._xla.array import Array
from ...lax._tokens import Token
from ...typing import DTypeLike
from . import primitives

__all__ = [
    "ClosedJaxpr",
    "DebugInfo",
    "Effect",
    "Effects",
    "InconclusiveDimensionOperation",
    "Jaxpr",
    "JaxprEqn",
    "JaxprTypeError",
    "Literal",
    "Primitive",
    "Token",
    "Var",
    "array_types",
    "check_jaxpr",
    "concrete_or_error",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "new_jaxpr_eqn",
    "no_effects",
    "primal_dtype_to_tangent_dtype",
    "primitives",
    "subjaxprs",
    "unmapped_aval",
    "valid_jaxtype",
]

#: the classes of concrete arrays
array_types = {Array, np.ndarray, *(np.dtype(name).type for name in ("bool", "int32", "float32", "complex64"))}


class _PrimitiveType(type):
    """Makes all primitives instances of `Primitive`, as in JAX, which has one class of them.

    So are what stands for primitives of JAX that phlox composes of others (`phlox.lax._composed`).
    """

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Primitive:
            return hasattr(instance, "bind") and hasattr(instance, "multiple_results")
        return super().__instancecheck__(instance)


class Primitive(_Primitive, metaclass=_PrimitiveType):
    """A primitive whose rules are set one by one, as in JAX; `phlox.extend.Primitive` takes them all at once.

    >>> from phlox.extend.core import Primitive
    >>> double_p = Primitive("documentation_double")
    >>> _ = double_p.def_impl(lambda x: 2 * x)
    >>> _ = double_p.def_abstract_eval(lambda x: x)
    >>> double_p.bind(3)
    6
    >>> phlox.make_jaxpr(double_p.bind)(1.0)
    { lambda ; a:f32[]. let b:f32[] = documentation_double a in (b,) }
    """

    def __init__(self, name: str):
        super().__init__(name)
        several = getattr(type(self), "multiple_results", None)
        if several is True:  # a class of a library, with attributes and methods in place of calls of `def_impl`
            self.multiple_results = several
        if hasattr(self, "abstract_eval"):
            self.types = self._types_of_method
        if "impl" in vars(type(self)):
            self.eager = self.impl

    def _types_of_method(self, *avals: Any, **params: Any) -> Any:
        """JAX's method has two results: the types, and the effects."""
        types = self.abstract_eval(*avals, **params)[0]  # type: ignore[attr-defined]
        return list(types) if self.multiple_results else types

    def def_abstract_eval(self, abstract_eval: Callable[..., Any]) -> Callable[..., Any]:
        """Sets the rule that computes the type of the result from the types of the arguments; returns the rule."""
        self.types = abstract_eval
        return abstract_eval


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    """A Jaxpr as a function of flat arguments that returns a list.

    Args:
      closed_jaxpr: a Jaxpr with its constants, as `phlox.make_jaxpr` returns it.

    Returns:
      A function of one array for each input of the Jaxpr, which returns a list of arrays.

    >>> from phlox.extend.core import jaxpr_as_fun
    >>> jaxpr_as_fun(phlox.make_jaxpr(lambda x: x + 1)(1.0))(2.0)
    [Array(3., dtype=float32, weak_type=True)]
    """
    return as_function(closed_jaxpr)


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The Jaxprs among the parameters of an equation.

    Args:
      params: the parameters, by name.

    Returns:
      An iterator of `Jaxpr`.

    >>> jaxpr = phlox.make_jaxpr(lambda x: phlox.lax.cond(x > 0, jnp.sin, jnp.cos, x))(1.0).jaxpr
    >>> [len(list(jaxprs_in_params(eqn.params))) for eqn in jaxpr.eqns]
    [0, 0, 2]
    """
    yield from jaxprs_in(params)


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The Jaxprs in the parameters of the equations of `jaxpr`, without those nested deeper.

    Args:
      jaxpr: the outer Jaxpr.

    Returns:
      An iterator of `Jaxpr`.

    >>> jaxpr = phlox.make_jaxpr(lambda x: phlox.lax.cond(x > 0, jnp.sin, jnp.cos, x))(1.0).jaxpr
    >>> [inner.eqns[0].primitive.name for inner in subjaxprs(jaxpr)]
    ['cos', 'sin']
    """
    for eqn in jaxpr.eqns:
        yield from jaxprs_in(eqn.params)


def new_jaxpr_eqn(
    invars: Sequence[Any],
    outvars: Sequence[Var],
    primitive: _Primitive,
    params: dict[str, Any],
    effects: Effects = no_effects,
    source_info: Any = None,
    ctx: Any = None,
) -> JaxprEqn:
    """An equation of a Jaxpr. Its effects are determined by the primitive.

    Args:
      invars: the operands, variables (`Var`) and literals.
      outvars: the results.
      primitive: the primitive.
      params: the parameters, by name.
      effects, ctx: accepted as in JAX; not used.
      source_info: the `source_info` of another equation; None if unknown.

    Returns:
      A `JaxprEqn`.

    >>> jaxpr = phlox.make_jaxpr(jnp.sin)(1.0).jaxpr
    >>> changed = jaxpr.replace(eqns=[new_jaxpr_eqn(jaxpr.invars, jaxpr.outvars, primitives.cos_p, {})])
    >>> changed
    { lambda ; a:f32[]. let b:f32[] = cos a in (b,) }
    """
    return JaxprEqn(list(invars), list(outvars), primitive, params, source_info)


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one example of a batch.

    Args:
      size: length of the mapped axis; not used.
      axis: the mapped axis, counted from 0; None for a value that is not mapped.
      aval: the type of the batch.

    Returns:
      The type without the mapped axis.

    >>> mapped_aval(2, 0, phlox.typeof(jnp.ones((2, 3))))
    ShapedArray(float32[3])
    """
    return aval if axis is None else aval.without_axis(axis)


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of a batch of examples.

    Args:
      size: number of examples.
      axis: the position of the new axis, counted from 0; None for a value that is not mapped.
      aval: the type of one example.

    Returns:
      The type with the new axis.

    >>> unmapped_aval(2, 0, phlox.typeof(jnp.ones(3)))
    ShapedArray(float32[2,3])
    """
    return aval if axis is None else aval.with_axis(axis, size)


def primal_dtype_to_tangent_dtype(primal_dtype: DTypeLike | None) -> Any:
    """The dtype of tangents of values of this dtype.

    Args:
      primal_dtype: a dtype or its name.

    Returns:
      A dtype: the same for floating and complex dtypes, float0 for others.

    >>> primal_dtype_to_tangent_dtype("float32")
    dtype('float32')
    >>> primal_dtype_to_tangent_dtype("int32") == phlox.float0
    True
    """
    return shaped((), dtypes.as_dtype(primal_dtype)).tangent().dtype


def valid_jaxtype(x: Any) -> bool:
    """Whether `x` can be an argument of an operation: an array or a number.

    Args:
      x: any object.

    Returns:
      A bool.

    >>> valid_jaxtype(1.0), valid_jaxtype([1.0])
    (True, False)
    """
    return typeof_value(x) is not None


def concrete_or_error(force: Callable[[Any], Any] | None, val: Any, context: str = "") -> Any:
    """``force(val)``, for a value that must not be traced.

    Args:
      force: function such as ``int``; None returns `val` itself.
      val: any object.
      context: the beginning of the error message.

    Returns:
      The result of `force`, or `val`.

    Raises:
      ConcretizationTypeError: `val` is traced.

    >>> concrete_or_error(int, 3.0, "the number of steps")
    3
    """
    if isinstance(val, Tracer):
        raise ConcretizationTypeError(
            f"{context or 'a Python value is needed here'}: got {val.aval.short}, which is traced and has no value",
            instead="a Python number, or a static argument",
            aval=val.aval,
        )
    return val if force is None else force(val)


publish(__name__)
