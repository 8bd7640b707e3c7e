"""The primitive `dim_as_value`: a symbolic dimension as a number of the program, for ``x.sum(0) / x.shape[0]``."""

from __future__ import annotations

from typing import Any

from ..._base.errors import InconclusiveDimensionOperation
from ..._ir.avals import ShapedArray, scalar_aval
from ..._ir.dimensions import SymbolicDim
from ..._ir.jaxpr import JaxprEqn
from ..._ir.primitive import Primitive, primitive
from ..._transform.padding import Padding
from ..._xla.text import Function, Value


def _dim_as_value_types(dim: Any) -> ShapedArray:
    return scalar_aval(int)


def _dim_as_value_lower(f: Function, dim: Any) -> Value:
    if isinstance(dim, SymbolicDim):
        raise InconclusiveDimensionOperation(
            f"the symbolic dimension {dim} has no value where it is computed with",
            instead="phlox.export.export, whose function is compiled when the shapes are known",
            dimension=dim,
        )
    return f.constant(dim, f.out)


def _dim_as_value_pad(padding: Padding, eqn: JaxprEqn) -> Any:
    aval = eqn.outvars[0].aval
    value = padding.length(eqn.params["dim"])
    return primitive("convert_element_type").bind(value, new_dtype=aval.dtype, weak_type=aval.weak_type)


dim_as_value = Primitive(
    "dim_as_value",
    types=_dim_as_value_types,
    lower=_dim_as_value_lower,
    pad=_dim_as_value_pad,
    nan_checked=False,
    light=True,
)

SymbolicDim.as_value = lambda self: dim_as_value.bind(dim=self)
SymbolicDim.aval = property(lambda self: scalar_aval(int))
