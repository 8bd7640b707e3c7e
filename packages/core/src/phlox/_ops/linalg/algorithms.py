"""Algorithms of `dot_general`: the dtypes in which hardware multiplies and adds, and the number of operations."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import numpy as np

from ..._base.errors import OptionError
from ..._ir import dtypes
from ..._ir.avals import shaped
from ..._xla.platforms import platform_of
from ..._xla.text import Function, Value


class DotAlgorithm(NamedTuple):
    """How a matrix product is computed: the dtypes to which factors are rounded and in which sums are accumulated.

    Factors may be split into components, which are multiplied by several operations, for more precision than their
    dtype has. Compilation raises for algorithms that the platform does not support; CPUs support presets only.

    >>> DotAlgorithm(np.float16, np.float16, np.float32).num_primitive_operations
    1
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Algorithms that some platform supports, named (dtype of left factor)_(of right factor)_(of the sum).

    X3, X6, X9 use that many operations for more precision. The name as a string is accepted as `precision` too.

    >>> DotAlgorithmPreset["TF32_TF32_F32"]
    DotAlgorithmPreset.TF32_TF32_F32
    """

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name

    @property
    def supported_lhs_types(self) -> tuple[Any, ...] | None:
        """Dtypes that the factors may have; others are converted to the first of these. None: all."""
        words = self.name.split("_")
        if "ANY" in words or self is DotAlgorithmPreset.DEFAULT:
            return None
        if words[0] == "BF16" and len(words) == 3:
            return (dtypes.bfloat16, np.float32)
        # X3, X6 and X9 split float32 factors into parts of bfloat16; tensorfloat32 is float32 with fewer bits.
        return ({"F16": np.float16, "F64": np.float64}.get(words[0], np.float32),)

    @property
    def supported_rhs_types(self) -> tuple[Any, ...] | None:
        """Dtypes that the right factor may have; others are converted to the first of these. None: all."""
        return self.supported_lhs_types

    @property
    def accumulation_type(self) -> Any:
        """The dtype in which sums are accumulated, or None for that of the result."""
        if self.name in ("DEFAULT", "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM"):
            return None
        word = [w for w in self.name.split("_") if w not in ("FAST", "ACCUM") and not w.startswith("X")][-1]
        return {"F16": np.float16, "BF16": dtypes.bfloat16, "F64": np.float64}.get(word, np.float32)

    def supported_output_types(self, lhs_dtype: Any, rhs_dtype: Any) -> tuple[Any, ...] | None:
        """Dtypes of results for factors of these dtypes; others are converted from the first of these. None: all."""
        both = {np.dtype(lhs_dtype), np.dtype(rhs_dtype)}
        name = self.name
        if name.startswith("ANY_F8_ANY_F8_F32"):
            return (np.float32, np.float16, dtypes.bfloat16, *dtypes.SMALL_FLOATS)
        if name == "F16_F16_F32" and both == {np.dtype(np.float16)}:
            return (np.float32, np.float16)
        if name == "BF16_BF16_F32" and both == {np.dtype(dtypes.bfloat16)}:
            return (np.float32, dtypes.bfloat16)
        dtype = self.accumulation_type
        return None if dtype is None else (dtype,)


Algorithm = DotAlgorithm | DotAlgorithmPreset


def algorithm_of(precision: Any) -> Algorithm | None:
    """The algorithm that this `precision` names; None if it names a `Precision`, or is None."""
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[precision]
    return precision if isinstance(precision, Algorithm) else None


#: algorithms that XLA implements on CPUs
_ON_CPU = {
    "DEFAULT",
    "F16_F16_F16",
    "F32_F32_F32",
    "F64_F64_F64",
    "BF16_BF16_F32",
    "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6",
}


def _fitting(dtype: Any, accepted: tuple[Any, ...] | None) -> Any:
    return dtype if accepted is None or dtype in [np.dtype(t) for t in accepted] else np.dtype(accepted[0])


def prepared(f: Function, lhs: Value, rhs: Value, algorithm: Algorithm) -> tuple[Value, Value, Any, str]:
    """The factors in the dtypes of the algorithm, the dtype of the product, and the MLIR attribute.

    Raises `OptionError` if the platform or the factors' dtypes do not support the algorithm.
    """
    on_cpu = isinstance(algorithm, DotAlgorithmPreset) and algorithm.name in _ON_CPU
    if platform_of(f) == "cpu" and not on_cpu:
        raise OptionError(f"dot_general: the precision {algorithm} is none that CPUs have", instead="precision=None")
    if isinstance(algorithm, DotAlgorithm):
        first, second, out_dtype = (np.dtype(t) for t in algorithm[:3])
        words = [_word(t) for t in (first, second, out_dtype)]
        counts = [int(n) for n in algorithm[3:6]]
        loose = algorithm.allow_imprecise_accumulation
    else:
        first = _fitting(lhs.aval.dtype, algorithm.supported_lhs_types)
        second = _fitting(rhs.aval.dtype, algorithm.supported_rhs_types)
        out_dtype = _fitting(f.out.dtype, algorithm.supported_output_types(first, second))
        words, counts, loose = _preset_words(algorithm, first, second)
    lhs, rhs = f.convert(lhs, first), f.convert(rhs, second)
    if not words:
        return lhs, rhs, out_dtype, ""
    text = (
        f", algorithm = <lhs_precision_type = {words[0]}, rhs_precision_type = {words[1]}, "
        f"accumulation_type = {words[2]}, lhs_component_count = {counts[0]}, rhs_component_count = {counts[1]}, "
        f"num_primitive_operations = {counts[2]}, allow_imprecise_accumulation = {str(bool(loose)).lower()}>"
    )
    return lhs, rhs, out_dtype, text


def _word(dtype: Any) -> str:
    return shaped((), dtype).text.removeprefix("tensor<").removesuffix(">")


def _preset_words(preset: DotAlgorithmPreset, first: Any, second: Any) -> tuple[list[str], list[int], bool]:
    if preset is DotAlgorithmPreset.DEFAULT:
        return [], [], False
    if preset.name.startswith("ANY_F8"):
        for dtype in (first, second):
            if not dtype.name.startswith("float8"):
                raise OptionError(f"dot_general: the precision {preset} takes float8 factors, got {dtype.name}")
        return [_word(first), _word(second), "f32"], [1, 1, 1], preset.name.endswith("F32_FAST_ACCUM")
    left, right, accumulation, *times = preset.name.lower().split("_")
    return [left, right, accumulation], [1, 1, int(times[0][1:]) if times else 1], False
