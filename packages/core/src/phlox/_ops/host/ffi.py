"""The primitive `ffi_call`, and the lowering of calls of foreign functions (XLA custom calls).

Layouts are written as in XLA, minor to major: the axis that varies fastest comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..._base.docstrings import docs_from
from ..._base.errors import ArgumentError, DerivativeError, OptionError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.effects import Effect, Effects, no_effects
from ..._ir.primitive import Primitive
from ..._ir.sharding_types import whole
from ..._transform.batch import BatchAxis, Dim
from ..._xla import foreign
from ..._xla.foreign import Layouts, row_major
from ..._xla.text import Function, Value, dense, quoted
from .callbacks import vectorized

Ints = tuple[int, ...]
Attributes = tuple[tuple[str, Any], ...]
VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized", None)


class FfiEffect(Effect):
    """The side effect of a foreign function."""


_WITH_EFFECT: Effects = frozenset({FfiEffect()})


class Frozen:
    """An attribute, hashable for cache keys; equal if its MLIR text is equal."""

    __slots__ = ("text",)

    def __init__(self, value: Any):
        self.text = attribute(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frozen) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text


def attribute(value: Any) -> str:
    """A Python value as MLIR text of an attribute: ``3 : i64``, ``"text"``, ``[1.0 : f64]``, ``{k = true}``."""
    if isinstance(value, Frozen):
        return value.text
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, float) and not isinstance(value, np.generic):
        value = np.float64(value)
    if isinstance(value, np.generic):
        element = shaped((), value.dtype)
        # Without ``dense<>`` and ``tensor<>``, which stand around arrays and their types only.
        return f"{dense(value, element)[6:-1]} : {element.text[7:-1]}"
    if isinstance(value, np.ndarray):
        aval = shaped(value.shape, value.dtype)
        return f"{dense(value, aval)} : {aval.text}"
    if isinstance(value, Mapping):
        return foreign.dictionary({name: attribute(x) for name, x in sorted(value.items())})
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(attribute, value))}]"
    raise ArgumentError(
        f"{value!r} of type {type(value).__name__} cannot be an attribute of a foreign function",
        instead="numbers, strings, NumPy arrays, and tuples and dicts of them",
        value=value,
    )


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Sequence[int] | None] | None = None,
    result_layouts: Sequence[Sequence[int] | None] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., list[Value]]:
    """A function that writes the custom call of a foreign function.

    Args:
      call_target_name: the name that the function was registered under.
      operand_layouts, result_layouts: the order of axes in memory, from the fastest to the slowest, of each argument
        and result; None is row-major.
      backend_config: attributes that the function gets with each call, as a dict (a string for the older interface).
      skip_ffi_layout_processing: omit layouts.
      **lowering_args: `has_side_effect`, `api_version` (4, the typed interface), and `operand_output_aliases`, a dict
        from arguments to the results that take their memory.

    Returns:
      A function ``write(f, *operands, **attributes)`` that writes the call into `f`, a `phlox.extend.Function`. It
      takes the values of the arguments and returns a list of values, whose types are those of the equation that is
      lowered.

    Raises:
      OptionError: other `lowering_args`, or a `backend_config` that is no dict in the typed interface.

    >>> from phlox.extend import Primitive
    >>> write = build_ffi_lowering_function("quarter", backend_config={"scale": 0.25})
    >>> quarter = Primitive("documentation_quarter", types=lambda x: x, lower=lambda f, x: write(f, x)[0])
    >>> "custom_call @quarter" in phlox.jit(quarter.bind).lower(1.0).as_text()
    True
    """
    unknown = set(lowering_args) - {"has_side_effect", "api_version", "operand_output_aliases"}
    if unknown:
        raise OptionError(f"a call of {call_target_name} takes no options {', '.join(sorted(unknown))}")
    version = lowering_args.get("api_version", 4)
    typed = version >= 4
    if typed and not (backend_config is None or isinstance(backend_config, Mapping)):
        raise OptionError("backend_config must be a dict where api_version is 4 or more", instead="api_version=2")

    def write(f: Function, /, *operands: Value, **attributes: Any) -> list[Value]:
        if attributes and not typed:
            raise OptionError(
                f"the call of {call_target_name} has attributes, which need the typed interface",
                instead="custom_call_api_version=4",
            )
        if typed:
            all_attributes = {**(backend_config if isinstance(backend_config, Mapping) else {}), **attributes}
            config = foreign.typed({name: attribute(value) for name, value in sorted(all_attributes.items())})
        else:
            config = foreign.untyped(version, str(backend_config or ""))
        layouts = None
        if not skip_ffi_layout_processing:
            layouts = _layouts([x.aval for x in operands], operand_layouts), _layouts(f.outs, result_layouts)
        results = foreign.foreign_call(
            f,
            call_target_name,
            operands,
            list(f.outs),
            config,
            layouts=layouts,
            aliases=lowering_args.get("operand_output_aliases"),
            has_side_effect=lowering_args.get("has_side_effect", False),
        )
        return [_clean_bool(f, x) if x.aval.dtype == bool else x for x in results]

    return write


def _clean_bool(f: Function, x: Value) -> Value:
    """Bools whose bytes are 0 and 1. A foreign function may write any byte for true."""
    octets = f.convert(x, dtypes.uint8)
    return f.compare("NE", octets, f.number(0, octets.aval))


@docs_from(build_ffi_lowering_function)
def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Sequence[int] | None] | None = None,
    result_layouts: Sequence[Sequence[int] | None] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """The `lower` rule of a primitive that calls a foreign function; its parameters become attributes.

    Args:
      **lowering_args: as for `build_ffi_lowering_function`.

    Returns:
      A rule for `phlox.extend.Primitive`. It returns one value where there is one result, else a list.

    >>> from phlox.extend import Primitive
    >>> half = Primitive("documentation_half", types=lambda x: x, lower=ffi_lowering("half"))
    >>> "custom_call @half" in phlox.jit(half.bind).lower(1.0).as_text()
    True
    """
    write = build_ffi_lowering_function(
        call_target_name,
        operand_layouts=operand_layouts,
        result_layouts=result_layouts,
        backend_config=backend_config,
        skip_ffi_layout_processing=skip_ffi_layout_processing,
        **lowering_args,
    )

    def rule(f: Function, /, *operands: Value, **attributes: Any) -> Any:
        values = write(f, *operands, **attributes)
        return values[0] if len(values) == 1 else values

    rule.writes_text = True  # type: ignore[attr-defined]  # as opposed to rules that build MLIR
    return rule


def _layouts(avals: Sequence[ShapedArray], layouts: Sequence[Sequence[int] | None] | None) -> Layouts:
    orders = layouts if layouts is not None else [None] * len(avals)
    return [row_major(a.ndim) if order is None else tuple(order) for a, order in zip(avals, orders, strict=True)]


# --- the primitive


def _lower(
    f: Function,
    *args: Value,
    target_name: str,
    has_side_effect: bool,
    input_layouts: tuple[Ints, ...],
    output_layouts: tuple[Ints, ...],
    input_output_aliases: tuple[tuple[int, int], ...],
    custom_call_api_version: int,
    legacy_backend_config: str | None,
    attributes: Attributes,
    result_avals: Any,
    vmap_method: str | None,
) -> list[Value]:
    write = build_ffi_lowering_function(
        target_name,
        operand_layouts=input_layouts,
        result_layouts=output_layouts,
        backend_config=legacy_backend_config,
        has_side_effect=has_side_effect,
        api_version=custom_call_api_version,
        operand_output_aliases=dict(input_output_aliases),
    )
    return write(f, *args, **dict(attributes))


def _no_derivative(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    raise DerivativeError(
        f"the foreign function {params['target_name']!r} has no derivative",
        instead="phlox.custom_jvp or phlox.custom_vjp around the call, to state one",
    )


def _batch(
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    vmap_method: str | None,
    result_avals: Sequence[ShapedArray],
    **params: Any,
) -> tuple[list[Any], list[Dim]]:
    if vmap_method in ("expand_dims", "broadcast_all", "legacy_vectorized"):
        # With "legacy_vectorized" operands that are not mapped get no axis.
        deeper = [d is not None or vmap_method != "legacy_vectorized" for d in dims]
        params["input_layouts"] = tuple(
            _deeper(order) if more else order for order, more in zip(params["input_layouts"], deeper, strict=True)
        )
        params["output_layouts"] = tuple(map(_deeper, params["output_layouts"]))
    return vectorized(ffi_call, axis, args, dims, vmap_method, result_avals, params)


def _deeper(layout: Ints) -> Ints:
    """This layout with a leading batch axis, which varies slowest."""
    return (*[n + 1 for n in layout], 0)


ffi_call = Primitive(
    "ffi_call",
    multiple_results=True,
    types=lambda *avals, result_avals, **params: list(result_avals),
    sharding=whole,
    memory_in_types=True,
    lower=_lower,
    jvp=_no_derivative,
    batch=_batch,
    effects=lambda params: _WITH_EFFECT if params["has_side_effect"] else no_effects,
    nan_checked=False,
)
