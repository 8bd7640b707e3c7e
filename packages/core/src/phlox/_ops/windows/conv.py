"""The primitive `conv_general_dilated`: convolution of any rank, with strides, padding, dilation and groups.

In the formulas below n counts examples, j features of the input, k features of the output, g groups, r positions of the
kernel. Convolution is bilinear: out[n, gk] = sum over j, r of lhs[n, gj, …] rhs[gk, j, r]. Its transposes are
convolutions with the roles of these axes exchanged; so is its vmap, in which examples become groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..._base.errors import DtypeError, ShapeError
from ..._ir import dtypes
from ..._ir.avals import ShapedArray, shaped
from ..._ir.dimensions import is_symbolic
from ..._ir.primitive import Primitive
from ..._ir.printing import shown_with
from ..._ir.sharding_types import OUT_SHARDING, Entries, entries_of, refuse
from ..._trace.trace import typeof
from ..._transform.array_operations import move_axis, zeros
from ..._transform.batch import BatchAxis, Dim
from ..._transform.sharding_types import in_auto
from ..._transform.transpose import is_linear
from ..._xla.text import Function, Value, i64_array
from ..elementwise.arithmetic import add, complex_, imag, real, sub
from ..elementwise.families import ANY, check_kind, lowered_as, same_dtype
from ..linalg.dot import Precision, bilinear_jvp, widened
from ..structure.shape import convert, merge_axes, rev, split_axis
from .geometry import Ints, Pads, dilated, input_pads, positions
from .padding import conv_pad


class ConvDimensionNumbers(NamedTuple):
    """The meanings of the axes of input, kernel and output.

    Attributes:
      lhs_spec: axes of the input: examples, features, then the spatial ones.
      rhs_spec: axes of the kernel: features of the output, of the input, then the spatial ones.
      out_spec: axes of the output: examples, features, then the spatial ones.

    >>> phlox.lax.conv_dimension_numbers((1, 3, 8), (4, 3, 2), ("NCH", "OIH", "NCH")).lhs_spec
    (0, 1, 2)
    """

    lhs_spec: Ints
    rhs_spec: Ints
    out_spec: Ints


def _spatial(shape: Sequence[int], spec: Ints) -> Ints:
    return tuple(shape[i] for i in spec[2:])


# --- types and text -------------------------------------------------------------------------------------


def _groups_fit(lhs: ShapedArray, rhs: ShapedArray, numbers: ConvDimensionNumbers, features: int, batches: int) -> None:
    """Raises `ShapeError` unless the numbers of groups divide the features (or the batch) that they split."""
    examples, in_features = lhs.shape[numbers.lhs_spec[0]], lhs.shape[numbers.lhs_spec[1]]
    out_features, kernel_features = rhs.shape[numbers.rhs_spec[0]], rhs.shape[numbers.rhs_spec[1]]
    where = f"conv_general_dilated of {lhs.short} with {rhs.short}"
    shapes = [lhs.shape, rhs.shape]
    for name, count, lengths in (
        (
            "feature_group_count",
            features,
            {"features of the input": in_features, "features of the output": out_features},
        ),
        ("batch_group_count", batches, {"examples": examples, "features of the output": out_features}),
    ):
        if count < 1:
            raise ShapeError(f"{where}: {name}={count}", instead="a number from 1 up")
        for what, length in lengths.items():
            if length % count:
                raise ShapeError(f"{where}: {name}={count} does not divide the {length} {what}", shapes=shapes)
    if features > 1 and batches > 1:
        raise ShapeError(f"{where}: feature_group_count={features} and batch_group_count={batches}: one must be 1")
    if in_features // features != kernel_features:
        raise ShapeError(
            f"{where}: the kernel takes {kernel_features} features, the input has {in_features} in {features} groups",
            instead="other dimension_numbers or feature_group_count",
            shapes=shapes,
        )


def _conv_types(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    window_strides: Ints,
    padding: Pads,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> ShapedArray:
    numbers = dimension_numbers
    check_kind("conv_general_dilated", lhs, ANY)
    if lhs.ndim != rhs.ndim:
        raise ShapeError(
            "conv_general_dilated lhs and rhs must have the same number of dimensions, got "
            f"{lhs.short} and {rhs.short}",
            shapes=[lhs.shape, rhs.shape],
        )
    _groups_fit(lhs, rhs, numbers, feature_group_count, batch_group_count)
    n = lhs.ndim - 2
    options = {"window_strides": window_strides, "padding": padding}
    options |= {"lhs_dilation": lhs_dilation, "rhs_dilation": rhs_dilation}
    for name, values in options.items():
        if len(values) != n:
            raise ShapeError(
                f"conv_general_dilated window and {name} must have the same number of dimensions, got {name}={values} "
                f"for {n} spatial axes of {lhs.short}"
            )
    spatial = []
    sides = zip(_spatial(lhs.shape, numbers.lhs_spec), _spatial(rhs.shape, numbers.rhs_spec), strict=True)
    for (length, width), stride, (low, high), base, gap in zip(
        sides, window_strides, padding, lhs_dilation, rhs_dilation, strict=True
    ):
        # The window of a derivative may be the result, whose length may be symbolic.
        if any(n < 1 for n in (width, stride, base, gap) if not is_symbolic(n)):
            raise ShapeError(
                f"conv_general_dilated: window lengths (of {rhs.short}), strides and dilations must be positive, got "
                f"{width}, {stride}, {base} and {gap}",
                shapes=[rhs.shape],
            )
        whole = dilated(length, base) + low + high
        if whole < 0:
            raise ShapeError(f"conv_general_dilated: padding {padding} takes away more than {lhs.short} has")
        spatial.append(positions(whole, dilated(width, gap), stride))
    sizes = (lhs.shape[numbers.lhs_spec[0]] // batch_group_count, rhs.shape[numbers.rhs_spec[0]], *spatial)
    shape = tuple(sizes[numbers.out_spec.index(i)] for i in range(lhs.ndim))
    dtype = same_dtype("conv_general_dilated", (lhs, rhs))
    if preferred_element_type is not None:
        check_preferred(dtype, preferred_element_type)
        dtype = preferred_element_type
    return shaped(shape, dtype, lhs.weak_type and rhs.weak_type)


def check_preferred(dtype: Any, preferred: Any) -> None:
    """Raises `DtypeError` unless `preferred` is of the kind of `dtype` and at least as wide."""
    have, want = dtypes.kind(dtype), dtypes.kind(preferred)
    fits = {"b": "biufc", "i": "if", "u": "iuf"}.get(have, have)
    if want not in fits or dtypes.bits(preferred) < dtypes.bits(dtype):
        raise DtypeError(
            f"preferred_element_type={preferred.name} cannot hold sums of {dtype.name}",
            instead="an element type of the same kind, at least as wide",
        )


def _axes_text(spec: Ints, first: str, second: str) -> str:
    """The meaning of each axis as MLIR text, such as ``[b, f, 0, 1]``."""
    words = {spec[0]: first, spec[1]: second, **{axis: str(i) for i, axis in enumerate(spec[2:])}}
    return f"[{', '.join(words[i] for i in range(len(spec)))}]"


def _conv_lower(f: Function, lhs: Value, rhs: Value, **params: Any) -> Value:
    if dtypes.kind(lhs.aval.dtype) == "c":
        return lowered_as(_complex_conv)(f, lhs, rhs, **params)
    numbers, pads = params["dimension_numbers"], params["padding"]
    first, second = params["precision"] or (Precision.DEFAULT, Precision.DEFAULT)
    listed = ", ".join(f"[{low}, {high}]" for low, high in pads)
    reverse = f"array<i1: {', '.join(['false'] * len(pads))}>" if pads else "array<i1>"
    text = (
        f"window_strides = {i64_array(params['window_strides'])}, "
        f"padding = dense<{f'[{listed}]' if pads else ''}> : tensor<{len(pads)}x2xi64>, "
        f"lhs_dilation = {i64_array(params['lhs_dilation'])}, rhs_dilation = {i64_array(params['rhs_dilation'])}, "
        f"window_reversal = {reverse}, dimension_numbers = #stablehlo.conv<{_axes_text(numbers.lhs_spec, 'b', 'f')}x"
        f"{_axes_text(numbers.rhs_spec, 'o', 'i')}->{_axes_text(numbers.out_spec, 'b', 'f')}>, "
        f"feature_group_count = {params['feature_group_count']} : i64, "
        f"batch_group_count = {params['batch_group_count']} : i64, "
        f"precision_config = [#stablehlo<precision {first.name}>, #stablehlo<precision {second.name}>]"
    )
    return f.op("stablehlo.convolution", [widened(f, lhs), widened(f, rhs)], f.out, text)


def _complex_conv(lhs: Any, rhs: Any, **params: Any) -> Any:
    """A complex convolution as three real ones, because XLA on CPUs and GPUs has only real ones."""
    preferred = params["preferred_element_type"]
    part = {**params, "preferred_element_type": preferred and dtypes.real_part(preferred)}
    a, b, c, d = real(lhs), imag(lhs), real(rhs), imag(rhs)
    # (a + ib) (c + id) has the parts (a + b) c - b (c + d) and (a + b) c + a (d - c): three products in place of four.
    both = conv_general_dilated(add(a, b), c, **part)
    left = conv_general_dilated(a, sub(d, c), **part)
    right = conv_general_dilated(b, add(c, d), **part)
    return complex_(sub(both, right), add(both, left))


# --- derivative and transposes --------------------------------------------------------------------------


def _merge(x: Any, source: int, axis: int) -> Any:
    """`x` with the axis `source` moved in front of an axis and merged with it; `axis` counts without `source`."""
    return merge_axes(move_axis(x, source, axis), axis)


class _Params(NamedTuple):
    """The parameters of a convolution."""

    window_strides: Ints
    padding: Pads
    lhs_dilation: Ints
    rhs_dilation: Ints
    dimension_numbers: ConvDimensionNumbers
    feature_group_count: int
    batch_group_count: int
    precision: Any
    preferred_element_type: Any

    def bind(self, lhs: Any, rhs: Any) -> Any:
        """Binds the convolution."""
        return conv_general_dilated(lhs, rhs, **self._asdict())


def _conv_transpose(ct: Any, lhs: Any, rhs: Any, **params: Any) -> list[Any]:
    linear = lhs if is_linear(lhs) else rhs
    if 0 in linear.aval.shape or 0 in typeof(ct).shape:
        cotangent = zeros(linear.aval.cotangent())
    else:
        rule = _of_input if is_linear(lhs) else _of_kernel
        # With preferred_element_type the cotangent is wider than the factors.
        other = convert(rhs if is_linear(lhs) else lhs, typeof(ct).dtype)
        cotangent = convert(rule(ct, linear.aval, other, _Params(**params)), linear.aval.dtype)
    return [cotangent, None] if is_linear(lhs) else [None, cotangent]


def _of_input(ct: Any, aval: ShapedArray, rhs: Any, params: _Params) -> Any:
    """The input's cotangent: ct[n, gk] convolved with the reversed kernel and summed over k; [n, gj], or with batch
    groups [gn, j]."""
    lhs_spec, rhs_spec, out_spec = params.dimension_numbers
    groups = max(params.feature_group_count, params.batch_group_count)
    pads = input_pads(
        _spatial(aval.shape, lhs_spec),
        _spatial(typeof(rhs).shape, rhs_spec),
        params.window_strides,
        _spatial(typeof(ct).shape, out_spec),
        params.padding,
        params.lhs_dilation,
        params.rhs_dilation,
    )
    if groups > 1:
        # The kernel's output features become input features, of which each group has its own.
        rhs = _merge(split_axis(rhs, rhs_spec[0], groups), rhs_spec[0], rhs_spec[1])
    transposed = params._replace(
        # Strides of the window are gaps between the elements of the cotangent, and gaps of the input are strides over
        # it.
        window_strides=params.lhs_dilation,
        padding=pads,
        lhs_dilation=params.window_strides,
        dimension_numbers=ConvDimensionNumbers(out_spec, (rhs_spec[1], rhs_spec[0], *rhs_spec[2:]), lhs_spec),
        feature_group_count=groups,
        batch_group_count=1,
    )
    # StableHLO's convolution does not reverse the kernel, so its transpose does.
    out = transposed.bind(ct, rev(rhs, dimensions=rhs_spec[2:]))
    if params.batch_group_count > 1:
        out = _merge(split_axis(out, lhs_spec[1], params.batch_group_count), lhs_spec[1], lhs_spec[0])
    return out


def _of_kernel(ct: Any, aval: ShapedArray, lhs: Any, params: _Params) -> Any:
    """The kernel's cotangent: the input convolved with ct, summed over examples; feature groups and batch groups are
    exchanged."""
    lhs_spec, rhs_spec, out_spec = params.dimension_numbers
    strides, base, gaps = params.window_strides, params.lhs_dilation, params.rhs_dilation
    sides = zip(
        _spatial(typeof(lhs).shape, lhs_spec),
        _spatial(aval.shape, rhs_spec),
        _spatial(typeof(ct).shape, out_spec),
        params.padding,
        strict=True,
    )
    # The padding behind the input leaves the cotangent, as a window, as many positions as the kernel has elements.
    pads = tuple(
        (low, dilated(k, d) + dilated(out, s) - 1 - dilated(n, b) - low)
        for (n, k, out, (low, _)), s, b, d in zip(sides, strides, base, gaps, strict=True)
    )
    # Examples are summed over, and take the place of features. Strides and dilations of the kernel change places too.
    swapped = [(spec[1], spec[0], *spec[2:]) for spec in params.dimension_numbers]
    exchanged = params._replace(
        window_strides=gaps,
        padding=pads,
        rhs_dilation=strides,
        dimension_numbers=ConvDimensionNumbers(swapped[0], swapped[2], swapped[1]),
        feature_group_count=params.batch_group_count,
        batch_group_count=params.feature_group_count,
    )
    return exchanged.bind(lhs, ct)


# --- batching -------------------------------------------------------------------------------------------


def _with_groups(x: Any, dim: int, axis: int, groups: int) -> Any:
    """`x` with its mapped axis `dim` merged into `axis`, between groups and the rest: (groups, mapped, rest)."""
    x = move_axis(x, dim, 0)
    if groups > 1:
        x = split_axis(x, axis + 1, groups)
        return _merge(_merge(x, 0, axis + 1), axis, axis)
    return _merge(x, 0, axis)


def _conv_batch(axis: BatchAxis, args: Sequence[Any], dims: Sequence[Dim], **params: Any) -> tuple[Any, Dim]:
    (lhs, rhs), (ld, rd) = args, dims
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    features, batches = params["feature_group_count"], params["batch_group_count"]
    if ld is not None and rd is not None:
        # Each mapped example becomes a group: a batch group if there are batch groups, else a feature group.
        # XLA allows one kind of groups in a convolution.
        at = lhs_spec[0] if batches > 1 else lhs_spec[1]
        count = {"batch_group_count": axis.size * batches} if batches > 1 else {}
        count = count or {"feature_group_count": axis.size * features}
        lhs, rhs = _merge(lhs, ld, at), _merge(rhs, rd, rhs_spec[0])
        out = conv_general_dilated(lhs, rhs, **{**params, **count})
        return split_axis(out, out_spec[1], axis.size), out_spec[1]
    if ld is not None:
        # Mapped inputs join the examples, mapped kernels the features of the output.
        out = conv_general_dilated(_with_groups(lhs, ld, lhs_spec[0], batches), rhs, **params)
        return split_axis(out, out_spec[0], axis.size), out_spec[0]
    assert rd is not None
    groups = max(features, batches)
    out = conv_general_dilated(lhs, _with_groups(rhs, rd, rhs_spec[0], groups), **params)
    if groups > 1:
        out = split_axis(split_axis(out, out_spec[1], groups), out_spec[1] + 1, axis.size)
        return _merge(out, out_spec[1], out_spec[1] + 1), out_spec[1]
    return split_axis(out, out_spec[1], axis.size), out_spec[1]


def _conv_sharding(out: ShapedArray, lhs: ShapedArray, rhs: ShapedArray, **params: Any) -> Entries:
    """The batch may be split, and spatial axes that stay divisible."""
    numbers = params["dimension_numbers"]
    avals, lhs_entries = (lhs, rhs), entries_of(lhs)
    if rhs.spec is not None or lhs_entries[numbers.lhs_spec[1]]:
        refuse(
            "conv_general_dilated", "channels are split, so that it is not clear how the result is", avals, OUT_SHARDING
        )
    entries = list(lhs_entries)
    for at, lhs_at in zip(numbers.out_spec, numbers.lhs_spec, strict=True):
        entries[at] = lhs_entries[lhs_at]
        if lhs_entries[lhs_at] and out.shape[at] % lhs.spec.pieces(lhs_at):  # type: ignore[union-attr]
            refuse(
                "conv_general_dilated", f"axis {at} of the result, {out.short}, cannot be split", avals, OUT_SHARDING
            )
    return tuple(entries)


conv_general_dilated = Primitive(
    "conv_general_dilated",
    types=_conv_types,
    sharding=_conv_sharding,
    lower=_conv_lower,
    jvp=bilinear_jvp(lambda: conv_general_dilated),
    transpose=in_auto(_conv_transpose),
    batch=_conv_batch,
    pad=conv_pad,
    show=shown_with(out_sharding=None),
    nan_checked=True,
    series="bilinear",
)
