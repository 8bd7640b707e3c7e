"""Element types of a library's own (``jax._src.dtypes.ExtendedDType``), with rules in JAX's form.

flax declares one for the scales of fp8 products: `fp8_ops.fp32_max_grad` is stored as float32, and its cotangents are
accumulated by their maximum.
"""

from __future__ import annotations

import abc
from typing import Any

from phlox.extend import ShapedArray

from .._core import ArrayImpl as EArray, ExtendedDtype, KeyDtype

__all__ = ["EArray", "ExtendedDType"]  # an array of such a type is an ordinary array here


class ExtendedDType(ExtendedDtype, abc.ABC):
    """Base class of the element types: a subclass has a `name`, a `type` and the class `_rules`."""

    _rules: Any

    @property
    def _physical_element(self) -> ShapedArray:
        return self._rules.physical_element_aval(self)

    @property
    def physical(self) -> Any:  # type: ignore[override]
        return self._physical_element.dtype

    @property
    def element_shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self._physical_element.shape

    @property
    def tangent(self) -> Any:
        return self._rules.tangent_dtype(self)

    def can_convert(self, dtype: Any) -> bool:
        return self._rules.convert_to(dtype, self) and self._rules.convert_from(self, dtype)

    def zero(self) -> Any:
        return self._rules.zero(self)

    def add(self, x: Any, y: Any) -> Any:
        return self._rules.add(self, x, y)


ExtendedDType.register(KeyDtype)
