"""A second evaluator of operations, in NumPy and in double precision, that shares no code with the lowering rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._trace.steps import Step


def evaluate(step: Step) -> list[np.ndarray] | None:
    """The results of a step in double precision, from its recorded operands; None if NumPy's form is not known."""
    name, params = step.name, step.eqn.params
    # Keys have no numbers, and mapped programs one value for each device.
    if step.mapped or not all(x.numbers.size or 0 in x.aval.shape for x in step.operands):
        return None  # PRNG keys; or one array for each device
    operands = [_double(x.numbers) for x in step.operands]
    with np.errstate(all="ignore"):
        if name in _ELEMENTWISE:
            return [np.asarray(_ELEMENTWISE[name](*operands))]
        if name in _WITH_PARAMETERS:
            return [np.asarray(_WITH_PARAMETERS[name](params, *operands))]
    return None


def _double(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64) if x.dtype.kind == "f" else x.astype(np.complex128) if x.dtype.kind == "c" else x


def _erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def _select(which: np.ndarray, *cases: np.ndarray) -> np.ndarray:
    return np.choose(which.astype(np.intp), np.broadcast_arrays(*cases))


def _divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind in "fc":
        return x / y
    # NumPy rounds down, XLA towards zero. Division by zero gives what XLA gives elsewhere.
    return np.trunc(x / np.where(y == 0, 1, y)).astype(x.dtype)


#: functions of the operands
_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "add": np.add, "add_any": np.add, "asin": np.arcsin,
    "asinh": np.arcsinh, "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt,
    "ceil": np.ceil, "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high), "cos": np.cos,
    "cosh": np.cosh, "div": _divide, "eq": np.equal, "erf": _erf, "erfc": lambda x: 1 - _erf(x), "exp": np.exp,
    "exp2": np.exp2, "expm1": np.expm1, "floor": np.floor, "ge": np.greater_equal, "gt": np.greater,
    "is_finite": np.isfinite, "le": np.less_equal, "log": np.log, "log1p": np.log1p,
    "logistic": lambda x: 1 / (1 + np.exp(-x)), "lt": np.less, "max": np.maximum, "min": np.minimum,
    "mul": np.multiply, "ne": np.not_equal, "neg": np.negative, "pow": np.power, "rem": np.fmod,
    "rsqrt": lambda x: 1 / np.sqrt(x), "select_n": _select, "sign": np.sign, "sin": np.sin, "sinh": np.sinh,
    "sqrt": np.sqrt, "square": np.square, "stop_gradient": lambda x: x, "sub": np.subtract, "tan": np.tan,
    "tanh": np.tanh,
}  # fmt: skip


def _dot_general(params: dict[str, Any], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    (x_sum, y_sum), (x_batch, y_batch) = params["dimension_numbers"]
    x_free = [i for i in range(x.ndim) if i not in (*x_sum, *x_batch)]
    y_free = [i for i in range(y.ndim) if i not in (*y_sum, *y_batch)]
    length = math.prod(x.shape[i] for i in x_sum)
    batch = [x.shape[i] for i in x_batch]
    rows, columns = [x.shape[i] for i in x_free], [y.shape[i] for i in y_free]
    left = x.transpose([*x_batch, *x_free, *x_sum]).reshape([*batch, math.prod(rows), length])
    right = y.transpose([*y_batch, *y_sum, *y_free]).reshape([*batch, length, math.prod(columns)])
    return (left @ right).reshape([*batch, *rows, *columns])


def _reduced(reduce: Callable[..., Any]) -> Callable[..., Any]:
    return lambda params, x: reduce(x, axis=tuple(params["axes"]))


#: functions of the parameters and the operands
_WITH_PARAMETERS: dict[str, Callable[..., Any]] = {
    "dot_general": _dot_general,
    # A negative power of an array of integers is an error in NumPy.
    "integer_pow": lambda params, x: x ** float(params["y"]) if x.dtype.kind == "f" else x ** params["y"],
    "reduce_max": _reduced(np.max),
    "reduce_min": _reduced(np.min),
    "reduce_prod": _reduced(np.prod),
    "reduce_sum": _reduced(np.sum),
    "transpose": lambda params, x: x.transpose(params["permutation"]),
}


def scale(results: Sequence[np.ndarray]) -> float:
    """The largest finite magnitude among results."""
    sizes = [np.abs(x[np.isfinite(x)]).max(initial=0.0) for x in results if x.dtype.kind in "fc"]
    return float(max(sizes, default=0.0))
