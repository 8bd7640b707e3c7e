"""`ffi_call`: a custom call of a foreign function, as a function of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._base.errors import ArgumentError, OptionError
from ..._ir.avals import ShapedArray, shaped
from ..._ops.host import ffi
from ..._trace.trace import typeof
from ..._xla.foreign import row_major
from ..._xla.layout import Layout
from .callbacks import host_dtype

LayoutOptions = Sequence[int] | Layout | None


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[LayoutOptions] | None = None,
    output_layouts: LayoutOptions | Sequence[LayoutOptions] = None,
    input_output_aliases: dict[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """A function that calls a foreign function, which must be registered by `register_ffi_target`.

    Args:
      target_name: the name under which the foreign function is registered.
      result_shape_dtypes: a `ShapeDtypeStruct` (or an array) for the result; a list or tuple of them for several
        results.
      has_side_effect: keep the call even if its results are not used.
      vmap_method: how `vmap` calls it. ``'sequential'``: once for each example, in a loop. ``'sequential_unrolled'``:
        the same without a loop. ``'broadcast_all'``: once, with the batch as first axis of all arguments.
        ``'expand_dims'``: the same, but arguments without a batch have length 1 there. ``'legacy_vectorized'``: the
        same, but arguments without a batch are unchanged. None: `vmap` raises `MissingRuleError`.
      input_layouts, output_layouts: the order of the axes in memory, from the slowest to the fastest; None is
        row-major.
      input_output_aliases: maps indices of arguments to indices of results that reuse their memory; None for none.
      custom_call_api_version: 4 for handlers of XLA's typed interface.
      legacy_backend_config: what handlers of older interfaces get instead of attributes.

    Returns:
      A function of arrays, and of attributes as keyword arguments: numbers (NumPy's have their own type, Python's are
      i64 and f64), strings, NumPy arrays, dicts and tuples of them. It returns an array of the shape and dtype of
      `result_shape_dtypes`, or a list or tuple of them.

    Raises:
      ArgumentError: in a call, when an attribute is of another type.
      DerivativeError: the call is differentiated.
      DtypeError: a result is an array of keys.
      OptionError: `vmap_method` is another value, a result has no shape or dtype, or `legacy_backend_config` is given
        for the typed interface; in a call, when layouts or aliases do not match the arrays.

    >>> struct = phlox.ShapeDtypeStruct((), "float32")
    >>> print(phlox.make_jaxpr(lambda x: ffi_call("half", struct)(x, k=np.int32(2)))(1.0).eqns[0].primitive)
    ffi_call
    """
    if vmap_method not in ffi.VMAP_METHODS:
        raise OptionError(f"ffi_call: vmap_method={vmap_method!r}", instead=f"one of {ffi.VMAP_METHODS}")
    if custom_call_api_version >= 4 and legacy_backend_config is not None:
        raise OptionError(
            f"ffi_call: legacy_backend_config with custom_call_api_version={custom_call_api_version}",
            instead="attributes, as keyword arguments of the call",
        )
    many = isinstance(result_shape_dtypes, list | tuple)
    results = tuple(map(_result, result_shape_dtypes if many else [result_shape_dtypes]))
    # One result is written without a list, and so is its layout.
    layouts: Any = output_layouts if many else None if output_layouts is None else (output_layouts,)

    def call(*args: Any, **attributes: Any) -> Any:
        avals = [typeof(x) for x in args]
        layouts_in = _layouts("input", avals, input_layouts)
        layouts_out = _layouts("output", results, layouts)
        outs = ffi.ffi_call.bind(
            *args,
            target_name=target_name,
            result_avals=results,
            has_side_effect=has_side_effect,
            vmap_method=vmap_method,
            input_layouts=layouts_in,
            output_layouts=layouts_out,
            input_output_aliases=_aliases(input_output_aliases or {}, avals, results, layouts_in, layouts_out),
            custom_call_api_version=custom_call_api_version,
            legacy_backend_config=legacy_backend_config,
            # Sorted and frozen: they are part of cache keys.
            attributes=tuple((name, _frozen(name, value)) for name, value in sorted(attributes.items())),
        )
        return (tuple(outs) if isinstance(result_shape_dtypes, tuple) else outs) if many else outs[0]

    return call


def _result(struct: Any) -> ShapedArray:
    if not hasattr(struct, "shape") or not hasattr(struct, "dtype"):
        raise OptionError(
            f"ffi_call: result_shape_dtypes has {struct!r}, which has no shape and dtype",
            instead="phlox.ShapeDtypeStruct(shape, dtype)",
        )
    return shaped(tuple(struct.shape), host_dtype("ffi_call", struct))


def _layouts(what: str, avals: Sequence[ShapedArray], layouts: Sequence[LayoutOptions] | None) -> tuple[ffi.Ints, ...]:
    if layouts is None:
        return tuple(row_major(a.ndim) for a in avals)
    if len(layouts) != len(avals):
        raise OptionError(f"ffi_call: {len(layouts)} {what}_layouts for {len(avals)} arrays")
    orders = []
    for aval, layout in zip(avals, layouts, strict=True):
        if isinstance(layout, Layout):
            if layout.tiling:
                raise OptionError("ffi_call: foreign functions take no tiled layouts", instead="Layout(major_to_minor)")
            layout = layout.major_to_minor
        # XLA counts from the fastest axis, users from the slowest.
        order = row_major(aval.ndim) if layout is None else tuple(layout)[::-1]
        if sorted(order) != list(range(aval.ndim)):
            raise OptionError(
                f"ffi_call: {what}_layouts has {layout} for an array of type {aval.short}",
                instead=f"each of the {aval.ndim} axes once",
            )
        orders.append(order)
    return tuple(orders)


def _aliases(
    aliases: dict[int, int],
    avals: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    layouts_in: Sequence[ffi.Ints],
    layouts_out: Sequence[ffi.Ints],
) -> tuple[tuple[int, int], ...]:
    for i, o in aliases.items():
        if not 0 <= i < len(avals) or not 0 <= o < len(results):
            raise OptionError(
                f"ffi_call: input_output_aliases has {i}: {o}, but there are {len(avals)} arguments and "
                f"{len(results)} results"
            )
        source, target = avals[i], results[o]
        # Memory can be lent only if both arrays have the same bytes in the same order.
        if (source.shape, source.dtype, layouts_in[i]) != (target.shape, target.dtype, layouts_out[o]):
            raise OptionError(
                f"ffi_call: argument {i} of type {source.short} cannot lend its memory to result {o} of type "
                f"{target.short}",
                instead="types and layouts that are the same",
            )
    return tuple(sorted((int(i), int(o)) for i, o in aliases.items()))


def _frozen(name: str, value: Any) -> ffi.Frozen:
    """An attribute in a form for cache keys, in which 1, 1.0 and True differ."""
    if isinstance(value, list):
        raise ArgumentError(
            f"ffi_call: attribute {name} is the list {value!r}, which can change",
            instead=f"the tuple {tuple(value)!r}",
            argument=name,
            value=value,
        )
    return ffi.Frozen(value)
