"""Helpers of ``jax.interpreters.mlir`` for rules that build MLIR. jaxlib's bindings are imported when one is called."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from phlox.extend import ShapedArray

from .._core import mlir_context, mlir_module
from ._mlir_rules import (
    LoweringRuleContext as LoweringRuleContext,
    ModuleContext as ModuleContext,
    attribute_of,
    emit_python_callback as emit_python_callback,
    flatten_ir_values as flatten_ir_values,
)

if TYPE_CHECKING:
    from types import ModuleType

    ir: ModuleType
    hlo: ModuleType


def __getattr__(name: str) -> Any:
    if name == "ir":
        ir = mlir_module("ir")
        return ir
    if name == "hlo":
        stablehlo = mlir_module("dialects.stablehlo")
        return stablehlo
    raise AttributeError(name)


def make_ir_context() -> Any:
    """The MLIR context of all modules."""
    return mlir_context()


def aval_to_ir_type(*ctx_and_aval: Any) -> Any:
    """The MLIR type of arrays of this type; JAX 0.12 passes the context of the module first."""
    ir = mlir_module("ir")
    return ir.Type.parse(ctx_and_aval[-1].text)


def aval_to_ir_types(*ctx_and_aval: Any) -> tuple[Any, ...]:
    """The MLIR types of arrays of this type: one."""
    return (aval_to_ir_type(*ctx_and_aval),)


def dtype_to_ir_type(dtype: Any) -> Any:
    """The MLIR type of the elements."""
    ir = mlir_module("ir")
    return ir.RankedTensorType(aval_to_ir_type(ShapedArray((), np.dtype(dtype)))).element_type


def flatten_ir_types(xs: Iterable[Any]) -> list[Any]:
    """Types and sequences of types as one list."""
    return flatten_ir_values(xs)


def unflatten_ir_values_like_types(xs: Iterable[Any], ys: Sequence[Any]) -> list[Any]:
    """Values grouped as types are: one value for a type, a tuple for a sequence of types."""
    values = iter(xs)
    return [tuple(next(values) for _ in y) if isinstance(y, tuple | list) else next(values) for y in ys]


def ir_constant(val: Any, *, const_lowering: Any = None, aval: Any = None) -> Any:
    """A constant with the elements of an array or number."""
    stablehlo = mlir_module("dialects.stablehlo")
    array = np.asarray(val)
    dtype = {"float64": np.float32, "int64": np.int32}.get(array.dtype.name) if np.isscalar(val) else None
    aval = ShapedArray(array.shape, np.dtype(dtype or array.dtype)) if aval is None else aval
    return stablehlo.ConstantOp(attribute_of(array, aval)).result


def ir_constants(val: Any, *, const_lowering: Any = None, aval: Any = None) -> tuple[Any, ...]:
    """A constant with the elements of an array or number, in a tuple."""
    return (ir_constant(val, aval=aval),)


def ir_attribute(val: Any) -> Any:
    """A bool, number, string, array, or a sequence or dict of these as an attribute."""
    ir = mlir_module("ir")
    if isinstance(val, ir.Attribute):
        return val
    if isinstance(val, bool | np.bool_):
        return ir.BoolAttr.get(bool(val))
    if isinstance(val, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), val)
    if isinstance(val, float):
        return ir.FloatAttr.get_f64(val)
    if isinstance(val, str):
        return ir.StringAttr.get(val)
    if isinstance(val, dict):
        return ir.DictAttr.get({name: ir_attribute(x) for name, x in val.items()})
    if isinstance(val, tuple | list):
        return ir.ArrayAttr.get([ir_attribute(x) for x in val])
    array = np.asarray(val)
    return attribute_of(array, ShapedArray(array.shape, array.dtype))


def i32_attr(i: int) -> Any:
    """An attribute with an integer of 32 bits."""
    ir = mlir_module("ir")
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), i)


def i64_attr(i: int) -> Any:
    """An attribute with an integer of 64 bits."""
    ir = mlir_module("ir")
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i)


def dense_int_elements(xs: Any) -> Any:
    """Integers of 64 bits as a ``DenseElementsAttr``."""
    array = np.asarray(xs, np.int64)
    return attribute_of(array, ShapedArray(array.shape, array.dtype))


def dense_int_array(xs: Sequence[int]) -> Any:
    """Integers of 64 bits as a ``DenseI64ArrayAttr``."""
    ir = mlir_module("ir")
    return ir.DenseI64ArrayAttr.get(np.asarray(xs, np.int64))


def shape_tensor(ctx: Any, sizes: Sequence[int]) -> Any:
    """Lengths as a constant of integers of 32 bits."""
    return ir_constant(np.asarray(sizes, np.int32))


def token_type() -> Any:
    """The MLIR type of tokens."""
    ir = mlir_module("ir")
    return ir.Type.parse("!stablehlo.token")


def module_to_string(module: Any, enable_debug_info: bool | None = None) -> str:
    """The text of a module."""
    return str(module.operation.get_asm(enable_debug_info=bool(enable_debug_info)))


def module_to_bytecode(module: Any) -> bytes:
    """A module as bytes."""
    import io

    file = io.BytesIO()
    with contextlib.closing(file):
        module.operation.write_bytecode(file)
        return file.getvalue()
